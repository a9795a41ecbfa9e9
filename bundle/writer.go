// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// discardTimeout bounds how long a bundle that failed waits to tell the switch.
const discardTimeout = 5 * time.Second

// findMore is how many messages are still sent after a refusal is known, to
// find others.
const findMore = 4096

// Writer writes one bundle: Add its messages, then Commit or Close. Memory does
// not grow with the number of messages. It is not safe for concurrent use. Of
// the Options it looks at MaxFailures, Rate and Progress.
//
//	          Add                 barrier, nothing refused
//	open --> adding --- Commit ------------------------------> committing --> done
//	            |                                                  |
//	            +-- refused, lost, Close --> discarded <-- refused-+
type Writer struct {
	conn     *ofctrl.Conn
	pipeline *ofctrl.Pipeline
	id       uint32
	opts     Options
	pace     pace
	opened   bool
	base     int             // messages in former bundles of the same change
	added    int             // messages of the caller's
	splits   []split         // of those, the ones that took several
	stopAt   int             // when added reaches it no more is sent; 0: no refusal is known
	local    ofctrl.Failures // refused here, before being sent
	scratch  []byte
	err      error // set once the bundle has ended
}

// split is a message that was sent as several.
type split struct{ index, parts int }

// Begin starts a bundle on the connection. Nothing is sent before the first
// Add: the switch gives up a bundle that is idle for ten seconds.
func Begin(conn *ofctrl.Conn, o *Options) *Writer {
	w := &Writer{conn: conn, pipeline: conn.Pipeline(), id: conn.NewBundleID(), opts: o.orDefault()}
	w.pace.rate = w.opts.Rate
	return w
}

// Add adds a message. It does not wait for the switch, except that no more than
// some thousand messages are unanswered, and except for Options.Rate. Once the
// bundle can not be committed any more it returns the *Error that Commit would.
//
// A *flowtext.GroupMod that adds or modifies a group and is too long for one
// message is sent as several, which insert the buckets bit by bit.
func (w *Writer) Add(ctx context.Context, m ofctrl.Message) error {
	if w.err != nil {
		return w.err
	}
	if err := w.open(ctx); err != nil {
		return err
	}
	if err := w.pace.wait(ctx, w.pipeline.Flush); err != nil {
		return w.abort(ctx, err)
	}
	index := w.added
	w.added++
	err := w.send(ctx, m, m)
	if g, ok := m.(*flowtext.GroupMod); ok && isTooLong(err) {
		err = w.sendParts(ctx, g, index)
	}
	if local, ok := errors.AsType[unsendable](err); ok {
		w.local = append(w.local, ofctrl.Failure{Index: w.base + index, Message: m, Err: local.error})
		return w.abort(ctx, nil)
	}
	if err != nil {
		return w.abort(ctx, err)
	}
	if w.giveUp() {
		return w.abort(ctx, nil)
	}
	if w.added%progressEvery == 0 {
		w.progress(StageAdd)
	}
	return nil
}

// giveUp reports whether enough is known of what was refused.
func (w *Writer) giveUp() bool {
	refused := w.pipeline.Refused()
	if refused > 0 && w.stopAt == 0 {
		w.stopAt = w.added + findMore
	}
	return refused >= w.opts.MaxFailures || w.stopAt > 0 && w.added >= w.stopAt
}

// unsendable is the error of a message that can not be part of a bundle. It was
// not sent.
type unsendable struct{ error }

func (u unsendable) Unwrap() error { return u.error }

// send sends one message; shown is what is named if it is refused.
func (w *Writer) send(ctx context.Context, m, shown ofctrl.Message) error {
	raw, err := ofctrl.AppendMessage(ofp.BeginBundleAdd(w.scratch[:0], w.id, ofp.BundleFlags), m)
	w.scratch = raw
	if err == nil {
		err = bundleable(raw)
	}
	if err != nil {
		return unsendable{err}
	}
	if raw, err = ofp.Finish(raw, 0); err != nil {
		return unsendable{err}
	}
	return w.pipeline.SendRaw(ctx, raw, shown)
}

// sendParts sends a group that is too long for one message.
func (w *Writer) sendParts(ctx context.Context, g *flowtext.GroupMod, index int) error {
	parts, err := splitGroup(g)
	if err != nil {
		return unsendable{err}
	}
	w.splits = append(w.splits, split{index, len(parts)})
	for _, part := range parts {
		if err := w.send(ctx, part, g); err != nil {
			return err
		}
	}
	return nil
}

// open sends the open request on its way. It is a message of the pipeline, so
// that its refusal, and the expiry that is reported with its id, count as a
// refusal of the bundle.
func (w *Writer) open(ctx context.Context) error {
	if w.opened {
		return nil
	}
	w.opened = true
	open := ofp.AppendBundleControl(nil, 0, ofp.BundleControl{ID: w.id, Type: ofp.BundleOpen, Flags: ofp.BundleFlags})
	if err := w.pipeline.SendRaw(ctx, open, ofctrl.RawMessage(open)); err != nil {
		return w.abort(ctx, err)
	}
	return nil
}

// bundleable refuses a message that the switch would refuse for its type or
// that would not fit.
func bundleable(add []byte) error {
	switch t := ofp.Type(add[ofp.BundleAddOverhead+1]); t {
	case ofp.TypeFlowMod, ofp.TypeGroupMod, ofp.TypePacketOut:
	default:
		return fmt.Errorf("%v: %w", t, ErrNotBundleable)
	}
	if len(add) > ofp.MaxLen {
		return errTooBig
	}
	return nil
}

