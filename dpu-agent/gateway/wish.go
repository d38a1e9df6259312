// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/netip"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/bridge"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/openflow"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
	"github.com/ovn-uplink/ovn-uplink/shared/network"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// wish is what OVN is to have of an Uplink. In a VRF there are no default routes but those that BGP taught.
func (r *Role) wish(uplink string, view *bridge.View, host uplinkstate.HostData, served []tenant, vrf string, learned []ovn.Route) ovn.Gateway {
	g := ovn.Gateway{Uplink: uplink, Chassis: view.Chassis, MAC: host.MAC, Addresses: host.Addresses, Routes: learned}
	if vrf == "" {
		g.DefaultGateways = host.Gateways
	}
	balancers := r.servicesOf(uplink, host, vrf, served)
	for i, t := range served {
		n := ovn.Network{
			Name: t.networkName(), Prefix: network.Prefix(t.cudn), Topology: ovn.Topology(t.topology), Subnets: t.subnets,
			LoadBalancers: balancers[i],
		}
		if t.domain.Advertised {
			n.Advertised = t.subnets
		}
		if t.held {
			n.Hold = t.problem
		}
		g.Networks = append(g.Networks, n)
	}
	return g
}

// served are the networks that rows are made for, or kept: those that nothing is wrong with, and of the others those
// that have some.
func (r *Role) served(uplink string, active []tenant) []tenant {
	rows, err := r.nb.View()
	return slices.DeleteFunc(slices.Clone(active), func(t tenant) bool {
		if t.invalid != "" || t.problem == nil {
			return t.invalid != ""
		}
		if err != nil { // then what it had last
			return len(r.outcomes[uplink].Networks[t.networkName()].Transit) == 0
		}
		return !rows.Serves(uplink, t.networkName())
	})
}

// watched is how many neighbours on the wire may tell of a new MAC address of theirs unasked.
const watched = 32

// neighbours are the routers on the wire.
func neighbours(host uplinkstate.HostData, learned []ovn.Route) []netip.Addr {
	all := slices.Clone(host.Gateways)
	for _, route := range learned {
		if hop := route.NextHop.WithZone(""); len(all) < watched && !slices.Contains(all, hop) {
			all = append(all, hop)
		}
	}
	return all
}

// bridgeFlows is what the bridge is to have, without what depends on OVN.
func (r *Role) bridgeFlows(ctx context.Context, place bridge.Report, host uplinkstate.HostData, learned []ovn.Route) (openflow.Bridge, error) {
	zone, err := r.flows.Zone(ctx, place.Bridge)
	if err != nil {
		return openflow.Bridge{}, err
	}
	b := openflow.Bridge{
		Name: place.Bridge, HostPort: uint32(place.HostOFPort), VLAN: place.WireVLAN, Secure: place.Secure,
		MAC: host.MAC, Zone: zone, Gateways: neighbours(host, learned),
		Transit: r.config.Ranges.Transit, Unroutable: r.config.Ranges.Unroutable(),
	}
	for _, exit := range place.Uplink.Exits {
		b.Uplinks = append(b.Uplinks, uint32(exit.OFPort))
	}
	for _, prefix := range host.Addresses {
		b.Addresses = append(b.Addresses, prefix.Addr())
	}
	return b, nil
}
