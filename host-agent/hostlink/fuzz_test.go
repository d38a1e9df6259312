// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// stream makes numbers, addresses and flags of bytes; 0 when they are used up.
type stream []byte

func (s *stream) byte() byte {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return b
}

func (s *stream) flag() bool { return s.byte()&1 != 0 }

func (s *stream) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = s.byte()
	}
	return b
}

// ip is IPv4, IPv6 or not valid.
func (s *stream) ip() netip.Addr {
	addr, _ := netip.AddrFromSlice(s.bytes([]int{4, 16, 0, 4}[s.byte()%4]))
	return addr
}

// snapshot makes anything that the types can hold, whether a kernel would say it or not.
func (s *stream) snapshot() *kernel.Snapshot {
	snapshot := &kernel.Snapshot{}
	for range s.byte() % 4 {
		snapshot.Links = append(snapshot.Links, kernel.Link{
			Index: int(s.byte() % 4), Name: string(s.bytes(1)), AltNames: []string{string(s.bytes(1)), "ens3"},
			HardwareAddr: net.HardwareAddr(s.bytes(int(s.byte() % 21))), Up: s.flag(), Carrier: s.flag(),
			OperState:   []kernel.OperState{kernel.OperUp, kernel.OperUnknown, "down", ""}[s.byte()%4],
			MasterIndex: int(s.byte() % 4), VRFTable: uint32(s.byte() % 2),
		})
	}
	for range s.byte() % 8 {
		snapshot.Addrs = append(snapshot.Addrs, kernel.Addr{
			LinkIndex: int(s.byte() % 4), Prefix: netip.PrefixFrom(s.ip(), int(s.byte())), Scope: int(s.byte() % 2), Permanent: s.flag(),
			Deprecated: s.flag(), Tentative: s.flag(), DADFailed: s.flag(), Secondary: s.flag(), Temporary: s.flag(),
		})
	}
	for range s.byte() % 8 {
		route := kernel.Route{
			Table: []uint32{kernel.MainTable, 1}[s.byte()%2], Dst: netip.PrefixFrom(s.ip(), 0), Type: int(s.byte() % 3),
			Protocol: int(s.byte()), Metric: uint32(s.byte() % 3), NextHopObject: uint32(s.byte() % 2),
		}
		for range s.byte() % 4 {
			route.NextHops = append(route.NextHops, kernel.NextHop{
				Gateway: s.ip(), LinkIndex: int(s.byte() % 4), Weight: int(s.byte() % 3), Dead: s.flag(), LinkDown: s.flag(),
			})
		}
		snapshot.Routes = append(snapshot.Routes, route)
	}
	return snapshot
}

func FuzzDiscover(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("1\x03e\x01x\x06\x02\x02\x02\x02\x02\x02\x01\x01\x00\x00\x00\x02\x03\x00\x0a\x00\x00\x01\x18\x00\x01\x00\x00\x00\x00\x00\x01\x00\x00"))
	f.Add([]byte("17000000000110002700\x00\x00\x010000000000")) // a prefix longer than its address
	f.Fuzz(func(t *testing.T, data []byte) {
		input := stream(data)
		s := input.snapshot()
		got, problem := Discover(s, "ens3")
		if got.Interface != "ens3" {
			t.Errorf("interface %q", got.Interface)
		}
		if problem != nil {
			if problem.Reason == "" || problem.Message == "" || got.MAC != nil || got.Addresses != nil || got.Gateways != nil {
				t.Errorf("problem %+v with data %+v", problem, got)
			}
			return
		}
		if !uplinkstate.UsableMAC(got.MAC) {
			t.Errorf("MAC %s", got.MAC)
		}
		checkAddresses(t, got.Addresses)
		checkGateways(t, got.Gateways)
		if again, _ := Discover(s, "ens3"); !again.Equal(got) {
			t.Errorf("not the same twice: %+v, %+v", got, again)
		}
	})
}

// checkAddresses holds addresses against what the API takes: at least one, one per family, IPv4 first.
func checkAddresses(t *testing.T, addresses []netip.Prefix) {
	if len(addresses) == 0 || len(addresses) > 2 || (len(addresses) == 2 && (!addresses[0].Addr().Is4() || !addresses[1].Addr().Is6())) {
		t.Errorf("addresses %v", addresses)
	}
	for _, a := range addresses {
		if parsed, err := netip.ParsePrefix(a.String()); err != nil || parsed != a || !a.Addr().IsGlobalUnicast() || a.Addr().Is4In6() {
			t.Errorf("address %v: %v", a, err)
		}
	}
}

// checkGateways holds gateways against what the API takes: at most two, none twice, IPv4 first, no zone.
func checkGateways(t *testing.T, gateways []netip.Addr) {
	isIPv6 := func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() }
	if len(gateways) > 2 || !slices.IsSortedFunc(gateways, isIPv6) || (len(gateways) == 2 && gateways[0] == gateways[1]) {
		t.Errorf("gateways %v", gateways)
	}
	for _, g := range gateways {
		if parsed, err := netip.ParseAddr(g.String()); err != nil || parsed != g || g.Zone() != "" || g.Is4In6() {
			t.Errorf("gateway %v: %v", g, err)
		}
	}
}

func FuzzPCIAddress(f *testing.F) {
	for _, text := range []string{"0000:03:00.1", "10000:e1:1f.7", "03:00.0", "devices/pci0000:00/0000:03:00.0/net/p0", "00000000:00:00.0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if address, ok := parsePCIAddress(text); ok && address.String() != text {
			t.Errorf("%q became %s", text, address)
		}
		if address, ok := nearestPCI(text); ok {
			if again, ok := parsePCIAddress(address.String()); !ok || again != address {
				t.Errorf("nearest to %q is %s, which is none", text, address)
			}
		}
	})
}