// Commit waits until the switch has taken all messages and, only if it refused
// none, commits the bundle and waits for the answer, as long as ctx lasts: a
// commit of millions of flows takes many seconds. A nil error means that the
// switch has confirmed the whole of it. Every other outcome is an *Error; see
// OutcomeOf.
func (w *Writer) Commit(ctx context.Context) error {
	if w.err != nil {
		return w.err
	}
	if err := w.open(ctx); err != nil {
		return err
	}
	w.progress(StageAdd)
	if err := w.pipeline.Sync(ctx); err != nil {
		return w.abort(ctx, err)
	}
	w.progress(StageCommit)
	_, err := w.conn.Do(ctx, w.control(ofp.BundleCommit))
	if err != nil {
		return w.commitFailed(ctx, err)
	}
	w.end(ErrDone)
	return nil
}

// commitFailed sorts out what an unsuccessful commit means.
func (w *Writer) commitFailed(ctx context.Context, err error) error {
	e := &Error{Stage: StageCommit, ID: w.id, Applied: w.base, Err: err}
	switch _, refused := errors.AsType[*ofctrl.SwitchError](err); {
	case refused:
		// The error that names the message came before this one.
		if failures, ok := errors.AsType[ofctrl.Failures](w.pipeline.Sync(ctx)); ok {
			e.Failures, e.Err = w.own(failures), w.reason(err, failures)
		}
	case ofctrl.SafeToRetry(err):
		// The switch discards the bundle with the connection.
	default:
		e.Err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	w.end(e)
	return e
}

// abort discards the bundle and returns why it was not committed.
func (w *Writer) abort(ctx context.Context, err error) error {
	e := &Error{Stage: StageAdd, ID: w.id, Applied: w.base, Err: err}
	failures, ok := errors.AsType[ofctrl.Failures](err)
	if err == nil {
		// Given up early: ask for what else was refused meanwhile.
		failures, ok = errors.AsType[ofctrl.Failures](w.pipeline.Sync(ctx))
	}
	if ok {
		e.Failures, e.Err = w.own(failures), w.reason(failures, failures)
	}
	e.Failures = append(e.Failures, w.local...)
	w.discard(ctx)
	w.end(e)
	return e
}

// own turns the pipeline's failures, where the open request has index 0, into
// the caller's, and drops what is not a message of the caller's.
func (w *Writer) own(failures ofctrl.Failures) ofctrl.Failures {
	var own ofctrl.Failures
	for _, f := range failures {
		if f.Index = w.callerIndex(f.Index); f.Index < 0 {
			continue
		}
		f.Index += w.base
		f.Message = refusedMessage(f.Message)
		own = append(own, f)
	}
	slices.SortStableFunc(own, func(a, b ofctrl.Failure) int { return a.Index - b.Index })
	return own[:min(len(own), w.opts.MaxFailures)]
}

// callerIndex is the index of the caller's message that message i of the
// pipeline belongs to.
func (w *Writer) callerIndex(i int) int {
	i-- // the open request
	for _, s := range w.splits {
		if i < s.index {
			break
		}
		i -= min(i-s.index, s.parts-1)
	}
	return i
}

// refusedMessage is what is shown of a message that the pipeline let go of: the
// message in the bundle add that the switch has sent back.
func refusedMessage(m ofctrl.Message) ofctrl.Message {
	raw, ok := m.(ofctrl.RawMessage)
	if !ok {
		return m
	}
	add, err := ofp.ParseBundleAdd(raw)
	if err != nil {
		return m
	}
	return decoded(add.Message)
}

// reason adds ErrExpired to the error of a bundle that the switch gave up.
func (w *Writer) reason(err error, failures ofctrl.Failures) error {
	if errors.Is(failures, ofctrl.ErrBundleTimeout) {
		return fmt.Errorf("%w: %w", ErrExpired, err)
	}
	return err
}

// Close discards the bundle unless it was committed or has failed already. It
// does not wait for the answer. It may be deferred right after Begin.
func (w *Writer) Close(ctx context.Context) {
	if w.err == nil {
		w.discard(ctx)
		w.end(ErrDone)
	}
}

// discard tells the switch to forget the bundle, even if the caller's context
// has ended. If it can not be told, it forgets the bundle by itself.
func (w *Writer) discard(ctx context.Context) {
	if !w.opened {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	_ = w.conn.Send(ctx, w.control(ofp.BundleDiscard))
}

func (w *Writer) control(t ofp.BundleControlType) ofctrl.Message {
	return ofctrl.RawMessage(ofp.AppendBundleControl(nil, 0, ofp.BundleControl{ID: w.id, Type: t, Flags: ofp.BundleFlags}))
}

func (w *Writer) end(err error) {
	w.err = err
	w.pipeline.Close()
}

func (w *Writer) progress(s Stage) {
	if w.opts.Progress != nil {
		w.opts.Progress(Progress{Stage: s, Sent: w.base + w.added})
	}
}

// Refused is how many messages the switch has refused so far. Commit will fail
// when it is not 0.
func (w *Writer) Refused() int { return w.pipeline.Refused() + len(w.local) }
