// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// What the CNI calls the rows of a network, with its prefix <p>. Its routers are told by cniNetworkKey.
const (
	cniNetworkKey = "k8s.ovn.org/network"
	cniRemoteKey  = "ic-node" // on routes to another node

	gatewayRouter  = "GR_"            // + <p><node>
	transitRouter  = "transit_router" // <p> +
	layer2Switch   = "ovn_layer2_switch"
	toSwitch       = "rtos-"     // + <p><node>; Layer2 without a transit router: + <p>ovn_layer2_switch
	transitSwitch  = "trtos-"    // + <p>ovn_layer2_switch
	gatewayJoin    = "rtoj-GR_"  // + <p><node>
	gatewayTransit = "rtotr-GR_" // + <p><node>
	gatewayExt     = "rtoe-GR_"  // + <p><node>
	transitGateway = "trtor-GR_" // + <p><node>
	transitKeyBase = 10          // requested-tnl-key of the latter, less the number of the node
	linkKeyBase    = 10000       // the same of ours
	tunnelKey      = "requested-tnl-key"
	chassisOption  = "requested-chassis"
)

// attachment is where a network's gateway is linked to what the CNI made.
type attachment struct {
	router *routerRow
	// kind is what the router is.
	kind routerKind
	// nodePort is the router's port to the switch that this node's pods are on.
	nodePort *routerPortRow
	// joinPort is the port that has the node's join addresses.
	joinPort *routerPortRow
	// local are the subnets of this node's pods.
	local []netip.Prefix
	// join are the network's join subnets.
	join []netip.Prefix
	// number is the number of this node, by which its addresses are told from other nodes'.
	number uint64
	// translated are the addresses that the router gives to what pods send: a gateway router's own.
	translated []netip.Prefix
}

type routerKind int

const (
	clusterKind routerKind = iota // Layer3: one per zone
	transitKind                   // Layer2: one for all zones
	gatewayKind                   // Layer2 of an older CNI: the gateway router of this node
)

func pending(format string, args ...any) *uplinkstate.Problem {
	return uplinkstate.Problemf(uplinkstate.ReasonGatewayConfigurationPending, format, args...)
}

func failed(format string, args ...any) *uplinkstate.Problem {
	return uplinkstate.Problemf(uplinkstate.ReasonUplinkGatewayProgrammingFailed, format, args...)
}

// attach finds where to link a network's gateway to. The problem names the row that is awaited.
func (v *View) attach(n *Network) (*attachment, *uplinkstate.Problem) {
	a := &attachment{}
	if problem := v.findRouter(a, n); problem != nil {
		return nil, problem
	}
	if problem := v.findNodePort(a, n); problem != nil {
		return nil, problem
	}
	if problem := v.findJoin(a, n); problem != nil {
		return nil, problem
	}
	return a, nil
}

func (v *View) findRouter(a *attachment, n *Network) *uplinkstate.Problem {
	own := gatewayRouter + n.Prefix + v.node
	for _, r := range v.routersOf[n.Name] {
		isGateway := strings.HasPrefix(r.Name, gatewayRouter)
		switch {
		case n.Topology == Layer3 && !isGateway:
			a.router, a.kind = r, clusterKind
			return nil
		case n.Topology == Layer2 && !isGateway:
			a.router, a.kind = r, transitKind
			return nil
		case n.Topology == Layer2 && r.Name == own && v.portsByName[toSwitch+n.Prefix+layer2Switch] != nil:
			a.router, a.kind = r, gatewayKind
		}
	}
	if a.router != nil {
		return nil
	}
	kind := "cluster router"
	if n.Topology == Layer2 {
		kind = "transit router, " + n.Prefix + transitRouter
	}
	return pending("network %s: waiting for the Logical_Router of the network (%s, external_ids:%s=%s)", n.Name, kind, cniNetworkKey, n.Name)
}

func (v *View) findNodePort(a *attachment, n *Network) *uplinkstate.Problem {
	name := map[routerKind]string{
		clusterKind: toSwitch + n.Prefix + v.node,
		transitKind: transitSwitch + n.Prefix + layer2Switch,
		gatewayKind: toSwitch + n.Prefix + layer2Switch,
	}[a.kind]
	if a.nodePort = v.portOf(a.router, name); a.nodePort == nil {
		return pending("network %s: waiting for the Logical_Router_Port %s of router %s", n.Name, name, a.router.Name)
	}
	for _, p := range parse(a.nodePort.Networks) {
		if within(n.Subnets, p) {
			a.local = append(a.local, p)
		}
	}
	if a.local = normalised(a.local); len(a.local) == 0 {
		return pending("network %s: waiting for the Logical_Router_Port %s to have an address of the network's subnets %s, it has %s",
			n.Name, name, list(n.Subnets), strings.Join(a.nodePort.Networks, ", "))
	}
	return nil
}

