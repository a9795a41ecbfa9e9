// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/flowgate/flowgate/bundle"
)

// scope is the flag -cookie.
type scope struct {
	given        bool
	cookie, mask uint64
}

// parse reads V/MASK as ovs-ofctl does: V alone is all of V, and -1 all ones.
func (s *scope) parse(text string) error {
	value, mask, masked := strings.Cut(text, "/")
	if !masked {
		mask = "-1"
	}
	var err1, err2 error
	s.cookie, err1 = parseCookie(value)
	s.mask, err2 = parseCookie(mask)
	switch {
	case err1 != nil || err2 != nil:
		return errors.New("want V/MASK, as 0x5/-1")
	case s.mask == 0:
		return errors.New("a mask of 0 is every flow: leave -cookie out")
	case s.cookie&^s.mask != 0:
		return errors.New("the cookie has bits outside the mask")
	}
	s.given = true
	return nil
}

func parseCookie(text string) (uint64, error) {
	if text == "-1" {
		return math.MaxUint64, nil
	}
	return strconv.ParseUint(text, 0, 64)
}

// of is what -replace may change: the flows with the cookie, or all, and the
// groups if there is a file with groups.
func (s *scope) of(groups bool) bundle.Scope {
	if s.given {
		return bundle.Scope{Cookie: s.cookie, CookieMask: s.mask, Groups: groups}
	}
	return bundle.Scope{Flows: true, Groups: groups}
}
