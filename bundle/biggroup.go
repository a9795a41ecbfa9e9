// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"errors"
	"fmt"
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// A group of more than 64 KiB does not fit one message. It is sent as a group
// with the first buckets and messages that insert the others at the end, which
// is as atomic as one message inside of a bundle.

// mostInBundle is the longest message that a bundle can carry.
const mostInBundle = ofp.MaxLen - ofp.BundleAddOverhead

// errTooBig refuses a message that fits no bundle and can not be split.
var errTooBig = fmt.Errorf("bundle: longer than %d bytes, the most that a bundle can carry", mostInBundle)

// splitGroup splits a group mod that is too long into several that are not.
func splitGroup(g *flowtext.GroupMod) ([]*flowtext.GroupMod, error) {
	switch g.Command {
	case flowtext.GroupAdd, flowtext.GroupModify, flowtext.GroupAddOrModify:
	case flowtext.GroupInsertBucket, flowtext.GroupRemoveBucket, flowtext.GroupDelete:
		return nil, errTooBig
	}
	buckets := numbered(g.Buckets)
	first := *g
	first.Buckets = nil
	parts := []*flowtext.GroupMod{&first}
	size, err := encodedLen(&first)
	if err != nil {
		return nil, err
	}
	for len(buckets) > 0 {
		part := parts[len(parts)-1]
		n := 0
		for ; n < len(buckets); n++ {
			// A bucket's own properties are at most 8 bytes each of three.
			if size += 8 + len(buckets[n].Actions.Wire()) + 24; size > mostInBundle {
				break
			}
		}
		if n == 0 && part != &first {
			return nil, fmt.Errorf("bucket %d: %w", buckets[0].ID, errTooBig)
		}
		part.Buckets, buckets = buckets[:n], buckets[n:]
		if len(buckets) == 0 {
			break
		}
		next := &flowtext.GroupMod{
			Command: flowtext.GroupInsertBucket, CommandBucket: flowtext.BucketLast,
			Group: flowtext.Group{ID: g.ID, Type: g.Type},
		}
		if size, err = encodedLen(next); err != nil {
			return nil, err
		}
		parts = append(parts, next)
	}
	return parts, nil
}

// encodedLen is how long a message of few buckets is.
func encodedLen(g *flowtext.GroupMod) (int, error) {
	raw, err := g.MarshalBinary()
	return len(raw), err
}

// numbered gives buckets without a number the lowest numbers that are free, as
// one message would.
func numbered(buckets []flowtext.Bucket) []flowtext.Bucket {
	taken := make(map[uint32]bool, len(buckets))
	for i := range buckets {
		taken[buckets[i].ID] = true
	}
	out := slices.Clone(buckets)
	free := uint32(0)
	for i := range out {
		if out[i].ID != flowtext.BucketAll {
			continue
		}
		for taken[free] {
			free++
		}
		out[i].ID = free
		free++
	}
	return out
}

// isTooLong reports whether a message could not be encoded for its length.
func isTooLong(err error) bool {
	return errors.Is(err, flowtext.ErrTooLong) || errors.Is(err, errTooBig)
}
