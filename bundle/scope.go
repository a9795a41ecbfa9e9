// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// Scope says which of the switch's flows and groups are the caller's, and so
// which of them Replace may change and delete. The zero Scope is refused with
// ErrScope.
type Scope struct {
	// Cookie and CookieMask select flows by their cookie: those whose cookie
	// equals Cookie in the bits of CookieMask.
	Cookie, CookieMask uint64
	// Tables selects flows by table; nil means all tables.
	Tables []uint8
	// Groups says that all groups of the bridge are in the scope. Groups have
	// no cookie.
	Groups bool
	// Meters says that all meters of the bridge are in the scope. Meters have
	// no cookie.
	Meters bool
	// Keep, if set, is asked of each flow in the scope that is not desired;
	// those that it returns true for stay: learned ones, for instance. A flow
	// whose actions can not be read has none here.
	Keep func(Flow) bool
	// Flows says that every flow of the bridge is meant, and All that the whole
	// bridge is, its groups and meters included. A Scope that has none of
	// CookieMask, Tables, Flows and All is refused.
	Flows, All bool
}

// Flow is a flow as the switch has it, counters included. Its Match and Actions
// refer to what was received: Clone one to keep it.
type Flow = flowtext.Flow

var (
	// ErrScope refuses a Scope that would mean the whole bridge without saying so.
	ErrScope = errors.New("bundle: the scope selects every flow of the bridge; set Flows, or All, if that is meant")
	// ErrOutOfScope refuses a desired flow that is outside the scope: it could
	// be installed, but would never be found again to be replaced.
	ErrOutOfScope = errors.New("bundle: outside the scope")
)

func (s Scope) check() error {
	if !s.All && !s.Flows && s.CookieMask == 0 && len(s.Tables) == 0 {
		return ErrScope
	}
	if s.Cookie&^s.CookieMask != 0 {
		return fmt.Errorf("bundle: scope: cookie %#x has bits outside its mask %#x", s.Cookie, s.CookieMask)
	}
	return nil
}

// contains checks that a desired flow is in the scope.
func (s Scope) contains(it *item) error {
	if it.slot.kind() != slotFlow {
		return nil
	}
	cookie, table := it.cookie(), it.slot[1]
	switch {
	case (cookie^s.Cookie)&s.CookieMask != 0:
		return fmt.Errorf("%w: cookie %#x, want %#x/%#x", ErrOutOfScope, cookie, s.Cookie, s.CookieMask)
	case len(s.Tables) > 0 && !slices.Contains(s.Tables, table):
		return fmt.Errorf("%w: table %d", ErrOutOfScope, table)
	}
	return nil
}

func (s Scope) groups() bool { return s.Groups || s.All }

func (s Scope) meters() bool { return s.Meters || s.All }

func (s Scope) tables() []uint8 {
	if len(s.Tables) == 0 {
		return []uint8{ofp.TableAll}
	}
	return s.Tables
}

// requests ask for the flows in the scope.
func (s Scope) requests() []ofp.FlowRequest {
	var list []ofp.FlowRequest
	for _, table := range s.tables() {
		r := ofp.AllFlows
		r.Table, r.Cookie, r.CookieMask = table, s.Cookie, s.CookieMask
		list = append(list, r)
	}
	return list
}

// Count asks the switch for the number of flows in the scope. It costs the
// switch a walk of its tables, not a dump.
func (s Scope) Count(ctx context.Context, conn *ofctrl.Conn) (int, error) {
	n := 0
	for _, table := range s.tables() {
		k, err := s.count(ctx, conn, table)
		if err != nil {
			return 0, err
		}
		n += k
	}
	if len(s.Tables) == 0 && s.CookieMask == ^uint64(0) {
		k, err := s.count(ctx, conn, ofp.TableInternal)
		return n - k, err
	}
	return n, nil
}

func (s Scope) count(ctx context.Context, conn *ofctrl.Conn, table uint8) (int, error) {
	request := ofp.AllFlows
	request.Table, request.Cookie, request.CookieMask = table, s.Cookie, s.CookieMask
	raw, err := ofp.AppendFlowRequest(nil, 0, ofp.MultipartAggregate, request)
	if err != nil {
		return 0, err
	}
	reply, err := conn.Do(ctx, ofctrl.RawMessage(raw))
	if err != nil {
		return 0, fmt.Errorf("bundle: count flows: %w", err)
	}
	sum, err := ofp.ParseAggregate(reply.Raw)
	if err != nil {
		return 0, fmt.Errorf("bundle: count flows: %w", err)
	}
	return int(sum.Flows), nil
}
