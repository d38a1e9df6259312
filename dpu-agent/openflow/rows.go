// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"fmt"
	"net/netip"
)

// fromOVN are the rows of the patch port: what is known goes to the wire, all else ends here. It answers no ARP and
// no ND, so that the host is the one that does.
func (r *renderer) fromOVN() {
	if r.Patch == 0 {
		return
	}
	in, mac := inPort(r.Patch), "dl_src="+r.MAC.String()
	for _, p := range r.Unroutable {
		r.add(0, base+90, "drop", in, mac, family(p.Addr()), destination(p))
	}
	// An established connection keeps its own translation: that is how replies of services get their source. What
	// ovn-controller sends itself (refusals, and what waited for a neighbour) has no port that it came in by, and Open
	// vSwitch loses such packets where they recirculate on another bridge. So nothing does but echo requests, which the
	// userspace datapath often cannot translate; for the others, where there are no ports left, the source is set.
	for _, p := range r.Transit {
		if a := r.address(p.Addr().Is6()); a.IsValid() {
			nat := "nat(src=" + a.String() + ")"
			r.add(0, base+85, r.commit(markOVN, tableOutbound, nat), append(echoRequest(a), in, mac, source(p))...)
			r.add(0, base+80, r.commit(markOVN, 0, nat)+","+setSource(a)+","+r.toWire(), in, mac, family(a), source(p))
		}
	}
	for _, p := range r.Advertised {
		r.add(0, base+70, r.toWire(), in, mac, family(p.Addr()), source(p))
	}
	for _, a := range r.Addresses {
		if a.Is4() {
			r.add(0, base+60, r.toWire(), in, mac, "arp", "arp_op=1", "arp_spa="+a.String())
		} else {
			r.add(0, base+60, r.toWire(), append(icmp6(neighborSolicitation), in, mac)...)
		}
	}
	r.add(0, base+30, "drop", in)
}

// fromHost are the rows of the host's port. Its connections are committed so that OVN's translation picks no port
// that the host uses, and translated to the address that they have, which gives a connection another port if one of
// OVN's has that port to the same destination already: else the answers of both would be taken for those of one.
func (r *renderer) fromHost() {
	in := inPort(r.HostPort)
	for kind := routerSolicitation; kind <= redirect; kind++ {
		r.add(0, base+60, "NORMAL", append(icmp6(kind), in)...)
	}
	for _, p := range r.Unroutable {
		r.add(0, base+50, "drop", in, family(p.Addr()), source(p))
		r.add(0, base+50, "drop", in, family(p.Addr()), destination(p))
	}
	for ip, a := range r.families() {
		r.add(0, base+40, r.commit(markHost, 0, "nat(src="+a.String()+")")+",NORMAL", in, ip, source(host(a)))
	}
	mac := "dl_src=" + r.MAC.String()
	r.add(0, base+30, "NORMAL", in, mac)
	// From anywhere else the MAC would be learned there and the host lost: from a patch port that is too new to
	// be known.
	r.add(0, base+10, "drop", mac)
	if r.Secure {
		// The metadata, always 0 here, tells these from an administrator's for the same port.
		for _, p := range append([]uint32{r.HostPort}, r.Uplinks...) {
			r.add(0, 1, "NORMAL", inPort(p), "metadata=0")
		}
	}
}

// fromWire are the rows of the wire's ports: what OVN needs to know about neighbours goes to the host and to OVN,
// and what is for the MAC goes to the next table. All else is left to the bridge.
func (r *renderer) fromWire() {
	mac, both := "dl_dst="+r.MAC.String(), r.both()
	for _, p := range r.Uplinks {
		row := func(priority uint16, actions string, fields ...string) {
			r.add(0, priority, actions, append(fields, inPort(p), r.tag())...)
		}
		if a := r.address(false); a.IsValid() {
			row(base+60, "NORMAL", "arp", "arp_op=1", "arp_tpa="+a.String())
			row(base+50, both, "arp", "arp_op=2", mac)
		}
		for _, gw := range r.Gateways {
			if gw.Is4() {
				row(base+50, both, "arp", "arp_op=1", "arp_spa="+gw.String())
				row(base+50, both, "arp", "arp_op=2", "arp_spa="+gw.String(), "dl_dst=ff:ff:ff:ff:ff:ff")
			} else {
				row(base+50, both, append(icmp6(neighborAdvertisement),
					"nd_target="+gw.String(), "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00")...)
			}
		}
		for _, ip := range []string{"ip", "ipv6"} {
			row(base+40, fmt.Sprintf("goto_table:%d", tableInbound), ip, mac)
		}
	}
}

// both gives a frame to the host, by NORMAL so that the ports' own VLAN settings apply, and to OVN.
func (r *renderer) both() string { return "NORMAL," + r.ovn() }

