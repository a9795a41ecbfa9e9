// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/flowgate/flowgate/internal/ofp"
)

// run is the running of one scenario on one target.
type run struct {
	t       target
	clients []*client
	xid     uint32 // of the last message
	fresh   bool   // reset was done
}

// defaultClient is the connection that commands without '@' use.
const defaultClient = "c"

// do runs a command and returns what came of it.
func (r *run) do(ctx context.Context, command string) ([]string, error) {
	name, awaited, where := defaultClient, 0, ""
	if rest, ok := strings.CutPrefix(command, "wait "); ok {
		var n string
		n, command, _ = strings.Cut(rest, " ")
		n, where, _ = strings.Cut(n, "@")
		var err error
		if awaited, err = strconv.Atoi(n); err != nil {
			return nil, err
		}
	}
	if rest, ok := strings.CutPrefix(command, "@"); ok {
		name, command, _ = strings.Cut(rest, " ")
	}
	verb, rest, _ := strings.Cut(command, " ")
	rest = strings.TrimSpace(rest)
	if verb == "bridge" {
		return nil, r.reset(ctx, rest)
	}
	if err := r.reset(ctx, ""); err != nil {
		return nil, err
	}
	lines, done, err := r.control(ctx, verb, strings.Fields(rest))
	if err == nil && !done {
		lines, err = r.message(ctx, name, verb, rest)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	received, err := r.sync(func(c *client) int {
		if where != "" && c.name != where {
			return 0
		}
		return awaited
	})
	lines = append(lines, received...)
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, r.t.bridge()+" ", "BRIDGE ")
	}
	return lines, err
}

func (r *run) reset(ctx context.Context, options string) error {
	if r.fresh {
		return nil
	}
	r.fresh = true
	var o bridgeOptions
	for word := range strings.FieldsSeq(options) {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "standalone":
			o.standalone = true
		case "protocols":
			o.protocols = strings.Split(value, ",")
		default:
			return fmt.Errorf("unknown option %q of the bridge", word)
		}
	}
	return r.t.reset(ctx, o)
}

// sync waits for every connection, and for as many messages on each as are
// awaited, and returns what has arrived.
func (r *run) sync(awaited func(*client) int) ([]string, error) {
	var lines []string
	for _, c := range r.clients {
		frames, closed, err := c.sync()
		for err == nil && !closed && len(frames) < awaited(c) {
			var msg []byte
			if _, msg, err = c.read(); err == nil {
				frames = append(frames, msg)
			}
		}
		got := describe(frames)
		if closed {
			got = append(got, "closed")
		}
		for _, line := range got {
			if c.name != defaultClient {
				line = "@" + c.name + " " + line
			}
			lines = append(lines, line)
		}
		if err != nil {
			return lines, err
		}
	}
	return lines, nil
}

// close ends the connections.
func (r *run) close() {
	for _, c := range r.clients {
		_ = c.nc.Close()
	}
}

// control runs a command that is not a message on a connection. It reports
// whether it knows the verb.
func (r *run) control(ctx context.Context, verb string, args []string) (lines []string, done bool, err error) {
	arg := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	switch verb {
	case "add-port", "replace-port", "set-port":
		o, perr := parsePortOptions(args[1:])
		if perr != nil {
			return nil, true, perr
		}
		err = map[string]func(context.Context, string, portOptions) error{
			"add-port": r.t.addPort, "replace-port": r.t.replacePort, "set-port": r.t.setPort,
		}[verb](ctx, arg(0), o)
	case "add-ports": // PREFIX N
		n, _ := strconv.Atoi(arg(1))
		for i := range n {
			if err = r.t.addPort(ctx, fmt.Sprintf("%s%d", arg(0), i), portOptions{}); err != nil {
				break
			}
		}
	case "del-port":
		err = r.t.delPort(ctx, arg(0))
	case "link":
		err = r.t.setLink(ctx, arg(0), arg(1) == "up")
	case "interfaces":
		lines, err = r.t.interfaces(ctx)
	case "controllers":
		err = r.t.controllers(ctx, args...)
	case "flag":
		switch arg(0) {
		case "set", "clear":
			err = r.t.setFlag(ctx, arg(0) == "set")
		default:
			var set bool
			set, err = r.t.flag(ctx)
			lines = []string{fmt.Sprintf("flag=%t", set)}
		}
	case "kill":
		err = r.t.kill(ctx)
	case "crashed":
		r.t.broken()
	case "start":
		err = r.t.start(ctx)
	case "flows":
		lines, err = r.t.flows(ctx)
	case "groups":
		lines, err = r.t.groups(ctx)
	case "inject":
		err = r.t.inject(ctx, arg(0), strings.Join(args[1:], " "))
	case "sent":
		var n uint64
		n, err = r.t.sent(ctx, arg(0))
		lines = []string{fmt.Sprintf("%s sent=%d", arg(0), n)}
	default:
		return nil, false, nil
	}
	return lines, true, err
}

