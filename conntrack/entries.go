// SPDX-License-Identifier: Apache-2.0

package conntrack

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNoEntries is wrapped by Health.ZonesErr on a kernel that does not list its
// connections in a file: many are built without CONFIG_NF_CONNTRACK_PROCFS, and
// list them over netlink only, as 'conntrack -L' reads them.
var ErrNoEntries = errors.New("conntrack: this kernel has no net/nf_conntrack; 'conntrack -L' lists the connections")

// Zone counts the connections that the kernel tracks in one zone.
type Zone struct {
	Zone      uint16
	Entries   int
	Unreplied int // of which only one direction was seen
	// States counts TCP connections by state, as the kernel names it:
	// "ESTABLISHED", "SYN_SENT" and so on.
	States map[string]int
}

// HalfOpen is how many TCP handshakes are not complete. One of which a packet
// passes conntrack by can never be completed, whatever the kernel.
func (z Zone) HalfOpen() int {
	return z.States["SYN_SENT"] + z.States["SYN_RECV"] + z.States["SYN_SENT2"]
}

// readZones reads the kernel's list of connections.
func readZones(proc string) ([]Zone, error) {
	file, err := os.Open(filepath.Join(proc, "net/nf_conntrack"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNoEntries
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	return parseZones(file)
}

// parseZones reads lines as net/netfilter/nf_conntrack_standalone.c:ct_seq_show
// writes them:
//
//	ipv4     2 tcp      6 86128 ESTABLISHED src=10.0.0.1 ... [ASSURED] mark=0 zone=65520 use=1
func parseZones(r io.Reader) ([]Zone, error) {
	zones := make(map[uint16]*Zone)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		const shortest = 5
		if len(fields) < shortest || !strings.Contains(lines.Text(), " src=") {
			continue
		}
		number := uint16(0)
		unreplied := false
		for _, f := range fields[4:] {
			if text, ok := strings.CutPrefix(f, "zone="); ok {
				if n, err := strconv.ParseUint(text, 10, 16); err == nil {
					number = uint16(n)
				}
			}
			unreplied = unreplied || f == "[UNREPLIED]"
		}
		z := zones[number]
		if z == nil {
			z = &Zone{Zone: number, States: make(map[string]int)}
			zones[number] = z
		}
		z.Entries++
		if unreplied {
			z.Unreplied++
		}
		// An offloaded connection has neither time-out nor state.
		if fields[2] == "tcp" && len(fields) > shortest && !strings.Contains(fields[5], "=") {
			z.States[fields[5]]++
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	list := make([]Zone, 0, len(zones))
	for _, z := range zones {
		list = append(list, *z)
	}
	slices.SortFunc(list, func(a, b Zone) int { return int(a.Zone) - int(b.Zone) })
	return list, nil
}

// zonesShown is how many zones are told in words, those with the most entries.
const zonesShown = 8

// appendZones says in words what the kernel tracks.
func (h *Health) appendZones(b *strings.Builder) {
	if h.ZonesErr != nil {
		fmt.Fprintf(b, "; what the kernel tracks is not known here: %s", strings.TrimPrefix(h.ZonesErr.Error(), "conntrack: "))
		return
	}
	entries, halfOpen, unreplied := 0, 0, 0
	for _, z := range h.Zones {
		entries += z.Entries
		halfOpen += z.HalfOpen()
		unreplied += z.Unreplied
	}
	fmt.Fprintf(b, "; the kernel tracks %d connections", entries)
	if entries == 0 {
		return
	}
	fmt.Fprintf(b, ", %d of them half-open (a TCP handshake that is not complete), %d seen in one direction only:", halfOpen, unreplied)
	most := slices.SortedFunc(slices.Values(h.Zones), func(a, b Zone) int { return b.Entries - a.Entries })
	for i, z := range most {
		if i == zonesShown {
			fmt.Fprintf(b, ", and %d zones more", len(most)-i)
			break
		}
		sep := ","
		if i == 0 {
			sep = ""
		}
		fmt.Fprintf(b, "%s %d in zone %d", sep, z.Entries, z.Zone)
		if n := z.HalfOpen(); n > 0 {
			fmt.Fprintf(b, " (%d half-open)", n)
		}
	}
	if h.Dropping() && halfOpen > 0 {
		b.WriteString("; half-open ones of which a packet has passed by the flows are dropped until they time out, or are flushed")
	}
}
