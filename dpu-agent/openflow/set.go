// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"iter"
	"slices"
)

// flowSet are flows by place.
type flowSet map[place]Flow

// collect makes a set. Of two flows in one place, the lower would never be reached.
func collect(flows iter.Seq[Flow], size int) flowSet {
	set := make(flowSet, size)
	for f := range flows {
		if old, found := set[f.place()]; !found || old.Priority < f.Priority {
			set[f.place()] = f
		}
	}
	return set
}

// plan is what is to be sent. It is sent in this order: what a bundle adds where it also deletes is there
// afterwards, and no packet sees anything between.
type plan struct {
	del []Flow
	add []Flow
	odd *Flow // one that the bridge shows in the place of one in add
}

func (p plan) empty() bool { return len(p.del)+len(p.add) == 0 }

// sorted brings the plan into an order that is the same every time.
func (p plan) sorted() plan {
	slices.SortFunc(p.del, Flow.compare)
	slices.SortFunc(p.add, Flow.compare)
	return p
}

func (p plan) equal(o plan) bool { return slices.Equal(p.del, o.del) && slices.Equal(p.add, o.add) }

// between is the way from one set to another. A flow that is added replaces the one with its priority and match.
func between(have, want flowSet) plan {
	var p plan
	for at, f := range want {
		if old, found := have[at]; !found || old != f {
			p.add = append(p.add, f)
		}
	}
	for at, f := range have {
		if now, found := want[at]; !found || now.Priority != f.Priority {
			p.del = append(p.del, f)
		}
	}
	return p.sorted()
}

// repair compares a bridge's flows, one after the other, with what they should be. Unlike a set's they may be
// anything.
type repair struct {
	want flowSet
	seen map[place]bool
	del  []Flow
	odd  *Flow
}

func newRepair(want flowSet) *repair {
	return &repair{want: want, seen: make(map[place]bool, len(want))}
}

func (r *repair) has(f Flow) {
	want, found := r.want[f.place()]
	switch {
	case found && want == f:
		r.seen[f.place()] = true
	case !found || want.Priority != f.Priority:
		r.del = append(r.del, f)
	default:
		r.odd = &f
	}
}

// plan is what makes the bridge as it should be.
func (r *repair) plan() plan {
	p := plan{del: r.del, odd: r.odd}
	if len(r.seen) < len(r.want) {
		for at, f := range r.want {
			if !r.seen[at] {
				p.add = append(p.add, f)
			}
		}
	}
	return p.sorted()
}

// betweenItems is the way from one list of services to another, both sorted, on the same bridge. It costs one
// comparison for a service that stays. set is brought along.
func betweenItems(b *Bridge, set flowSet, have, want []Service) plan {
	var p plan
	add := func(s Service) {
		for f := range b.itemFlows(s) {
			set[f.place()] = f
			p.add = append(p.add, f)
		}
	}
	for len(have) > 0 || len(want) > 0 {
		switch order := compareHeads(have, want); {
		case order < 0:
			for f := range b.itemFlows(have[0]) {
				delete(set, f.place())
				p.del = append(p.del, f)
			}
			have = have[1:]
		case order > 0:
			add(want[0])
			want = want[1:]
		default:
			if have[0] != want[0] {
				add(want[0])
			}
			have, want = have[1:], want[1:]
		}
	}
	return p.sorted()
}

// compareHeads compares the first of two sorted lists; one that has ended is behind everything.
func compareHeads(a, b []Service) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return a[0].compare(b[0])
}
