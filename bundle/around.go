// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// undoTimeout bounds how long undoing may take, which goes on when the caller's
// context has ended.
const undoTimeout = 5 * time.Second

// apply brings a change onto the switch: what can not be in a bundle around
// what can.
//
//	prepare ---> bundle ---> clean up ---> settle ---> applied
//	   | refused    | refused    | refused
//	   +-- undo ----+            +--> partial
//	                | no answer
//	                +--> unknown, not undone: flows may need it
//
// meters are those that the switch had.
func (c *change) apply(ctx context.Context, conn *ofctrl.Conn, meters map[uint32]meter, o *Options) error {
	var undo []ofctrl.Message // last first
	for _, s := range []step{mapTLV, putMeter} {
		done, err := exec(ctx, conn, c.parts[s])
		for _, p := range done {
			undo = slices.Insert(undo, 0, inverse(p, meters))
		}
		if err != nil {
			return failed(ctx, conn, &Error{Stage: StagePrepare, Failures: failures(err, c.parts[s]), Err: err}, undo)
		}
	}
	list := c.bundled()
	applied, err := commitAll(ctx, conn, messages(list), o.ofTotal(len(list)))
	if e, ok := errors.AsType[*Error](err); ok {
		attribute(e.Failures, list)
		return failed(ctx, conn, e, undo)
	}
	if err := c.cleanUp(ctx, conn); err != nil {
		err.Applied = applied
		return err
	}
	return o.settle(ctx, conn)
}

// cleanUp deletes what the bundle has made superfluous.
func (c *change) cleanUp(ctx context.Context, conn *ofctrl.Conn) *Error {
	if err := cleanUpError(c.parts[deleteMeter], execAll(ctx, conn, c.parts[deleteMeter])); err != nil {
		return err
	}
	for i := range c.parts[unmapTLV] {
		one := c.parts[unmapTLV][i : i+1]
		err := untilUnused(ctx, func() error { return execAll(ctx, conn, one) })
		if err := cleanUpError(one, err); err != nil {
			return err
		}
	}
	return nil
}

func cleanUpError(list []planned, err error) *Error {
	if err == nil {
		return nil
	}
	e := &Error{Stage: StageCleanUp, Failures: failures(err, list), Err: err}
	if e.Failures == nil {
		e.Err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	return e
}

func execAll(ctx context.Context, conn *ofctrl.Conn, list []planned) error {
	_, err := exec(ctx, conn, list)
	return err
}

// failed undoes what was done before a bundle that was not applied.
func failed(ctx context.Context, conn *ofctrl.Conn, e *Error, undo []ofctrl.Message) error {
	if len(undo) == 0 || OutcomeOf(e) != NotApplied {
		return e
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	e.Undo = conn.Exec(ctx, undo...)
	return e
}

// exec sends messages that can not be in a bundle and returns those that took
// effect, or may have.
func exec(ctx context.Context, conn *ofctrl.Conn, list []planned) (done []planned, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	err = conn.Exec(ctx, slices.Collect(messages(list))...)
	refused, ok := errors.AsType[ofctrl.Failures](err)
	switch {
	case err == nil:
		return list, nil
	case !ok && ofctrl.SafeToRetry(err):
		return nil, err
	}
	for i, p := range list {
		if !slices.ContainsFunc(refused, func(f ofctrl.Failure) bool { return f.Index == i }) {
			done = append(done, p)
		}
	}
	return done, err
}

// failures are the refusals in an error, named as the caller knows them.
func failures(err error, list []planned) ofctrl.Failures {
	f, _ := errors.AsType[ofctrl.Failures](err)
	attribute(f, list)
	return f
}

// attribute gives failures the index and the message of what was planned.
func attribute(failures ofctrl.Failures, list []planned) {
	for i := range failures {
		if f := &failures[i]; f.Index >= 0 && f.Index < len(list) {
			p := &list[f.Index]
			f.Index, f.Message = p.index, p.msg
		}
	}
}

// inverse undoes the addition or change of a meter, or the addition of a TLV
// map.
func inverse(p planned, meters map[uint32]meter) ofctrl.Message {
	raw := p.msg.(ofctrl.RawMessage) // as planned by Install and Diff
	if ofp.Type(raw[1]) != ofp.TypeMeterMod {
		return withTLVCommand(raw, tlvDelete)
	}
	id := binary.BigEndian.Uint32(raw[12:])
	if old, ok := meters[id]; ok {
		return old.mod(meterModify)
	}
	return deleteMeterMod(id)
}
