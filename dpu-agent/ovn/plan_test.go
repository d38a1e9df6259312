// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"flag"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

var update = flag.Bool("update", false, "write testdata anew")

// The rows of gateways as text, in testdata.
func TestPlannedRows(t *testing.T) {
	blue, red, green := layer3("blue-1"), layer3("red"), layer2("green")
	nodePorts := blue
	nodePorts.LoadBalancers = []LoadBalancer{
		{Name: "ns/web/http", Protocol: "tcp", Port: 30080, Backends: backends("10.200.0.6:80", "10.200.0.5:80")},
		{Name: "ns/web/http6", Protocol: "tcp", IPv6: true, Port: 30080, Backends: backends("[fd10::5]:80")},
		{Name: "ns/dns/dns", Protocol: "udp", Port: 30053, Affinity: 100000 * time.Second, Local: true},
		{Name: "ns/web/vip", Protocol: "tcp", Address: netip.MustParseAddr("198.51.100.7"), Port: 443, Backends: backends("10.200.0.5:443")},
	}
	shared := red
	shared.LoadBalancers = []LoadBalancer{
		{Name: "ns/x/b", Protocol: "tcp", Address: netip.MustParseAddr("198.51.100.7"), Port: 8443, Backends: backends("10.200.0.5:443")},
		{Name: "ns/x/a", Protocol: "tcp", Address: netip.MustParseAddr("198.51.100.7"), Port: 80, Backends: backends("10.200.0.5:80")},
		{Name: "ns/x/only", Protocol: "sctp", Address: netip.MustParseAddr("198.51.100.8"), Port: 80},
	}
	advertised := blue
	advertised.Advertised = prefixes("10.200.0.0/24")
	v4 := gateway("wire", blue)
	v4.Addresses, v4.DefaultGateways = prefixes("192.0.2.10/24"), addrs("192.0.2.2", "192.0.2.1")
	routed := gateway("wire")
	routed.DefaultGateways = addrs("fe80::1%eth0")
	routed.Routes = []Route{{prefixes("203.0.113.7/24")[0], addrs("192.0.2.3")[0]}, {prefixes("2001:db8:9::/48")[0], addrs("fe80::2")[0]}}
	older := newMemory()
	older.older(green)
	for name, c := range map[string]struct {
		m      *memory
		g      Gateway
		ranges Ranges
	}{
		"no network":                 {newMemory(), gateway("wire"), Ranges{}},
		"routes":                     {newMemory(), routed, Ranges{}},
		"layer3":                     {newMemory(blue), gateway("wire", blue), Ranges{}},
		"layer3 ipv4 uplink":         {newMemory(blue), v4, Ranges{}},
		"layer2":                     {newMemory(green), gateway("wire", green), Ranges{}},
		"layer2 of an older cni":     {older, gateway("wire", green), Ranges{}},
		"services":                   {newMemory(blue, red), gateway("wire", nodePorts, shared), Ranges{}},
		"advertised":                 {newMemory(blue), gateway("wire", advertised), Ranges{}},
		"service cidrs and bypasses": {newMemory(blue), gateway("wire", blue), Ranges{ServiceCIDRs: prefixes("10.96.0.0/12", "fd00:10:96::/112"), Bypass: prefixes("172.18.0.0/16", "10.200.5.0/24")}},
		"other ranges": {newMemory(blue), gateway("wire", blue), Ranges{
			Transit: prefixes("198.18.64.0/20"), Link: prefixes("198.18.0.16/28"), ServiceSNAT: prefixes("198.18.128.0/20"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, outcome, err := text(c.m.view(c.ranges), c.g)
			if err != nil {
				t.Fatal(err)
			}
			for _, network := range slices.Sorted(maps.Keys(outcome.Networks)) {
				out := outcome.Networks[network]
				if out.Problem != nil {
					t.Errorf("network %s: %v", network, out.Problem)
				}
				got += fmt.Sprintf("transit of %s: %v\n", network, out.Transit)
			}
			file := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error("rows differ (-want +got):\n", diff)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	blue, green := layer3("blue-1"), layer2("green")
	alone := func(change func(*memory)) *memory {
		m := newMemory(blue, green)
		change(m)
		return m
	}
	port := func(m *memory, name string) *routerPortRow {
		for _, p := range m.routerPorts {
			if p.Name == name {
				return p
			}
		}
		t.Fatalf("no port %s", name)
		return nil
	}
	v6 := gateway("wire", blue, green)
	v6.Addresses = prefixes("2001:db8::1/64")
	only4 := blue
	only4.Subnets = blue.Subnets[:1]
	for name, c := range map[string]struct {
		m       *memory
		g       Gateway
		ranges  Ranges
		network string
		reason  string
		says    []string
	}{
		"no router": {newMemory(green), gateway("wire", blue, green), Ranges{}, blue.Name,
			uplinkstate.ReasonGatewayConfigurationPending, []string{"Logical_Router", "cluster_udn_blue-1"}},
		"no transit router": {newMemory(blue), gateway("wire", blue, green), Ranges{}, green.Name,
			uplinkstate.ReasonGatewayConfigurationPending, []string{"Logical_Router", "cluster_udn_green_transit_router"}},
		"no node port": {alone(func(m *memory) { port(m, "rtos-cluster_udn_blue.1_n1").Name = "x" }), gateway("wire", blue, green), Ranges{}, blue.Name,
			uplinkstate.ReasonGatewayConfigurationPending, []string{"Logical_Router_Port rtos-cluster_udn_blue.1_n1"}},
		"node port without subnet": {alone(func(m *memory) { port(m, "rtos-cluster_udn_blue.1_n1").Networks = []string{"10.3.0.1/24"} }), gateway("wire", blue, green), Ranges{}, blue.Name,
			uplinkstate.ReasonGatewayConfigurationPending, []string{"Logical_Router_Port rtos-cluster_udn_blue.1_n1", "10.3.0.1/24"}},
		"no join port": {alone(func(m *memory) { port(m, "rtotr-GR_cluster_udn_green_n1").Name = "x" }), gateway("wire", blue, green), Ranges{}, green.Name,
			uplinkstate.ReasonGatewayConfigurationPending, []string{"Logical_Router_Port rtotr-GR_cluster_udn_green_n1"}},
		"join port without address": {alone(func(m *memory) { port(m, "rtotr-GR_cluster_udn_green_n1").Networks = []string{"100.88.0.5/31"} }), gateway("wire", blue, green), Ranges{}, green.Name,
			uplinkstate.ReasonGatewayConfigurationPending, []string{"rtotr-GR_cluster_udn_green_n1", "100.88.0.5/31"}},
		"no family in common": {newMemory(only4, green), func() Gateway { g := v6; g.Networks = []Network{only4, green}; return g }(), Ranges{}, blue.Name,
			uplinkstate.ReasonUplinkGatewayProgrammingFailed, []string{"10.200.0.0/16", "2001:db8::1/64"}},
		"transit overlaps subnet": {newMemory(blue, green), gateway("wire", blue, green), Ranges{Transit: prefixes("10.200.128.0/20")}, blue.Name,
			uplinkstate.ReasonUplinkGatewayProgrammingFailed, []string{"10.200.128.0/20", "10.200.0.0/16"}},
		"service SNAT overlaps join subnet": {alone(func(m *memory) { port(m, "rtoj-GR_cluster_udn_blue.1_n1").Networks = []string{"100.66.0.2/16"} }), gateway("wire", blue, green),
			Ranges{ServiceSNAT: prefixes("100.66.0.0/20")}, blue.Name,
			uplinkstate.ReasonUplinkGatewayProgrammingFailed, []string{"100.66.0.0/20", "join subnet", "100.66.0.0/16"}},
		"link overlaps a port of the router": {alone(func(m *memory) {
			for _, r := range m.routers {
				if r.Name == "cluster_udn_blue.1_ovn_cluster_router" {
					m.port(r, "rtots-x", nil, "100.88.0.2/16")
				}
			}
		}), gateway("wire", blue, green), Ranges{Link: prefixes("100.88.0.0/30")}, blue.Name,
			uplinkstate.ReasonUplinkGatewayProgrammingFailed, []string{"100.88.0.0/30", "rtots-x"}},
		"node number does not fit": {alone(func(m *memory) { port(m, "rtoj-GR_cluster_udn_blue.1_n1").Networks = []string{"100.65.1.4/16"} }), gateway("wire", blue, green),
			Ranges{ServiceSNAT: prefixes("198.18.0.0/23")}, blue.Name,
			uplinkstate.ReasonUplinkGatewayProgrammingFailed, []string{"198.18.0.0/23", "260"}},
		"transit range is full": {newMemory(blue, green), gateway("wire", blue, green), Ranges{Transit: prefixes("198.18.0.0/30")}, green.Name,
			uplinkstate.ReasonUplinkGatewayProgrammingFailed, []string{"198.18.0.0/30"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, outcome, err := Plan(c.m.view(c.ranges), c.g)
			if err != nil {
				t.Fatal(err)
			}
			for network, out := range outcome.Networks {
				if network != c.network {
					if out.Problem != nil || len(out.Transit) == 0 {
						t.Errorf("network %s is hindered too: %v", network, out)
					}
					continue
				}
				if out.Problem == nil || out.Problem.Reason != c.reason {
					t.Fatalf("problem %v, want reason %s", out.Problem, c.reason)
				}
				for _, part := range append(c.says, network) {
					if !strings.Contains(out.Problem.Message, part) {
						t.Errorf("message %q does not say %q", out.Problem.Message, part)
					}
				}
			}
		})
	}
}

func TestGatewayMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Gateway)
		says   string
	}{
		"no address":              {func(g *Gateway) { g.Addresses = nil }, "no address"},
		"no chassis":              {func(g *Gateway) { g.Chassis = "" }, "chassis"},
		"no MAC":                  {func(g *Gateway) { g.MAC = net.HardwareAddr{1} }, "MAC"},
		"wire in a range of ours": {func(g *Gateway) { g.Addresses = prefixes("100.91.3.4/24") }, "100.91.3.0/24"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gateway("wire")
			c.change(&g)
			operations, _, err := Plan(newMemory().view(Ranges{}), g)
			if err == nil || len(operations) > 0 || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%d operations, error %v", len(operations), err)
			}
		})
	}
}

func TestRanges(t *testing.T) {
	for name, c := range map[string]struct {
		ranges Ranges
		says   string // empty: they are fine
	}{
		"defaults":           {Ranges{}, ""},
		"IPv4 given":         {Ranges{Transit: prefixes("198.18.0.1/16")}, ""},
		"two of one family":  {Ranges{Transit: prefixes("198.18.0.0/24", "198.19.0.0/24")}, "one family"},
		"too small":          {Ranges{Link: prefixes("198.18.0.0/31")}, "too small"},
		"overlapping":        {Ranges{Transit: prefixes("100.92.0.0/16")}, "100.92.0.0/30"},
		"services' overlap":  {Ranges{ServiceCIDRs: prefixes("fd93::/112")}, "fd93::/112"},
		"of three the third": {Ranges{ServiceSNAT: prefixes("fd92::/64")}, "fd92::/126"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.ranges.Validate()
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %q", err, c.says)
			}
		})
	}
}
