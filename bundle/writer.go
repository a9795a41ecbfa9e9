// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
)

// Options shape a bundle. A nil *Options, and a zero field, mean the default
// named.
type Options struct {
	// MaxFailures is how many refused messages are collected before the
	// bundle is given up early: 100.
	MaxFailures int
	// Progress, if set, is told of the progress: after every few thousand
	// messages and at each stage. It runs on the caller's goroutine.
	Progress func(Progress)
}

// Progress tells how far a bundle is.
type Progress struct {
	Stage Stage
	Sent  int // messages handed to the connection
}

const (
	defaultMaxFailures = 100
	progressEvery      = 4096
	discardTimeout     = 5 * time.Second
)

// Writer writes one bundle: Add its messages, then Commit or Close. Memory does
// not grow with the number of messages. It is not safe for concurrent use.
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
	opened   bool
	added    int
	local    ofctrl.Failures // refused here, before being sent
	scratch  []byte
	err      error // set once the bundle has ended
}

// Begin starts a bundle on the connection. Nothing is sent before the first
// Add: the switch gives up a bundle that is idle for ten seconds.
func Begin(conn *ofctrl.Conn, o *Options) *Writer {
	w := &Writer{conn: conn, pipeline: conn.Pipeline(), id: conn.NewBundleID()}
	if o != nil {
		w.opts = *o
	}
	if w.opts.MaxFailures <= 0 {
		w.opts.MaxFailures = defaultMaxFailures
	}
	return w
}

// Add adds a message. It does not wait for the switch, except that no more than
// some thousand messages are unanswered. Once the bundle can not be committed
// any more it returns the *Error that Commit would.
func (w *Writer) Add(ctx context.Context, m ofctrl.Message) error {
	if w.err != nil {
		return w.err
	}
	if err := w.open(ctx); err != nil {
		return err
	}
	raw, err := ofctrl.AppendMessage(ofp.BeginBundleAdd(w.scratch[:0], w.id, ofp.BundleFlags), m)
	w.scratch = raw
	if err == nil {
		err = bundleable(raw)
	}
	if err == nil {
		raw, err = ofp.Finish(raw, 0)
	}
	index := w.added
	w.added++
	if err != nil {
		w.local = append(w.local, ofctrl.Failure{Index: index, Message: m, Err: err})
		return w.abort(ctx, nil)
	}
	if err := w.pipeline.SendRaw(ctx, raw, m); err != nil {
		return w.abort(ctx, err)
	}
	if w.pipeline.Refused() >= w.opts.MaxFailures {
		return w.abort(ctx, nil)
	}
	if w.opts.Progress != nil && w.added%progressEvery == 0 {
		w.opts.Progress(Progress{StageAdd, w.added})
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

// bundleable refuses a message that the switch would refuse for its type.
func bundleable(add []byte) error {
	switch t := ofp.Type(add[ofp.BundleAddOverhead+1]); t {
	case ofp.TypeFlowMod, ofp.TypeGroupMod, ofp.TypePacketOut:
		return nil
	default:
		return fmt.Errorf("%v: %w", t, ErrNotBundleable)
	}
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
	e := &Error{Stage: StageCommit, ID: w.id}
	switch _, refused := errors.AsType[*ofctrl.SwitchError](err); {
	case refused:
		// The error that names the message came before this one.
		if failures, ok := errors.AsType[ofctrl.Failures](w.pipeline.Sync(ctx)); ok {
			e.Failures = w.own(failures)
		}
		e.Err = w.reason(err)
	case ofctrl.SafeToRetry(err):
		// The switch discards the bundle with the connection.
		e.Err = err
	default:
		e.Err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	w.end(e)
	return e
}

// abort discards the bundle and returns why it was not committed.
func (w *Writer) abort(ctx context.Context, err error) error {
	e := &Error{Stage: StageAdd, ID: w.id, Err: err}
	failures, ok := errors.AsType[ofctrl.Failures](err)
	if err == nil {
		// Given up early: ask for what else was refused meanwhile.
		failures, ok = errors.AsType[ofctrl.Failures](w.pipeline.Sync(ctx))
	}
	if ok {
		e.Failures, e.Err = w.own(failures), w.reason(failures)
	}
	e.Failures = append(e.Failures, w.local...)
	w.discard(ctx)
	w.end(e)
	return e
}

// own turns the pipeline's indexes, where the open request has 0, into ours,
// and drops what is not a message of the caller's.
func (w *Writer) own(failures ofctrl.Failures) ofctrl.Failures {
	var own ofctrl.Failures
	for _, f := range failures {
		if f.Index--; f.Index < 0 || len(own) >= w.opts.MaxFailures {
			continue
		}
		if raw, ok := f.Message.(ofctrl.RawMessage); ok {
			if add, err := ofp.ParseBundleAdd(raw); err == nil {
				f.Message = ofctrl.RawMessage(add.Message)
			}
		}
		own = append(own, f)
	}
	return own
}

// reason adds ErrExpired to the error of a bundle that the switch gave up.
func (w *Writer) reason(err error) error {
	if errors.Is(err, ofctrl.ErrBundleTimeout) {
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
		w.opts.Progress(Progress{s, w.added})
	}
}

// Apply installs the messages in one bundle: all of them, or none. An empty
// sequence sends nothing. Any error is an *Error; see OutcomeOf.
func Apply(ctx context.Context, conn *ofctrl.Conn, msgs iter.Seq[ofctrl.Message], o *Options) error {
	w := Begin(conn, o)
	defer w.Close(ctx)
	for m := range msgs {
		if err := w.Add(ctx, m); err != nil {
			return err
		}
	}
	if w.added == 0 {
		return nil
	}
	return w.Commit(ctx)
}

// Refused is how many messages the switch has refused so far. Commit will fail
// when it is not 0.
func (w *Writer) Refused() int { return w.pipeline.Refused() + len(w.local) }
