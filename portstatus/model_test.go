// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/portstatus"
)

// A world is a switch with its database, on which random steps are made. The
// Tracker's picture must be the world's at every quiet point, and what it told
// on the way must make sense.
type world interface {
	// step makes one random step.
	step(r *rand.Rand)
	// calm brings back what was taken away.
	calm()
	// truth is what the ports are: by name, and only when calm.
	truth() map[string]truth
	// quiet waits until picture is the truth, or fails.
	quiet(picture func() map[string]truth)
}

// truth is a port as the switch and the database have it.
type truth struct {
	UUID      string
	Number    uint32 // 0 for none
	Live      bool
	Failed    bool
	Installed bool
}

// ports that the steps are about; the long names are cut to the same bytes.
var modelNames = []string{"p1", "p2", "p3", "exactly15bytes!", "verylongportname-1", "verylongportname-2", "verylongportname-3"}

// observer follows a Tracker by all the ways there are and checks each.
type observer struct {
	*portstatus.Tracker
	t *testing.T

	mu    sync.Mutex
	told  map[portstatus.Instance]portstatus.Port // by Watch
	ready map[readiness]bool                      // by Ready
	calls map[readiness]bool                      // by Notify
	wrong []string
}

type readiness struct {
	instance portstatus.Instance
	name     string
	number   uint32
	turn     uint64
}

func readinessOf(port portstatus.Port) readiness {
	return readiness{port.Instance, port.Name, port.Number, portstatus.Turn(port)}
}

// observe begins to follow; stop ends it.
func observe(t *testing.T, tracker *portstatus.Tracker) (o *observer, stop func()) {
	t.Helper()
	o = &observer{
		Tracker: tracker, t: t, told: make(map[portstatus.Instance]portstatus.Port),
		ready: make(map[readiness]bool), calls: make(map[readiness]bool),
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for e, err := range tracker.Watch(ctx) {
			if err != nil {
				return
			}
			o.event(e)
		}
	})
	work.Go(func() {
		for port, err := range tracker.Ready(ctx, boundLive) {
			if err != nil {
				return
			}
			o.note("Ready", o.ready, port)
			_ = tracker.MarkInstalled(ctx, port) // it may have passed
		}
	})
	end := tracker.Notify("", boundLive, func(port portstatus.Port) { o.note("Notify", o.calls, port) })
	return o, func() { cancel(); end(); work.Wait() }
}

// complain notes what must not be.
func (o *observer) complain(format string, args ...any) {
	o.wrong = append(o.wrong, fmt.Sprintf(format, args...))
}

func (o *observer) note(by string, told map[readiness]bool, port portstatus.Port) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := readinessOf(port)
	if told[key] {
		o.complain("%s told %v twice", by, key)
	}
	if port.Number == 0 || !port.Live || !port.Bound {
		o.complain("%s told %+v", by, port)
	}
	told[key] = true
}

// event replays what Watch told.
func (o *observer) event(e portstatus.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	port := e.Port
	was, known := o.told[port.Instance]
	switch e.Kind {
	case portstatus.Added:
		for i := range o.told {
			if o.told[i].Name == port.Name {
				o.complain("%v added before %v was removed", port.Instance, i)
			}
		}
		if known {
			o.complain("%v added twice", port.Instance)
		}
	case portstatus.Renumbered:
		if e.OldNumber == port.Number || !known || was.Number != 0 && was.Number != e.OldNumber {
			o.complain("renumbered from %d: %+v after %+v", e.OldNumber, port, was)
		}
	case portstatus.Changed, portstatus.Failed, portstatus.Removed:
		if !known {
			o.complain("%v of an unknown %v", e.Kind, port.Instance)
		}
	case portstatus.Waiting, portstatus.Synced, portstatus.Up, portstatus.Down, portstatus.Gap:
		return
	}
	if e.Kind == portstatus.Removed {
		delete(o.told, port.Instance)
	} else {
		o.told[port.Instance] = port
	}
}

// picture is what Get tells, if all the other ways agree with it.
func (o *observer) picture() map[string]truth {
	o.mu.Lock()
	defer o.mu.Unlock()
	picture := make(map[string]truth)
	for _, told := range o.told {
		port, ok, err := o.Get(told.Name)
		if !ok || err != nil || port.Instance != told.Instance {
			return nil
		}
		if port.Number != told.Number || port.Live != told.Live || port.Epoch != told.Epoch || port.Installed != told.Installed {
			return nil
		}
		if key := readinessOf(port); port.Number != 0 && port.Live && (!o.ready[key] || !o.calls[key]) {
			return nil
		}
		if port.Number != 0 && !port.Bound {
			return nil
		}
		picture[port.Name] = truth{
			UUID: port.UUID, Number: port.Number, Live: port.Live, Failed: port.Failed, Installed: port.Installed,
		}
	}
	return picture
}

// play makes steps in a world, with quiet points between.
func play(t *testing.T, w world, o *observer, r *rand.Rand, steps int) {
	t.Helper()
	for i := range steps {
		w.step(r)
		if i%8 != 7 && i != steps-1 {
			continue
		}
		w.calm()
		w.quiet(o.picture)
		o.mu.Lock()
		require.Empty(t, o.wrong)
		o.mu.Unlock()
	}
}

// sequences is how many sequences to play: few, or all if FLOWGATE_LONG is set.
func sequences(few, all int) int {
	if os.Getenv("FLOWGATE_LONG") != "" {
		return all
	}
	return few
}

