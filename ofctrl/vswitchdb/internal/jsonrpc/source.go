// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"errors"
	"io"
	"os"
	"time"
)

// source is what the decoder reads from: the network connection, with the watch
// over the server's silence and over the length of a message.
//
//	          ProbeInterval                 DeadInterval
//	hearing ----------------> asked (echo) ---------------> ErrDeadPeer
//	   ^                        |
//	   +------- any byte -------+
type source struct {
	conn  *Conn
	read  int64 // bytes, ever
	taken int64 // of these, bytes that belong to messages handled
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	c := s.conn
	// Silence counts from here: while a message was being handled, the server
	// could not be heard.
	listening := time.Now()
	asked := c.o.ProbeInterval <= 0
	for {
		// It fails on a closed connection only, and Read says that better.
		_ = c.nc.SetReadDeadline(s.deadline(listening, asked))
		n, err := c.nc.Read(p)
		if n > 0 {
			return s.got(n)
		}
		switch {
		case err == nil:
			continue
		case errors.Is(err, io.EOF):
			return 0, ErrHangup // a plain EOF would read as if all were well
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return 0, err
		case asked:
			return 0, ErrDeadPeer
		}
		asked = true
		if err := c.probe(); err != nil {
			return 0, err
		}
	}
}

func (s *source) got(n int) (int, error) {
	s.read += int64(n)
	if s.read-s.taken > s.conn.o.MaxMessage {
		return 0, ErrTooLong
	}
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	s.conn.received = time.Now()
	return n, nil
}

// deadline returns when silence has lasted too long for the present state, zero
// for never.
func (s *source) deadline(listening time.Time, asked bool) time.Time {
	switch o := s.conn.o; {
	case !asked:
		return listening.Add(o.ProbeInterval)
	case o.DeadInterval > 0:
		return listening.Add(max(o.DeadInterval, o.ProbeInterval))
	}
	return time.Time{}
}
