// SPDX-License-Identifier: Apache-2.0

package service

import (
	"log/slog"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// Network is one whose services are looked for.
type Network struct {
	// Name is that in the mirrored EndpointSlices: cluster_udn_<CUDN>.
	Name string
	// Namespaces is the CUDN's namespaceSelector. Nil selects none.
	Namespaces labels.Selector
}

// Part is what the services of one namespace need. It is never changed: the same pointer means that nothing did.
type Part struct {
	Namespace string
	// Entries are sorted by service, then address, family, protocol and port of the service.
	Entries []Entry
	// Checks are sorted by service.
	Checks []HealthCheck
}

// Services is what the services of a network need, sorted by namespace.
type Services []*Part

// Entries are those of all parts in one list.
func (s Services) Entries() []Entry {
	n := 0
	for _, p := range s {
		n += len(p.Entries)
	}
	all := make([]Entry, 0, n)
	for _, p := range s {
		all = append(all, p.Entries...)
	}
	return all
}

// Checks are those of all parts in one list.
func (s Services) Checks() []HealthCheck {
	var all []HealthCheck
	for _, p := range s {
		all = append(all, p.Checks...)
	}
	return all
}

// Services looks up networks that share an Uplink, and answers in their order. An address and port is one service's
// only; who does not get what it asks for is in the conflicts, sorted by service. Services of other Uplinks do not
// matter: what is outside of those is another world.
//
// A namespace that two of the networks select is of the one that has EndpointSlices in it, else of the one that is
// named first.
func (x *Index) Services(networks ...Network) ([]Services, []Conflict) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.looks++
	for i, n := range networks {
		for _, ns := range x.namespacesOf(n) {
			if ns.look != x.looks || ns.slices[n.Name] > 0 && ns.slices[networks[ns.owner].Name] == 0 {
				ns.look, ns.owner = x.looks, i
			}
		}
	}
	losses := map[*namespace]map[lost]bool{}
	var conflicts []Conflict
	for _, l := range x.claims.settle(x.looks) {
		of := losses[l.by.namespace]
		if of == nil {
			of = map[lost]bool{}
			losses[l.by.namespace] = of
		}
		of[lost{claim: l.claim, by: l.by}] = true
		conflicts = append(conflicts, Conflict{l.by.name, l.to.name, l.claim.protocol, l.claim.address, l.claim.ipv6, l.claim.port})
	}
	all := make([]Services, len(networks))
	for i, n := range networks {
		for _, ns := range x.namespacesOf(n) {
			if ns.owner != i {
				continue
			}
			part := ns.assemble(n.Name)
			if of := losses[ns]; of != nil {
				part = x.without(part, of)
			}
			if len(part.Entries)+len(part.Checks) > 0 {
				all[i] = append(all[i], part)
			}
		}
	}
	return all, conflicts
}

// selected are the namespaces that a selector matches, sorted by name.
type selected struct {
	selector   string
	namespaces []*namespace
}

func (x *Index) namespacesOf(n Network) []*namespace {
	if n.Namespaces == nil {
		return nil
	}
	text := n.Namespaces.String()
	if s, ok := x.selected[n.Name]; ok && s.selector == text {
		return s.namespaces
	}
	var all []*namespace
	for _, ns := range x.namespaces {
		if ns.labels != nil && n.Namespaces.Matches(ns.labels) {
			all = append(all, ns)
		}
	}
	slices.SortFunc(all, func(a, b *namespace) int { return strings.Compare(a.name, b.name) })
	x.selected[n.Name] = selected{text, all}
	return all
}

// assemble is what the records come to in a network. The records' entries become parts of one array.
func (ns *namespace) assemble(network string) *Part {
	if ns.part != nil && ns.partOf == network {
		return ns.part
	}
	n := 0
	for _, r := range ns.records {
		r.refresh(network)
		n += len(r.entries)
	}
	part := &Part{Namespace: ns.name, Entries: make([]Entry, 0, n)}
	for _, r := range ns.records {
		start := len(part.Entries)
		part.Entries = append(part.Entries, r.entries...)
		r.entries = slices.Clip(part.Entries[start:])
		if r.check.Port != 0 {
			part.Checks = append(part.Checks, r.check)
		}
	}
	ns.part, ns.partOf = part, network
	return part
}

func (r *record) refresh(network string) {
	if r.fresh && r.network == network {
		return
	}
	r.fresh, r.network, r.entries, r.check = true, network, nil, HealthCheck{}
	if r.spec == nil {
		return
	}
	t := r.spec.ignored
	r.entries = build(r.name, r.spec, r.slices, network, &t)
	if r.spec.health != 0 {
		r.check = HealthCheck{r.name, r.spec.health, readyHere(r.slices, network)}
	}
	if text := t.String(); text != r.warned {
		if text != "" {
			slog.Warn("part of a service is ignored", "service", r.name, "ignored", text)
		}
		r.warned = text
	}
}

// without is a part less what its services lost.
func (x *Index) without(p *Part, losses map[lost]bool) *Part {
	out := &Part{Namespace: p.Namespace, Checks: p.Checks}
	for i := range p.Entries {
		e := &p.Entries[i]
		if !losses[lost{claim: e.claim(), by: x.services[e.Service]}] {
			out.Entries = append(out.Entries, *e)
		}
	}
	return out
}
