// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
)

// The time of a session affinity, as the API has it.
const (
	defaultAffinity = 10800 * time.Second
	maxAffinity     = 86400 * time.Second
)

// spec is what a Service asks of a gateway.
type spec struct {
	created   int64 // Unix time, seconds
	ports     []port
	addresses []address
	v4, v6    bool
	affinity  time.Duration
	local     bool
	health    uint16 // the health check node port, zero for none
	ignored   trouble
}

// port is a port of a service.
type port struct {
	name     string
	protocol Protocol
	port     uint16
	node     uint16 // zero for none
}

// address is an external address of a service.
type address struct {
	ip      netip.Addr
	sources []netip.Prefix
}

// parseService returns nil for a Service that has nothing to do with gateways: no node port and no address.
func parseService(s *core.Service) *spec {
	_, foreign := s.Labels[core.LabelServiceProxyName]
	headless := s.Spec.ClusterIP == "" || s.Spec.ClusterIP == core.ClusterIPNone
	if foreign || headless || s.Spec.Type == core.ServiceExternalName || !isLabel(s.Name) || !isLabel(s.Namespace) {
		return nil
	}
	p := &spec{
		created:  s.CreationTimestamp.Unix(),
		affinity: affinity(&s.Spec),
		local:    s.Spec.ExternalTrafficPolicy == core.TrafficLocal,
	}
	p.setFamilies(&s.Spec)
	p.setPorts(&s.Spec)
	p.setAddresses(s)
	if s.Spec.Type == core.ServiceLoadBalancer && p.local && s.Spec.HealthCheckNodePort != 0 {
		p.health = parsePort(s.Spec.HealthCheckNodePort, &p.ignored)
	}
	nodePorts := 0
	for _, one := range p.ports {
		if one.node != 0 {
			nodePorts++
		}
	}
	if n := nodePorts*len(p.families()) + len(p.ports)*len(p.addresses); n > maxEntries {
		p.ignored.add("%d addresses and ports, of which %d are used", n, maxEntries)
	} else if n == 0 {
		return nil
	}
	return p
}

func affinity(s *core.ServiceSpec) time.Duration {
	if s.SessionAffinity != core.AffinityClientIP {
		return 0
	}
	if c := s.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		if d := time.Duration(*c.ClientIP.TimeoutSeconds) * time.Second; d > 0 && d <= maxAffinity {
			return d
		}
	}
	return defaultAffinity
}

// setFamilies sets what the Service says, or, in one that is older than dual stack, that of its cluster address.
func (p *spec) setFamilies(s *core.ServiceSpec) {
	if len(s.IPFamilies) == 0 {
		a, err := netip.ParseAddr(s.ClusterIP)
		p.v4, p.v6 = err == nil && a.Is4(), err == nil && a.Is6()
		return
	}
	p.v4, p.v6 = slices.Contains(s.IPFamilies, "IPv4"), slices.Contains(s.IPFamilies, "IPv6")
}

// families are those of the service: whether they are IPv6.
func (p *spec) families() []bool {
	switch {
	case p.v4 && p.v6:
		return []bool{false, true}
	case p.v4:
		return []bool{false}
	case p.v6:
		return []bool{true}
	}
	return nil
}

// setPorts sets the ports, by protocol and number, each once.
func (p *spec) setPorts(s *core.ServiceSpec) {
	withNodePorts := s.Type == core.ServiceNodePort || s.Type == core.ServiceLoadBalancer
	for _, sp := range bound(s.Ports, maxPorts, "ports", &p.ignored) {
		name, named := parsePortName(sp.Name, &p.ignored)
		protocol, known := parseProtocol(sp.Protocol, &p.ignored)
		number := parsePort(sp.Port, &p.ignored)
		if !named || !known || number == 0 {
			continue
		}
		out := port{name: name, protocol: protocol, port: number}
		if withNodePorts && sp.NodePort != 0 {
			out.node = parsePort(sp.NodePort, &p.ignored)
		}
		p.ports = append(p.ports, out)
	}
	slices.SortStableFunc(p.ports, func(a, b port) int {
		return cmp.Or(cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.port, b.port))
	})
	p.ports = slices.CompactFunc(p.ports, func(a, b port) bool { return a.protocol == b.protocol && a.port == b.port })
	taken := map[port]bool{}
	for i, one := range p.ports {
		key := port{protocol: one.protocol, node: one.node}
		if taken[key] {
			p.ports[i].node = 0
		}
		taken[key] = one.node != 0
	}
}

