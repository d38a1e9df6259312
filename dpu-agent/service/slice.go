// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/shared/api/discovery"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Source is which EndpointSlices are looked at.
type Source int

const (
	// Mirrored are the slices that OVN-Kubernetes makes for a network of its own, with the pods' addresses in it.
	Mirrored Source = iota
	// Plain are those of Kubernetes, for a CNI whose pods have their network's addresses there.
	Plain
)

// label is the one that names the service.
func (s Source) label() string {
	if s == Plain {
		return discovery.LabelServiceName
	}
	return discovery.LabelMirroredServiceName
}

// Selector selects the slices that an Index with this source needs.
func (s Source) Selector() labels.Selector {
	selector := labels.NewSelector()
	for key, operator := range map[string]selection.Operator{s.label(): selection.Exists, discovery.LabelHeadless: selection.DoesNotExist} {
		r, err := labels.NewRequirement(key, operator, nil)
		if err != nil {
			panic(fmt.Sprintf("label %s: %v", key, err)) // both are constants
		}
		selector = selector.Add(*r)
	}
	return selector
}

// slice is what an EndpointSlice says.
type slice struct {
	name      string // namespace/name
	service   string // namespace/name
	network   string // empty in those of Kubernetes
	ipv6      bool
	targets   []target   // sorted, each once
	endpoints []endpoint // sorted by address, without those that take no traffic
	ignored   trouble
}

// target is a port of the service, as the number that the endpoints listen on.
type target struct {
	name     string
	protocol Protocol
	port     uint16
}

type endpoint struct {
	ip    netip.Addr
	ready bool // else it serves what it has, and terminates
	local bool // on this node
}

// parseSlice returns nil for an EndpointSlice that is not of the source, or has no IP addresses.
func parseSlice(e *discovery.EndpointSlice, source Source, node string) *slice {
	service := e.Labels[source.label()]
	if !isLabel(service) || !isLabel(e.Namespace) || e.AddressType != discovery.IPv4 && e.AddressType != discovery.IPv6 {
		return nil
	}
	s := &slice{name: key(e), service: e.Namespace + "/" + service, ipv6: e.AddressType == discovery.IPv6}
	if source == Mirrored {
		s.network = cmp.Or(e.Annotations[discovery.MirroredNetwork], e.Labels[discovery.MirroredNetwork])
		if s.network == "" {
			return nil
		}
	}
	s.setTargets(e.Ports)
	s.setEndpoints(e.Endpoints, node)
	return s
}

func (s *slice) setTargets(ports []discovery.EndpointPort) {
	for _, p := range bound(ports, maxTargets, "ports of a slice", &s.ignored) {
		if p.Port == nil {
			continue // no port in particular, which only readers of another kind can make something of
		}
		name, named := parsePortName(deref(p.Name, ""), &s.ignored)
		protocol, known := parseProtocol(deref(p.Protocol, ""), &s.ignored)
		number := parsePort(*p.Port, &s.ignored)
		if named && known && number != 0 {
			s.targets = append(s.targets, target{name, protocol, number})
		}
	}
	slices.SortFunc(s.targets, func(a, b target) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.protocol, b.protocol), cmp.Compare(a.port, b.port))
	})
	s.targets = slices.Compact(s.targets)
}

func (s *slice) setEndpoints(endpoints []discovery.Endpoint, node string) {
	endpoints = bound(endpoints, maxEndpoints, "endpoints of a slice", &s.ignored)
	s.endpoints = make([]endpoint, 0, len(endpoints))
	for _, e := range endpoints {
		c := e.Conditions
		ready := deref(c.Ready, true)
		going := deref(c.Serving, true) && deref(c.Terminating, false)
		if len(e.Addresses) == 0 || !ready && !going {
			continue
		}
		ip, ok := parseAddress(e.Addresses[0], &s.ignored)
		if !ok {
			continue
		}
		if ip.Is6() != s.ipv6 {
			s.ignored.add("address %s, which is of another family than its slice", ip)
			continue
		}
		s.endpoints = append(s.endpoints, endpoint{ip, ready, e.NodeName != nil && *e.NodeName == node})
	}
	slices.SortStableFunc(s.endpoints, func(a, b endpoint) int { return a.ip.Compare(b.ip) })
}

func deref[T any](value *T, absent T) T {
	if value == nil {
		return absent
	}
	return *value
}

func (s *slice) equal(other *slice) bool {
	if s == nil || other == nil {
		return s == other
	}
	return s.name == other.name && s.service == other.service && s.network == other.network && s.ipv6 == other.ipv6 &&
		s.ignored == other.ignored && slices.Equal(s.targets, other.targets) && slices.Equal(s.endpoints, other.endpoints)
}
