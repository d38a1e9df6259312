// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// OperState is the operational state of a link (RFC 2863; Documentation/networking/operstates.rst). A link
// whose driver reports none, as Open vSwitch's internal ports do, is OperUnknown while it works.
type OperState string

// The operational states in which a link carries packets.
const (
	OperUnknown OperState = "unknown"
	OperUp      OperState = "up"
)

// Link is one network interface.
type Link struct {
	Index int
	Name  string
	// AltNames are its alternative names (ip-link(8), "altname"), sorted.
	AltNames []string
	// Kind is the rtnetlink kind, such as "veth" or "vrf"; "device" for hardware.
	Kind string
	// HardwareAddr is the address in use; empty for links without one.
	HardwareAddr net.HardwareAddr
	// PermanentAddr is the burnt-in address, which bonding and administrators do not change; empty where
	// the driver reports none, as virtual links do.
	PermanentAddr net.HardwareAddr
	// Up is IFF_UP: the administrator wants the link up.
	Up bool
	// Carrier is IFF_LOWER_UP: the layer below is up.
	Carrier   bool
	OperState OperState
	// MTU is in bytes.
	MTU int
	// MasterIndex is the index of the bridge, bond, VRF or the like that the link belongs to, or 0.
	MasterIndex int
	// VRFTable is the routing table of a link of kind "vrf", else 0.
	VRFTable uint32
}

func linkOf(l netlink.Link) Link {
	attrs := l.Attrs()
	link := Link{
		Index:         attrs.Index,
		Name:          attrs.Name,
		AltNames:      slices.Sorted(slices.Values(attrs.AltNames)),
		Kind:          l.Type(),
		HardwareAddr:  attrs.HardwareAddr,
		PermanentAddr: attrs.PermHWAddr,
		Up:            attrs.RawFlags&unix.IFF_UP != 0,
		Carrier:       attrs.RawFlags&unix.IFF_LOWER_UP != 0,
		OperState:     OperState(attrs.OperState.String()),
		MTU:           attrs.MTU,
		MasterIndex:   attrs.MasterIndex,
	}
	if vrf, ok := l.(*netlink.Vrf); ok {
		link.VRFTable = vrf.Table
	}
	return link
}

// Equal compares two links by value.
func (l Link) Equal(o Link) bool {
	return l.sameTopology(o) && slices.Equal(l.AltNames, o.AltNames) && l.Kind == o.Kind &&
		slices.Equal(l.HardwareAddr, o.HardwareAddr) && slices.Equal(l.PermanentAddr, o.PermanentAddr) &&
		l.Up == o.Up && l.Carrier == o.Carrier && l.OperState == o.OperState && l.MTU == o.MTU
}

// sameTopology tells whether addresses and routes that were read for one of the links belong to the other.
func (l Link) sameTopology(o Link) bool {
	return l.Index == o.Index && l.Name == o.Name && l.MasterIndex == o.MasterIndex && l.VRFTable == o.VRFTable
}

func compareLinks(a, b Link) int { return cmp.Compare(a.Index, b.Index) }
