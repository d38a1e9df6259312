// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/bridge"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/openflow"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
	"github.com/ovn-uplink/ovn-uplink/shared/network"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// wish is what OVN is to have of an Uplink.
func (r *Role) wish(uplink string, view *bridge.View, host uplinkstate.HostData, active []tenant) ovn.Gateway {
	g := ovn.Gateway{
		Uplink: uplink, Chassis: view.Chassis, MAC: host.MAC, Addresses: host.Addresses, DefaultGateways: host.Gateways,
	}
	valid := slices.DeleteFunc(slices.Clone(active), func(t tenant) bool { return t.invalid != "" })
	balancers := r.servicesOf(uplink, host, valid)
	for i, t := range valid {
		g.Networks = append(g.Networks, ovn.Network{
			Name: t.networkName(), Prefix: network.Prefix(t.cudn), Topology: ovn.Topology(t.topology), Subnets: t.subnets,
			LoadBalancers: balancers[i],
		})
	}
	return g
}

// bridgeFlows is what the bridge is to have, without what depends on OVN.
func (r *Role) bridgeFlows(ctx context.Context, place bridge.Report, host uplinkstate.HostData) (openflow.Bridge, error) {
	zone, err := r.flows.Zone(ctx, place.Bridge)
	if err != nil {
		return openflow.Bridge{}, err
	}
	b := openflow.Bridge{
		Name: place.Bridge, HostPort: uint32(place.HostOFPort), VLAN: place.WireVLAN, Secure: place.Secure,
		MAC: host.MAC, Zone: zone, Gateways: host.Gateways,
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
