// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"

	"github.com/sirupsen/logrus"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
)

// fakeLab is the fake switch.
type fakeLab struct{ sw *ofctrltest.Switch }

func newFakeLab(log logrus.FieldLogger) (lab, error) {
	sw, err := ofctrltest.Start(&ofctrltest.Options{Name: labBridge, Standalone: true, Held: true, Logger: log})
	if err != nil {
		return nil, err
	}
	return &fakeLab{sw}, nil
}

func (l *fakeLab) String() string { return "the fake switch of package ofctrltest" }

func (l *fakeLab) connector() ofctrl.Connector { return l.sw }

func (l *fakeLab) database() database { return l.sw.DB() }

func (l *fakeLab) run(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func (l *fakeLab) addPort(_ context.Context, name string, ids map[string]string) error {
	l.sw.AddPort(name, &ofctrltest.PortOptions{ExternalIDs: maps.Clone(ids)})
	return nil
}

func (l *fakeLab) externalIDs(_ context.Context, port string) (map[string]string, error) {
	return l.sw.ExternalIDs(port), nil
}

func (l *fakeLab) stall(context.Context) error {
	l.sw.Stall()
	return nil
}

func (l *fakeLab) resume() error {
	l.sw.Resume()
	return nil
}

func (l *fakeLab) crash(context.Context) error {
	l.sw.Restart()
	return nil
}

func (l *fakeLab) inject(_ context.Context, port string, p packet) error {
	_, err := l.sw.Inject(port, fmt.Sprintf("udp,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,nw_src=%s,nw_dst=%s,tp_dst=%d", p.from, p.to, p.port))
	return err
}

func (l *fakeLab) settle(context.Context) error { return nil }

func (l *fakeLab) close() error { return l.sw.Close() }
