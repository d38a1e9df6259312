// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// kinds are bridges that have every kind of row between them.
func kinds(t testing.TB) map[string]Bridge {
	full := dual(t)
	full.Advertised = prefixes("10.200.1.0/24", "fd10::/64")
	full.Services = []Service{
		{TCP, addr("192.0.2.10"), 30080, addr("100.91.0.6")},
		{UDP, addr("192.0.2.10"), 30080, addr("100.91.0.10")},
		{SCTP, addr("2001:db8:1::10"), 30081, addr("fd91::6")},
		{TCP, addr("198.51.100.7"), 80, netip.Addr{}},
		{UDP, addr("2001:db8:7::7"), 53, netip.Addr{}},
	}
	vlan, bond, secure, first := full, full, full, full
	vlan.VLAN = 100
	bond.Uplinks, bond.VLAN = []uint32{3, 1}, 100
	secure.Secure = true
	first.Patch = 0
	v4, v6 := dual(t), dual(t)
	v4.Addresses, v4.Gateways = v4.Addresses[:1], v4.Gateways[:1]
	v6.Addresses, v6.Gateways = v6.Addresses[1:], v6.Gateways[1:]
	return map[string]Bridge{
		"full": full, "vlan": vlan, "bond": bond, "secure": secure, "no patch yet": first,
		"ipv4": v4, "ipv6": v6, "dual": dual(t),
	}
}

// TestRoundTrip programs every kind of row and reads it back: what Open vSwitch prints is what was rendered, so that
// a restarted agent has nothing to send.
func TestRoundTrip(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		p := r.programmer(t)
		for name, b := range kinds(t) {
			program(t, p, b)
			have, err := p.Dump(t.Context(), "br0")
			do(t, err)
			want, err := b.Flows()
			do(t, err)
			if diff := cmp.Diff(flowText(want), flowText(have)); diff != "" {
				t.Errorf("%s: rendered and shown flows differ:\n%s", name, diff)
			}
			again := r.programmer(t)
			change := program(t, again, b)
			if flows, ports := again.Mods(); change != (Change{}) || flows+ports != 0 {
				t.Errorf("%s: a restart sent %+v, %d flow mods, %d port mods", name, change, flows, ports)
			}
		}
	})
}
