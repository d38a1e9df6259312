// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"net"
	"slices"
)

// Input is what an Index is built from.
type Input struct {
	Ports []Port
	Links []Link
	// Map is nil without one.
	Map *Map
	// MapError is why Map is not what the file says now.
	MapError error
}

// Index answers questions about the ports of the cards of one machine at one moment. It does not change.
type Index struct {
	representors []*Representor // sorted
	byFunction   map[functionKey][]*Representor
	byMAC        map[string][]*Representor // by the bytes of the MAC address
	byNetdev     map[string]*Representor
	// pfMACs are the addresses of hosts' PFs; portMACs those of the physical ports of a device, which in a server
	// are those of its own PF.
	pfMACs   map[pfKey]net.HardwareAddr
	portMACs map[string][]net.HardwareAddr
	// hostPFs and ownPFs are the addresses of both as sets.
	hostPFs, ownPFs map[string]bool

	classes map[string]Class    // by netdev
	names   map[string]string   // from every name, alternative ones too, to the netdev
	others  map[string][]string // alternative names by netdev

	mapByFunction map[functionKey][]*mapEntry
	mapByMAC      map[string][]*mapEntry

	warnings []string // sorted
	// unreadable is why the index may lack a representor: an interface could not be read.
	unreadable error
	// stale is why the index may be old: what came after it could not be read.
	stale error
}

// Build makes an index of what was read at one moment.
func Build(in Input) *Index {
	x := &Index{
		byFunction: map[functionKey][]*Representor{}, byMAC: map[string][]*Representor{}, byNetdev: map[string]*Representor{},
		pfMACs: map[pfKey]net.HardwareAddr{}, portMACs: map[string][]net.HardwareAddr{},
		hostPFs: map[string]bool{}, ownPFs: map[string]bool{},
		classes: map[string]Class{}, names: map[string]string{}, others: map[string][]string{},
		mapByFunction: map[functionKey][]*mapEntry{}, mapByMAC: map[string][]*mapEntry{},
	}
	links := map[string]Link{}
	for _, link := range in.Links {
		links[link.Name] = link
		for _, name := range link.AltNames {
			x.names[name] = link.Name
		}
		x.names[link.Name] = link.Name
		x.others[link.Name] = link.AltNames
	}
	for _, port := range in.Ports {
		x.addPort(port, links[port.Netdev])
		delete(links, port.Netdev)
	}
	for _, link := range in.Links {
		if _, open := links[link.Name]; open {
			x.addLink(link)
		}
	}
	x.addMap(in.Map)
	if in.MapError != nil {
		x.warnings = append(x.warnings, in.MapError.Error()+"; the last good one is used")
	}
	x.sort()
	return x
}

// Representors lists all representors, sorted by the names of their interfaces.
func (x *Index) Representors() []Representor {
	all := make([]Representor, len(x.representors))
	for i, r := range x.representors {
		all[i] = *r
	}
	return all
}

// Names gives all names of an interface, the kernel's first. Open vSwitch may know it by any of them.
func (x *Index) Names(name string) []string {
	if netdev, known := x.names[name]; known {
		name = netdev
	}
	return append([]string{name}, x.others[name]...)
}

// Warnings are what is wrong with what was read, sorted; none of it keeps the index from being used.
func (x *Index) Warnings() []string { return slices.Clone(x.warnings) }

// asStale is the index when what came after it could not be read.
func (x *Index) asStale(why error) *Index {
	old := *x
	old.stale = why
	return &old
}
