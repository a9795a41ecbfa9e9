// SPDX-License-Identifier: Apache-2.0

package ofp

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
)

const helloElemVersionBitmap = 1

// Versions is a set of OpenFlow wire versions: bit n stands for version n
// (1 is OpenFlow 1.0, 6 is 1.5).
type Versions uint32

// OnlyVersion15 is the set that flowgate offers.
const OnlyVersion15 Versions = 1 << Version

// Has reports whether the wire version v is in the set.
func (v Versions) Has(version uint8) bool { return version < 32 && v&(1<<version) != 0 }

// String lists the versions in the spelling of ovs-vsctl's protocols column:
// "OpenFlow10 OpenFlow13".
func (v Versions) String() string {
	if v == 0 {
		return "none"
	}
	var names []string
	for rest := uint32(v); rest != 0; rest &= rest - 1 {
		n := bits.TrailingZeros32(rest)
		if n >= 1 && n <= 9 {
			names = append(names, fmt.Sprintf("OpenFlow1%d", n-1))
		} else {
			names = append(names, fmt.Sprintf("version 0x%02x", n))
		}
	}
	return strings.Join(names, " ")
}

// Hello appends a HELLO that offers exactly the given versions: the highest in
// the header, all of them in the bitmap (7.5.1).
func Hello(b []byte, versions Versions, xid uint32) []byte {
	start := len(b)
	b = AppendHeader(b, TypeHello, xid)
	b[start] = uint8(bits.Len32(uint32(versions)) - 1)
	b = binary.BigEndian.AppendUint16(b, helloElemVersionBitmap)
	b = binary.BigEndian.AppendUint16(b, 8)
	b = binary.BigEndian.AppendUint32(b, uint32(versions))
	return mustFinish(b, start)
}

// ParseHello returns the versions that a HELLO offers. Elements other than the
// bitmap are skipped; without a bitmap the header's version and all below it
// are offered. See lib/vconn.c:vcs_recv_hello, lib/ofp-msgs.c.
func ParseHello(msg []byte) (Versions, error) {
	h, err := ParseHeader(msg)
	if err != nil {
		return 0, err
	}
	if h.Type != TypeHello {
		return 0, malformed("%v is not a HELLO", h.Type)
	}
	var offered Versions
	for rest := msg[HeaderLen:]; len(rest) > 0; {
		if len(rest) < 4 {
			return 0, malformed("%d bytes left over in a HELLO", len(rest))
		}
		typ, n := binary.BigEndian.Uint16(rest), int(binary.BigEndian.Uint16(rest[2:]))
		if n < 4 || n > len(rest) {
			return 0, malformed("HELLO element %d of length %d in %d bytes", typ, n, len(rest))
		}
		// Only the first word is of use: it holds versions 0 to 31.
		if typ == helloElemVersionBitmap && n >= 8 {
			offered |= Versions(binary.BigEndian.Uint32(rest[4:]))
		}
		rest = rest[min((n+7)&^7, len(rest)):]
	}
	if offered == 0 {
		offered = Versions(uint64(1)<<(min(h.Version, 31)+1) - 2)
	}
	return offered, nil
}
