// SPDX-License-Identifier: Apache-2.0

package ofctrltest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeBuffer is how many bytes one direction holds, about what a Unix socket
// does.
const pipeBuffer = 208 << 10

// pipeConn is one end of a connection in memory: like one end of net.Pipe, but
// each direction has a buffer, as a socket has, so that both ends may write
// before either reads. Waiting is on a sync.Cond only, which testing/synctest
// counts as durably blocked.
type pipeConn struct {
	in, out     *pipeHalf
	local, peer net.Addr
	onClose     func() // called once, by the first Close
	closeOnce   sync.Once
}

// pipeAddr is the address of an end; its network marks a peer in this process.
type pipeAddr string

// Network is "pipe".
func (pipeAddr) Network() string { return "pipe" }

func (a pipeAddr) String() string { return string(a) }

// pipe returns both ends of a new connection.
func pipe(client, server string) (c, s *pipeConn) {
	a, b := newPipeHalf(), newPipeHalf()
	c = &pipeConn{in: a, out: b, local: pipeAddr(client), peer: pipeAddr(server)}
	s = &pipeConn{in: b, out: a, local: pipeAddr(server), peer: pipeAddr(client)}
	return c, s
}

// Read reads what has arrived, waiting for the first byte.
func (c *pipeConn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	if err != nil && err != io.EOF { //nolint:errorlint // ours, bare
		err = c.opError("read", err)
	}
	return n, err
}

// Write writes all of b, waiting for room.
func (c *pipeConn) Write(b []byte) (int, error) {
	n, err := c.out.write(b)
	if err != nil {
		err = c.opError("write", err)
	}
	return n, err
}

// Close closes both directions. What was written before can still be read.
func (c *pipeConn) Close() error {
	c.closeOnce.Do(func() {
		c.in.closeReader()
		c.out.closeWriter()
		if c.onClose != nil {
			c.onClose()
		}
	})
	return nil
}

func (c *pipeConn) LocalAddr() net.Addr  { return c.local }
func (c *pipeConn) RemoteAddr() net.Addr { return c.peer }

func (c *pipeConn) SetDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readBy, t)
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

func (c *pipeConn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readBy, t)
	return nil
}

func (c *pipeConn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

func (c *pipeConn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "pipe", Source: c.local, Addr: c.peer, Err: err}
}

// pipeHalf is one direction.
type pipeHalf struct {
	mu              sync.Mutex
	cond            sync.Cond // something has changed
	buf             []byte    // not yet read: buf[off:]
	off             int
	writerClosed    bool
	readerClosed    bool
	readBy, writeBy pipeDeadline
}

type pipeDeadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *pipeDeadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func newPipeHalf() *pipeHalf {
	h := new(pipeHalf)
	h.cond.L = &h.mu
	return h
}

func (h *pipeHalf) setDeadline(d *pipeDeadline, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = t
	// A deadline that has passed wakes those who wait; so does a later one,
	// when its time comes.
	if wait := time.Until(t); t.IsZero() || wait <= 0 {
		h.cond.Broadcast()
	} else {
		d.timer = time.AfterFunc(wait, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.cond.Broadcast()
		})
	}
}

func (h *pipeHalf) read(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.readerClosed:
			return 0, net.ErrClosed
		case h.readBy.passed():
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case h.off < len(h.buf):
			n := copy(b, h.buf[h.off:])
			h.off += n
			if h.off == len(h.buf) {
				h.off = 0
				if h.buf = h.buf[:0]; cap(h.buf) > pipeBuffer/8 {
					h.buf = nil // do not keep the memory of a burst
				}
			}
			h.cond.Broadcast()
			return n, nil
		case h.writerClosed:
			return 0, io.EOF
		}
		h.cond.Wait()
	}
}

func (h *pipeHalf) write(b []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.writerClosed:
			return n, net.ErrClosed
		case h.readerClosed:
			return n, syscall.EPIPE
		case h.writeBy.passed():
			return n, os.ErrDeadlineExceeded
		case len(b) == 0:
			return n, nil
		}
		if room := pipeBuffer - (len(h.buf) - h.off); room > 0 {
			if h.off > 0 && len(h.buf)+room > cap(h.buf) {
				h.buf = h.buf[:copy(h.buf, h.buf[h.off:])]
				h.off = 0
			}
			k := min(room, len(b))
			h.buf = append(h.buf, b[:k]...)
			n, b = n+k, b[k:]
			h.cond.Broadcast()
			continue
		}
		h.cond.Wait()
	}
}

func (h *pipeHalf) closeReader() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readerClosed = true
	h.end()
}

func (h *pipeHalf) closeWriter() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writerClosed = true
	h.end()
}

func (h *pipeHalf) end() {
	for _, d := range []*pipeDeadline{&h.readBy, &h.writeBy} {
		if d.timer != nil && h.readerClosed && h.writerClosed {
			d.timer.Stop()
		}
	}
	h.cond.Broadcast()
}
