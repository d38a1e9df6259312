// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"net/netip"
	"strings"
)

// memory is a database in memory, with what the CNI makes.
type memory struct {
	database
	last int
}

func newMemory(networks ...Network) *memory {
	m := &memory{database: database{
		routers: map[string]*routerRow{}, routerPorts: map[string]*routerPortRow{}, routes: map[string]*routeRow{},
		policies: map[string]*policyRow{}, nats: map[string]*natRow{}, switches: map[string]*switchRow{},
		switchPorts: map[string]*switchPortRow{}, balancers: map[string]*balancerRow{}, staticMACs: map[string]*staticMACRow{},
	}}
	for _, n := range networks {
		m.cni(n)
	}
	return m
}

func (m *memory) view(ranges Ranges) *View { return newView(m.database, "n1", ranges.withDefaults()) }

func (m *memory) uuid() string {
	m.last++
	return fmt.Sprintf("%08x-0000-4000-8000-000000000000", m.last)
}

func (m *memory) router(name, network string) *routerRow {
	r := &routerRow{UUID: m.uuid(), Name: name, ExternalIDs: map[string]string{cniNetworkKey: network}}
	m.routers[r.UUID] = r
	return r
}

func (m *memory) port(r *routerRow, name string, options map[string]string, networks ...string) *routerPortRow {
	p := &routerPortRow{UUID: m.uuid(), Name: name, Networks: networks, Options: options}
	m.routerPorts[p.UUID] = p
	r.Ports = append(r.Ports, p.UUID)
	return p
}

func (m *memory) route(r *routerRow, prefix, nextHop string, ids map[string]string) {
	row := &routeRow{UUID: m.uuid(), Prefix: prefix, NextHop: nextHop, ExternalIDs: ids}
	m.routes[row.UUID] = row
	r.StaticRoutes = append(r.StaticRoutes, row.UUID)
}

// cni makes the rows of a network, with the node n1 of number 2 and the node n2 of number 3.
func (m *memory) cni(n Network) {
	p := n.Prefix
	gr := m.router(gatewayRouter+p+"n1", n.Name)
	switch n.Topology {
	case Layer3:
		r := m.router(p+"ovn_cluster_router", n.Name)
		m.port(r, toSwitch+p+"n1", nil, subnetGateways(n.Subnets, 24)...)
		m.port(gr, gatewayJoin+p+"n1", nil, "100.65.0.2/16", "fd99::2/64")
		ids := map[string]string{cniRemoteKey: "n2", cniNetworkKey: n.Name}
		m.route(r, "100.65.0.2", "100.65.0.2", nil)
		m.route(r, "100.65.0.3/32", "100.88.0.3", ids)
		m.route(r, "10.200.1.0/24", "100.88.0.3", ids)
		m.route(r, "fd99::3", "fd97::3", ids)
	case Layer2:
		r := m.router(p+transitRouter, n.Name)
		m.port(r, transitSwitch+p+layer2Switch, nil, subnetGateways(n.Subnets, 0)...)
		m.port(gr, gatewayTransit+p+"n1", nil, "100.65.0.2/16", "100.88.0.5/31", "fd97::5/127", "fd99::2/64")
		m.port(r, transitGateway+p+"n1", map[string]string{tunnelKey: "12"}, "100.88.0.4/31", "fd97::4/127")
		m.port(r, transitGateway+p+"n2", map[string]string{tunnelKey: "13", chassisOption: "chassis-2"}, "100.88.0.6/31", "fd97::6/127")
	}
}

// older makes the rows of a Layer2 network as an older CNI does, without a transit router.
func (m *memory) older(n Network) {
	r := m.router(gatewayRouter+n.Prefix+"n1", n.Name)
	m.port(r, toSwitch+n.Prefix+layer2Switch, nil, append(subnetGateways(n.Subnets, 0), "100.65.0.2/16", "fd99::2/64")...)
	m.port(r, gatewayExt+n.Prefix+"n1", nil, "169.254.0.11/17", "172.18.0.2/16")
}

// subnetGateways are the addresses of the CNI's router in the first subnets of a node.
func subnetGateways(subnets []netip.Prefix, bits int) []string {
	var out []string
	for _, s := range subnets {
		length := s.Bits()
		if bits > 0 {
			length = bits
			if s.Addr().Is6() {
				length = 64
			}
		}
		out = append(out, netip.PrefixFrom(s.Addr().Next(), length).String())
	}
	return out
}

// text is what a plan for a gateway wants, without the long names' constant parts.
func text(v *View, g Gateway) (string, Outcome, error) {
	want, outcome, err := render(v, g)
	if err != nil {
		return "", outcome, err
	}
	out := want.String()
	for uuid, r := range v.routers {
		out = strings.ReplaceAll(out, uuid, r.Name)
	}
	return out, outcome, nil
}
