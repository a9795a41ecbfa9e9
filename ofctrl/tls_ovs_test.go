// SPDX-License-Identifier: Apache-2.0

package ofctrl_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/flowgate/flowgate/internal/hostile"
	"github.com/flowgate/flowgate/internal/ovssandbox"
	"github.com/flowgate/flowgate/ofctrl"
)

// authority is a CA of a test, whose certificates carry no host name, as those
// of ovs-pki.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.key, a.cert = a.issue(t, "ca", nil)
	return a
}

// issue writes NAME-key.pem and NAME-cert.pem.
func (a *authority) issue(t *testing.T, name string, serial *big.Int) (*ecdsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	parent, signer := template, key
	if a.cert == nil {
		template.IsCA, template.BasicConstraintsValid = true, true
	} else {
		template.SerialNumber = serial
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(t, err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{
		a.file(name + "-key.pem"):  {Type: "EC PRIVATE KEY", Bytes: keyDER},
		a.file(name + "-cert.pem"): {Type: "CERTIFICATE", Bytes: der},
	} {
		require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return key, cert
}

func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// config issues a certificate and returns the configuration that uses it.
func (a *authority) config(t *testing.T, name string, serial int64) *tls.Config {
	t.Helper()
	a.issue(t, name, big.NewInt(serial))
	config, err := ofctrl.TLSFiles(a.file(name+"-key.pem"), a.file(name+"-cert.pem"), a.file("ca-cert.pem"))
	require.NoError(t, err)
	return config
}

// freePort finds a TCP port that nobody uses at the moment.
func freePort(t *testing.T, host string) int {
	t.Helper()
	ln, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// dialWhenUp dials until the switch listens.
func dialWhenUp(t *testing.T, addr string, o *ofctrl.Options) *ofctrl.Conn {
	t.Helper()
	var c *ofctrl.Conn
	require.Eventually(t, func() bool {
		var err error
		c, err = ofctrl.Dial(testContext(t), addr, o)
		return err == nil
	}, bound, 20*time.Millisecond, addr)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func TestOVSOverTCP(t *testing.T) {
	t.Parallel()
	ovs := ovssandbox.New(t, nil)
	for _, host := range []string{"127.0.0.1", "::1"} {
		port := freePort(t, host)
		_, err := ovs.Vsctl(testContext(t), "set-controller", "br0", fmt.Sprintf("ptcp:%d:[%s]", port, host))
		require.NoError(t, err)
		c := dialWhenUp(t, fmt.Sprintf("tcp:[%s]:%d", host, port), nil)
		require.NoError(t, c.Barrier(testContext(t)))
		if host == "127.0.0.1" { // the one that localhost always stands for
			c = dialWhenUp(t, fmt.Sprintf("tcp:localhost:%d", port), nil)
			require.NoError(t, c.Barrier(testContext(t)))
		}
	}
}

func TestOVSOverTLS(t *testing.T) {
	t.Parallel()
	ovs := ovssandbox.New(t, nil)
	ca := newAuthority(t)
	ca.issue(t, "switch", big.NewInt(2))
	_, err := ovs.Vsctl(testContext(t), "set-ssl", ca.file("switch-key.pem"), ca.file("switch-cert.pem"), ca.file("ca-cert.pem"))
	require.NoError(t, err)
	port := freePort(t, "127.0.0.1")
	_, err = ovs.Vsctl(testContext(t), "set-controller", "br0", fmt.Sprintf("pssl:%d:127.0.0.1", port))
	require.NoError(t, err)
	addr := fmt.Sprintf("ssl:127.0.0.1:%d", port)
	c := dialWhenUp(t, addr, &ofctrl.Options{TLS: ca.config(t, "agent", 3)})
	require.NoError(t, c.Exec(testContext(t), dropFlow(0, 1)))

	_, err = ofctrl.Dial(testContext(t), addr, nil)
	require.ErrorIs(t, err, ofctrl.ErrAddress)
	require.ErrorContains(t, err, "needs Options.TLS")
	stranger := newAuthority(t)
	_, err = ofctrl.Dial(testContext(t), addr, &ofctrl.Options{TLS: stranger.config(t, "agent", 2)})
	require.ErrorContains(t, err, "unknown authority")
	own := ca.config(t, "agent2", 4)
	own.Certificates = nil
	_, err = ofctrl.Dial(testContext(t), addr, &ofctrl.Options{TLS: own})
	require.Error(t, err, "the switch wants a certificate")
	_, err = ofctrl.Dial(testContext(t), fmt.Sprintf("tcp:127.0.0.1:%d", port), &ofctrl.Options{HandshakeTimeout: time.Second})
	require.Error(t, err, "no TLS spoken")
}

// Many switches connect to one process, over each kind of socket.
func TestOVSConnectsToUs(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	o := &ofctrl.Options{TLS: ca.config(t, "agent", 2)}
	ca.issue(t, "switch", big.NewInt(3))
	ovs := ovssandbox.New(t, &ovssandbox.Options{Bridges: []ovssandbox.Bridge{{Name: "br0"}, {Name: "br1"}}})
	_, err := ovs.Vsctl(testContext(t), "set-ssl", ca.file("switch-key.pem"), ca.file("switch-cert.pem"), ca.file("ca-cert.pem"))
	require.NoError(t, err)
	for _, tt := range []struct{ listen, target string }{
		{"ptcp:0:127.0.0.1", "tcp:%v"},
		{"ptcp:0:[::1]", "tcp:%v"},
		{"pssl:0:127.0.0.1", "ssl:%v"},
	} {
		ln := listen(t, tt.listen, o)
		// One that connects and hangs keeps nobody waiting.
		hung, err := net.Dial(ln.Addr().Network(), ln.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = hung.Close() })
		ids := make(map[uint64]bool)
		for _, bridge := range []string{"br0", "br1"} {
			ids[connectsTo(t, ovs, bridge, fmt.Sprintf(tt.target, ln.Addr()), ln)] = true
		}
		require.Len(t, ids, 2)
	}
	// The one Unix socket that ovs-vswitchd lets a controller have, see
	// vswitchd/bridge.c:bridge_configure_remotes.
	path := ovs.Rundir() + "/br0.controller"
	connectsTo(t, ovs, "br0", "unix:"+path, listen(t, "punix:"+path, nil))
}

func listen(t *testing.T, addr string, o *ofctrl.Options) *ofctrl.Listener {
	t.Helper()
	ln, err := ofctrl.Listen(testContext(t), addr, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ln.Close()) })
	return ln
}

// connectsTo makes a bridge connect to us, and returns its datapath id.
func connectsTo(t *testing.T, ovs *ovssandbox.Sandbox, bridge, target string, ln *ofctrl.Listener) uint64 {
	t.Helper()
	_, err := ovs.Vsctl(testContext(t), "set-controller", bridge, target)
	require.NoError(t, err)
	c, err := ln.Accept(testContext(t))
	require.NoError(t, err, target)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, c.Barrier(testContext(t)))
	return c.Features().DatapathID
}

func TestListener(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sock")
	ln, err := ofctrl.Listen(t.Context(), "punix:"+path, nil)
	require.NoError(t, err)
	_, err = ofctrl.Listen(t.Context(), "punix:"+path, nil)
	require.Error(t, err, "somebody listens there")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = ln.Accept(ctx)
	require.ErrorIs(t, err, context.Canceled)
	accepted := make(chan error, 1)
	go func() {
		_, err := ln.Accept(t.Context())
		accepted <- err
	}()
	require.NoError(t, ln.Close())
	require.NoError(t, ln.Close())
	require.ErrorIs(t, <-accepted, ofctrl.ErrClosed)
	_, err = ln.Accept(t.Context())
	require.ErrorIs(t, err, ofctrl.ErrClosed)

	// A socket file that was left behind is replaced.
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	stale.SetUnlinkOnClose(false)
	require.NoError(t, stale.Close())
	ln, err = ofctrl.Listen(t.Context(), "punix:"+path, nil)
	require.NoError(t, err)
	require.NoError(t, ln.Close())

	_, err = ofctrl.Listen(t.Context(), "pssl:0", nil)
	require.ErrorIs(t, err, ofctrl.ErrAddress)
	_, err = ofctrl.Listen(t.Context(), "tcp:1", nil)
	require.ErrorIs(t, err, ofctrl.ErrAddress)
}

// A peer that accepts and says nothing is bounded in the TLS handshake too.
func TestTLSWithASilentPeer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	ca := newAuthority(t)
	_, err = ofctrl.Dial(testContext(t), "ssl:"+ln.Addr().String(), &ofctrl.Options{
		TLS: ca.config(t, "agent", 2), HandshakeTimeout: 50 * time.Millisecond,
	})
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.ErrorContains(t, err, "hello")
}

