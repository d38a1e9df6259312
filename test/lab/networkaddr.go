// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
)

// The addresses that OVN-Kubernetes gives to all networks.
var (
	// transitSubnets join the nodes of a network.
	transitSubnets = []netip.Prefix{netip.MustParsePrefix("100.88.0.0/16"), netip.MustParsePrefix("fd97::/64")}
	// masqueradeSubnets hold two addresses of each network.
	masqueradeSubnets = []netip.Prefix{netip.MustParsePrefix("169.254.0.0/17"), netip.MustParsePrefix("fd69::/112")}
	// serviceAddresses are those of the service default/kubernetes.
	serviceAddresses = []netip.Addr{netip.MustParseAddr("10.96.0.1"), netip.MustParseAddr("fd00:10:96::1")}
	// nodeNets are what the gateway routers' outer ports are in: the
	// management network and, as the lab has no IPv6 there, one that is
	// nowhere.
	nodeNets = []netip.Prefix{managementNet, netip.MustParsePrefix("fd00:198:18::/64")}
)

// after returns the address n places behind a.
func after(a netip.Addr, n int) netip.Addr {
	raw := a.AsSlice()
	for i := len(raw) - 1; i >= 0 && n > 0; i-- {
		n += int(raw[i])
		raw[i] = byte(n)
		n >>= 8
	}
	out, _ := netip.AddrFromSlice(raw)
	return out
}

// addressMAC is the MAC that OVN-Kubernetes derives from an address.
func addressMAC(a netip.Addr) string {
	b := a.AsSlice()
	if a.Is6() {
		sum := sha256.Sum256([]byte(a.String()))
		b = sum[:]
	}
	return fmt.Sprintf("0a:58:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3])
}

// pick keeps the prefixes of the families that the network has, in the order
// of its subnets.
func (n *Network) pick(prefixes []netip.Prefix) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range n.Spec.Subnets {
		i := slices.IndexFunc(prefixes, func(p netip.Prefix) bool { return p.Addr().Is4() == s.Addr().Is4() })
		if i >= 0 {
			out = append(out, prefixes[i])
		}
	}
	return out
}

// offset returns, for each prefix, its nth address with its length.
func offset(prefixes []netip.Prefix, n int) []netip.Prefix {
	out := make([]netip.Prefix, len(prefixes))
	for i, p := range prefixes {
		out[i] = netip.PrefixFrom(after(p.Addr(), n), p.Bits())
	}
	return out
}

// NodeSubnets are the zone's part of the network's subnets, in Layer2 all of
// them.
func (n *Network) NodeSubnets(z *Zone) []netip.Prefix {
	out := make([]netip.Prefix, len(n.Spec.Subnets))
	for i, s := range n.Spec.Subnets {
		out[i] = s.Masked()
		if n.Spec.Topology == Layer2 {
			continue
		}
		raw := s.Masked().Addr().AsSlice()
		bits := nodeBits(s.Addr())
		raw[bits/8-1] += byte(z.ID - firstNodeID + 1)
		addr, _ := netip.AddrFromSlice(raw)
		out[i] = netip.PrefixFrom(addr, bits)
	}
	return out
}

// Gateways are the addresses of the pods' default gateway in the zone.
func (n *Network) Gateways(z *Zone) []netip.Addr { return addresses(offset(n.NodeSubnets(z), 1)) }

// JoinAddresses are those of the zone's gateway router in the join subnets.
func (n *Network) JoinAddresses(z *Zone) []netip.Addr { return addresses(n.join(z.ID)) }

func (n *Network) join(id int) []netip.Prefix { return offset(n.pick(n.Spec.JoinSubnets), id) }

// transit are the node's addresses on the Layer3 transit switch.
func (n *Network) transit(z *Zone) []netip.Prefix { return offset(n.pick(transitSubnets), z.ID) }

// transitLink are the addresses of a transit router's port to a gateway router
// and of its peer: a /31 and a /127 per node.
func (n *Network) transitLink(z *Zone) (router, gateway []netip.Prefix) {
	for _, p := range n.pick(transitSubnets) {
		bits := p.Addr().BitLen() - 1
		router = append(router, netip.PrefixFrom(after(p.Addr(), 2*z.ID), bits))
		gateway = append(gateway, netip.PrefixFrom(after(p.Addr(), 2*z.ID+1), bits))
	}
	return router, gateway
}

// outer are the addresses of the zone's gateway router outside.
func (n *Network) outer(z *Zone) []netip.Prefix {
	return offset(n.pick(nodeNets), int(z.Node.Address.As4()[3]))
}

// masquerade are the network's own masquerade addresses, of its gateway
// routers and of its management ports.
func (n *Network) masquerade() (gateway, management []netip.Addr) {
	m := n.pick(masqueradeSubnets)
	return addresses(offset(m, 10+2*n.Spec.ID-1)), addresses(offset(m, 10+2*n.Spec.ID))
}

func addresses(prefixes []netip.Prefix) []netip.Addr {
	out := make([]netip.Addr, len(prefixes))
	for i, p := range prefixes {
		out[i] = p.Addr()
	}
	return out
}

func texts[T fmt.Stringer](values []T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = v.String()
	}
	return out
}
