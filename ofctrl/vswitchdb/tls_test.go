// SPDX-License-Identifier: Apache-2.0

package vswitchdb_test

import (
	"crypto/tls"
	"crypto/x509"
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

// secured listens with TLS and hands all on to a unix socket.
func secured(t *testing.T, path string, config *tls.Config) (addr string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", path)
			if err != nil {
				_ = client.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
				wg.Go(func() {
					_, _ = io.Copy(pair[0], pair[1]) // until either hangs up
					_ = pair[0].Close()
				})
			}
		}
	})
	t.Cleanup(wg.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

func TestTLS(t *testing.T) {
	sb := databaseOnly(t)
	// A certificate for example.com and 127.0.0.1.
	web := httptest.NewTLSServer(nil)
	certificates, ca := web.TLS.Certificates, x509.NewCertPool()
	ca.AddCert(web.Certificate())
	web.Close()
	addr := secured(t, strings.TrimPrefix(sb.DBAddr(), "unix:"), &tls.Config{Certificates: certificates})

	_, err := vswitchdb.New("ssl:"+addr, nil)
	require.ErrorContains(t, err, "ssl: needs Options.TLS")

	o := quick()
	o.TLS = &tls.Config{RootCAs: ca}
	_, err = run(t, "ssl:"+addr, o).Bridge(within(t), "br0")
	require.NoError(t, err)
	require.Empty(t, o.TLS.ServerName, "the caller's configuration is left alone")

	o = quick()
	o.TLS = &tls.Config{} // trusts nobody who made this certificate
	down := watch(t, run(t, "ssl:"+addr, o), "br0").event()
	require.Equal(t, vswitch.DatabaseDown, down.Kind)
	require.ErrorContains(t, down.Err, "certificate")
}