// findJoin finds the network's join subnets and with them the number of this node: the CNI gives every node the join
// address that is its number behind the base.
func (v *View) findJoin(a *attachment, n *Network) *uplinkstate.Problem {
	name := map[routerKind]string{
		clusterKind: gatewayJoin + n.Prefix + v.node,
		transitKind: gatewayTransit + n.Prefix + v.node,
		gatewayKind: a.nodePort.Name,
	}[a.kind]
	if a.joinPort = v.portsByName[name]; a.joinPort == nil {
		return pending("network %s: waiting for the Logical_Router_Port %s", n.Name, name)
	}
	for _, p := range parse(a.joinPort.Networks) {
		// The gateway router of a Layer2 network also has its link to the transit router there, of two addresses; an
		// older one, the subnets of the pods.
		if p.Addr().BitLen()-p.Bits() < 2 || p.Addr().IsLinkLocalUnicast() || within(n.Subnets, p) {
			continue
		}
		if number, ok := offset(p, p.Addr()); ok && a.number == 0 {
			a.number = number
		}
		a.join = append(a.join, p)
	}
	if a.kind == gatewayKind {
		v.findTranslated(a, n)
	}
	if a.join = normalised(a.join); a.number == 0 {
		return pending("network %s: waiting for the Logical_Router_Port %s to have the node's join address, it has %s",
			n.Name, name, strings.Join(a.joinPort.Networks, ", "))
	}
	return nil
}

// findTranslated: a gateway router translates what pods send to one of its outer addresses, whichever way it goes.
func (v *View) findTranslated(a *attachment, n *Network) {
	if port := v.portsByName[gatewayExt+n.Prefix+v.node]; port != nil {
		for _, p := range parse(port.Networks) {
			a.translated = append(a.translated, host(p.Addr()))
		}
	}
}

// portOf finds a port of a router.
func (v *View) portOf(r *routerRow, name string) *routerPortRow {
	if port := v.portsByName[name]; port != nil && slices.Contains(r.Ports, port.UUID) {
		return port
	}
	return nil
}

func within(prefixes []netip.Prefix, p netip.Prefix) bool {
	return slices.ContainsFunc(prefixes, func(outer netip.Prefix) bool { return covers(outer, p) })
}

func list(prefixes []netip.Prefix) string { return strings.Join(texts(prefixes), ", ") }

// remote is another node as the CNI's rows of a network have it.
type remote struct {
	number  uint64
	nextHop netip.Addr // Layer3: the other node's cluster router
	chassis string     // Layer2: where the other node's gateway is
	node    string
}

// remotes finds the other nodes that an attachment's router reaches, sorted by number.
func (v *View) remotes(a *attachment, n *Network, is6 bool) []remote {
	var found []remote
	switch a.kind {
	case clusterKind:
		found = v.remotesByRoute(a, is6)
	case transitKind:
		found = v.remotesByPort(a, n)
	case gatewayKind:
	}
	slices.SortFunc(found, func(x, y remote) int {
		if x.number != y.number {
			return int(x.number) - int(y.number)
		}
		return strings.Compare(x.node+x.nextHop.String(), y.node+y.nextHop.String())
	})
	return slices.CompactFunc(found, func(x, y remote) bool { return x.number == y.number })
}

// remotesByRoute: the cluster router has a route to the join address of every other node.
func (v *View) remotesByRoute(a *attachment, is6 bool) []remote {
	join := ofFamily(a.join, is6)
	var found []remote
	for _, uuid := range a.router.StaticRoutes {
		r := v.routes[uuid]
		if r == nil || r.ExternalIDs[cniRemoteKey] == "" {
			continue
		}
		p, ok := parsePrefix(r.Prefix)
		nextHop, err := netip.ParseAddr(r.NextHop)
		if !ok || err != nil || !p.IsSingleIP() {
			continue
		}
		if number, ok := offset(join, p.Addr()); ok && number != a.number {
			found = append(found, remote{number: number, nextHop: nextHop, node: r.ExternalIDs[cniRemoteKey]})
		}
	}
	return found
}

// remotesByPort: the transit router has a port to the gateway router of every other node.
func (v *View) remotesByPort(a *attachment, n *Network) []remote {
	var found []remote
	for _, uuid := range a.router.Ports {
		port := v.routerPorts[uuid]
		if port == nil {
			continue
		}
		node, isGateway := strings.CutPrefix(port.Name, transitGateway+n.Prefix)
		key, err := strconv.ParseUint(port.Options[tunnelKey], 10, 16)
		chassis := port.Options[chassisOption]
		if !isGateway || node == v.node || err != nil || key <= transitKeyBase || chassis == "" {
			continue
		}
		found = append(found, remote{number: key - transitKeyBase, chassis: chassis, node: node})
	}
	return found
}
