// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"

	"github.com/flowgate/flowgate/ofctrl"
)

// Options shape a change. A nil *Options, and a zero field, mean the default
// named.
type Options struct {
	// MaxFailures is how many refused messages are collected before the
	// bundle is given up early: 100. Once a refusal is known, at most some
	// thousand messages more are sent to find others.
	MaxFailures int

	// ChunkSize, if not zero, gives up that the change is atomic: it is split
	// into bundles of at most so many messages, committed one after another. A
	// commit keeps ovs-vswitchd's main thread for some 2 to 4 microseconds a
	// flow, in which it answers no one and no port event is sent; chunks of
	// 10,000 bound that to some 40 ms. When a chunk fails, those before it stay
	// (see Partial).
	ChunkSize int
	// Rate bounds how many messages are sent in a second; zero is no bound. It
	// must be more than one in ten seconds, or the switch gives up the bundle.
	Rate int

	// Settle, if set, is called when the switch has confirmed the change,
	// before the change is reported as done: to wait until the datapath does as
	// the flows say. See SettleNow, SettleByAppctl and SettleFor. When it fails the
	// outcome is Applied all the same; the error wraps ErrNotSettled.
	Settle func(context.Context, *ofctrl.Conn) error

	// Progress, if set, is told of the progress: after every few thousand
	// messages and at each stage. It runs on the caller's goroutine.
	Progress func(Progress)
}

// Progress tells how far a change is.
type Progress struct {
	Stage Stage
	Read  int // flows that were read from the switch, at StageRead
	Sent  int // messages handed to the connection
	Total int // messages that there are to send, 0 where it is not known
}

const (
	defaultMaxFailures = 100
	progressEvery      = 4096
)

// orDefault returns the options with the defaults filled in.
func (o *Options) orDefault() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.MaxFailures <= 0 {
		out.MaxFailures = defaultMaxFailures
	}
	return out
}

// progress is the caller's function, or one that does nothing.
func (o *Options) progress() func(Progress) {
	if o == nil || o.Progress == nil {
		return func(Progress) {}
	}
	return o.Progress
}

// ofTotal is the options with a Progress that tells the total.
func (o *Options) ofTotal(total int) *Options {
	if o == nil || o.Progress == nil {
		return o
	}
	with, tell := *o, o.Progress
	with.Progress = func(p Progress) {
		p.Total = total
		tell(p)
	}
	return &with
}
