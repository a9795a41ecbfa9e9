// SPDX-License-Identifier: Apache-2.0

package jsonrpc_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flowgate/flowgate/ofctrl/vswitchdb/internal/jsonrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is the server's end of a connection, moved by the test.
type peer struct {
	t   *testing.T
	nc  net.Conn
	dec *json.Decoder
}

// start returns a connection that runs until the test ends, and its peer.
// ended gets what Run returns.
func start(t *testing.T, o jsonrpc.Options) (conn *jsonrpc.Conn, server *peer, ended chan error) {
	t.Helper()
	client, nc := net.Pipe()
	conn = jsonrpc.New(client, o)
	ended = make(chan error, 1)
	go func() { ended <- conn.Run(context.Background()) }()
	t.Cleanup(func() {
		conn.Close(nil)
		<-conn.Done()
		_ = nc.Close()
	})
	return conn, &peer{t: t, nc: nc, dec: json.NewDecoder(nc)}, ended
}

// want reads a message and compares it.
func (p *peer) want(text string) {
	p.t.Helper()
	var got json.RawMessage
	require.NoError(p.t, p.dec.Decode(&got))
	require.JSONEq(p.t, text, string(got))
}

func (p *peer) send(text string) {
	p.t.Helper()
	_, err := io.WriteString(p.nc, text)
	require.NoError(p.t, err)
}

// call makes a call in the background.
func call(ctx context.Context, conn *jsonrpc.Conn, method string) chan string {
	answers := make(chan string, 1)
	go func() {
		result, err := conn.Call(ctx, method, []any{1})
		answers <- fmt.Sprintf("%s %v", result, err)
	}()
	return answers
}

func TestCallsAreAnsweredByID(t *testing.T) {
	conn, server, _ := start(t, jsonrpc.Options{})
	first := call(t.Context(), conn, "first")
	server.want(`{"method":"first","params":[1],"id":1}`)
	second := call(t.Context(), conn, "second")
	server.want(`{"method":"second","params":[1],"id":2}`)
	third := call(t.Context(), conn, "third")
	server.want(`{"method":"third","params":[1],"id":3}`)

	server.send(`{"id":99,"result":0,"error":null}{"id":2,"result":{"a":[]},"error":null}`)
	server.send(`{"id":1,"result":null,"error":"unknown method"}{"id":3,"result":null,"error":{"error":"unknown database"}}`)
	require.Equal(t, `{"a":[]} <nil>`, <-second)
	require.Equal(t, ` first: server refused: unknown method`, <-first)
	require.Equal(t, ` third: server refused: {"error":"unknown database"}`, <-third)
}

func TestRepliesAndNotificationsKeepTheirOrder(t *testing.T) {
	var seen []string
	done := make(chan struct{})
	conn, server, _ := start(t, jsonrpc.Options{Notify: func(method string, params json.RawMessage) error {
		seen = append(seen, method+string(params))
		if method == "end" {
			close(done)
		}
		return nil
	}})
	_, err := conn.Go("monitor", nil, func(result json.RawMessage, _ error) {
		seen = append(seen, "reply"+string(result))
	})
	require.NoError(t, err)
	server.want(`{"method":"monitor","params":null,"id":1}`)
	server.send(`{"method":"a","params":[1],"id":null}{"id":1,"result":2,"error":null}{"method":"b","params":[3],"id":null}{"method":"end","params":[]}`)
	<-done
	require.Equal(t, []string{"a[1]", "reply2", "b[3]", "end[]"}, seen)
}

func TestServersRequestsAreAnswered(t *testing.T) {
	_, server, _ := start(t, jsonrpc.Options{})
	server.send(`{"method":"echo","params":["x",{"y":1}],"id":"probe"}`)
	server.want(`{"result":["x",{"y":1}],"error":null,"id":"probe"}`)
	server.send(`{"method":"nonsense","params":[],"id":7}`)
	server.want(`{"result":null,"error":"unknown method","id":7}`)
}

func TestEndOfConnectionTellsWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, server, ended := start(t, jsonrpc.Options{})
		first := make(chan error, 1)
		go func() { _, err := conn.Call(t.Context(), "first", nil); first <- err }()
		synctest.Wait() // it is being written, and the server does not read
		second := make(chan error, 1)
		go func() { _, err := conn.Call(t.Context(), "second", nil); second <- err }()
		synctest.Wait()
		require.NoError(t, server.nc.Close())

		require.Error(t, <-ended)
		var lost *jsonrpc.CallError
		require.ErrorAs(t, <-first, &lost)
		require.True(t, lost.Sent)
		require.ErrorAs(t, <-second, &lost)
		require.False(t, lost.Sent)
		_, err := conn.Call(t.Context(), "third", nil)
		require.ErrorAs(t, err, &lost)
		require.False(t, lost.Sent)
	})
}

func TestEndOfContextTellsWhatWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, server, _ := start(t, jsonrpc.Options{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first := make(chan error, 1)
		go func() { _, err := conn.Call(ctx, "first", nil); first <- err }()
		synctest.Wait()
		second := make(chan error, 1)
		go func() { _, err := conn.Call(ctx, "second", nil); second <- err }()

		var lost *jsonrpc.CallError
		err := <-first
		require.ErrorAs(t, err, &lost)
		require.True(t, lost.Sent)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorAs(t, <-second, &lost)
		require.False(t, lost.Sent)

		// The one that was not sent never is, and a late reply harms nobody.
		third := call(t.Context(), conn, "third")
		server.want(`{"method":"first","params":null,"id":1}`)
		server.want(`{"method":"third","params":[1],"id":3}`)
		server.send(`{"id":1,"result":1,"error":null}{"id":3,"result":3,"error":null}`)
		require.Equal(t, "3 <nil>", <-third)
	})
}

func TestSilence(t *testing.T) {
	watched := jsonrpc.Options{ProbeInterval: 5 * time.Second, DeadInterval: 10 * time.Second}
	t.Run("answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conn, server, _ := start(t, watched)
			began := time.Now()
			for i := range 100 {
				server.want(fmt.Sprintf(`{"method":"echo","params":[],"id":%d}`, i+1))
				require.Equal(t, 5*time.Second, time.Since(began))
				server.send(fmt.Sprintf(`{"id":%d,"result":[],"error":null}`, i+1))
				began = time.Now()
			}
			require.Equal(t, began, conn.Received())
		})
	})
	t.Run("not answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, server, ended := start(t, watched)
			began := time.Now()
			server.want(`{"method":"echo","params":[],"id":1}`)
			require.ErrorIs(t, <-ended, jsonrpc.ErrDeadPeer)
			require.Equal(t, 10*time.Second, time.Since(began))
		})
	})
	t.Run("nothing read", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conn, _, ended := start(t, watched)
			answer := call(t.Context(), conn, "stuck")
			require.ErrorIs(t, <-ended, jsonrpc.ErrDeadPeer)
			require.Equal(t, " stuck: no reply: the server went silent", <-answer)
		})
	})
	t.Run("not watched", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			conn, server, _ := start(t, jsonrpc.Options{})
			time.Sleep(1000 * time.Hour)
			answer := call(t.Context(), conn, "hello")
			server.want(`{"method":"hello","params":[1],"id":1}`)
			server.send(`{"id":1,"result":"still here","error":null}`)
			require.Equal(t, `"still here" <nil>`, <-answer)
		})
	})
}

