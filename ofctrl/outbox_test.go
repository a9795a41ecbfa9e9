// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What piles up during one write leaves in the next, and the accounting says
// for every message whether a byte of it can have been sent.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ours, theirs := net.Pipe()
		o := newOutbox(100)
		ended := make(chan error, 1)
		go func() { ended <- o.run(ctx, ours) }()
		put := func(lazy bool, n int) uint64 {
			offset, err := o.append(ctx, lazy, make([]byte, n))
			require.NoError(t, err)
			return offset
		}
		first := put(false, 10)
		synctest.Wait() // it is being written
		second, third := put(true, 20), put(false, 30)
		require.Equal(t, []uint64{0, 10, 30}, []uint64{first, second, third})
		buf := make([]byte, 1000)
		n, err := theirs.Read(buf)
		require.NoError(t, err)
		require.Equal(t, 10, n)
		synctest.Wait()
		n, err = theirs.Read(buf)
		require.NoError(t, err)
		require.Equal(t, 50, n, "both in one write")
		synctest.Wait()

		lazy := put(true, 5)
		synctest.Wait()
		require.Len(t, o.buf, 5, "held back")
		cut := put(true, 45)
		full := put(false, 50)
		synctest.Wait()
		_, err = theirs.Read(buf[:6])
		require.NoError(t, err)
		waiting := put(false, 100)
		short, done := context.WithTimeout(ctx, time.Second)
		defer done()
		_, err = o.append(short, false, []byte{1})
		require.ErrorIs(t, err, context.DeadlineExceeded, "no room")
		require.NoError(t, o.appendNow(make([]byte, 1000)), "the reader has a reserve")
		require.NoError(t, o.appendNow(make([]byte, outboxReserve)))
		require.ErrorIs(t, o.appendNow([]byte{1}), errEchoFlood)
		require.True(t, o.maySend(waiting))

		blocked := make(chan error, 1)
		go func() {
			_, err := o.append(ctx, false, []byte{1})
			blocked <- err
		}()
		synctest.Wait()
		because := errors.New("because")
		o.close(because)
		o.close(ErrClosed)
		require.ErrorIs(t, <-blocked, because)
		cancel()
		_ = ours.Close()
		require.Error(t, <-ended)
		require.ErrorIs(t, o.appendNow([]byte{1}), because)
		require.True(t, o.maySend(lazy))
		require.True(t, o.maySend(cut), "its first byte was read")
		require.False(t, o.maySend(full), "of this one nothing")
		require.False(t, o.maySend(waiting))
		_, err = o.append(ctx, false, []byte{1})
		require.ErrorIs(t, err, context.Canceled, "a context that has ended comes first")
	})
}

// What is held back leaves by itself after a moment.
func TestOutboxHoldsBackForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ours, theirs := net.Pipe()
		o := newOutbox(100)
		ended := make(chan error, 1)
		go func() { ended <- o.run(ctx, ours) }()
		buf := make([]byte, 100)
		for range 3 {
			synctest.Wait() // the writer has nothing to do
			began := time.Now()
			for range 3 {
				_, err := o.append(ctx, true, []byte{1, 2})
				require.NoError(t, err)
			}
			n, err := theirs.Read(buf)
			require.NoError(t, err)
			require.Equal(t, 6, n)
			require.Equal(t, outboxDelay, time.Since(began))
		}
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func TestOutboxDoesNotKeepABurst(t *testing.T) {
	o := newOutbox(100)
	_, err := o.append(t.Context(), true, bytes.Repeat([]byte{1}, 1000))
	require.NoError(t, err)
	b := o.take()
	o.wrote(b, len(b))
	require.Nil(t, o.spare)
	require.Nil(t, o.take())
	_, err = o.append(t.Context(), true, make([]byte, 50))
	require.NoError(t, err)
	b = o.take()
	o.wrote(b, len(b))
	require.NotNil(t, o.spare)
}
