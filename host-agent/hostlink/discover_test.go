// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

const hostMAC = "00:00:5e:00:53:07"

func mac(t testing.TB, text string) net.HardwareAddr {
	t.Helper()
	m, err := net.ParseMAC(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// node is a snapshot in which ens3 can be an Uplink's interface.
func node(t testing.TB) *kernel.Snapshot {
	return &kernel.Snapshot{
		Links: []kernel.Link{
			{Index: 1, Name: "lo", Up: true, Carrier: true, OperState: kernel.OperUnknown},
			{
				Index: ens3, Name: "ens3", AltNames: []string{"enp65s0f0np0pf0vf0"}, HardwareAddr: mac(t, hostMAC),
				Up: true, Carrier: true, OperState: kernel.OperUp, MTU: 1500,
			},
			{Index: 9, Name: "vrf-blue", VRFTable: 1007},
		},
		Addrs:  addrs("192.0.2.5/24", "2001:db8::5/64"),
		Routes: []kernel.Route{via(100, "192.0.2.1"), via(1024, "fe80::1")},
	}
}

func TestDiscover(t *testing.T) {
	good := uplinkstate.HostData{
		Interface: "ens3", MAC: mac(t, hostMAC),
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.5/24"), netip.MustParsePrefix("2001:db8::5/64")},
		Gateways:  []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1")},
	}
	tests := map[string]struct {
		change func(s *kernel.Snapshot, link *kernel.Link)
		iface  string
		want   func(d *uplinkstate.HostData)
	}{
		"all there": {},
		"A19: the name asked for, an altname": {
			iface: "enp65s0f0np0pf0vf0",
			want:  func(d *uplinkstate.HostData) { d.Interface = "enp65s0f0np0pf0vf0" },
		},
		"operational state unknown": {change: func(_ *kernel.Snapshot, l *kernel.Link) { l.OperState = kernel.OperUnknown }},
		"C4: no gateway yet": {
			change: func(s *kernel.Snapshot, _ *kernel.Link) { s.Routes = nil },
			want:   func(d *uplinkstate.HostData) { d.Gateways = nil },
		},
		"C18: one family": {
			change: func(s *kernel.Snapshot, _ *kernel.Link) { s.Addrs = s.Addrs[:1] },
			want:   func(d *uplinkstate.HostData) { d.Addresses = d.Addresses[:1] },
		},
		"C3: the default routes of its VRF, not those of main": {
			change: func(s *kernel.Snapshot, l *kernel.Link) {
				l.MasterIndex = 9
				s.Routes = append(s.Routes, with(via(0, "192.0.2.254"), func(r *kernel.Route) { r.Table = 1007 }))
			},
			want: func(d *uplinkstate.HostData) { d.Gateways = []netip.Addr{netip.MustParseAddr("192.0.2.254")} },
		},
		"another link's addresses": {change: func(s *kernel.Snapshot, _ *kernel.Link) {
			a := addr("192.0.2.1/24")
			a.LinkIndex = other
			s.Addrs = append(s.Addrs, a)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, want, iface := node(t), good, "ens3"
			if test.change != nil {
				test.change(s, &s.Links[1])
			}
			if test.want != nil {
				test.want(&want)
			}
			if test.iface != "" {
				iface = test.iface
			}
			got, problem := Discover(s, iface)
			if problem != nil {
				t.Fatal(problem)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDiscoverProblems(t *testing.T) {
	const (
		notFound = uplinkstate.ReasonHostInterfaceNotFound
		invalid  = uplinkstate.ReasonInvalidHostInterface
		noInfo   = uplinkstate.ReasonGatewayInfoUnavailable
	)
	type change = func(s *kernel.Snapshot, link *kernel.Link)
	address := func(mac ...byte) change {
		return func(_ *kernel.Snapshot, l *kernel.Link) { l.HardwareAddr = mac }
	}
	state := func(up, carrier bool, oper kernel.OperState) change {
		return func(_ *kernel.Snapshot, l *kernel.Link) { l.Up, l.Carrier, l.OperState = up, carrier, oper }
	}
	only := func(texts ...string) change {
		return func(s *kernel.Snapshot, _ *kernel.Link) { s.Addrs = addrs(texts...) }
	}
	tests := map[string]struct {
		change change
		reason string
		says   string
	}{
		"no such link": {
			func(s *kernel.Snapshot, _ *kernel.Link) { s.Links = s.Links[:1] },
			notFound, "ens3 was not found",
		},
		"set down": {
			state(false, false, "down"),
			invalid, "ens3 is down: it must be up and have a carrier, but it is set down; set it up (ip link set ens3 up)",
		},
		"no carrier": {
			state(true, false, "lower-layer-down"),
			invalid, "is down: it must be up and have a carrier, but it has no carrier",
		},
		"dormant":          {state(true, true, "dormant"), invalid, "its operational state is dormant"},
		"A2: zero MAC":     {address(0, 0, 0, 0, 0, 0), invalid, "it has 00:00:00:00:00:00"},
		"A3: no MAC":       {address(), invalid, "no usable MAC address: it must have a unicast one of 6 bytes that is not zero, but it has none"},
		"A3: multicast":    {address(1, 0, 0x5e, 0, 0, 1), invalid, "it has 01:00:5e:00:00:01"},
		"A3: broadcast":    {address(255, 255, 255, 255, 255, 255), invalid, "it has ff:ff:ff:ff:ff:ff"},
		"A3: InfiniBand":   {address(make([]byte, 20)...), invalid, "6 bytes"},
		"A3: EUI-64":       {address(2, 0, 0x5e, 0x10, 0, 0, 0, 1), invalid, "6 bytes"},
		"no address":       {only(), noInfo, "but it has no address; give it one"},
		"Z4.2: link-local": {only("fe80::5/64 link"), noInfo, "fe80::5/64 (a link-local address)"},
		"C16: only waits": {
			only("2001:db8::5/64 tentative"),
			noInfo, "only 2001:db8::5/64 (tentative: duplicate address detection is not done yet)",
		},
		"a message does not change when detection is done": {
			only("fe80::5/64 link tentative"),
			noInfo, "fe80::5/64 (a link-local address)",
		},
		"many unusable": {
			only("fe80::1/64", "fe80::2/64", "fe80::3/64", "fe80::4/64", "fe80::5/64", "fe80::6/64"),
			noInfo, "fe80::4/64 (a link-local address), 2 more;",
		},
		"the first of several": {
			func(s *kernel.Snapshot, l *kernel.Link) { l.Up, l.HardwareAddr, s.Addrs = false, nil, nil },
			invalid, "is down",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := node(t)
			test.change(s, &s.Links[1])
			got, problem := Discover(s, "ens3")
			if problem == nil || problem.Reason != test.reason || !strings.Contains(problem.Message, test.says) {
				t.Errorf("got %v, want %s: …%s…", problem, test.reason, test.says)
			}
			if want := (uplinkstate.HostData{Interface: "ens3"}); !got.Equal(want) {
				t.Errorf("data next to a problem: %+v", got)
			}
			if problem != nil && uplinkstate.Message(problem.Message) != problem.Message {
				t.Errorf("the message is not fit for a condition: %q", problem.Message)
			}
		})
	}
}
