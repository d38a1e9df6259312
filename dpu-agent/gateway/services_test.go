// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/service"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

func hostData() uplinkstate.HostData {
	return uplinkstate.HostData{
		Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24"), netip.MustParsePrefix("2001:db8::10/64")},
		Gateways:  []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("fe80::1")},
	}
}

// Whoever may make a Service may give it any external address: none of these may be taken.
func TestGuardrail(t *testing.T) {
	ranges := ovn.Ranges{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}
	g := newGuardrail(hostData(), ranges.Unroutable(), []tenant{{subnets: []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16")}}})
	for address, want := range map[string]string{
		"198.51.100.7": "", "2001:db8:7::7": "",
		"192.0.2.10":      "192.0.2.10 is the Uplink's own address",
		"2001:db8::10":    "2001:db8::10 is the Uplink's own address",
		"192.0.2.1":       "192.0.2.1 is the Uplink's gateway",
		"10.96.0.1":       "10.96.0.1 is in 10.96.0.0/16",
		"10.200.3.4":      "10.200.3.4 is in 10.200.0.0/16",
		"100.91.0.2":      "100.91.0.2 is in 100.91.0.0/16",
		"100.92.0.1":      "100.92.0.1 is in 100.92.0.0/30",
		"100.93.0.2":      "100.93.0.2 is in 100.93.0.0/16",
		"fd91::6":         "fd91::6 is in fd91::/64",
		"127.0.0.1":       "127.0.0.1 is no address of a single station",
		"169.254.1.1":     "169.254.1.1 is no address of a single station",
		"224.0.0.1":       "224.0.0.1 is no address of a single station",
		"255.255.255.255": "255.255.255.255 is no address of a single station",
		"::":              ":: is no address of a single station",
	} {
		if got := g.refuses(&service.Entry{Address: netip.MustParseAddr(address)}); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	if got := g.refuses(&service.Entry{}); got != "" {
		t.Errorf("a node port: %q", got)
	}
	if got := g.refuses(&service.Entry{Sources: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}); got == "" {
		t.Error("a service that is for some only is there for everybody")
	}
}

func TestSteer(t *testing.T) {
	lb := func(address, protocol string, v6 bool, port uint16) ovn.LoadBalancer {
		l := ovn.LoadBalancer{Protocol: protocol, IPv6: v6, Port: port}
		if address != "" {
			l.Address = netip.MustParseAddr(address)
		}
		return l
	}
	wish := ovn.Gateway{Addresses: hostData().Addresses, Networks: []ovn.Network{
		{Name: "blue", LoadBalancers: []ovn.LoadBalancer{lb("", "tcp", false, 30080), lb("", "udp", true, 30080), lb("198.51.100.7", "sctp", false, 80)}},
		{Name: "red", LoadBalancers: []ovn.LoadBalancer{lb("", "tcp", false, 30081), lb("", "tcp", true, 30081)}},
		{Name: "green", LoadBalancers: []ovn.LoadBalancer{lb("", "tcp", false, 30082)}},
	}}
	outcome := ovn.Outcome{Networks: map[string]ovn.NetworkOutcome{
		"blue": {Transit: []netip.Addr{netip.MustParseAddr("100.91.0.2"), netip.MustParseAddr("fd91::2")}},
		"red":  {Transit: []netip.Addr{netip.MustParseAddr("100.91.0.6")}}, // has no IPv6
	}} // green has none yet
	got := fmt.Sprint(steer(wish, outcome))
	want := "[tcp 192.0.2.10:30080 udp [2001:db8::10]:30080 sctp 198.51.100.7:80 tcp 192.0.2.10:30081]"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, s := range steer(wish, outcome) {
		if (s.Address == netip.MustParseAddr("198.51.100.7")) == s.Target.IsValid() {
			t.Errorf("%s has target %s", s, s.Target)
		}
	}
}