func TestBadPeers(t *testing.T) {
	tests := []struct {
		name, sent string
		want       error
	}{
		{"no JSON", `hello`, jsonrpc.ErrMalformed},
		{"no object", `[1]`, jsonrpc.ErrMalformed},
		{"method is a number", `{"method":1}`, jsonrpc.ErrMalformed},
		{"reply without id", `{"result":1}`, jsonrpc.ErrMalformed},
		{"reply with a foreign id", `{"id":"x","result":1}`, jsonrpc.ErrMalformed},
		{"too long", `{"result":"` + strings.Repeat("x", 2000), jsonrpc.ErrTooLong},
		{"refused by the handler", `{"method":"update","params":[]}`, errRefused},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, server, ended := start(t, jsonrpc.Options{MaxMessage: 1000, Notify: func(string, json.RawMessage) error { return errRefused }})
			_, _ = io.WriteString(server.nc, test.sent) // it may hang up halfway
			require.ErrorIs(t, <-ended, test.want)
		})
	}
	t.Run("hangs up", func(t *testing.T) {
		_, server, ended := start(t, jsonrpc.Options{})
		require.NoError(t, server.nc.Close())
		require.ErrorIs(t, <-ended, jsonrpc.ErrHangup)
	})
	t.Run("asks and does not read", func(t *testing.T) {
		_, server, ended := start(t, jsonrpc.Options{MaxBacklog: 10_000})
		echo := `{"method":"echo","params":["` + strings.Repeat("x", 500) + `"],"id":1}`
		for {
			if _, err := io.WriteString(server.nc, echo); err != nil {
				break
			}
		}
		require.ErrorIs(t, <-ended, jsonrpc.ErrBacklog)
	})
	t.Run("many messages in all are not too long", func(t *testing.T) {
		conn, server, _ := start(t, jsonrpc.Options{MaxMessage: 1000})
		for range 100 {
			server.send(`{"method":"update","params":["` + strings.Repeat("x", 500) + `"]}`)
		}
		answer := call(t.Context(), conn, "hello")
		server.want(`{"method":"hello","params":[1],"id":1}`)
		server.send(`{"id":1,"result":1}`)
		require.Equal(t, "1 <nil>", <-answer)
	})
}

// Large messages among small ones, all at once: none is lost, none counts for
// another's length.
func TestLargeMessages(t *testing.T) {
	const limit = 1 << 20
	var sizes []int
	conn, server, _ := start(t, jsonrpc.Options{MaxMessage: limit, Notify: func(_ string, params json.RawMessage) error {
		sizes = append(sizes, len(params))
		return nil
	}})
	want := []int{10, 900_000, 20, 30, 800_000, 800_000, 10, 300_000}
	var text strings.Builder
	for _, size := range want {
		fmt.Fprintf(&text, `{"method":"update","params":"%s"} `, strings.Repeat("x", size-2))
	}
	server.send(text.String())
	answer := call(t.Context(), conn, "hello")
	server.want(`{"method":"hello","params":[1],"id":1}`)
	server.send(`{"id":1,"result":1}`)
	require.Equal(t, "1 <nil>", <-answer)
	require.Equal(t, want, sizes)
}

var errRefused = errors.New("refused")

func TestCallThatCannotBeEncoded(t *testing.T) {
	conn, _, _ := start(t, jsonrpc.Options{})
	_, err := conn.Call(t.Context(), "bad", func() {})
	require.ErrorContains(t, err, "bad: encode")
}

func TestConcurrentCalls(t *testing.T) {
	conn, server, _ := start(t, jsonrpc.Options{})
	go func() {
		for {
			var request struct{ ID int }
			if server.dec.Decode(&request) != nil {
				return
			}
			_, _ = fmt.Fprintf(server.nc, `{"id":%d,"result":%d,"error":null}`, request.ID, request.ID)
		}
	}()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for i := range 50 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%5 == 0 {
					cancel()
				}
				if _, err := conn.Call(ctx, "x", nil); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
}

// FuzzRead feeds a connection with what a server could send. Whatever it is,
// the connection ends when the input does, and every call has its answer.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"id":1,"result":{"a":[]},"error":null}{"method":"update2","params":[null,{}],"id":null}`))
	f.Add([]byte(`{"method":"echo","params":[],"id":"echo"}{"id":1,"error":"bad"}`))
	f.Add([]byte(`{"id":1.5}`))
	f.Add([]byte(`{"id":18446744073709551616}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		nc := &canned{in: bufio.NewReader(bytes.NewReader(input))}
		conn := jsonrpc.New(nc, jsonrpc.Options{MaxMessage: 1 << 16, MaxBacklog: 1 << 16})
		answers := 0
		_, err := conn.Go("monitor_cond", []any{}, func(json.RawMessage, error) { answers++ })
		require.NoError(t, err)
		require.Error(t, conn.Run(t.Context()))
		require.Equal(t, 1, answers)
	})
}

// canned is a network connection whose peer has sent it all and hung up.
type canned struct {
	net.Conn
	in io.Reader
}

func (c *canned) Read(p []byte) (int, error)      { return c.in.Read(p) }
func (c *canned) Write(p []byte) (int, error)     { return len(p), nil }
func (c *canned) Close() error                    { return nil }
func (c *canned) SetReadDeadline(time.Time) error { return nil }
