// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"net/netip"
	"slices"
)

// blockSize is how many addresses a transit block has: the base, the edge router's, the network gateway's and the
// highest. OVN 23.03 takes the upper address of a /31 for a broadcast address.
const blockSize = 4

// plus is the address that is n after another.
func plus(a netip.Addr, n uint64) netip.Addr {
	b := a.As16()
	low := binary.BigEndian.Uint64(b[8:])
	binary.BigEndian.PutUint64(b[8:], low+n)
	if low+n < low {
		binary.BigEndian.PutUint64(b[:8], binary.BigEndian.Uint64(b[:8])+1)
	}
	sum := netip.AddrFrom16(b)
	if a.Is4() {
		return sum.Unmap()
	}
	return sum
}

// offset is how far an address is behind the base of a prefix; false if it is not in the prefix, or further away
// than anything that is numbered here.
func offset(p netip.Prefix, a netip.Addr) (uint64, bool) {
	if !p.Contains(a) {
		return 0, false
	}
	base, addr := p.Masked().Addr().As16(), a.As16()
	low := binary.BigEndian.Uint64(addr[8:]) - binary.BigEndian.Uint64(base[8:])
	return low, binary.BigEndian.Uint64(addr[:8]) == binary.BigEndian.Uint64(base[:8]) && low <= math.MaxInt32
}

// size is how many addresses a prefix has, as far as they are numbered here.
func size(p netip.Prefix) uint64 {
	return uint64(1) << min(p.Addr().BitLen()-p.Bits(), 31)
}

// nth is the n-th address of a prefix with the length of the prefix.
func nth(p netip.Prefix, n uint64) netip.Prefix {
	return netip.PrefixFrom(plus(p.Masked().Addr(), n), p.Bits())
}

// host is the prefix of one address.
func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// family are the prefixes of one family.
func family(prefixes []netip.Prefix, is6 bool) []netip.Prefix {
	var of []netip.Prefix
	for _, p := range prefixes {
		if p.Addr().Is6() == is6 {
			of = append(of, p)
		}
	}
	return of
}

// ofFamily is the first prefix of one family, the zero Prefix if there is none.
func ofFamily(prefixes []netip.Prefix, is6 bool) netip.Prefix {
	for _, p := range prefixes {
		if p.Addr().Is6() == is6 {
			return p
		}
	}
	return netip.Prefix{}
}

// normalised are prefixes cut to their base and sorted, without those that others contain.
func normalised(prefixes []netip.Prefix) []netip.Prefix {
	var sorted []netip.Prefix
	for _, p := range prefixes {
		sorted = append(sorted, p.Masked())
	}
	slices.SortFunc(sorted, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	var widest []netip.Prefix
	for _, p := range sorted {
		if n := len(widest); n == 0 || !covers(widest[n-1], p) {
			widest = append(widest, p)
		}
	}
	return widest
}

// covers tells whether all of a prefix is in another.
func covers(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// overlapping finds a prefix of each of two lists that have addresses in common.
func overlapping(a, b []netip.Prefix) (p, q netip.Prefix, found bool) {
	for _, p := range a {
		for _, q := range b {
			if p.Overlaps(q) {
				return p, q, true
			}
		}
	}
	return netip.Prefix{}, netip.Prefix{}, false
}

// parse reads addresses as they stand in a row of OVN: what is none is left out.
func parse(texts []string) []netip.Prefix {
	var prefixes []netip.Prefix
	for _, text := range texts {
		if p, ok := parsePrefix(text); ok {
			prefixes = append(prefixes, p)
		}
	}
	return prefixes
}

// parsePrefix reads a prefix, or an address without length as the prefix of that one address.
func parsePrefix(text string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p, true
	}
	a, err := netip.ParseAddr(text)
	return netip.PrefixFrom(a, a.BitLen()), err == nil
}

// texts are values as they are written to a row.
func texts[T interface{ String() string }](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = v.String()
	}
	return out
}

// findBlocks finds out by the addresses of the edge routers' ports which transit blocks are in use. Should two claim
// one, it is the first's by name.
func (v *View) findBlocks() {
	for _, uplink := range slices.Sorted(maps.Keys(v.own)) {
		claims := map[string]int{}
		for _, own := range v.own[uplink].rows {
			port, isPort := own.row.(*routerPortRow)
			network := own.row.ids()[networkKey]
			if !isPort || network == "" || port.Peer == nil {
				continue
			}
			if block, ok := v.blockOfPort(port); ok {
				claims[network] = block
			}
		}
		for _, network := range slices.Sorted(maps.Keys(claims)) {
			if _, taken := v.blocks[claims[network]]; !taken {
				who := user{uplink: uplink, network: network}
				v.blocks[claims[network]], v.blockOf[who] = who, claims[network]
			}
		}
	}
}

// blockOfPort is the number of the transit block that a port has its addresses from.
func (v *View) blockOfPort(port *routerPortRow) (int, bool) {
	for _, p := range parse(port.Networks) {
		if n, ok := offset(ofFamily(v.ranges.Transit, p.Addr().Is6()), p.Addr()); ok {
			return int(n / blockSize), true
		}
	}
	return 0, false
}

// transit are the addresses of a block, one per family: of the edge router and of the network's gateway.
func (r Ranges) transit(block int, is6 bool) (edge, gateway netip.Prefix) {
	p := ofFamily(r.Transit, is6)
	link := netip.PrefixFrom(plus(p.Addr(), uint64(block)*blockSize), p.Addr().BitLen()-2)
	return nth(link, 1), nth(link, 2)
}