func parsePortOptions(words []string) (portOptions, error) {
	var o portOptions
	for _, word := range words {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "type":
			o.typ = value
		case "request":
			n, err := strconv.ParseUint(value, 10, 16)
			if err != nil {
				return o, err
			}
			o.request = uint32(n)
		default:
			return o, fmt.Errorf("unknown option %q of a port", word)
		}
	}
	return o, nil
}

// message runs a command on a connection.
func (r *run) message(ctx context.Context, name, verb, rest string) ([]string, error) {
	if verb == "connect" {
		return r.connect(ctx, name, rest)
	}
	c, err := r.client(ctx, name)
	if err != nil {
		return nil, err
	}
	switch verb {
	case "read": // N messages, or the end
		n, err := strconv.Atoi(rest)
		if err != nil {
			return nil, err
		}
		return r.read(c, n)
	case "disconnect":
		err := c.nc.Close()
		r.clients = slices.DeleteFunc(r.clients, func(o *client) bool { return o == c })
		return nil, err
	}
	r.xid++
	msg, err := r.encode(r.xid, verb, rest)
	if err != nil {
		return nil, err
	}
	// Its messages are waited for first: only then have those that it causes on
	// other connections been sent.
	r.clients = append([]*client{c}, slices.DeleteFunc(r.clients, func(o *client) bool { return o == c })...)
	return nil, c.send(msg)
}

func (r *run) read(c *client, n int) ([]string, error) {
	var lines []string
	for range n {
		_, msg, err := c.read()
		if err != nil {
			c.closed = true
			return append(lines, "@"+c.name+" closed"), nil //nolint:nilerr // the end is what was asked for
		}
		lines = append(lines, "@"+c.name+" "+describeMessage(msg))
	}
	return lines, nil
}

// client finds a connection; the default one is made when it is first used.
func (r *run) client(ctx context.Context, name string) (*client, error) {
	for _, c := range r.clients {
		if c.name == name {
			return c, nil
		}
	}
	if name != defaultClient {
		return nil, fmt.Errorf("no connection @%s", name)
	}
	if _, err := r.connect(ctx, name, ""); err != nil {
		return nil, err
	}
	return r.clients[len(r.clients)-1], nil
}

// connect opens a connection: 'bare' says nothing on it, 'quiet' exchanges
// HELLO, else everything is switched on.
func (r *run) connect(ctx context.Context, name, how string) ([]string, error) {
	c, err := newClient(ctx, r.t, name)
	if err != nil {
		return []string{"refused"}, nil //nolint:nilerr // an outcome
	}
	r.clients = append(r.clients, c)
	if how == "bare" {
		return nil, nil
	}
	if err := c.handshake(); err != nil {
		r.clients = r.clients[:len(r.clients)-1]
		_ = c.nc.Close()
		return []string{"refused"}, nil //nolint:nilerr // an outcome
	}
	if how != "quiet" {
		err = c.configure()
	}
	return nil, err
}

// number reads a decimal or 0x number.
func number(s string, bits int) (uint64, error) { return strconv.ParseUint(s, 0, bits) }

// header begins a message.
func header(t ofp.Type, xid uint32) []byte { return ofp.AppendHeader(nil, t, xid) }
