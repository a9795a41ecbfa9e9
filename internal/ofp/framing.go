// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"bufio"
	"fmt"
	"io"
)

// FrameReader cuts a byte stream into messages. It looks at the header's
// length and nothing else, so a message of any version or type passes.
//
// It is not safe for concurrent use.
type FrameReader struct {
	r *bufio.Reader
	// Begun, when set, is called each time that a message has begun to arrive
	// but is not all in the buffer, and Ended when it is complete: the place
	// for a deadline on the rest.
	Begun, Ended func()
}

// NewFrameReader returns a FrameReader with a buffer of size bytes.
func NewFrameReader(r io.Reader, size int) *FrameReader {
	return &FrameReader{r: bufio.NewReaderSize(r, size)}
}

// FramingError is a stream that cannot be cut into messages any further.
type FramingError struct {
	// Start holds the first bytes from where a header was expected.
	Start []byte
	Err   error
}

func (e *FramingError) Error() string {
	return fmt.Sprintf("cannot frame the stream at bytes % x: %v", e.Start, e.Err)
}

// Unwrap returns the reason.
func (e *FramingError) Unwrap() error { return e.Err }

// Wait waits for the first byte of the next message.
func (f *FrameReader) Wait() error {
	_, err := f.r.Peek(1)
	return err
}

// Next returns the next message in a slice of its own. It returns io.EOF at
// the end of the stream between messages, io.ErrUnexpectedEOF within one, a
// *FramingError for a header that no message can have, and the reader's error
// otherwise.
func (f *FrameReader) Next() (Header, []byte, error) {
	if err := f.Wait(); err != nil {
		return Header{}, nil, err
	}
	begun := false
	begin := func(n int) {
		if !begun && f.r.Buffered() < n && f.Begun != nil {
			begun = true
			f.Begun()
		}
	}
	begin(HeaderLen)
	b, err := f.r.Peek(HeaderLen)
	if err != nil {
		return Header{}, nil, within(err)
	}
	h, err := ParseHeader(b)
	if err != nil {
		start, _ := f.r.Peek(min(f.r.Buffered(), 32))
		return h, nil, &FramingError{Start: append([]byte(nil), start...), Err: err}
	}
	begin(int(h.Length))
	msg := make([]byte, h.Length)
	if _, err := io.ReadFull(f.r, msg); err != nil {
		return h, nil, within(err)
	}
	if begun && f.Ended != nil {
		f.Ended()
	}
	return h, msg, nil
}

// within turns the end of the stream into what it is inside a message.
func within(err error) error {
	if err == io.EOF { //nolint:errorlint // bufio returns it bare
		return io.ErrUnexpectedEOF
	}
	return err
}
