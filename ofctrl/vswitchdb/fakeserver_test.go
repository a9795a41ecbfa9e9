// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

// fakeConn is the server's end of one connection.
type fakeConn struct {
	nc  net.Conn
	dec *json.Decoder
}

// request reads the next request, which is empty at the end.
func (c fakeConn) request() (text string, id int) {
	var raw json.RawMessage
	var request struct{ ID int }
	if c.dec.Decode(&raw) != nil || json.Unmarshal(raw, &request) != nil {
		return "", 0
	}
	return string(raw), request.ID
}

// send writes a text in which %d is the request's id.
func (c fakeConn) send(text string, id int) {
	_, _ = io.WriteString(c.nc, strings.ReplaceAll(text, "%d", fmt.Sprint(id))) // the client may have hung up
}

// drain keeps quiet until the client hangs up.
func (c fakeConn) drain() { _, _ = io.Copy(io.Discard, c.nc) }

// fake returns options that connect to a server of which each function handles
// one connection and hangs up when it returns.
func fake(t *testing.T, handlers ...func(fakeConn)) *vswitchdb.Options {
	t.Helper()
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	next := make(chan func(fakeConn), len(handlers))
	for _, handler := range handlers {
		next <- handler
	}
	o := quick()
	o.NetDial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case handler := <-next:
			client, server := net.Pipe()
			wg.Go(func() {
				defer func() { _ = server.Close() }()
				handler(fakeConn{nc: server, dec: json.NewDecoder(server)})
			})
			return client, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return o
}

const (
	fakeRows = `{"id":%d,"error":null,"result":{
		"Open_vSwitch":{"11111111-1111-1111-1111-111111111111":{"initial":{"cur_cfg":5}}},
		"Bridge":{"b":{"initial":{"name":"br0","ports":["uuid","p"]}}},
		"Port":{"p":{"initial":{"interfaces":["uuid","i"]}}},
		"Interface":{"i":{"initial":{"name":"p1","ofport":1}}}}}`
	fakeFlag   = `{"id":%d,"error":null,"result":[{"rows":[{"other_config":["map",[["flow-restore-wait","true"]]]}]}]}`
	fakeUpdate = `{"method":"update2","id":null,"params":["Open_vSwitch",%s]}`
)

// rowsThen answers the monitor request with text and keeps quiet.
func rowsThen(text string) func(fakeConn) {
	return func(c fakeConn) {
		if _, id := c.request(); id != 0 {
			c.send(text, id)
			c.drain()
		}
	}
}

func TestBadServers(t *testing.T) {
	for _, test := range []struct{ name, sent, want string }{
		{"another database", `{"id":%d,"result":null,"error":{"error":"unknown database"}}`, `monitor_cond: server refused: {"error":"unknown database"}`},
		{"no OVSDB", `{"id":%d,"result":null,"error":"unknown method"}`, "server refused: unknown method"},
		{"no JSON-RPC", "SSH-2.0-OpenSSH_9.2\r\n", "malformed message"},
		{"malformed rows", `{"id":%d,"result":{"Interface":{"i":{"initial":{"ofport":["set",[1,2]]}}}}}`, "table Interface, row i: malformed data from the server: column ofport: 2 values"},
		{"table unknown", fakeRows + fmt.Sprintf(fakeUpdate, `{"Other":{"x":{"insert":{}}}}`), "table Other, row x"},
		{"row twice", fakeRows + fmt.Sprintf(fakeUpdate, `{"Interface":{"i":{"insert":{"name":"p1"}}}}`), "table Interface, row i: malformed data from the server: insert of a row that was known: true"},
		{"row unknown", fakeRows + fmt.Sprintf(fakeUpdate, `{"Bridge":{"c":{"modify":{}}}}`), "modify of a row that was known: false"},
		{"deleted twice", fakeRows + fmt.Sprintf(fakeUpdate, `{"Bridge":{"c":{"delete":null}}}`), "delete of a row that was known: false"},
		{"unknown update", fakeRows + fmt.Sprintf(fakeUpdate, `{"Bridge":{"b":{"rename":{}}}}`), "unknown kind of update"},
		{"two updates", fakeRows + fmt.Sprintf(fakeUpdate, `{"Bridge":{"b":{"delete":null,"insert":{}}}}`), "2 updates of one row"},
		{"no update", fakeRows + `{"method":"update2","id":null,"params":[1]}`, "update2 with parameters"},
	} {
		t.Run(test.name, func(t *testing.T) {
			// It is told, and the next connection makes it good.
			db := run(t, "tcp:127.0.0.1", fake(t, rowsThen(test.sent), rowsThen(fakeRows)))
			events := watch(t, db, "br0")
			down := events.until(func(event vswitch.InterfaceEvent) bool { return event.Kind == vswitch.DatabaseDown })
			require.ErrorContains(t, down.Err, test.want)
			events.until(func(event vswitch.InterfaceEvent) bool { return event.Kind == vswitch.InterfacesSynced })
			require.NoError(t, db.WaitConfig(within(t), 5))
		})
	}
}

