// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// stream is a connection on which both ends send a numbered line at an interval.
type stream struct {
	ends    [2]*end
	stop    chan struct{} // closed to stop the writers
	once    sync.Once
	writers sync.WaitGroup
	readers sync.WaitGroup
}

// end is one end of a stream.
type end struct {
	conn net.Conn

	mu      sync.Mutex
	sent    int
	got     int
	last    time.Time     // when the last line came
	longest time.Duration // between two lines
	err     error
}

// newStream starts a stream on the two ends of a connection.
func newStream(a, b net.Conn, interval time.Duration) *stream {
	s := &stream{stop: make(chan struct{})}
	for i, c := range []net.Conn{a, b} {
		e := &end{conn: c, last: time.Now()}
		s.ends[i] = e
		s.writers.Go(func() { e.write(s.stop, interval) })
		s.readers.Go(e.read)
	}
	return s
}

// newTCPStream connects two pods. The listener is the server's.
func newTCPStream(ctx context.Context, client, server *pod, l net.Listener, interval time.Duration) (*stream, error) {
	a, err := client.dial(ctx, netip.AddrPortFrom(server.ip, portOf(l)))
	if err != nil {
		return nil, err
	}
	b, err := accept(ctx, l)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return newStream(a, b, interval), nil
}

func portOf(l net.Listener) uint16 {
	return l.Addr().(*net.TCPAddr).AddrPort().Port() //nolint:forcetypeassert // pods listen for TCP
}

func (e *end) write(stop <-chan struct{}, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-stop:
			return
		}
		e.mu.Lock()
		n := e.sent + 1
		e.mu.Unlock()
		if _, err := fmt.Fprintf(e.conn, "%d\n", n); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			e.fail(err)
			return
		}
		e.mu.Lock()
		e.sent = n
		e.mu.Unlock()
	}
}

func (e *end) read() {
	_, ordered := e.conn.(*net.TCPConn)
	lines := bufio.NewScanner(e.conn)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		e.mu.Lock()
		if err == nil && ordered && n != e.got+1 {
			err = fmt.Errorf("line %d after %d", n, e.got)
		}
		if e.err == nil {
			e.err = err
		}
		e.got++
		now := time.Now()
		e.longest = max(e.longest, now.Sub(e.last))
		e.last = now
		e.mu.Unlock()
	}
	if err := lines.Err(); err != nil && !errors.Is(err, net.ErrClosed) {
		e.fail(err)
	}
}

func (e *end) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
	}
}

// counts are what an end has sent and got.
func (e *end) counts() (sent, got int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sent, e.got
}

// silence is the longest time between two lines at either end, also one that
// goes on.
func (s *stream) silence() time.Duration {
	var longest time.Duration
	for _, e := range s.ends {
		e.mu.Lock()
		longest = max(longest, e.longest, time.Since(e.last))
		e.mu.Unlock()
	}
	return longest
}

// forgetSilence starts to measure silence anew.
func (s *stream) forgetSilence() {
	for _, e := range s.ends {
		e.mu.Lock()
		e.longest = 0
		e.mu.Unlock()
	}
}

// alive counts the streams of which both ends get something that was sent from
// now on. It returns when all do, or the context ends.
func alive(ctx context.Context, streams ...*stream) int {
	want := make([][2]int, len(streams))
	for i, s := range streams {
		for j, e := range s.ends {
			sent, _ := e.counts()
			want[i][1-j] = sent + 1
		}
	}
	var n int
	_ = until(ctx, "all connections work", func() (bool, error) {
		n = 0
		for i, s := range streams {
			if s.has(want[i]) {
				n++
			}
		}
		return n == len(streams), nil
	})
	return n
}

// has reports whether the ends have got so many lines, and nothing has failed.
func (s *stream) has(want [2]int) bool {
	for i, e := range s.ends {
		if _, got := e.counts(); got < want[i] {
			return false
		}
	}
	return s.err() == nil
}

// finish stops sending and returns how many lines were sent and lost, when all
// have come or the context ends.
func (s *stream) finish(ctx context.Context) (sent, lost int) {
	s.once.Do(func() { close(s.stop) })
	unblock := context.AfterFunc(ctx, s.closeConns) // of a writer that nobody reads
	s.writers.Wait()
	unblock()
	missing := func() int {
		sent0, got0 := s.ends[0].counts()
		sent1, got1 := s.ends[1].counts()
		sent = sent0 + sent1
		return sent - got0 - got1
	}
	_ = until(ctx, "all lines have come", func() (bool, error) { return missing() == 0, nil })
	lost = missing()
	s.close()
	return sent, lost
}

func (s *stream) close() {
	s.once.Do(func() { close(s.stop) })
	s.closeConns()
	s.writers.Wait()
	s.readers.Wait()
}

func (s *stream) closeConns() {
	for _, e := range s.ends {
		_ = e.conn.Close()
	}
}

// err is the first failure of a connection.
func (s *stream) err() error {
	for _, e := range s.ends {
		e.mu.Lock()
		err := e.err
		e.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}
