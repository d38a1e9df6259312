// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Tables. Packets for the Uplink's MAC go from 0 to inbound, and from there to OVN, to the host by NORMAL, or
// through conntrack to tracked.
const (
	tableInbound = 170
	tableTracked = 171
	tableOVN     = 172
	// tableOutbound is behind the translation of what OVN sends.
	tableOutbound = 173
)

// base is the lowest priority in use, and that of the tables' last rows; see the package comment.
const base = 31000

// Conntrack marks. They say whose a connection is.
const (
	markHost = 1
	markOVN  = 2
)

// Kinds of ICMPv6 of neighbour discovery, RFC 4861.
const (
	routerSolicitation    = 133
	neighborSolicitation  = 135
	neighborAdvertisement = 136
	redirect              = 137
)

// renderer makes the rows of one bridge.
type renderer struct {
	*Bridge
	yield func(Flow) bool
	done  bool
}

// add makes a flow of a row; fields that are empty are left out.
func (r *renderer) add(table uint8, priority uint16, actions string, fields ...string) {
	if r.done {
		return
	}
	fields = slices.DeleteFunc(fields, func(f string) bool { return f == "" })
	r.done = !r.yield(Flow{
		Table: table, Priority: priority, Cookie: cookieOf(r.Zone), Match: match(fields...), Actions: actions,
	})
}

// flows are all flows of a bridge. No two have the same place.
func (b *Bridge) flows(items []Service) iter.Seq[Flow] {
	return func(yield func(Flow) bool) {
		r := renderer{Bridge: b, yield: yield}
		r.fromOVN()
		r.fromHost()
		r.fromWire()
		r.inbound()
		r.tracked()
		r.toOVN()
		r.outbound()
		for _, item := range items {
			r.item(item)
		}
	}
}

// itemFlows are the flows of one of items.
func (b *Bridge) itemFlows(item Service) iter.Seq[Flow] {
	return func(yield func(Flow) bool) {
		r := renderer{Bridge: b, yield: yield}
		r.item(item)
	}
}

// Flows renders the flows of a bridge, sorted by table, falling priority and match. An error says what of the bridge
// makes no sense.
func (b *Bridge) Flows() ([]Flow, error) {
	if err := b.validate(); err != nil {
		return nil, fmt.Errorf("bridge %s: %w", b.Name, err)
	}
	items, err := b.items()
	if err != nil {
		return nil, fmt.Errorf("bridge %s: %w", b.Name, err)
	}
	return slices.SortedFunc(b.flows(items), Flow.compare), nil
}

// families are what the rows are repeated for: ip and ipv6, without one that the Uplink has no address of.
func (r *renderer) families() iter.Seq2[string, netip.Addr] {
	return func(yield func(string, netip.Addr) bool) {
		for _, v6 := range []bool{false, true} {
			if a := r.address(v6); a.IsValid() && !yield(family(a), a) {
				return
			}
		}
	}
}

// family is the field that a packet with this address matches.
func family(a netip.Addr) string {
	if a.Is6() {
		return "ipv6"
	}
	return "ip"
}

// source and destination are the fields of a range. A range of all addresses leaves nothing to match.
func source(p netip.Prefix) string { return ranged("src", p) }

func destination(p netip.Prefix) string { return ranged("dst", p) }

func ranged(end string, p netip.Prefix) string {
	name := "nw_" + end + "="
	if p.Addr().Is6() {
		name = "ipv6_" + end + "="
	}
	switch p.Bits() {
	case 0:
		return ""
	case p.Addr().BitLen():
		return name + p.Addr().String()
	}
	return name + p.String()
}

func host(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func inPort(port uint32) string {
	if port == Local {
		return "in_port=LOCAL"
	}
	return "in_port=" + number(port)
}

func icmp6(kind int) []string { return []string{"icmp6", fmt.Sprintf("icmp_type=%d", kind)} }

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// tag is the field by which a frame of the Uplink's network is known on the wire's ports.
func (r *renderer) tag() string {
	if r.VLAN == 0 {
		return "vlan_tci=0x0000/0x1fff"
	}
	return r.tagged()
}

// tagged is tag for a row that only tagged frames reach, and in front of untag.
func (r *renderer) tagged() string {
	if r.VLAN == 0 {
		return ""
	}
	return "dl_vlan=" + number(uint32(r.VLAN))
}

// untag goes in front of the way to OVN, whose frames have no tag.
func (r *renderer) untag() string {
	if r.VLAN == 0 {
		return ""
	}
	return "pop_vlan,"
}

// toWire are the actions that send OVN's untagged frame out. NORMAL would learn the MAC at the patch port.
func (r *renderer) toWire() string {
	var push string
	if r.VLAN != 0 {
		push = fmt.Sprintf("push_vlan:0x8100,set_field:%d->vlan_vid,", 0x1000|r.VLAN)
	}
	if len(r.Uplinks) == 1 {
		return push + "output:" + number(r.Uplinks[0])
	}
	ports := make([]string, len(r.Uplinks))
	for i, p := range r.Uplinks {
		ports[i] = number(p)
	}
	return push + "bundle(eth_src,0,active_backup,ofport,members:" + strings.Join(ports, ",") + ")"
}

// commit is the conntrack pass that makes or finds a connection and says whose it is.
func (r *renderer) commit(mark int, table uint8, nat string) string {
	return conntrack("commit", table, r.Zone, nat, fmt.Sprintf("exec(load:%#x->NXM_NX_CT_MARK[])", mark))
}

// conntrack prints as Open vSwitch does. Without a table the packet goes on behind the action.
func conntrack(commit string, table uint8, zone uint16, more ...string) string {
	args := make([]string, 0, 6)
	if commit != "" {
		args = append(args, commit)
	}
	if table != 0 {
		args = append(args, "table="+number(uint32(table)))
	}
	args = append(args, "zone="+number(uint32(zone)))
	for _, m := range more {
		if m != "" {
			args = append(args, m)
		}
	}
	return "ct(" + strings.Join(args, ",") + ")"
}
