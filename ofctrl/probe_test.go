// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProbe(t *testing.T) {
	type step struct {
		at     int // seconds since the start
		do     string
		action probeAction
		wait   int
		silent int // since when, -1 for not
	}
	for _, tt := range []struct {
		name           string
		interval, dead int
		steps          []step
	}{
		{"answered in time", 5, 10, []step{
			{0, "", probeWait, 5, -1},
			{5, "", probeAsk, 5, -1},
			{6, "received", probeWait, 5, -1},
			{11, "", probeAsk, 5, -1},
		}},
		{"activity needs no probe", 5, 10, []step{
			{4, "received", probeWait, 5, -1},
			{5, "", probeWait, 4, -1},
			{8, "received", probeWait, 5, -1},
			{12, "", probeWait, 1, -1},
		}},
		{"dead after two intervals", 5, 10, []step{
			{5, "", probeAsk, 5, -1},
			{9, "", probeWait, 1, -1},
			{10, "", probeDead, 0, 0},
		}},
		{"silent for long before it is dead", 5, 600, []step{
			{5, "", probeAsk, 5, -1},
			{10, "", probeWait, 590, 0},
			{599, "", probeWait, 1, 0},
			{599, "received", probeWait, 5, -1},
		}},
		{"never dead", 5, -1, []step{
			{5, "", probeAsk, 5, -1},
			{9999, "", probeWait, 5, 0},
		}},
		{"this process was stopped: the switch has its interval", 5, 10, []step{
			{1000, "", probeAsk, 5, -1},
			{1004, "", probeWait, 1, -1},
			{1005, "", probeDead, 0, 0},
		}},
		{"a commit is outstanding", 5, 10, []step{
			{1, "suspend", probeWait, 5, -1},
			{5, "", probeWait, 5, -1},
			{6, "", probeWait, 5, 1},
			{500, "suspend", probeWait, 5, 1},
			{600, "resume", probeWait, 5, -1},
			{605, "", probeWait, 5, 600},
			{9999, "resume", probeWait, 5, -1},
			{10004, "", probeAsk, 5, -1},
			{10009, "", probeDead, 0, 9999},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Unix(1000, 0)
			p := probe{interval: time.Duration(tt.interval) * time.Second, dead: time.Duration(tt.dead) * time.Second, last: start}
			for _, s := range tt.steps {
				now := start.Add(time.Duration(s.at) * time.Second)
				switch s.do {
				case "received":
					p.received(now)
				case "suspend":
					p.suspend(now)
				case "resume":
					p.resume(now)
				}
				action, wait := p.next(now)
				require.Equal(t, s.action, action, "%+v", s)
				require.Equal(t, time.Duration(s.wait)*time.Second, wait, "%+v", s)
				var since time.Time
				if s.silent >= 0 {
					since = start.Add(time.Duration(s.silent) * time.Second)
				}
				require.Equal(t, since, p.silent(now), "%+v", s)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	local, remote := (*Options)(nil).withDefaults(true), (*Options)(nil).withDefaults(false)
	require.Equal(t, 5*time.Second, remote.ProbeInterval)
	require.Equal(t, 10*time.Second, remote.DeadInterval)
	require.Equal(t, 10*time.Minute, local.DeadInterval)
	require.EqualValues(t, 128, local.MissSendLen)

	o := (&Options{DeadInterval: 4 * time.Second, SendBuffer: -1, MultipartBytes: -1, FrameTimeout: -1}).withDefaults(false)
	require.Equal(t, 2*time.Second, o.ProbeInterval, "asked before it is given up")
	require.Equal(t, defaultSendBuffer, o.SendBuffer)
	require.Equal(t, defaultMultipartBytes, o.MultipartBytes)
	require.Equal(t, defaultFrameTimeout, o.FrameTimeout)
	o = (&Options{DeadInterval: -1}).withDefaults(true)
	require.Negative(t, o.DeadInterval)
	require.Equal(t, 5*time.Second, o.ProbeInterval)
}
