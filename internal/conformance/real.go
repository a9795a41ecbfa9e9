// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/flowgate/flowgate/internal/ovssandbox"
)

// real is a private Open vSwitch as a target. Each scenario has a bridge of its
// own name; all share the daemons.
type real struct {
	sb    *ovssandbox.Sandbox
	n     int
	dirty bool // the daemon may be dead or held, or the flag set
	down  bool
}

// version is that of the ovs-vswitchd: "3.1.0".
func (r *real) version(ctx context.Context) (string, error) {
	text, err := r.sb.Appctl(ctx, "version")
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(text, "\n")
	return first[strings.LastIndexByte(first, ' ')+1:], nil
}

func (r *real) reset(ctx context.Context, o bridgeOptions) error {
	if r.dirty {
		if err := r.sb.Restart(ctx, false); err != nil {
			return err
		}
		r.dirty, r.down = false, false
	}
	if r.n > 0 {
		if _, err := r.sb.Vsctl(ctx, "--", "--if-exists", "del-br", r.bridge()); err != nil {
			return err
		}
	}
	r.n++
	b := ovssandbox.Bridge{Name: r.bridge(), Protocols: o.protocols}
	if o.standalone {
		b.FailMode = "standalone"
	}
	return r.sb.AddBridge(ctx, b)
}

func (r *real) broken() { r.dirty = true }

func (r *real) bridge() string { return fmt.Sprintf("br%d", r.n) }

func (r *real) connect(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", strings.TrimPrefix(r.sb.MgmtAddr(r.bridge()), "unix:"))
}

func (o portOptions) columns() []string {
	columns := []string{"type=dummy"}
	if o.typ != "" {
		columns[0] = "type=" + o.typ
	}
	if o.request != 0 {
		return append(columns, fmt.Sprintf("ofport_request=%d", o.request))
	}
	return append(columns, "ofport_request=[]")
}

func (r *real) vsctl(ctx context.Context, args ...string) error {
	if r.down {
		args = append([]string{"--no-wait"}, args...)
	}
	_, err := r.sb.Vsctl(ctx, args...)
	return err
}

func (r *real) addPort(ctx context.Context, name string, o portOptions) error {
	return r.vsctl(ctx, append([]string{"--", "add-port", r.bridge(), name, "--", "set", "Interface", name}, o.columns()...)...)
}

func (r *real) delPort(ctx context.Context, name string) error {
	return r.vsctl(ctx, "--", "del-port", r.bridge(), name)
}

func (r *real) replacePort(ctx context.Context, name string, o portOptions) error {
	args := []string{"--", "del-port", r.bridge(), name, "--", "add-port", r.bridge(), name, "--", "set", "Interface", name}
	return r.vsctl(ctx, append(args, o.columns()...)...)
}

func (r *real) setPort(ctx context.Context, name string, o portOptions) error {
	return r.vsctl(ctx, append([]string{"--", "set", "Interface", name}, o.columns()...)...)
}

func (r *real) setLink(ctx context.Context, name string, up bool) error {
	return r.sb.SetLink(ctx, name, up)
}

func (r *real) interfaces(ctx context.Context) ([]string, error) {
	out, err := r.sb.Vsctl(ctx, "--no-wait", "-f", "csv", "--no-headings", "--columns=name,ofport,error", "list", "Interface")
	if err != nil {
		return nil, err
	}
	var rows []string
	for line := range strings.Lines(out) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ",")
		ofport, message, _ := strings.Cut(rest, ",")
		if ofport == "[]" {
			ofport = "0"
		}
		row := name + " ofport=" + ofport
		if message != "[]" {
			row += " error"
		}
		rows = append(rows, row)
	}
	slices.Sort(rows)
	return rows, nil
}

func (r *real) controllers(ctx context.Context, targets ...string) error {
	if len(targets) == 0 {
		return r.vsctl(ctx, "--", "del-controller", r.bridge())
	}
	return r.vsctl(ctx, append([]string{"--", "set-controller", r.bridge()}, targets...)...)
}

func (r *real) setFlag(ctx context.Context, held bool) error {
	if held {
		r.dirty = true
		return r.sb.SetHeld(ctx, true)
	}
	_, err := r.sb.Vsctl(ctx, "remove", "Open_vSwitch", ".", "other_config", "flow-restore-wait")
	return err
}

func (r *real) flag(ctx context.Context) (bool, error) {
	out, err := r.sb.Vsctl(ctx, "--no-wait", "get", "Open_vSwitch", ".", "other_config")
	return strings.Contains(out, `flow-restore-wait="true"`), err
}

func (r *real) kill(ctx context.Context) error {
	r.dirty, r.down = true, true
	return r.sb.Vswitchd().Kill(ctx)
}

func (r *real) start(ctx context.Context) error {
	r.down = false
	return r.sb.Vswitchd().Start(ctx)
}

func (r *real) flows(ctx context.Context) ([]string, error) {
	lines, err := r.sb.DumpFlows(ctx, r.bridge())
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	slices.Sort(lines)
	return lines, err
}

func (r *real) groups(ctx context.Context) ([]string, error) {
	out, err := r.sb.Ofctl(ctx, "--no-names", "dump-groups", r.bridge())
	var lines []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "group_id=") {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return lines, err
}

func (r *real) inject(ctx context.Context, port, packet string) error {
	dump, err := r.sb.Ofctl(ctx, "compose-packet", packet)
	if err != nil {
		return err
	}
	// Each line is an offset, two spaces, then up to 16 bytes.
	var hex strings.Builder
	for line := range strings.Lines(dump) {
		if _, digits, ok := strings.Cut(line, "  "); ok {
			hex.WriteString(strings.NewReplacer(" ", "", "-", "", "\n", "").Replace(digits))
		}
	}
	return r.sb.Inject(ctx, port, hex.String())
}

func (r *real) sent(ctx context.Context, port string) (uint64, error) {
	return r.sb.TxPackets(ctx, r.bridge(), port)
}
