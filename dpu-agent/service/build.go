// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"slices"
)

// build makes the entries of a service out of its slices, which are sorted by name. Only those of the network count.
// What of them is ignored is added to t.
func build(name string, p *spec, all []*slice, network string, t *trouble) []Entry {
	all = ofNetwork(all, network, t)
	type key struct {
		port *port
		ipv6 bool
	}
	shared := map[key][]netip.AddrPort{}
	var entries []Entry
	for c, f := range p.claims() {
		k := key{f.port, c.ipv6}
		backends, done := shared[k]
		if !done {
			backends = bound(backendsOf(f.port, c.ipv6, p.local, all), maxBackends, "endpoints of a port", t)
			shared[k] = backends
		}
		entries = append(entries, Entry{
			Service: name, PortName: f.port.name, Protocol: c.protocol,
			Address: c.address, IPv6: c.ipv6, Port: c.port,
			Backends: backends, Affinity: p.affinity, Local: p.local, Sources: f.sources,
		})
	}
	return entries
}

// ofNetwork are the slices that count.
func ofNetwork(all []*slice, network string, t *trouble) []*slice {
	var out []*slice
	for _, s := range all {
		if s.network == network || s.network == "" {
			out = append(out, s)
			if s.ignored.first != "" {
				t.add("EndpointSlice %s: %s", s.name, &s.ignored)
			}
		}
	}
	return bound(out, maxSlices, "EndpointSlices", t)
}

// backendsOf are the endpoints that are ready; where there is none, those that terminate and still serve (KEP-1669).
func backendsOf(p *port, ipv6, local bool, all []*slice) []netip.AddrPort {
	var ready, terminating []netip.AddrPort
	for _, s := range all {
		if s.ipv6 != ipv6 {
			continue
		}
		for _, t := range s.targets {
			if t.name != p.name || t.protocol != p.protocol {
				continue
			}
			for _, e := range s.endpoints {
				switch {
				case local && !e.local:
				case e.ready:
					ready = append(ready, netip.AddrPortFrom(e.ip, t.port))
				default:
					terminating = append(terminating, netip.AddrPortFrom(e.ip, t.port))
				}
			}
		}
	}
	if len(ready) == 0 {
		ready = terminating
	}
	slices.SortFunc(ready, netip.AddrPort.Compare)
	return slices.Clip(slices.Compact(ready))
}

// readyHere counts the endpoints on this node for the health check, as Kubernetes does: by address, ports aside.
func readyHere(all []*slice, network string) int {
	v4, v6 := map[netip.Addr]struct{}{}, map[netip.Addr]struct{}{}
	for _, s := range ofNetwork(all, network, &trouble{}) {
		for _, e := range s.endpoints {
			switch {
			case !e.ready || !e.local || len(s.targets) == 0:
			case s.ipv6:
				v6[e.ip] = struct{}{}
			default:
				v4[e.ip] = struct{}{}
			}
		}
	}
	return max(len(v4), len(v6))
}
