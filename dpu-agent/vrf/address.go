// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// forever is INFINITY_LIFE_TIME of the kernel, in seconds.
const forever = 0xffffffff

// address is one IP address of a link.
type address struct {
	message
	addressKey
	flags uint32
}

// addressKey is what a link has one address of.
type addressKey struct {
	link int
	// local has the prefix length; peer is the same address, or the other end's.
	local netip.Prefix
	peer  netip.Addr
}

func parseAddress(raw []byte) (address, error) {
	m, err := parseMessage(raw, unix.SizeofIfAddrmsg)
	if err != nil {
		return address{}, fmt.Errorf("decode an address: %w", err)
	}
	a := address{message: m, flags: uint32(m.header[2])}
	if m.get(unix.IFA_FLAGS) != nil {
		a.flags = m.number(unix.IFA_FLAGS)
	}
	peer := m.address(unix.IFA_ADDRESS)
	local := peer
	if m.get(unix.IFA_LOCAL) != nil {
		local = m.address(unix.IFA_LOCAL)
	}
	a.addressKey = addressKey{int(binary.NativeEndian.Uint32(m.header[4:])), netip.PrefixFrom(local, int(m.header[1])), peer}
	return a, nil
}

// carried tells whether the address is put back when it is lost: not a link-local one, which the kernel makes anew,
// nor a temporary one (RFC 8981), nor one that another station has.
func (a address) carried() bool {
	ip := a.local.Addr()
	if !ip.IsValid() || a.flags&unix.IFA_F_DADFAILED != 0 {
		return false
	}
	return ip.Is4() || !ip.IsLinkLocalUnicast() && a.flags&unix.IFA_F_TEMPORARY == 0
}

// after is the address with what is left of its lifetimes after a time; ok is false when nothing is.
func (a address) after(passed time.Duration) (left address, ok bool) {
	info := a.get(unix.IFA_CACHEINFO)
	if len(info) < 8 { // struct ifa_cacheinfo: the preferred lifetime, the valid one, …
		return a, true
	}
	rest := func(at int) uint32 {
		seconds, gone := binary.NativeEndian.Uint32(info[at:]), uint32(passed/time.Second)
		switch {
		case seconds == forever:
			return forever
		case seconds <= gone:
			return 0
		}
		return seconds - gone
	}
	changed := append(bytesOf(rest(0)), bytesOf(rest(4))...)
	a.message = a.with(unix.IFA_CACHEINFO, append(changed, info[8:]...))
	return a, rest(4) > 0
}

// String is the address with its prefix length.
func (a address) String() string { return a.local.String() }
