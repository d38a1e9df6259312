// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"log/slog"
	"net/netip"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/routeimport"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// learn are the routes that BGP taught the kernel of an Uplink's routing domain. Until the kernel has been read for the
// first time they are those that OVN has.
func (r *Role) learn(uplink, iface, vrf string, host uplinkstate.HostData, active []tenant) []ovn.Route {
	domain := routeimport.Domain{VRF: vrf, Interface: iface}
	for _, t := range active {
		domain.Skip = append(domain.Skip, t.subnets...)
	}
	var defaults []netip.Addr
	if vrf == "" {
		defaults = host.Gateways
	}
	var before []ovn.Route
	if !r.importer.Routes(uplink).Known {
		if rows, err := r.nb.View(); err == nil {
			before = notDefaults(rows.Routes(uplink), host.Gateways)
		}
		for _, route := range before {
			domain.Previous = append(domain.Previous, routeimport.Route(route))
		}
	}
	r.importer.Want(uplink, domain)
	view := r.importer.Routes(uplink)
	if !view.Known {
		return before
	}
	if note := view.Note(); note != r.noted[uplink] {
		r.noted[uplink] = note
		slog.Info("routes of BGP", "uplink", uplink, "routes", len(view.Routes), "note", note)
	}
	learned := make([]ovn.Route, len(view.Routes))
	for i, route := range view.Routes {
		learned[i] = ovn.Route(route)
	}
	return notDefaults(learned, defaults)
}

// notDefaults are the routes less the default routes of families that have a default gateway: the host's own come before
// those of BGP, and the two would share the load.
func notDefaults(routes []ovn.Route, gateways []netip.Addr) []ovn.Route {
	return slices.DeleteFunc(routes, func(route ovn.Route) bool {
		return route.Prefix.Bits() == 0 && slices.ContainsFunc(gateways, func(g netip.Addr) bool { return g.Is6() == route.Prefix.Addr().Is6() })
	})
}
