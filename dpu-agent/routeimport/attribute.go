// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

var errShort = errors.New("message of rtnetlink is too short")

// attribute is one attribute of a message of rtnetlink (rtnetlink(7)), its value not copied.
type attribute struct {
	kind  uint16
	value []byte
}

// cut takes the first attribute off.
func cut(b []byte) (first attribute, rest []byte, err error) {
	size := 0
	if len(b) >= unix.SizeofRtAttr {
		size = int(binary.NativeEndian.Uint16(b))
	}
	if size < unix.SizeofRtAttr || size > len(b) {
		return attribute{}, nil, fmt.Errorf("attribute of %d bytes among %d: %w", size, len(b), errShort)
	}
	kind := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
	return attribute{kind, b[unix.SizeofRtAttr:size]}, b[min(len(b), aligned(size)):], nil
}

// aligned is where what follows an attribute, or a next hop, of a size begins (RTA_ALIGN of linux/rtnetlink.h).
func aligned(size int) int { return (size + unix.RTA_ALIGNTO - 1) &^ (unix.RTA_ALIGNTO - 1) }

// number is a 32-bit value, 0 if it is shorter.
func (a attribute) number() uint32 {
	if len(a.value) < 4 {
		return 0
	}
	return binary.NativeEndian.Uint32(a.value)
}

// address is an IP address, the zero Addr if it is none.
func (a attribute) address() netip.Addr {
	addr, _ := netip.AddrFromSlice(a.value)
	return addr
}

// via is the address of an RTA_VIA, which names its family first (struct rtvia).
func (a attribute) via() netip.Addr {
	if len(a.value) < 2 {
		return netip.Addr{}
	}
	addr, _ := netip.AddrFromSlice(a.value[2:])
	return addr
}
