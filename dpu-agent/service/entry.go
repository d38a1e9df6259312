// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"
)

// Protocol is one that services can have.
type Protocol string

// The protocols that there are.
const (
	TCP  Protocol = "TCP"
	UDP  Protocol = "UDP"
	SCTP Protocol = "SCTP"
)

// Entry is one address and port at which a service is reachable through the gateway, with its endpoints. Slices in
// it are shared and must not be changed.
type Entry struct {
	// Service is namespace/name, both DNS labels.
	Service string
	// PortName is empty or a DNS label.
	PortName string
	Protocol Protocol
	// Address is an external IP or one of a load balancer. The zero Addr is a node port: it is reachable at every
	// address of the Uplink of the family.
	Address netip.Addr
	// IPv6 is the family of the address and of the backends.
	IPv6 bool
	Port uint16
	// Backends are sorted. None means that connections are rejected.
	Backends []netip.AddrPort
	// Affinity is for how long a client stays at its backend, counted from its last connection. Zero means that
	// each connection is balanced.
	Affinity time.Duration
	// Local means that the backends are the endpoints on this node, and that they see the client's address.
	Local bool
	// Sources are who may connect, sorted. None means everybody.
	Sources []netip.Prefix
}

// HealthCheck is what a load balancer outside asks about the endpoints of a service on this node.
type HealthCheck struct {
	// Service is namespace/name.
	Service string
	// Port is where it asks.
	Port uint16
	// Endpoints are those that are ready on this node; in a service of both families, of the family with more.
	Endpoints int
}

// Conflict is an address and port that a service does not get, because another one of the same Uplink has it.
type Conflict struct {
	// Service is namespace/name of who does not get it, and Winner of who has it: the older, else the first by name.
	Service, Winner string
	Protocol        Protocol
	// Address is zero for a node port of the family.
	Address netip.Addr
	IPv6    bool
	Port    uint16
}

// String says who lost what to whom.
func (c Conflict) String() string {
	at := fmt.Sprintf("node port %d", c.Port)
	if c.Address.IsValid() {
		at = netip.AddrPortFrom(c.Address, c.Port).String()
	}
	return fmt.Sprintf("service %s does not get %s/%s: service %s has it", c.Service, at, c.Protocol, c.Winner)
}

// claim is what only one service can have at an Uplink.
type claim struct {
	address  netip.Addr
	ipv6     bool
	port     uint16
	protocol Protocol
}

func (e *Entry) claim() claim { return claim{e.Address, e.IPv6, e.Port, e.Protocol} }

func (c claim) compare(other claim) int {
	if by := c.address.Compare(other.address); by != 0 {
		return by
	}
	if c.ipv6 != other.ipv6 {
		if other.ipv6 {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(c.port, other.port), cmp.Compare(c.protocol, other.protocol))
}