// ovn gives a frame to OVN.
func (r *renderer) ovn() string { return fmt.Sprintf("%sgoto_table:%d", r.untag(), tableOVN) }

// inbound are the rows for what came from the wire for the MAC, without those of services.
func (r *renderer) inbound() {
	for kind := routerSolicitation; kind <= redirect; kind++ {
		actions, tag := "NORMAL", ""
		if kind == neighborAdvertisement {
			actions, tag = r.both(), r.tagged()
		}
		r.add(tableInbound, base+90, actions, append(icmp6(kind), tag)...)
	}
	for ip, a := range r.families() {
		r.add(tableInbound, base+60, conntrack("", tableTracked, r.Zone, "nat"), ip, destination(host(a)))
	}
	for _, p := range r.Advertised {
		r.add(tableInbound, base+50, r.ovn(), family(p.Addr()), destination(p), r.tagged())
	}
	r.add(tableInbound, base, "NORMAL")
}

// tracked are the rows behind conntrack. The mark says whose the connection is in any state: a SYN that is sent
// again is new again, and an ICMP error is related and has its connection's mark.
func (r *renderer) tracked() {
	r.add(tableTracked, base+90, r.ovn(), "ct_state=+trk", fmt.Sprintf("ct_mark=%#x", markOVN), r.tagged())
	r.add(tableTracked, base, "NORMAL")
}

// toOVN is the one row that has the patch port's number on the way to it. OVN has its own use for what conntrack
// left in the packet.
func (r *renderer) toOVN() {
	actions := "drop"
	if r.Patch != 0 {
		actions = "ct_clear,output:" + number(r.Patch)
	}
	r.add(tableOVN, base, actions)
}

// outbound are the rows behind the translation of echo requests. One that conntrack did not translate, as the userspace
// datapath does not where another connection has its identifier, would show an address to the wire that is nobody's
// there.
func (r *renderer) outbound() {
	if r.Patch == 0 {
		return
	}
	for ip, a := range r.families() {
		r.add(tableOutbound, base+80, r.toWire(), ip, source(host(a)))
	}
	r.add(tableOutbound, base, "drop")
}

// item are the rows of a service, or those of an address that is services' own where it has no port.
func (r *renderer) item(s Service) {
	ip, dst := family(s.Address), destination(host(s.Address))
	switch {
	case s.Port == 0:
		// Fragments and errors have no port to go by, and none but OVN can use them.
		if r.Patch != 0 {
			r.add(0, base+70, r.toWire(), inPort(r.Patch), "dl_src="+r.MAC.String(), ip, source(host(s.Address)))
		}
		r.add(tableInbound, base+70, r.ovn(), ip, dst, "nw_frag=yes", r.tagged())
		icmp := "icmp"
		if s.Address.Is6() {
			icmp = "icmp6"
		}
		r.add(tableInbound, base+70, r.ovn(), icmp, dst, r.tagged())
	case !s.Target.IsValid():
		r.add(tableInbound, base+80, r.ovn(), s.transport(), dst, s.port(), r.tagged())
	default:
		actions := r.untag() + r.commit(markOVN, tableOVN, "nat(dst="+s.Target.String()+")")
		r.add(tableInbound, base+80, actions, s.transport(), dst, s.port(), r.tagged())
		// Fragments have no ports in a flow table, but conntrack knows them. It keeps them apart in the
		// userspace datapath and passes on the whole packet in the kernel's; both have the tuple.
		r.add(tableTracked, base+80, actions, "ct_state=+new+trk", ip, trackedDestination(s.Address),
			fmt.Sprintf("ct_nw_proto=%d", s.Protocol), fmt.Sprintf("ct_tp_dst=%d", s.Port), r.tagged())
	}
}

// echoRequest are the fields of ICMP's echo request of an address's family.
func echoRequest(a netip.Addr) []string {
	if a.Is6() {
		return icmp6(128)
	}
	return []string{"icmp", "icmp_type=8"}
}

// setSource is the action that gives a packet its source.
func setSource(a netip.Addr) string {
	if a.Is6() {
		return "set_field:" + a.String() + "->ipv6_src"
	}
	return "set_field:" + a.String() + "->ip_src"
}

// transport is the field of a service's protocol and family.
func (s Service) transport() string {
	if s.Address.Is6() {
		return s.Protocol.String() + "6"
	}
	return s.Protocol.String()
}

func (s Service) port() string { return fmt.Sprintf("tp_dst=%d", s.Port) }

func trackedDestination(a netip.Addr) string {
	if a.Is6() {
		return "ct_ipv6_dst=" + a.String()
	}
	return "ct_nw_dst=" + a.String()
}
