// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/ofctrl/vswitch"
	"github.com/flowgate/flowgate/ofctrl/vswitchdb"
)

// script is a server of which each connection answers the monitor request with
// the next text, in which %d is the request's id, and then keeps quiet.
func script(t *testing.T, texts ...string) *vswitchdb.Options {
	t.Helper()
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	next := make(chan string, len(texts))
	for _, text := range texts {
		next <- text
	}
	o := quick()
	o.NetDial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		var text string
		select {
		case text = <-next:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		client, server := net.Pipe()
		wg.Go(func() {
			defer server.Close()
			dec := json.NewDecoder(server)
			var request struct{ ID int }
			if dec.Decode(&request) != nil {
				return
			}
			_, _ = io.WriteString(server, strings.ReplaceAll(text, "%d", fmt.Sprint(request.ID))) // it may hang up
			_, _ = io.Copy(io.Discard, server)                                                    // until it does
		})
		return client, nil
	}
	return o
}

func TestBadServers(t *testing.T) {
	const (
		good = `{"id":%d,"error":null,"result":{
			"Open_vSwitch":{"11111111-1111-1111-1111-111111111111":{"initial":{"cur_cfg":5}}},
			"Bridge":{"b":{"initial":{"name":"br0","ports":["uuid","p"]}}},
			"Port":{"p":{"initial":{"interfaces":["uuid","i"]}}},
			"Interface":{"i":{"initial":{"name":"p1","ofport":1}}}}}`
		update = `{"method":"update2","id":null,"params":["Open_vSwitch",%s]}`
	)
	for _, test := range []struct{ name, sent, want string }{
		{"another database", `{"id":%d,"result":null,"error":{"error":"unknown database"}}`, `monitor_cond: server refused: {"error":"unknown database"}`},
		{"no OVSDB", `{"id":%d,"result":null,"error":"unknown method"}`, "server refused: unknown method"},
		{"no JSON-RPC", "SSH-2.0-OpenSSH_9.2\r\n", "malformed message"},
		{"malformed rows", `{"id":%d,"result":{"Interface":{"i":{"initial":{"ofport":["set",[1,2]]}}}}}`, "table Interface, row i: malformed data from the server: column ofport: 2 values"},
		{"table unknown", good + fmt.Sprintf(update, `{"Other":{"x":{"insert":{}}}}`), "table Other, row x"},
		{"row twice", good + fmt.Sprintf(update, `{"Interface":{"i":{"insert":{"name":"p1"}}}}`), "table Interface, row i"},
		{"row unknown", good + fmt.Sprintf(update, `{"Bridge":{"c":{"modify":{}}}}`), "table Bridge, row c"},
		{"unknown update", good + fmt.Sprintf(update, `{"Bridge":{"b":{"rename":{}}}}`), "unknown kind of update"},
		{"two updates", good + fmt.Sprintf(update, `{"Bridge":{"b":{"delete":null,"insert":{}}}}`), "2 updates of one row"},
		{"no update", good + `{"method":"update2","id":null,"params":[1]}`, "update2 with parameters"},
	} {
		t.Run(test.name, func(t *testing.T) {
			// It is told, and the next connection makes it good.
			db := run(t, "tcp:127.0.0.1", script(t, test.sent, good))
			events := watch(t, db, "br0")
			down := events.until(func(event vswitch.InterfaceEvent) bool { return event.Kind == vswitch.DatabaseDown })
			require.ErrorContains(t, down.Err, test.want)
			events.until(func(event vswitch.InterfaceEvent) bool { return event.Kind == vswitch.InterfacesSynced })
			require.NoError(t, db.WaitConfig(within(t), 5))
		})
	}
	t.Run("what is not asked for", func(t *testing.T) {
		db := run(t, "tcp:127.0.0.1", script(t, `{"method":"update2","params":[]}{"method":"stolen","params":[]}`+good+
			`{"method":"locked","params":["x"]}`+fmt.Sprintf(update, `{"Open_vSwitch":{"11111111-1111-1111-1111-111111111111":{"modify":{"cur_cfg":6}}}}`)))
		require.NoError(t, db.WaitConfig(within(t), 6))
	})
}

func TestTLS(t *testing.T) {
	sb := databaseOnly(t)
	// A certificate for example.com and 127.0.0.1.
	web := httptest.NewTLSServer(nil)
	certificates, ca := web.TLS.Certificates, x509.NewCertPool()
	ca.AddCert(web.Certificate())
	web.Close()

	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificates})
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			secure, err := listener.Accept()
			if err != nil {
				return
			}
			plain, err := net.Dial("unix", strings.TrimPrefix(sb.DBAddr(), "unix:"))
			if err != nil {
				_ = secure.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{secure, plain}, {plain, secure}} {
				wg.Go(func() {
					_, _ = io.Copy(pair[0], pair[1]) // until either hangs up
					_ = pair[0].Close()
				})
			}
		}
	})
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { _ = listener.Close() })

	addr := "ssl:" + listener.Addr().String()
	_, err = vswitchdb.New(addr, nil)
	require.ErrorContains(t, err, "ssl: needs Options.TLS")

	o := quick()
	o.TLS = &tls.Config{RootCAs: ca}
	_, err = run(t, addr, o).Bridge(within(t), "br0")
	require.NoError(t, err)

	o = quick()
	o.TLS = &tls.Config{} // trusts nobody who made this certificate
	down := watch(t, run(t, addr, o), "br0").event()
	require.Equal(t, vswitch.DatabaseDown, down.Kind)
	require.ErrorContains(t, down.Err, "certificate")
}
