// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"encoding/binary"
	"iter"
)

// Property is one (type, length) property as most lists of OpenFlow 1.5 have
// them, without its padding.
type Property struct {
	Type  uint16
	Value []byte
}

const propertyHeader = 4

// Properties yields the properties of a list in which each is padded to 8
// bytes. The values alias b. It stops after yielding an error.
func Properties(b []byte) iter.Seq2[Property, error] {
	return func(yield func(Property, error) bool) {
		for len(b) > 0 {
			if len(b) < propertyHeader {
				yield(Property{}, malformed("%d bytes left over after the properties", len(b)))
				return
			}
			n := int(binary.BigEndian.Uint16(b[2:]))
			if n < propertyHeader || n > len(b) {
				yield(Property{}, malformed("property %d of length %d in %d bytes", binary.BigEndian.Uint16(b), n, len(b)))
				return
			}
			if !yield(Property{binary.BigEndian.Uint16(b), b[propertyHeader:n]}, nil) {
				return
			}
			b = b[min((n+7)&^7, len(b)):]
		}
	}
}

// AppendProperty appends a property and its padding. Its length must fit the
// message it is for, whose Finish checks that.
func AppendProperty(b []byte, typ uint16, value []byte) []byte {
	n := propertyHeader + len(value)
	b = binary.BigEndian.AppendUint16(b, typ)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	b = append(b, value...)
	return append(b, make([]byte, (8-n%8)%8)...)
}
