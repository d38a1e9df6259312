// SPDX-License-Identifier: Apache-2.0

package service

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
)

// Index keeps what the Services of networks' namespaces need of a gateway. A change costs work in the namespace where it
// is, however many others there are. Methods may be called at the same time.
type Index struct {
	node    string
	source  Source
	changed func(namespaces []string)

	mu         sync.Mutex
	namespaces map[string]*namespace
	services   map[string]*record // by namespace/name
	slices     map[string]*record // the service of each slice, by the slice's namespace/name
	claims     claims
	selected   map[string]selected // by network, until a namespace's labels change
	looks      uint64
}

// namespace is what is known of one namespace: itself, its services, or both.
type namespace struct {
	name    string
	labels  labels.Set     // nil while it is on no primary network
	records []*record      // sorted by name
	slices  map[string]int // how many there are, by network
	part    *Part          // what the records come to, in partOf; nil after a change
	partOf  string

	look  uint64 // the last look that selected it,
	owner int    // and for which network
}

// record is what is known of one service: itself, its slices, or both.
type record struct {
	name      string // namespace/name
	namespace *namespace
	spec      *spec    // nil while there is no Service that has to do with gateways
	slices    []*slice // sorted by name

	fresh   bool // what follows is up to date, for network
	network string
	entries []Entry
	check   HealthCheck // no port where there is none
	warned  string
}

// NewIndex makes an Index for a node, by its name in EndpointSlices. Changed, unless nil, is called after every
// change with the names of the namespaces in which something may be different now, sorted. It is called by whoever
// feeds, and must not block.
func NewIndex(node string, source Source, changed func(namespaces []string)) *Index {
	return &Index{
		node:       node,
		source:     source,
		changed:    changed,
		namespaces: map[string]*namespace{},
		services:   map[string]*record{},
		slices:     map[string]*record{},
		claims:     claims{sole: map[claim]*record{}, contested: map[claim][]*record{}},
		selected:   map[string]selected{},
	}
}

// change runs f, which notes the namespaces that it touches, and tells of them.
func (x *Index) change(f func(touched touched)) {
	names := touched{}
	x.mu.Lock()
	f(names)
	x.mu.Unlock()
	if len(names) > 0 && x.changed != nil {
		x.changed(slices.Sorted(maps.Keys(names)))
	}
}

// touched are the names of namespaces on primary networks.
type touched map[string]struct{}

func (t touched) note(ns *namespace) {
	if ns.labels != nil {
		t[ns.name] = struct{}{}
	}
}

// setLabels is for a namespace that is there, or gone (nil).
func (x *Index) setLabels(name string, set labels.Set, touched touched) {
	ns := x.namespaces[name]
	if ns == nil && set == nil || ns != nil && (ns.labels == nil) == (set == nil) && maps.Equal(ns.labels, set) {
		return
	}
	ns = x.namespace(name)
	touched.note(ns)
	gained, lost := ns.labels == nil, set == nil
	ns.labels = set
	touched.note(ns)
	clear(x.selected)
	for _, r := range ns.records {
		switch {
		case r.spec == nil:
		case lost:
			x.claims.remove(r, r.spec, touched)
			r.fresh, r.entries = false, nil
		case gained:
			x.claims.add(r, touched)
		}
	}
	if lost {
		ns.part = nil
	}
	x.drop(ns)
}

// setService is for a service that is there, or gone or of no interest (nil).
func (x *Index) setService(name string, p *spec, touched touched) {
	r := x.services[name]
	if r == nil && p == nil || r != nil && r.spec.equal(p) {
		return
	}
	r = x.record(name)
	old := r.spec
	r.spec = p
	if r.namespace.labels != nil {
		if old != nil {
			x.claims.remove(r, old, touched)
		}
		if p != nil {
			x.claims.add(r, touched)
		}
	}
	x.stale(r, touched)
	x.dropRecord(r)
}

// setSlice is for a slice that is there, or gone or of no interest (nil).
func (x *Index) setSlice(name string, s *slice, touched touched) {
	if old := x.slices[name]; old != nil {
		i, _ := findSlice(old.slices, name)
		if old.slices[i].equal(s) {
			return
		}
		old.namespace.count(old.slices[i].network, -1)
		old.slices = slices.Delete(old.slices, i, i+1)
		delete(x.slices, name)
		x.staleIfSeen(old, touched)
		defer x.dropRecord(old)
	}
	if s == nil {
		return
	}
	r := x.record(s.service)
	i, _ := findSlice(r.slices, name)
	r.slices = slices.Insert(r.slices, i, s)
	r.namespace.count(s.network, 1)
	x.slices[name] = r
	x.staleIfSeen(r, touched)
}

func findSlice(all []*slice, name string) (int, bool) {
	return slices.BinarySearchFunc(all, name, func(s *slice, name string) int { return strings.Compare(s.name, name) })
}

// stale has a record made anew when it is next looked at.
func (x *Index) stale(r *record, touched touched) {
	r.fresh, r.entries = false, nil
	r.namespace.part = nil
	touched.note(r.namespace)
}

// staleIfSeen is stale after a change of a slice, which is nothing without its service.
func (x *Index) staleIfSeen(r *record, touched touched) {
	if r.spec != nil {
		x.stale(r, touched)
	}
}

func (ns *namespace) count(network string, by int) {
	if ns.slices == nil {
		ns.slices = map[string]int{}
	}
	ns.slices[network] += by
	if ns.slices[network] == 0 {
		delete(ns.slices, network)
	}
}

// namespace finds or makes.
func (x *Index) namespace(name string) *namespace {
	ns := x.namespaces[name]
	if ns == nil {
		ns = &namespace{name: name}
		x.namespaces[name] = ns
	}
	return ns
}

// record finds or makes.
func (x *Index) record(name string) *record {
	r := x.services[name]
	if r == nil {
		ns, _, _ := strings.Cut(name, "/")
		r = &record{name: name, namespace: x.namespace(ns)}
		i, _ := r.namespace.find(name)
		r.namespace.records = slices.Insert(r.namespace.records, i, r)
		x.services[name] = r
	}
	return r
}

func (ns *namespace) find(name string) (int, bool) {
	return slices.BinarySearchFunc(ns.records, name, func(r *record, name string) int { return strings.Compare(r.name, name) })
}

// dropRecord forgets a record that has nothing left.
func (x *Index) dropRecord(r *record) {
	if r.spec != nil || len(r.slices) > 0 || x.services[r.name] != r {
		return
	}
	delete(x.services, r.name)
	if i, found := r.namespace.find(r.name); found {
		r.namespace.records = slices.Delete(r.namespace.records, i, i+1)
	}
	x.drop(r.namespace)
}

// drop forgets a namespace that has nothing left.
func (x *Index) drop(ns *namespace) {
	if ns.labels == nil && len(ns.records) == 0 {
		delete(x.namespaces, ns.name)
	}
}