// setAddresses sets the external addresses of the families that the service has, sorted, each once. One that is
// there both as an external IP and as one of a load balancer has the restrictions of the latter.
func (p *spec) setAddresses(s *core.Service) {
	var found []address
	if s.Spec.Type == core.ServiceLoadBalancer {
		sources := parseSources(s.Spec.LoadBalancerSourceRanges, &p.ignored)
		restricted := len(s.Spec.LoadBalancerSourceRanges) > 0
		for _, in := range bound(s.Status.LoadBalancer.Ingress, maxAddresses, "addresses of load balancers", &p.ignored) {
			// A load balancer that is a proxy has connections of its own, to the node ports.
			if in.IP == "" || in.IPMode != nil && *in.IPMode != core.IngressVIP {
				continue
			}
			ip, ok := parseAddress(in.IP, &p.ignored)
			if !ok {
				continue
			}
			a := address{ip: ip, sources: ofFamily(sources, ip)}
			if restricted && len(a.sources) == 0 {
				p.ignored.add("address %s, whose source ranges let nobody in", ip)
				a.sources = []netip.Prefix{}
			}
			found = append(found, a)
		}
	}
	for _, text := range bound(s.Spec.ExternalIPs, maxAddresses, "external IPs", &p.ignored) {
		if ip, ok := parseAddress(text, &p.ignored); ok {
			found = append(found, address{ip: ip})
		}
	}
	slices.SortStableFunc(found, func(a, b address) int { return a.ip.Compare(b.ip) })
	found = slices.CompactFunc(found, func(a, b address) bool { return a.ip == b.ip })
	p.addresses = slices.DeleteFunc(found, func(a address) bool {
		nobody := a.sources != nil && len(a.sources) == 0
		return nobody || a.ip.Is4() && !p.v4 || a.ip.Is6() && !p.v6
	})
}

// ofFamily are the networks of an address's family.
func ofFamily(all []netip.Prefix, ip netip.Addr) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range all {
		if p.Addr().Is4() == ip.Is4() {
			out = append(out, p)
		}
	}
	return out
}

// claims are where the service is reached, in the order of its entries and no more than it may have, with the
// port and the clients.
func (p *spec) claims() iter.Seq2[claim, front] {
	return func(yield func(claim, front) bool) {
		left := maxEntries
		give := func(c claim, f front) bool {
			left--
			return yield(c, f) && left > 0
		}
		for _, ipv6 := range p.families() {
			for i := range p.ports {
				to := &p.ports[i]
				if to.node != 0 && !give(claim{netip.Addr{}, ipv6, to.node, to.protocol}, front{port: to}) {
					return
				}
			}
		}
		for _, a := range p.addresses {
			for i := range p.ports {
				to := &p.ports[i]
				if !give(claim{a.ip, a.ip.Is6(), to.port, to.protocol}, front{to, a.sources}) {
					return
				}
			}
		}
	}
}

// front is what belongs to a claim.
type front struct {
	port    *port
	sources []netip.Prefix
}

func (p *spec) equal(other *spec) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.created == other.created && p.v4 == other.v4 && p.v6 == other.v6 && p.affinity == other.affinity &&
		p.local == other.local && p.health == other.health && p.ignored == other.ignored &&
		slices.Equal(p.ports, other.ports) &&
		slices.EqualFunc(p.addresses, other.addresses, func(a, b address) bool {
			return a.ip == b.ip && slices.Equal(a.sources, b.sources)
		})
}
