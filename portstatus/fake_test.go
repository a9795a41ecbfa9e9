// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/portstatus"
)

// fake is a Tracker on a fake switch, in a synctest bubble.
type fake struct {
	*portstatus.Tracker
	t  *testing.T
	sw *ofctrltest.Switch
	// stop ends the Tracker and its session and returns Run's error.
	stop func() error
}

// newFake starts a Tracker on a fake switch that has the named ports. With
// o.Bridge set it goes without the database.
func newFake(t *testing.T, o portstatus.Options, ports ...string) *fake {
	t.Helper()
	sw := ofctrltest.New(t)
	for _, name := range ports {
		sw.AddPort(name, nil)
	}
	if o.Bridge == "" {
		o.DB, o.Bridge = sw.DB(), sw.Name()
	} else {
		o.Bridge = ""
	}
	return startFake(t, sw, o)
}

// startFake starts a Tracker on a switch that is there already.
func startFake(t *testing.T, sw *ofctrltest.Switch, o portstatus.Options) *fake {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	sess := ofctrl.NewSession(sw, nil)
	f := &fake{Tracker: portstatus.New(&o), t: t, sw: sw}
	ended := make(chan error, 2)
	go func() { ended <- sess.Run(ctx) }()
	run := make(chan error, 1)
	go func() { run <- f.Run(ctx, sess) }()
	f.stop = func() error {
		cancel()
		<-ended
		err := <-run
		run <- err
		ended <- nil
		return err
	}
	t.Cleanup(func() { _ = f.stop() })
	synctest.Wait()
	return f
}

// bare makes a Tracker without a database.
var bare = portstatus.Options{Bridge: "none"}

func (f *fake) wait(name string, c portstatus.Condition) portstatus.Port {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Hour)
	defer cancel()
	port, err := f.Wait(ctx, name, c)
	require.NoError(f.t, err)
	return port
}

// fails waits in vain for a minute and returns the error.
func (f *fake) fails(name string, c portstatus.Condition) error {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	_, err := f.Wait(ctx, name, c)
	var w *portstatus.WaitError
	require.ErrorAs(f.t, err, &w)
	require.NotEmpty(f.t, w.Missing)
	require.ErrorIs(f.t, err, context.DeadlineExceeded)
	return err
}

// result is what a Wait in the background came to.
type result struct {
	port portstatus.Port
	err  error
}

func (f *fake) waiting(ctx context.Context, name string, c portstatus.Condition) <-chan result {
	done := make(chan result, 1)
	go func() {
		port, err := f.Wait(ctx, name, c)
		done <- result{port, err}
	}()
	synctest.Wait()
	return done
}

// watch collects the events of a Watch as text.
func (f *fake) watch(names ...string) func() string {
	return f.collect(func(ctx context.Context, got func(string)) {
		for e, err := range f.Watch(ctx, names...) {
			if err != nil {
				return
			}
			got(eventText(e))
		}
	})
}

func eventText(e portstatus.Event) string {
	text := e.Kind.String()
	if e.Port.Name != "" {
		text += " " + e.Port.Name
	}
	if e.Kind == portstatus.Renumbered {
		text += fmt.Sprintf(" %d->", e.OldNumber)
	}
	if e.Port.Number != 0 {
		text += fmt.Sprintf(" %d", e.Port.Number)
	}
	if e.Port.Live {
		text += " live"
	}
	if e.Port.Installed {
		text += " installed"
	}
	return text
}

// ready collects the ports of a Ready as text.
func (f *fake) ready(c portstatus.Condition) func() string {
	return f.collect(func(ctx context.Context, got func(string)) {
		for port, err := range f.Ready(ctx, c) {
			if err != nil {
				return
			}
			got(fmt.Sprintf("%v %d/%d", port.Instance, port.Number, port.Epoch))
		}
	})
}

// collect runs a reader in the background; the result returns what it got since
// the last call, when nothing happens any more.
func (f *fake) collect(read func(ctx context.Context, got func(string))) func() string {
	var mu sync.Mutex
	var all []string
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		read(ctx, func(text string) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, text)
		})
	}()
	f.t.Cleanup(func() { cancel(); <-done })
	return func() string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		text := strings.Join(all, "; ")
		all = nil
		return text
	}
}
