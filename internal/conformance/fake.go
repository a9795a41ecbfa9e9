// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"net"
	"slices"

	"github.com/flowgate/flowgate/ofctrl/ofctrltest"
	"github.com/flowgate/flowgate/ofctrl/vswitch"
)

// fake is ofctrltest's switch as a target.
type fake struct {
	tb ofctrltest.TB
	sw *ofctrltest.Switch
}

func (f *fake) reset(_ context.Context, o bridgeOptions) error {
	f.sw = ofctrltest.NewWith(f.tb, &ofctrltest.Options{Name: "br", Standalone: o.standalone, Protocols: o.protocols})
	return nil
}

func (f *fake) broken() {}

func (f *fake) bridge() string { return f.sw.Name() }

func (f *fake) connect(ctx context.Context) (net.Conn, error) { return f.sw.Connect(ctx, nil) }

// fakeError is what becomes of a port type that does not exist.
const fakeError = "could not open network device"

func (o portOptions) fake() *ofctrltest.PortOptions {
	p := &ofctrltest.PortOptions{Type: "dummy", OFPortRequest: o.request}
	if o.typ != "" {
		p.Type = o.typ
	}
	if o.typ == "nosuch" {
		p.Error = fakeError
	}
	return p
}

func (f *fake) addPort(_ context.Context, name string, o portOptions) error {
	f.sw.AddPort(name, o.fake())
	return nil
}

func (f *fake) delPort(_ context.Context, name string) error {
	f.sw.DelPort(name)
	return nil
}

func (f *fake) replacePort(_ context.Context, name string, o portOptions) error {
	f.sw.ReplacePort(name, o.fake())
	return nil
}

func (f *fake) setPort(_ context.Context, name string, o portOptions) error {
	f.sw.ConfigurePort(name, func(p *ofctrltest.PortOptions) { *p = *o.fake() })
	return nil
}

func (f *fake) setLink(_ context.Context, name string, up bool) error {
	f.sw.SetLink(name, up)
	return nil
}

func (f *fake) interfaces(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var rows []string
	for e, err := range f.sw.DB().WatchInterfaces(ctx, f.sw.Name()) {
		if err != nil {
			return nil, err
		}
		if e.Kind == vswitch.InterfacesSynced {
			break
		}
		rows = append(rows, rowText(e.Interface))
	}
	slices.Sort(rows)
	return rows, nil
}

func rowText(i vswitch.Interface) string {
	text := fmt.Sprintf("%s ofport=%d", i.Name, i.OFPort)
	if i.Error != "" {
		text += " error"
	}
	return text
}

func (f *fake) controllers(_ context.Context, targets ...string) error {
	var rows []vswitch.Controller
	for _, t := range targets {
		rows = append(rows, vswitch.Controller{Target: t})
	}
	f.sw.SetControllers(rows...)
	return nil
}

func (f *fake) setFlag(ctx context.Context, held bool) error {
	if held {
		return f.sw.DB().SetFlowRestoreWait(ctx)
	}
	cfg, err := f.sw.DB().ClearFlowRestoreWait(ctx)
	if err == nil {
		err = f.sw.DB().WaitConfig(ctx, cfg)
	}
	return err
}

func (f *fake) flag(ctx context.Context) (bool, error) { return f.sw.DB().FlowRestoreWait(ctx) }

func (f *fake) kill(context.Context) error {
	f.sw.Kill()
	return nil
}

func (f *fake) start(context.Context) error {
	f.sw.Restart()
	return nil
}

func (f *fake) flows(context.Context) ([]string, error) { return f.sw.Flows(), nil }

func (f *fake) groups(context.Context) ([]string, error) { return f.sw.Groups(), nil }

func (f *fake) inject(_ context.Context, port, packet string) error {
	_, err := f.sw.Inject(port, packet)
	return err
}

func (f *fake) sent(_ context.Context, port string) (uint64, error) { return f.sw.Sent(port), nil }
