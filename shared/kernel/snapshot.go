// SPDX-License-Identifier: Apache-2.0

// Package kernel sees the links, addresses and default routes of one network namespace: whole snapshots of
// them, a monitor that keeps the latest one true by netlink events, and sysfs attributes.
//
// A read is complete or it is an error. What cannot be read now is unknown, never absent.
package kernel

import "slices"

// Snapshot is what was there at one time, sorted. It is not changed after it was made, and whoever gets one
// must not change it either.
type Snapshot struct {
	// Links are sorted by index.
	Links []Link
	// Addrs are sorted by link, then address.
	Addrs []Addr
	// Routes are the default routes of table main and of the tables of the VRF links there are, sorted by
	// table, family and metric. Other routes are not read.
	Routes []Route
}

// LinkByName finds a link by its name, else by one of its alternative names.
func (s *Snapshot) LinkByName(name string) (Link, bool) {
	byName := func(l Link) bool { return l.Name == name }
	byAltName := func(l Link) bool { return slices.Contains(l.AltNames, name) }
	for _, is := range []func(Link) bool{byName, byAltName} {
		if i := slices.IndexFunc(s.Links, is); i >= 0 {
			return s.Links[i], true
		}
	}
	return Link{}, false
}

// LinkByIndex finds a link by its index.
func (s *Snapshot) LinkByIndex(index int) (Link, bool) {
	i, ok := slices.BinarySearchFunc(s.Links, Link{Index: index}, compareLinks)
	if !ok {
		return Link{}, false
	}
	return s.Links[i], true
}

// AddrsOf lists the addresses of a link.
func (s *Snapshot) AddrsOf(index int) []Addr {
	var addrs []Addr
	for _, a := range s.Addrs {
		if a.LinkIndex == index {
			addrs = append(addrs, a)
		}
	}
	return addrs
}

// TableOf is the routing table that packets of a link are routed by: that of the VRF it belongs to, else
// table main.
func (s *Snapshot) TableOf(link Link) uint32 {
	if master, ok := s.LinkByIndex(link.MasterIndex); ok && master.VRFTable != 0 {
		return master.VRFTable
	}
	return MainTable
}

// DefaultRoutes lists the default routes of a table, IPv4 first.
func (s *Snapshot) DefaultRoutes(table uint32) []Route {
	var routes []Route
	for _, r := range s.Routes {
		if r.Table == table {
			routes = append(routes, r)
		}
	}
	return routes
}

// Equal compares two snapshots by value; time passing on an address's lifetime is no difference.
func (s *Snapshot) Equal(o *Snapshot) bool {
	return slices.EqualFunc(s.Links, o.Links, Link.Equal) && slices.EqualFunc(s.Addrs, o.Addrs, Addr.Equal) &&
		slices.EqualFunc(s.Routes, o.Routes, Route.Equal)
}

// tables lists the routing tables that matter: main and those of the VRF links, sorted.
func tables(links []Link) []uint32 {
	all := []uint32{MainTable}
	for _, l := range links {
		if l.VRFTable != 0 {
			all = append(all, l.VRFTable)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
