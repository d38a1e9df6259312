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
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// servicesOf looks the services of the active networks up, in their order, logs which do not get what they ask for, and has
// their health checks answered.
func (r *Role) servicesOf(uplink string, host uplinkstate.HostData, vrf string, active []tenant) [][]ovn.LoadBalancer {
	networks := make([]service.Network, len(active))
	for i, t := range active {
		networks[i] = service.Network{Name: t.networkName(), Namespaces: t.namespaces}
	}
	found, conflicts := r.services.Services(networks...)
	var refused []string
	for _, c := range conflicts {
		refused = append(refused, c.String())
	}
	guard := newGuardrail(host, r.config.Ranges.Unroutable(), active)
	balancers := make([][]ovn.LoadBalancer, len(active))
	var checks []service.HealthCheck
	for i, parts := range found {
		checks = append(checks, parts.Checks()...)
		for _, part := range parts {
			for j := range part.Entries {
				e := &part.Entries[j]
				if why := guard.refuses(e); why != "" {
					refused = append(refused, fmt.Sprintf("service %s does not get %s: %s", e.Service, where(e), why))
					continue
				}
				balancers[i] = append(balancers[i], balancer(e))
			}
		}
	}
	r.listen(uplink, host.Addresses, vrf, checks)
	r.complain(uplink, refused)
	return balancers
}

// complain logs what services do not get, once while it stays the same.
func (r *Role) complain(uplink string, refused []string) {
	said := strings.Join(refused, "; ")
	if said == r.said[uplink] {
		return
	}
	r.said[uplink] = said
	if said != "" {
		slog.Warn("services do not get all that they ask for", "uplink", uplink, "count", len(refused), "refused", uplinkstate.Message(said))
	}
}

// listen has health checks of an Uplink answered at its addresses, which are here only where the host is.
func (r *Role) listen(uplink string, addresses []netip.Prefix, vrf string, checks []service.HealthCheck) {
	if r.listeners == nil || !r.observer.Regular() {
		return
	}
	delete(r.checks, uplink)
	if len(checks) > 0 {
		at := map[service.Place][]service.HealthCheck{}
		for _, p := range addresses {
			at[service.Place{Address: p.Addr(), Device: vrf}] = checks
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

// balancer is the load balancer of a service.
func balancer(e *service.Entry) ovn.LoadBalancer {
	return ovn.LoadBalancer{
		Name:     fmt.Sprintf("%s:%s/%s/%s:%d", e.Service, e.PortName, strings.ToLower(string(e.Protocol)), where(e), e.Port),
		Protocol: strings.ToLower(string(e.Protocol)), Address: e.Address, IPv6: e.IPv6, Port: e.Port,
		Backends: e.Backends, Affinity: e.Affinity, Local: e.Local,
	}
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

// guardrail keeps what tenants write into Services from taking what is not theirs: whoever may make a Service may give
// it any external address.
type guardrail struct {
	// taken are addresses, with what they are.
	taken map[netip.Addr]string
	// reserved are ranges that no service may be at: those of the gateways, of services and of pods.
	reserved []netip.Prefix
}

func newGuardrail(host uplinkstate.HostData, reserved []netip.Prefix, active []tenant) guardrail {
	g := guardrail{taken: map[netip.Addr]string{}, reserved: slices.Clone(reserved)}
	for _, p := range host.Addresses {
		g.taken[p.Addr()] = "the Uplink's own address"
	}
	for _, gateway := range host.Gateways {
		g.taken[gateway] = "the Uplink's gateway"
	}
	for _, t := range active {
		g.reserved = append(g.reserved, t.subnets...)
	}
	return g
}

// refuses says why an entry is not programmed, empty if it is.
func (g guardrail) refuses(e *service.Entry) string {
	if len(e.Sources) > 0 {
		return "loadBalancerSourceRanges cannot be enforced"
	}
	a := e.Address
	if !a.IsValid() {
		return ""
	}
	if what := g.taken[a]; what != "" {
		return fmt.Sprintf("%s is %s", a, what)
	}
	if !a.IsGlobalUnicast() {
		return fmt.Sprintf("%s is no address of a single station", a)
	}
	for _, p := range g.reserved {
		if p.Contains(a) {
			return fmt.Sprintf("%s is in %s", a, p)
		}
	}
	return ""
}

// steer says where the bridge sends what comes for services.
func steer(wish ovn.Gateway, outcome ovn.Outcome) []openflow.Service {
	var services []openflow.Service
	for _, n := range wish.Networks {
		if len(outcome.Networks[n.Name].Transit) == 0 {
			continue // there is nothing behind the patch port yet
		}
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
