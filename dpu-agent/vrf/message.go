// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// message is a route or an address as rtnetlink tells of it (rtnetlink(7)): a header and attributes. It is kept
// whole, so that what is put back is what was there, with attributes too that this program does not know.
type message struct {
	header []byte
	attrs  []attribute
}

type attribute struct {
	kind  uint16
	value []byte
}

// parseMessage copies a message with a header of a size.
func parseMessage(raw []byte, header int) (message, error) {
	if len(raw) < header {
		return message{}, fmt.Errorf("a message of %d bytes has no header of %d", len(raw), header)
	}
	m := message{header: slices.Clone(raw[:header])}
	for rest := raw[header:]; len(rest) > 0; {
		size := 0
		if len(rest) >= unix.SizeofRtAttr {
			size = int(binary.NativeEndian.Uint16(rest))
		}
		if size < unix.SizeofRtAttr || size > len(rest) {
			return message{}, fmt.Errorf("an attribute of %d bytes among %d", size, len(rest))
		}
		m.attrs = append(m.attrs, attribute{binary.NativeEndian.Uint16(rest[2:]), slices.Clone(rest[unix.SizeofRtAttr:size])})
		rest = rest[min(len(rest), aligned(size)):]
	}
	return m, nil
}

// aligned is where what follows an attribute, or a next hop, of a size begins (RTA_ALIGN of linux/rtnetlink.h).
func aligned(size int) int { return (size + unix.RTA_ALIGNTO - 1) &^ (unix.RTA_ALIGNTO - 1) }

// bytes is what the kernel takes.
func (m message) bytes() []byte {
	raw := slices.Clone(m.header)
	for _, a := range m.attrs {
		raw = append(raw, nl.NewRtAttr(int(a.kind), a.value).Serialize()...)
	}
	return raw
}

// get is the value of an attribute, nil if there is none.
func (m message) get(kind uint16) []byte {
	for _, a := range m.attrs {
		if a.kind&^unix.NLA_F_NESTED == kind {
			return a.value
		}
	}
	return nil
}

// with is the message with another value of an attribute that it has, less those to be dropped.
func (m message) with(kind uint16, value []byte, drop ...uint16) message {
	changed := message{header: slices.Clone(m.header)}
	for _, a := range m.attrs {
		switch {
		case slices.Contains(drop, a.kind):
			continue
		case a.kind == kind:
			a.value = value
		}
		changed.attrs = append(changed.attrs, a)
	}
	return changed
}

// number reads a 32-bit attribute, 0 if there is none.
func (m message) number(kind uint16) uint32 {
	if v := m.get(kind); len(v) >= 4 {
		return binary.NativeEndian.Uint32(v)
	}
	return 0
}

func bytesOf(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

// address reads an attribute that holds an IP address.
func (m message) address(kind uint16) netip.Addr {
	a, _ := netip.AddrFromSlice(m.get(kind))
	return a
}

// prefix reads an attribute that holds the address of a prefix; none is the family's unspecified one.
func (m message) prefix(kind uint16, family, bits byte) netip.Prefix {
	a := m.address(kind)
	if !a.IsValid() {
		a = netip.IPv4Unspecified()
		if family == unix.AF_INET6 {
			a = netip.IPv6Unspecified()
		}
	}
	return netip.PrefixFrom(a, int(bits))
}
