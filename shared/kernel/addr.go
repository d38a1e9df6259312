// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Lifetime is a remaining time in seconds.
type Lifetime uint32

// Forever is the lifetime of what does not expire (INFINITY_LIFE_TIME of the kernel).
const Forever Lifetime = 0xffffffff

// Addr is one IP address of a link. The flags are those of rtnetlink(7) and linux/if_addr.h.
type Addr struct {
	LinkIndex int
	// Prefix is the local address with its prefix length, host bits kept.
	Prefix netip.Prefix
	// Scope is RT_SCOPE_UNIVERSE (0) for an address valid everywhere, a larger number for a narrower one.
	Scope int
	// Label is the IPv4 label, such as "eth0:vip".
	Label string

	// Permanent is false for addresses that expire: those of DHCP clients and router advertisements.
	Permanent bool
	// Deprecated is set once the preferred lifetime is over: not for new connections (RFC 4862 5.5.4).
	Deprecated bool
	// Tentative is set until duplicate address detection is done.
	Tentative bool
	// DADFailed is set when another station has the address.
	DADFailed bool
	// Secondary is an IPv4 address in the subnet of an earlier one.
	Secondary bool
	// Temporary is an IPv6 privacy address (RFC 8981).
	Temporary bool

	// Valid and Preferred count down; two Addrs that differ only in how much is left are Equal.
	Valid, Preferred Lifetime
}

// addrOf converts an address; ok is false for one that is neither IPv4 nor IPv6.
func addrOf(a netlink.Addr) (addr Addr, ok bool) {
	prefix, ok := prefixOf(a.IPNet)
	if !ok {
		return Addr{}, false
	}
	// IFA_F_SECONDARY and IFA_F_TEMPORARY are one bit, read by family.
	firstBit := a.Flags&unix.IFA_F_SECONDARY != 0
	return Addr{
		LinkIndex:  a.LinkIndex,
		Prefix:     prefix,
		Scope:      a.Scope,
		Label:      a.Label,
		Permanent:  a.Flags&unix.IFA_F_PERMANENT != 0,
		Deprecated: a.Flags&unix.IFA_F_DEPRECATED != 0,
		Tentative:  a.Flags&unix.IFA_F_TENTATIVE != 0,
		DADFailed:  a.Flags&unix.IFA_F_DADFAILED != 0,
		Secondary:  firstBit && prefix.Addr().Is4(),
		Temporary:  firstBit && prefix.Addr().Is6(),
		Valid:      Lifetime(a.ValidLft),
		Preferred:  Lifetime(a.PreferedLft),
	}, true
}

// Equal compares two addresses by value, lifetimes only by whether they are over, limited or endless.
func (a Addr) Equal(o Addr) bool {
	a.Valid, a.Preferred = a.Valid.kind(), a.Preferred.kind()
	o.Valid, o.Preferred = o.Valid.kind(), o.Preferred.kind()
	return a == o
}

func (l Lifetime) kind() Lifetime {
	if l == 0 || l == Forever {
		return l
	}
	return 1
}

func compareAddrs(a, b Addr) int {
	return cmp.Or(cmp.Compare(a.LinkIndex, b.LinkIndex), a.Prefix.Addr().Compare(b.Prefix.Addr()),
		cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
}

// prefixOf converts a prefix, host bits kept.
func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	addr, ok := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	if !ok || bits == 0 {
		return netip.Prefix{}, false
	}
	prefix := netip.PrefixFrom(addr.Unmap(), ones)
	return prefix, prefix.IsValid()
}
