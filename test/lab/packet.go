// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Numbers of IP's protocols, as in Packet.Proto.
const (
	ProtoICMP   = 1
	ProtoTCP    = 6
	ProtoUDP    = 17
	ProtoICMPv6 = 58
	ProtoSCTP   = 132
)

// EtherTypes, as in Packet.EtherType.
const (
	EtherIPv4 = 0x0800
	EtherARP  = 0x0806
	EtherIPv6 = 0x86dd
	etherVLAN = 0x8100
)

// Packet is what a capture understood of a frame. What the frame does not
// have is the zero value.
type Packet struct {
	Time time.Time
	// Outgoing is set on frames that the captured interface's own side
	// sent.
	Outgoing  bool
	EthSrc    string // as net.HardwareAddr prints it
	EthDst    string
	VLAN      int // 0 for none
	EtherType uint16
	// Src and Dst are IP's addresses, or ARP's protocol addresses.
	Src, Dst netip.Addr
	// Proto is the protocol behind IP's header and, in IPv6, its extension
	// headers.
	Proto uint8
	TTL   uint8
	// Fragment is set on every fragment; only the first has ports.
	Fragment         bool
	SrcPort, DstPort uint16
	// TCPFlags are the low eight: FIN 1, SYN 2, RST 4, ACK 16.
	TCPFlags           uint8
	ICMPType, ICMPCode uint8
	// ARPOp is 1 for a request and 2 for a reply.
	ARPOp uint16
	// HardwareAddr is the sender's in ARP, the option's in neighbour
	// discovery.
	HardwareAddr string
	// NDTarget is that of a neighbour solicitation or advertisement.
	NDTarget netip.Addr
	// Length is that of the frame.
	Length int
}

func (p Packet) String() string {
	return fmt.Sprintf("%s > %s type %#04x vlan %d, %s:%d > %s:%d proto %d icmp %d/%d arp %d nd %s, %d bytes",
		p.EthSrc, p.EthDst, p.EtherType, p.VLAN, p.Src, p.SrcPort, p.Dst, p.DstPort,
		p.Proto, p.ICMPType, p.ICMPCode, p.ARPOp, p.NDTarget, p.Length)
}

// parsePacket reads a frame as far as it goes.
func parsePacket(b []byte) Packet {
	p := Packet{Length: len(b)}
	if len(b) < 14 {
		return p
	}
	p.EthDst, p.EthSrc = net.HardwareAddr(b[:6]).String(), net.HardwareAddr(b[6:12]).String()
	p.EtherType = binary.BigEndian.Uint16(b[12:])
	b = b[14:]
	if p.EtherType == etherVLAN && len(b) >= 4 {
		p.VLAN = int(binary.BigEndian.Uint16(b) & 0xfff)
		p.EtherType = binary.BigEndian.Uint16(b[2:])
		b = b[4:]
	}
	switch p.EtherType {
	case EtherARP:
		p.arp(b)
	case EtherIPv4:
		p.ipv4(b)
	case EtherIPv6:
		p.ipv6(b)
	}
	return p
}

// arp reads RFC 826's packet for Ethernet and IPv4.
func (p *Packet) arp(b []byte) {
	if len(b) < 28 {
		return
	}
	p.ARPOp = binary.BigEndian.Uint16(b[6:])
	p.HardwareAddr = net.HardwareAddr(b[8:14]).String()
	p.Src, p.Dst = netip.AddrFrom4([4]byte(b[14:18])), netip.AddrFrom4([4]byte(b[24:28]))
}

func (p *Packet) ipv4(b []byte) {
	if len(b) < 20 {
		return
	}
	header := int(b[0]&0xf) * 4
	if header < 20 || len(b) < header {
		return
	}
	p.TTL, p.Proto = b[8], b[9]
	p.Src, p.Dst = netip.AddrFrom4([4]byte(b[12:16])), netip.AddrFrom4([4]byte(b[16:20]))
	offset := binary.BigEndian.Uint16(b[6:])
	p.Fragment = offset&0x3fff != 0 // more fragments, or not the first
	if offset&0x1fff == 0 {
		p.transport(b[header:])
	}
}

// ipv6Extensions are the headers that may be between IPv6's and the
// transport's and have their length in units of eight bytes, RFC 8200.
var ipv6Extensions = map[uint8]bool{0: true, 43: true, 60: true}

const ipv6Fragment = 44

func (p *Packet) ipv6(b []byte) {
	if len(b) < 40 {
		return
	}
	p.Proto, p.TTL = b[6], b[7]
	p.Src, p.Dst = netip.AddrFrom16([16]byte(b[8:24])), netip.AddrFrom16([16]byte(b[24:40]))
	b = b[40:]
	for len(b) >= 8 {
		switch {
		case ipv6Extensions[p.Proto]:
			length := 8 * (int(b[1]) + 1)
			if len(b) < length {
				return
			}
			p.Proto, b = b[0], b[length:]
		case p.Proto == ipv6Fragment:
			p.Fragment = true
			later := binary.BigEndian.Uint16(b[2:])&0xfff8 != 0
			p.Proto, b = b[0], b[8:]
			if later {
				return
			}
		default:
			p.transport(b)
			return
		}
	}
	p.transport(b)
}

func (p *Packet) transport(b []byte) {
	if len(b) < 4 {
		return
	}
	switch p.Proto {
	case ProtoTCP, ProtoUDP, ProtoSCTP:
		p.SrcPort, p.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
		if p.Proto == ProtoTCP && len(b) >= 14 {
			p.TCPFlags = b[13]
		}
	case ProtoICMP:
		p.ICMPType, p.ICMPCode = b[0], b[1]
	case ProtoICMPv6:
		p.ICMPType, p.ICMPCode = b[0], b[1]
		p.neighbour(b)
	}
}

// The ICMPv6 types of neighbour discovery, RFC 4861.
const (
	NeighborSolicitation  = 135
	NeighborAdvertisement = 136
)

// neighbour reads the target and the first option, if it is a link-layer
// address.
func (p *Packet) neighbour(b []byte) {
	if (p.ICMPType != NeighborSolicitation && p.ICMPType != NeighborAdvertisement) || len(b) < 24 {
		return
	}
	p.NDTarget = netip.AddrFrom16([16]byte(b[8:24]))
	if len(b) >= 32 && (b[24] == 1 || b[24] == 2) && b[25] == 1 {
		p.HardwareAddr = net.HardwareAddr(b[26:32]).String()
	}
}
