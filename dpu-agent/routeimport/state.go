// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"net/netip"
	"slices"
	"time"
)

// entry is a prefix with the next hops that share its load, sorted.
type entry struct {
	prefix netip.Prefix
	hops   []netip.Addr
	// missed is since when the kernel does not show the prefix; zero while it does.
	missed time.Time
}

// state is what is believed of a domain. It is never changed, only followed by another one.
type state struct {
	// known is false until the first read.
	known bool
	// routes are sorted by prefix.
	routes []entry
	// emptied is when the kernel stopped to show any of the routes, or when it was first read though there were routes
	// before. For the grace time from then on, what is not shown may be about to come back.
	emptied time.Time
}

// observation is what a complete read showed.
type observation struct {
	// seen is sorted by prefix.
	seen []entry
	// settled is set if nothing of the table changed while it was read, nor for a moment before.
	settled bool
}

// next is what is believed after an observation.
//
// What is seen counts at once, with its next hops as they are now. What is not seen any more:
//   - goes once the table is settled, as a routing daemon that ends takes its routes back one by one, and because the
//     kernel may leave out routes that did not change from a list during which others did;
//   - stays for the grace time if nothing was left of the domain at some point since: the daemon may have been started
//     again, and its peers tell it everything anew, one by one;
//   - stays no longer than the grace time in any case.
func (s state) next(o observation, now time.Time, grace time.Duration) state {
	n := state{known: true, emptied: s.emptied}
	switch {
	case !s.known && len(s.routes) > 0,
		len(o.seen) == 0 && slices.ContainsFunc(s.routes, func(e entry) bool { return e.missed.IsZero() }):
		n.emptied = now
	}
	restarting := !n.emptied.IsZero() && now.Sub(n.emptied) < grace
	n.routes = make([]entry, 0, max(len(s.routes), len(o.seen)))
	held := false
	keep := func(e entry) {
		if e.missed.IsZero() {
			e.missed = now
		}
		if now.Sub(e.missed) < grace && (restarting || !o.settled) {
			held = true
			n.routes = append(n.routes, e)
		}
	}
	old := s.routes
	for _, e := range o.seen {
		for len(old) > 0 && comparePrefixes(old[0].prefix, e.prefix) < 0 {
			keep(old[0])
			old = old[1:]
		}
		if len(old) > 0 && old[0].prefix == e.prefix {
			old = old[1:]
		}
		n.routes = append(n.routes, e)
	}
	for _, e := range old {
		keep(e)
	}
	if !held {
		n.emptied = time.Time{}
	}
	return n
}

// over says when the first and the last of what is believed without being seen has been so for the grace time; zero
// if there is no such thing.
func (s state) over(grace time.Duration) (first, last time.Time) {
	for _, e := range s.routes {
		if e.missed.IsZero() {
			continue
		}
		over := e.missed.Add(grace)
		if first.IsZero() || over.Before(first) {
			first = over
		}
		if over.After(last) {
			last = over
		}
	}
	return first, last
}

// without is the state less the prefixes that a domain does not want.
func (s state) without(d *Domain) state {
	s.routes = slices.DeleteFunc(slices.Clone(s.routes), func(e entry) bool { return d.skips(e.prefix) })
	return s
}

// flat lists the routes one by one.
func (s state) flat() []Route {
	total := 0
	for _, e := range s.routes {
		total += len(e.hops)
	}
	flat := make([]Route, 0, total)
	for _, e := range s.routes {
		for _, h := range e.hops {
			flat = append(flat, Route{Prefix: e.prefix, NextHop: h})
		}
	}
	return flat
}

// stateOf is the state of a domain about which nothing is known but the routes of an earlier process.
func stateOf(previous []Route) state {
	sorted := make([]Route, 0, len(previous))
	for _, r := range previous {
		sorted = append(sorted, Route{Prefix: r.Prefix.Masked(), NextHop: r.NextHop.WithZone("")})
	}
	slices.SortFunc(sorted, compareRoutes)
	var s state
	for _, r := range slices.Compact(sorted) {
		if n := len(s.routes); n > 0 && s.routes[n-1].prefix == r.Prefix {
			s.routes[n-1].hops = append(s.routes[n-1].hops, r.NextHop)
			continue
		}
		s.routes = append(s.routes, entry{prefix: r.Prefix, hops: []netip.Addr{r.NextHop}})
	}
	return s
}

func compareRoutes(a, b Route) int {
	if c := comparePrefixes(a.Prefix, b.Prefix); c != 0 {
		return c
	}
	return a.NextHop.Compare(b.NextHop)
}
