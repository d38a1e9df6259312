// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"net"
	"net/netip"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// Gateway is what an Uplink is to be on this node.
type Gateway struct {
	// Uplink is the name of the Uplink.
	Uplink string
	// Chassis is the name under which this node's ovn-controller runs.
	Chassis string
	// MAC and Addresses are those of the host's interface; the prefixes are those of its links.
	MAC       net.HardwareAddr
	Addresses []netip.Prefix
	// DefaultGateways are used by all networks; several of one family share the load.
	DefaultGateways []netip.Addr
	// Routes are used by all networks besides DefaultGateways.
	Routes []Route
	// Networks are the networks whose gateway the Uplink is.
	Networks []Network
}

// Route is a route by the wire.
type Route struct {
	Prefix  netip.Prefix
	NextHop netip.Addr
}

// Topology is the topology of a network, as in the spec of a ClusterUserDefinedNetwork.
type Topology string

// The topologies of networks that can have a gateway.
const (
	Layer2 Topology = "Layer2"
	Layer3 Topology = "Layer3"
)

// Network is one network behind an Uplink.
type Network struct {
	// Name is the CNI's name of the network, for example cluster_udn_blue-1: what external_ids:k8s.ovn.org/network of
	// its rows says.
	Name string
	// Prefix is what the CNI puts before the names of the network's rows, for example cluster_udn_blue.1_.
	Prefix   string
	Topology Topology
	// Subnets are the network's pod subnets on all nodes.
	Subnets []netip.Prefix
	// Advertised are the pod subnets that are known outside by a route to this node: they are not translated.
	Advertised []netip.Prefix
	// LoadBalancers are the services that are reachable from outside by this node.
	LoadBalancers []LoadBalancer
	// Hold is why the network's rows are to stay as they are, nil where they are not: it becomes its Problem.
	Hold *uplinkstate.Problem
}

// LoadBalancer is one port of one service at one address.
type LoadBalancer struct {
	// Name tells load balancers of a network apart and stays the same when backends change.
	Name string
	// Protocol is tcp, udp or sctp.
	Protocol string
	// Address is where the service is reachable; the zero Addr stands for the network's transit address, where the
	// bridge sends what comes for a node port.
	Address netip.Addr
	// IPv6 is the family of a load balancer without Address.
	IPv6 bool
	Port uint16
	// Backends may be empty: connections are refused then.
	Backends []netip.AddrPort
	// Affinity is how long a client keeps its backend, 0 for not at all. OVN knows whole seconds up to 65535.
	Affinity time.Duration
	// Local says that all backends are on this node, so that they may see the address of the client.
	Local bool
}

// Outcome is what became of a Gateway.
type Outcome struct {
	// Networks has what became of each network, by name.
	Networks map[string]NetworkOutcome
}

// NetworkOutcome is what became of one network of a Gateway.
type NetworkOutcome struct {
	// Transit are the network's addresses on the way to the edge router, at most one per family, IPv4 first: what the
	// bridge translates from and to. It is empty while the network has none.
	Transit []netip.Addr
	// Advertised are the subnets of the network that are reachable from the wire as they are.
	Advertised []netip.Prefix
	// Problem is why the network is not as it should be, nil if it is. The rows that it had stay meanwhile.
	Problem *uplinkstate.Problem
}

func (l *LoadBalancer) is6() bool {
	if l.Address.IsValid() {
		return l.Address.Is6()
	}
	return l.IPv6
}
