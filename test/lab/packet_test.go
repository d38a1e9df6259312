// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
)

// ether is an Ethernet header before a type.
const ether = "020000000002 020000000001 "

func TestParsePacket(t *testing.T) {
	a4, b4 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	a6, b6 := netip.MustParseAddr("fe80::1"), netip.MustParseAddr("ff02::1")
	const addresses6 = "fe800000000000000000000000000001 ff020000000000000000000000000001 "
	cases := []struct {
		name, frame string
		want        Packet
	}{
		{"ARP request", ether + "0806 0001080006040001 020000000001 c0000201 000000000000 c0000202",
			Packet{EtherType: EtherARP, ARPOp: 1, Src: a4, Dst: b4, HardwareAddr: "02:00:00:00:00:01"}},
		{"tagged TCP", ether + "8100 002a 0800 45000028000040003f060000 c0000201 c0000202 1f90 0050 0000000000000000 5012",
			Packet{VLAN: 42, EtherType: EtherIPv4, Src: a4, Dst: b4, Proto: ProtoTCP, TTL: 63, SrcPort: 8080, DstPort: 80, TCPFlags: 0x12}},
		{"IP options", ether + "0800 46000020000000004011 0000 c0000201 c0000202 01010101 0001 0002 00080000",
			Packet{EtherType: EtherIPv4, Src: a4, Dst: b4, Proto: ProtoUDP, TTL: 64, SrcPort: 1, DstPort: 2}},
		{"first fragment", ether + "0800 4500002000002000 4011 0000 c0000201 c0000202 0001 0002",
			Packet{EtherType: EtherIPv4, Src: a4, Dst: b4, Proto: ProtoUDP, TTL: 64, Fragment: true, SrcPort: 1, DstPort: 2}},
		{"last fragment", ether + "0800 4500002000000010 4011 0000 c0000201 c0000202 0001 0002",
			Packet{EtherType: EtherIPv4, Src: a4, Dst: b4, Proto: ProtoUDP, TTL: 64, Fragment: true}},
		{"echo", ether + "0800 450000200000000040010000 c0000201 c0000202 0800 0000",
			Packet{EtherType: EtherIPv4, Src: a4, Dst: b4, Proto: ProtoICMP, TTL: 64, ICMPType: 8}},
		{"advertisement", ether + "86dd 60000000 0020 3a ff " + addresses6 + "8800 0000 60000000 " + "fe800000000000000000000000000001 0201 020000000009",
			Packet{EtherType: EtherIPv6, Src: a6, Dst: b6, Proto: ProtoICMPv6, TTL: 255, ICMPType: 136, NDTarget: a6, HardwareAddr: "02:00:00:00:00:09"}},
		{"IPv6 extensions and fragment", ether + "86dd 60000000 0020 00 40 " + addresses6 + "2c00000000000000 1100000100000000 0001 0002",
			Packet{EtherType: EtherIPv6, Src: a6, Dst: b6, Proto: ProtoUDP, TTL: 64, Fragment: true, SrcPort: 1, DstPort: 2}},
		{"later IPv6 fragment", ether + "86dd 60000000 0020 2c 40 " + addresses6 + "1100 0009 00000000 0001 0002",
			Packet{EtherType: EtherIPv6, Src: a6, Dst: b6, Proto: ProtoUDP, TTL: 64, Fragment: true}},
		{"cut off", ether + "0800 4500", Packet{EtherType: EtherIPv4}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			frame, err := hex.DecodeString(strings.ReplaceAll(c.frame, " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			c.want.EthSrc, c.want.EthDst, c.want.Length = "02:00:00:00:00:01", "02:00:00:00:00:02", len(frame)
			if got := parsePacket(frame); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			for n := range frame { // nothing that is cut off anywhere is a panic
				parsePacket(frame[:n])
			}
		})
	}
}

func TestChecksum(t *testing.T) {
	// The example of RFC 1071, section 3, and one with an odd length.
	for text, want := range map[string]uint16{"0001f203f4f5f6f7": 0x220d, "01": 0xfeff} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := checksum(b); got != want {
			t.Errorf("checksum of %s is %#x, want %#x", text, got, want)
		}
	}
}

func TestNetworkAddresses(t *testing.T) {
	n := &Network{Spec: NetworkSpec{Topology: Layer3, ID: 3, Subnets: []netip.Prefix{
		netip.MustParsePrefix("10.200.0.0/16"), netip.MustParsePrefix("fd10::/48"),
	}, JoinSubnets: []netip.Prefix{netip.MustParsePrefix("fd99::/64"), netip.MustParsePrefix("100.65.0.0/16")}}}
	z := &Zone{ID: 2, Node: &Node{Name: "w-1", Address: netip.MustParseAddr("198.18.0.10")}}
	gatewayMasq, managementMasq := n.masquerade()
	router, gateway := n.transitLink(z)
	for got, want := range map[string]string{
		strings.Join(texts(n.NodeSubnets(z)), " "):                           "10.200.1.0/24 fd10:0:0:1::/64",
		strings.Join(texts(n.Gateways(z)), " "):                              "10.200.1.1 fd10:0:0:1::1",
		strings.Join(texts(n.JoinAddresses(z)), " "):                         "100.65.0.2 fd99::2",
		strings.Join(texts(append(gatewayMasq[:1], managementMasq[0])), " "): "169.254.0.15 169.254.0.16",
		strings.Join(texts(append(router, gateway...)), " "):                 "100.88.0.4/31 fd97::4/127 100.88.0.5/31 fd97::5/127",
		after(netip.MustParseAddr("10.0.0.250"), 300).String():               "10.0.2.38",
		addressMAC(netip.MustParseAddr("100.65.0.2")):                        "0a:58:64:41:00:02",
		rowPrefix("cluster_udn_blue-1"):                                      "cluster_udn_blue.1_",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