// A hundred switches connect at once; each is a Conn of its own.
func TestListenerWithManySwitches(t *testing.T) {
	const n = 100
	ln := listen(t, "punix:"+filepath.Join(t.TempDir(), "sock"), nil)
	var switches sync.WaitGroup
	defer switches.Wait()
	for range n {
		switches.Go(func() {
			nc, err := net.Dial(ln.Addr().Network(), ln.Addr().String())
			require.NoError(t, err)
			peer := hostile.On(t, nc)
			peer.Handshake()
			peer.Barriers()
		})
	}
	for range n {
		c, err := ln.Accept(testContext(t))
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.Barrier(testContext(t)))
	}
}

func TestTLSFilesThatAreWrong(t *testing.T) {
	ca := newAuthority(t)
	ca.issue(t, "a", big.NewInt(2))
	_, err := ofctrl.TLSFiles(ca.file("nosuch"), ca.file("a-cert.pem"), ca.file("ca-cert.pem"))
	require.ErrorContains(t, err, "nosuch")
	_, err = ofctrl.TLSFiles(ca.file("a-key.pem"), ca.file("a-cert.pem"), ca.file("nosuch"))
	require.ErrorContains(t, err, "CA certificate")
	_, err = ofctrl.TLSFiles(ca.file("a-key.pem"), ca.file("a-cert.pem"), ca.file("a-key.pem"))
	require.ErrorContains(t, err, "no certificate in")
}
