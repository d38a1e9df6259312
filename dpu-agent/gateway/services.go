// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/openflow"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/service"
)

// servicesOf looks the services of the active networks up, in their order, logs which do not get what they ask for, and has
// their health checks answered.
func (r *Role) servicesOf(uplink string, addresses []netip.Prefix, active []tenant) []service.Services {
	networks := make([]service.Network, len(active))
	for i, t := range active {
		networks[i] = service.Network{Name: t.networkName(), Namespaces: t.namespaces}
	}
	found, conflicts := r.services.Services(networks...)
	texts := make([]string, len(conflicts))
	for i, c := range conflicts {
		texts[i] = c.String()
	}
	if said := strings.Join(texts, "; "); said != r.said[uplink] {
		r.said[uplink] = said
		if said != "" {
			slog.Warn("services claim the same address and port of an Uplink", "uplink", uplink, "conflicts", said)
		}
	}
	var checks []service.HealthCheck
	for _, s := range found {
		checks = append(checks, s.Checks()...)
	}
	r.listen(uplink, addresses, checks)
	return found
}

// listen has health checks of an Uplink answered at its addresses, which are here only where the host is.
func (r *Role) listen(uplink string, addresses []netip.Prefix, checks []service.HealthCheck) {
	if !r.observer.Regular() {
		return
	}
	delete(r.checks, uplink)
	if len(checks) > 0 {
		at := map[service.Place][]service.HealthCheck{}
		for _, p := range addresses {
			at[service.Place{Address: p.Addr()}] = checks
		}
		r.checks[uplink] = at
	}
	wanted := map[service.Place][]service.HealthCheck{}
	for _, name := range sortedKeys(r.checks) {
		for place, checks := range r.checks[name] {
			wanted[place] = append(wanted[place], checks...)
		}
	}
	r.listeners.Set(wanted)
}

// balancer is the load balancer of a service. One at an address of the Uplink itself is at the network's transit
// address, as a node port is: the edge router has the Uplink's address, and the bridge translates.
func balancer(e *service.Entry, addresses []netip.Prefix) ovn.LoadBalancer {
	lb := ovn.LoadBalancer{
		Name:     fmt.Sprintf("%s:%s/%s/%s:%d", e.Service, e.PortName, strings.ToLower(string(e.Protocol)), where(e), e.Port),
		Protocol: strings.ToLower(string(e.Protocol)), Address: e.Address, IPv6: e.IPv6, Port: e.Port,
		Backends: e.Backends, Affinity: e.Affinity, Local: e.Local,
	}
	if hasAddress(addresses, e.Address) {
		lb.Address, lb.IPv6 = netip.Addr{}, e.Address.Is6()
	}
	return lb
}

func where(e *service.Entry) string {
	switch {
	case e.Address.IsValid():
		return e.Address.String()
	case e.IPv6:
		return "node6"
	}
	return "node4"
}

func hasAddress(addresses []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(addresses, func(p netip.Prefix) bool { return p.Addr() == address })
}

// steer says where the bridge sends what comes for services.
func steer(wish ovn.Gateway, outcome ovn.Outcome) []openflow.Service {
	var services []openflow.Service
	for _, n := range wish.Networks {
		var targets, uplink [2]netip.Addr // IPv4, IPv6
		for _, a := range outcome.Networks[n.Name].Transit {
			targets[index(a.Is6())] = a
		}
		for _, p := range wish.Addresses {
			uplink[index(p.Addr().Is6())] = p.Addr()
		}
		for i := range n.LoadBalancers {
			lb := &n.LoadBalancers[i]
			s := openflow.Service{Protocol: protocols[lb.Protocol], Address: lb.Address, Port: lb.Port}
			if !s.Address.IsValid() {
				s.Address, s.Target = uplink[index(lb.IPv6)], targets[index(lb.IPv6)]
				if !s.Address.IsValid() || !s.Target.IsValid() {
					continue // the Uplink is not of that family
				}
			}
			services = append(services, s)
		}
	}
	return services
}

var protocols = map[string]openflow.Protocol{"tcp": openflow.TCP, "udp": openflow.UDP, "sctp": openflow.SCTP}

func index(v6 bool) int {
	if v6 {
		return 1
	}
	return 0
}
