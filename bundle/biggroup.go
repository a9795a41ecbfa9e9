// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
)

// A group of more than 64 KiB does not fit one message. It is sent as a group
// with the first buckets and messages that insert the others at the end, which
// is as atomic as one message inside of a bundle.
//
// Open vSwitch takes it and forwards by it, but it can not describe it: the
// lengths in OFPMP_GROUP_DESC have 16 bits and wrap, that of the whole message
// too, so that the answer is the end of every connection that asks
// (lib/ofp-group.c:ofputil_append_ofp15_group_desc_reply). So such a group is
// never asked for here. Which groups may be such is told by OFPMP_GROUP_STATS,
// of 16 bytes a bucket; more buckets than fit there are refused.

const (
	// mostInBundle is the longest message that a bundle can carry. A group that
	// is no longer than that can be described.
	mostInBundle = ofp.MaxLen - ofp.BundleAddOverhead
	// mostBuckets is how many buckets the statistics of a group have room for.
	mostBuckets = (ofp.MaxLen - ofp.MultipartHeaderLen - groupStatsLen) / bucketStatsLen

	groupStatsLen  = 40
	bucketStatsLen = 16

	// fewBuckets are so few that a group of them is taken to be describable
	// whoever made it: each would have to be over 500 bytes.
	fewBuckets = 128
)

var (
	errTooBig  = fmt.Errorf("bundle: longer than %d bytes, the most that a bundle can carry", mostInBundle)
	errTooMany = fmt.Errorf("bundle: a group of more than %d buckets breaks every connection that asks for group statistics", mostBuckets)
)

// splitGroup splits a group mod that is too long into several that are not.
func splitGroup(g *flowtext.GroupMod) ([]*flowtext.GroupMod, error) {
	switch g.Command {
	case flowtext.GroupAdd, flowtext.GroupModify, flowtext.GroupAddOrModify:
	case flowtext.GroupInsertBucket, flowtext.GroupRemoveBucket, flowtext.GroupDelete:
		return nil, errTooBig
	}
	if len(g.Buckets) > mostBuckets {
		return nil, errTooMany
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

// countBuckets asks for the number of buckets of each group.
func countBuckets(ctx context.Context, conn *ofctrl.Conn) (map[uint32]int, error) {
	request := ofp.AppendMultipart(nil, ofp.TypeMultipartRequest, 0, ofp.MultipartGroupStats, 0)
	request = append(binary.BigEndian.AppendUint32(request, flowtext.GroupAll), 0, 0, 0, 0)
	binary.BigEndian.PutUint16(request[2:], uint16(len(request)))
	count := make(map[uint32]int)
	for body, err := range bodies(ctx, conn, request) {
		for err == nil && len(body) > 0 {
			n := 0
			if len(body) >= groupStatsLen {
				n = int(binary.BigEndian.Uint16(body))
			}
			if n < groupStatsLen || n > len(body) {
				err = fmt.Errorf("%w: group statistics of length %d in %d bytes", ofctrl.ErrMalformed, n, len(body))
				break
			}
			count[binary.BigEndian.Uint32(body[4:])] = (n - groupStatsLen) / bucketStatsLen
			body = body[n:]
		}
		if err != nil {
			return nil, err
		}
	}
	return count, nil
}
