// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// Local is the OpenFlow port number of a bridge's own interface, OFPP_LOCAL.
const Local uint32 = 65534

// Protocol is a transport protocol by its number in IP.
type Protocol uint8

// Protocols that a Service may have.
const (
	TCP  Protocol = 6
	UDP  Protocol = 17
	SCTP Protocol = 132
)

func (p Protocol) String() string {
	switch p {
	case TCP:
		return "tcp"
	case UDP:
		return "udp"
	case SCTP:
		return "sctp"
	}
	return fmt.Sprintf("protocol %d", uint8(p))
}

// Bridge is everything that the flows of an Uplink's bridge depend on.
type Bridge struct {
	// Name is the OVS bridge's.
	Name string
	// HostPort is the port that leads to the host: Local, or a representor.
	HostPort uint32
	// Uplinks are the ports that lead to the wire; several are the members of a bond. OVN's packets leave by the
	// first that is up. Where the bond has an active member (Port.bond_active_slave), it must come first: a switch
	// that learns the MAC at another member sends the host's packets there, where the bond drops them.
	Uplinks []uint32
	// VLAN is what frames of the Uplink's network carry on Uplinks as OpenFlow sees them; 0 is untagged, as on an
	// access port.
	VLAN uint16
	// Patch is the patch port to OVN, whose frames are untagged; 0 while there is none: what is for OVN is then
	// dropped, so that a connection survives that ovn-controller makes the port anew.
	Patch uint32
	// Secure is true for fail_mode=secure, where nothing passes without a flow.
	Secure bool

	// MAC is the one that the host and OVN share, and Addresses are, at most one of a family.
	MAC       net.HardwareAddr
	Addresses []netip.Addr
	// Gateways are the routers whose unasked ARP and ND must reach OVN too.
	Gateways []netip.Addr

	// Transit are the sources that are translated to the Uplink's address.
	Transit []netip.Prefix
	// Unroutable are ranges that are never on the wire: services, links, transit.
	Unroutable []netip.Prefix
	// Advertised are pod subnets that are routed as they are.
	Advertised []netip.Prefix
	// Zone is the conntrack zone of this bridge alone, see Programmer.Zone.
	Zone uint16
	// Services are the ports that are OVN's, in any order.
	Services []Service
}

// Service is a port whose packets go to OVN.
type Service struct {
	Protocol Protocol
	Address  netip.Addr
	Port     uint16
	// Target is what the destination becomes when Address is one of the Uplink's. It is invalid for an address
	// that is the services' own: OVN gets such packets as they are.
	Target netip.Addr
}

// compare orders services by what identifies them; the target does not.
func (s Service) compare(o Service) int {
	return cmp.Or(s.Address.Compare(o.Address), cmp.Compare(s.Port, o.Port), cmp.Compare(s.Protocol, o.Protocol))
}

func (s Service) String() string {
	return fmt.Sprintf("%s %s", s.Protocol, netip.AddrPortFrom(s.Address, s.Port))
}

// address is the Uplink's address of a family; invalid when there is none.
func (b *Bridge) address(v6 bool) netip.Addr {
	for _, a := range b.Addresses {
		if a.Is6() == v6 {
			return a
		}
	}
	return netip.Addr{}
}

// frame is the bridge without its services: what is rendered anew whenever something of it changes.
func (b *Bridge) frame() Bridge {
	f := *b
	f.Services = nil
	f.Uplinks = slices.Clone(b.Uplinks)
	f.MAC = slices.Clone(b.MAC)
	f.Addresses = slices.Clone(b.Addresses)
	f.Gateways = slices.Clone(b.Gateways)
	f.Transit = slices.Clone(b.Transit)
	f.Unroutable = slices.Clone(b.Unroutable)
	f.Advertised = slices.Clone(b.Advertised)
	return f
}
