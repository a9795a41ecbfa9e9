// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func gates(list ...gate) []*gate {
	var all []*gate
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

func TestBoardStartsGatesInOrder(t *testing.T) {
	began := time.Unix(1000, 0)
	b := newBoard(gates(
		gate{name: "pods", opts: GateOptions{After: []string{"policy"}}},
		gate{name: "policy"},
	), began)
	names := func(list []*gate) (names []string) {
		for _, g := range list {
			names = append(names, g.name)
		}
		return names
	}
	require.Equal(t, []string{"policy"}, names(b.start()))
	require.Empty(t, b.start(), "it runs already")
	waiting := b.waiting(began)
	require.Equal(t, []string{"policy"}, waiting[0].After)
	require.Equal(t, `"pods" (waits for policy)`, waiting[0].String())
	require.Equal(t, `"policy" (at work)`, waiting[1].String())

	b.returned("policy", errors.New("not yet"))
	require.Equal(t, `"policy" (failed 1 times: not yet)`, b.waiting(began)[1].String())
	require.Empty(t, b.start())
	b.returned("policy", nil)
	require.Equal(t, []string{"pods"}, names(b.start()))
	b.returned("pods", nil)
	require.Empty(t, b.waiting(began))
	v, again := b.verdict(began)
	require.Equal(t, verdictGo, v)
	require.Zero(t, again)
}

func TestBoardVerdict(t *testing.T) {
	began := time.Unix(1000, 0)
	keep := gate{name: "keep", opts: GateOptions{Policy: KeepHolding, Timeout: time.Second}}
	open := gate{name: "open", opts: GateOptions{Policy: OpenAnyway, Timeout: 2 * time.Second}}
	abort := gate{name: "abort", opts: GateOptions{Policy: Abort, Timeout: 3 * time.Second}}
	never := gate{name: "never", opts: GateOptions{Policy: Abort}}
	for _, test := range []struct {
		name  string
		gates []gate
		at    time.Duration
		want  verdict
		again time.Duration // after began; 0: never
	}{
		{"none", nil, 0, verdictGo, 0},
		{"keep in time", []gate{keep}, 0, verdictWait, time.Second},
		{"keep late", []gate{keep}, time.Second, verdictWait, 0},
		{"open in time", []gate{open}, time.Second, verdictWait, 2 * time.Second},
		{"open late", []gate{open}, 2 * time.Second, verdictOpen, 0},
		{"keep beats open", []gate{keep, open}, 2 * time.Second, verdictWait, 0},
		{"open, then keep", []gate{open, keep}, 2 * time.Second, verdictWait, 0},
		{"open waits for abort", []gate{open, abort}, 2 * time.Second, verdictWait, 3 * time.Second},
		{"abort beats all", []gate{keep, open, abort}, 3 * time.Second, verdictAbort, 0},
		{"nothing is late without a timeout", []gate{never}, time.Hour, verdictWait, 0},
	} {
		v, again := newBoard(gates(test.gates...), began).verdict(began.Add(test.at))
		require.Equal(t, test.want, v, test.name)
		if test.again == 0 {
			require.Zero(t, again, test.name)
		} else {
			require.Equal(t, began.Add(test.again), again, test.name)
		}
	}
}

func TestGateOrder(t *testing.T) {
	after := func(name string, others ...string) gate { return gate{name: name, opts: GateOptions{After: others}} }
	require.NoError(t, checkOrder(gates(after("a"), after("b", "a"), after("c", "a", "b"))))
	err := checkOrder(gates(after("a", "b"), after("b", "c"), after("c", "b")))
	require.ErrorIs(t, err, ErrGate)
	require.ErrorContains(t, err, "b after c after b")
	err = checkOrder(gates(after("a", "a")))
	require.ErrorContains(t, err, "a after a")
	err = checkOrder(gates(after("a", "nobody")))
	require.ErrorContains(t, err, `"a" is after "nobody", which is not declared`)
}
