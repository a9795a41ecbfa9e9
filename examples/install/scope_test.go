// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCookie(t *testing.T) {
	for text, want := range map[string]scope{
		"5":                   {true, 5, math.MaxUint64},
		"0x5/-1":              {true, 5, math.MaxUint64},
		"0/0xff":              {true, 0, 0xff},
		"-1":                  {true, math.MaxUint64, math.MaxUint64},
		"":                    {},
		"0/0":                 {},
		"3/2":                 {},
		"x":                   {},
		"1/x":                 {},
		"1/2/3":               {},
		"0x10000000000000000": {},
	} {
		var got scope
		err := got.parse(text)
		require.Equal(t, want.given, err == nil, text)
		if err == nil {
			require.Equal(t, want, got, text)
		}
	}
}

func FuzzCookie(f *testing.F) {
	f.Add("0x5/-1")
	f.Fuzz(func(t *testing.T, text string) {
		var s scope
		if s.parse(text) == nil {
			require.NotZero(t, s.mask)
			require.Zero(t, s.cookie&^s.mask)
		}
	})
}
