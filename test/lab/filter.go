// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"net/netip"
	"slices"
)

// Filter says whether a packet is of interest.
type Filter func(Packet) bool

// All passes what all filters pass; none pass everything.
func All(filters ...Filter) Filter {
	return func(p Packet) bool {
		return !slices.ContainsFunc(filters, func(f Filter) bool { return !f(p) })
	}
}

// Any passes what one of the filters passes.
func Any(filters ...Filter) Filter {
	return func(p Packet) bool {
		return slices.ContainsFunc(filters, func(f Filter) bool { return f(p) })
	}
}

// Not passes what the filter does not.
func Not(f Filter) Filter { return func(p Packet) bool { return !f(p) } }

// IP passes IPv4 and IPv6.
func IP() Filter {
	return func(p Packet) bool { return p.EtherType == EtherIPv4 || p.EtherType == EtherIPv6 }
}

// Proto passes IP packets of a protocol, such as ProtoTCP.
func Proto(proto uint8) Filter { return func(p Packet) bool { return IP()(p) && p.Proto == proto } }

// Src passes IP packets from one of the prefixes.
func Src(prefixes ...netip.Prefix) Filter {
	return func(p Packet) bool { return IP()(p) && within(p.Src, prefixes) }
}

// Dst passes IP packets to one of the prefixes.
func Dst(prefixes ...netip.Prefix) Filter {
	return func(p Packet) bool { return IP()(p) && within(p.Dst, prefixes) }
}

// From passes IP packets from the address.
func From(a netip.Addr) Filter { return Src(hostPrefix(a)) }

// To passes IP packets to the address.
func To(a netip.Addr) Filter { return Dst(hostPrefix(a)) }

// Port passes packets from or to the port.
func Port(port uint16) Filter {
	return func(p Packet) bool { return p.SrcPort == port || p.DstPort == port }
}

// EtherFrom passes frames from the MAC.
func EtherFrom(mac string) Filter { return func(p Packet) bool { return p.EthSrc == mac } }

// Echo passes ICMP's echo requests and replies of both families.
func Echo() Filter {
	return func(p Packet) bool {
		return (p.Proto == ProtoICMP && (p.ICMPType == 8 || p.ICMPType == 0)) ||
			(p.Proto == ProtoICMPv6 && (p.ICMPType == 128 || p.ICMPType == 129))
	}
}

// Asking passes ARP requests and neighbour solicitations for the address.
func Asking(a netip.Addr) Filter {
	return func(p Packet) bool {
		return (p.ARPOp == 1 && p.Dst == a) || (p.ICMPType == NeighborSolicitation && p.NDTarget == a)
	}
}

// AnswerFor passes ARP replies and neighbour advertisements that say where the
// address is.
func AnswerFor(a netip.Addr) Filter {
	return func(p Packet) bool {
		return (p.ARPOp == 2 && p.Src == a) || (p.Proto == ProtoICMPv6 && p.ICMPType == NeighborAdvertisement && p.NDTarget == a)
	}
}

func within(a netip.Addr, prefixes []netip.Prefix) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
}