func TestModelOnFake(t *testing.T) {
	for seed := range sequences(100, 5000) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &fakeWorld{t: t, sw: ofctrltest.New(t), listed: make(map[owner]bool)}
				w.sw.HandleSent(w.note)
				options := portstatus.Options{DB: w.sw.DB(), Bridge: w.sw.Name(), Marks: true}
				if seed%2 == 1 {
					options.Settle = settleSometimes(rand.New(rand.NewPCG(uint64(seed), 2)))
				}
				f := startFake(t, w.sw, options)
				o, stop := observe(t, f.Tracker)
				defer stop()
				play(t, w, o, rand.New(rand.NewPCG(uint64(seed), 0)), 40)
				o.mu.Lock()
				defer o.mu.Unlock()
				w.mu.Lock()
				defer w.mu.Unlock()
				for told := range o.ready {
					require.Contains(t, w.listed, owner{wireName(told.name), told.number}, "a number that the port never had")
				}
			})
		})
	}
}

// settleSometimes takes its time, and fails now and then.
func settleSometimes(r *rand.Rand) func(context.Context, *ofctrl.Conn) error {
	return func(context.Context, *ofctrl.Conn) error {
		time.Sleep(time.Duration(r.IntN(700)) * time.Millisecond)
		if r.IntN(4) == 0 {
			return errors.New("busy")
		}
		return nil
	}
}

// fakeWorld is the fake switch.
type fakeWorld struct {
	t  *testing.T
	sw *ofctrltest.Switch

	mu     sync.Mutex
	listed map[owner]bool // what numbers the switch has told of the ports
}

// owner is a port's name, as OpenFlow carries it, with a number that it had.
type owner struct {
	name   string
	number uint32
}

func wireName(name string) string { return name[:min(len(name), ofp.PortNameMax)] }

// note takes down what the switch tells of its ports.
func (w *fakeWorld) note(f ofctrl.Frame) ofctrltest.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, port, err := f.PortStatus(); err == nil {
		w.listed[owner{port.Name, port.Number}] = true
	}
	for port, err := range ofp.ParsePortDesc(f.Raw) {
		if err == nil {
			w.listed[owner{port.Name, port.Number}] = true
		}
	}
	return ofctrltest.Nothing
}

func (w *fakeWorld) step(r *rand.Rand) {
	name := modelNames[r.IntN(len(modelNames))]
	switch r.IntN(20) {
	case 0, 1, 2, 3:
		w.sw.AddPort(name, w.options(r))
	case 4, 5:
		w.sw.DelPort(name)
	case 6, 7, 8:
		w.sw.ReplacePort(name, w.options(r))
	case 9:
		w.sw.Renumber(name, 40000+r.Uint32N(3))
	case 10:
		w.sw.SetLink(name, r.IntN(2) == 0)
	case 11:
		w.sw.ConfigurePort(name, func(o *ofctrltest.PortOptions) { *o = *w.options(r) })
	case 12:
		w.sw.SetExternalIDs(name, map[string]string{"iface-id-ver": fmt.Sprint("uid", r.IntN(4))})
	case 13:
		w.sw.Disconnect()
	case 14:
		w.sw.Kill()
	case 15:
		w.sw.Restart()
	case 16:
		w.sw.Stall()
	case 17:
		w.sw.Resume()
	case 18:
		w.sw.DB().Stop()
	case 19:
		w.sw.DB().Start()
	}
	switch r.IntN(3) {
	case 0:
		synctest.Wait()
	case 1:
		time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
	}
}

func (w *fakeWorld) options(r *rand.Rand) *ofctrltest.PortOptions {
	o := &ofctrltest.PortOptions{}
	if r.IntN(2) == 0 {
		o.ExternalIDs = map[string]string{"iface-id-ver": fmt.Sprint("uid", r.IntN(4))}
	}
	switch r.IntN(8) {
	case 0:
		o.OFPortRequest = 40000 + r.Uint32N(3)
	case 1:
		o.Type = "internal"
	case 2:
		o.Error = "no such device"
	case 3:
		o.NoCarrier = true
	case 4:
		o.Late = true
	}
	return o
}

func (w *fakeWorld) calm() {
	w.sw.Resume()
	w.sw.DB().Start()
	nc, err := w.sw.Connect(w.t.Context(), nil)
	if err != nil {
		w.sw.Restart()
		return
	}
	_ = nc.Close()
}

func (w *fakeWorld) truth() map[string]truth {
	all := make(map[string]truth)
	for _, port := range append(w.sw.Ports(), w.sw.Port(w.sw.Name())) {
		mark := port.ExternalIDs["flowgate-installed"]
		all[port.Name] = truth{
			UUID: port.UUID, Number: port.Number, Live: port.Live, Failed: port.Number == 0 && port.Error != "",
			Installed: mark != "" && (mark == port.ExternalIDs["iface-id-ver"] || mark == port.UUID),
		}
	}
	return all
}

func (w *fakeWorld) quiet(picture func() map[string]truth) {
	w.t.Helper()
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	want := w.truth()
	require.Equal(w.t, want, picture())
	for name, port := range want {
		if port.Live {
			require.True(w.t, port.Installed, name)
		}
		if port.Number == 0 {
			require.NotContains(w.t, w.sw.ExternalIDs(name), "flowgate-installed")
		}
	}
}
