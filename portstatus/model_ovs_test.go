// SPDX-License-Identifier: Apache-2.0

package portstatus_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/portstatus"
)

func TestModelOnOpenVSwitch(t *testing.T) {
	ovs := ovssandbox.New(t, nil)
	for seed := range sequences(2, 200) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			w := &ovsWorld{agent: start(t, ovs, portstatus.Options{Marks: true}, true)}
			o, stop := observe(t, w.Tracker)
			defer stop()
			play(t, w, o, rand.New(rand.NewPCG(uint64(seed), 1)), 16)
		})
	}
}

// ovsWorld is a private Open vSwitch.
type ovsWorld struct {
	*agent
	stalled bool
}

func (w *ovsWorld) step(r *rand.Rand) {
	ctx := w.t.Context()
	name := modelNames[r.IntN(len(modelNames))]
	add := append([]string{"--", "--may-exist", "add-port", "br0", name, "--", "set", "Interface", name}, w.columns(r)...)
	del := []string{"--", "--if-exists", "del-port", name}
	change := func(args ...string) { w.vsctl(append([]string{"--no-wait"}, args...)...) }
	var err error
	switch r.IntN(14) {
	case 0, 1, 2, 3:
		change(add...)
	case 4, 5:
		change(del...)
	case 6, 7, 8:
		change(append(del, add...)...)
	case 9:
		if !w.stalled {
			_ = w.ovs.SetLink(ctx, name, r.IntN(2) == 0) // it may not be there
		}
	case 10:
		w.sess.Reconnect(errors.New("as the test wants it"))
	case 11:
		err = w.ovs.Restart(ctx, false)
		w.stalled = false
	case 12:
		if !w.stalled {
			err = w.ovs.Vswitchd().Stall(ctx)
			w.stalled = true
		}
	case 13:
		require.NoError(w.t, w.ovs.OVSDB().Kill(ctx))
		err = w.ovs.OVSDB().Start(ctx)
	}
	require.NoError(w.t, err)
}

func (w *ovsWorld) columns(r *rand.Rand) []string {
	kind := "dummy"
	switch r.IntN(8) {
	case 0:
		kind = "internal"
	case 1:
		kind = "nosuch"
	}
	columns := []string{"type=" + kind}
	if r.IntN(4) == 0 {
		columns = append(columns, fmt.Sprint("ofport_request=", 40000+r.IntN(3)))
	}
	if r.IntN(2) == 0 {
		columns = append(columns, fmt.Sprint("external_ids:iface-id-ver=uid", r.IntN(4)))
	}
	return columns
}

func (w *ovsWorld) calm() {
	if w.stalled {
		require.NoError(w.t, w.ovs.Vswitchd().Resume())
		w.stalled = false
	}
}

var portState = regexp.MustCompile(`(?m)^ (\d+|LOCAL)\(.*\n(?:.*\n)*?     state: +(.*)$`)

func (w *ovsWorld) truth() map[string]truth {
	text := w.vsctl("--format=json", "--columns=name,_uuid,ofport,external_ids", "list", "Interface")
	var table struct{ Data [][]json.RawMessage }
	require.NoError(w.t, json.Unmarshal([]byte(text), &table))
	ports, err := w.ovs.Ofctl(w.t.Context(), "--no-names", "dump-ports-desc", "br0")
	require.NoError(w.t, err)
	live := make(map[uint32]bool)
	for _, m := range portState.FindAllStringSubmatch(ports, -1) {
		number, err := strconv.ParseUint(strings.Replace(m[1], "LOCAL", "65534", 1), 10, 32)
		require.NoError(w.t, err)
		live[uint32(number)] = strings.Contains(m[2], "LIVE")
	}
	all := make(map[string]truth)
	for _, row := range table.Data {
		var name string
		var uuid [2]string
		var ofport int
		var ids [2]any
		require.NoError(w.t, json.Unmarshal(row[0], &name))
		require.NoError(w.t, json.Unmarshal(row[1], &uuid))
		_ = json.Unmarshal(row[2], &ofport) // ["set",[]] for none
		require.NoError(w.t, json.Unmarshal(row[3], &ids))
		text := fmt.Sprint(ids[1])
		is := truth{UUID: uuid[1], Failed: ofport < 0, Installed: strings.Contains(text, "[flowgate-installed ")}
		if ofport > 0 {
			is.Number, is.Live = uint32(ofport), live[uint32(ofport)]
		}
		all[name] = is
	}
	return all
}

func (w *ovsWorld) quiet(picture func() map[string]truth) {
	w.t.Helper()
	w.vsctl("set", "Open_vSwitch", ".", "external_ids:quiet=1") // waits for ovs-vswitchd
	w.vsctl("remove", "Open_vSwitch", ".", "external_ids", "quiet")
	deadline := time.Now().Add(patience)
	for {
		got, want := picture(), w.truth()
		if local, ok := got["br0"]; ok { // the database has another number for it
			local.Number = 65534
			got["br0"] = local
		}
		unmarked := false
		for _, port := range want {
			unmarked = unmarked || port.Live && !port.Installed || port.Number == 0 && port.Installed
		}
		if maps.Equal(got, want) && !unmarked {
			return
		}
		if time.Now().After(deadline) {
			require.Equal(w.t, want, got)
			require.False(w.t, unmarked)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