func TestWhatIsNotAskedForIsIgnored(t *testing.T) {
	db := run(t, "tcp:127.0.0.1", fake(t, rowsThen(
		`{"method":"update2","params":[]}{"method":"stolen","params":[]}`+fakeRows+`{"method":"locked","params":["x"]}`+
			fmt.Sprintf(fakeUpdate, `{"Open_vSwitch":{"11111111-1111-1111-1111-111111111111":{"modify":{"cur_cfg":6}}}}`))))
	require.NoError(t, db.WaitConfig(within(t), 6))
}

// A server that hangs up with a transaction: a write may have been done and is
// not sent again, a read is.
func TestServerHangsUpWithARequest(t *testing.T) {
	hangUp := func(c fakeConn) {
		_, id := c.request()
		c.send(fakeRows, id)
		c.request()
	}
	guard := vswitch.Guard{UUID: "22222222-2222-2222-2222-222222222222"}
	t.Run("write", func(t *testing.T) {
		seen := make(chan string, 1)
		db := run(t, "tcp:127.0.0.1", fake(t, hangUp, func(c fakeConn) {
			_, id := c.request()
			c.send(fakeRows, id)
			text, id := c.request()
			seen <- text
			c.send(fakeFlag, id)
			c.drain()
		}))
		_, err := db.SetExternalIDs(within(t), guard, map[string]string{"a": "b"}, nil)
		require.ErrorIs(t, err, vswitchdb.ErrUnknownOutcome)
		require.EqualError(t, err, "vswitchdb: set external_ids at tcp:127.0.0.1: sent, but the result is unknown: the server closed the connection")
		_, err = db.FlowRestoreWait(within(t))
		require.NoError(t, err)
		require.Contains(t, <-seen, `"select"`, "not the write again")
	})
	t.Run("read", func(t *testing.T) {
		db := run(t, "tcp:127.0.0.1", fake(t, hangUp, hangUp, func(c fakeConn) {
			_, id := c.request()
			c.send(fakeRows, id)
			_, id = c.request()
			c.send(fakeFlag, id)
			c.drain()
		}))
		set, err := db.FlowRestoreWait(within(t))
		require.NoError(t, err)
		require.True(t, set)
	})
}

func TestBadResults(t *testing.T) {
	for _, test := range []struct{ reply, want string }{
		{`{"id":%d,"error":null,"result":{}}`, "malformed data from the server: transaction result"},
		{`{"id":%d,"error":null,"result":[]}`, "0 results of 1 operations"},
		{`{"id":%d,"error":null,"result":[null]}`, "operation 0 was not run"},
		{`{"id":%d,"error":null,"result":[{"rows":[]}]}`, "the Open_vSwitch table is empty"},
		{`{"id":%d,"error":null,"result":[{"rows":[{"other_config":[]}]}]}`, "column other_config: not a map"},
		{`{"id":%d,"error":null,"result":[{}, {"error":"constraint violation","details":"why"}]}`, "transaction refused: constraint violation: why"},
		{`{"id":%d,"error":null,"result":[{"error":"not supported"}]}`, "transaction refused: not supported"},
		{`{"id":%d,"error":"no","result":null}`, "transact: server refused: no"},
	} {
		db := run(t, "tcp:127.0.0.1", fake(t, func(c fakeConn) {
			_, id := c.request()
			c.send(fakeRows, id)
			_, id = c.request()
			c.send(test.reply, id)
			c.drain()
		}))
		_, err := db.FlowRestoreWait(within(t))
		require.ErrorContains(t, err, test.want)
		require.NotErrorIs(t, err, vswitchdb.ErrUnknownOutcome)
	}
}

func TestBadResultOfAWrite(t *testing.T) {
	for _, reply := range []string{`{"id":%d,"result":[]}`, `{"id":%d,"result":[{"count":"x"}]}`} {
		db := run(t, "tcp:127.0.0.1", fake(t, func(c fakeConn) {
			_, id := c.request()
			c.send(fakeRows, id)
			_, id = c.request()
			c.send(reply, id)
			c.drain()
		}))
		_, err := db.SetExternalIDs(within(t), vswitch.Guard{UUID: "22222222-2222-2222-2222-222222222222"}, map[string]string{"a": "b"}, nil)
		require.ErrorIs(t, err, vswitchdb.ErrUnknownOutcome)
		require.ErrorIs(t, err, vswitchdb.ErrMalformed)
	}
}
