// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"encoding/json"
	"slices"
)

// View is what the database of one Open vSwitch says at one moment, joined and sorted. It does not change.
type View struct {
	// UUID is the UUID of the Open_vSwitch row, for those who write to it.
	UUID string `json:"-"`
	// Chassis is the name under which ovn-controller runs: external_ids:system-id, unless its system-id-override
	// file has another one.
	Chassis string `json:"chassis,omitempty"`
	// ExternalIDs are those of the Open_vSwitch row.
	ExternalIDs map[string]string `json:"externalIDs,omitempty"`
	// Bridges are sorted by name.
	Bridges []Bridge `json:"bridges"`
	// Dangling are references to rows that the database does not have, as sentences, sorted. What refers to them is
	// there without them.
	Dangling []string `json:"dangling,omitempty"`
}

// Bridge is a row of the table Bridge with its ports.
type Bridge struct {
	Name         string            `json:"name"`
	DatapathType string            `json:"datapathType,omitempty"`
	FailMode     string            `json:"failMode,omitempty"`
	ExternalIDs  map[string]string `json:"externalIDs,omitempty"`
	// Ports are sorted by name. The bridge's own port, named like the bridge, is one of them.
	Ports []Port `json:"ports"`
}

// Port is a row of the table Port with its interfaces; several interfaces are a bond.
type Port struct {
	Name string `json:"name"`
	// Tag is the 802.1Q VLAN of the port, nil where it has none.
	Tag      *int   `json:"tag,omitempty"`
	VLANMode string `json:"vlanMode,omitempty"`
	BondMode string `json:"bondMode,omitempty"`
	// BondActive is the MAC address of the member that an active-backup bond uses.
	BondActive  string            `json:"bondActive,omitempty"`
	FakeBridge  bool              `json:"fakeBridge,omitempty"`
	ExternalIDs map[string]string `json:"externalIDs,omitempty"`
	// Interfaces are sorted by name.
	Interfaces []Interface `json:"interfaces"`
}

// Interface is a row of the table Interface.
type Interface struct {
	Name string `json:"name"`
	// Type is as in the database, where the empty string means system.
	Type string `json:"type,omitempty"`
	// OFPort is the OpenFlow port number, negative if the interface could not be made, 0 while it has none yet.
	OFPort int `json:"ofport"`
	// Error is why the interface could not be made.
	Error       string            `json:"error,omitempty"`
	ExternalIDs map[string]string `json:"externalIDs,omitempty"`
	Options     map[string]string `json:"options,omitempty"`
	IfIndex     int               `json:"ifindex,omitempty"`
	MAC         string            `json:"mac,omitempty"`
	// AdminState and LinkState are "up", "down", or empty where Open vSwitch does not say.
	AdminState string `json:"adminState,omitempty"`
	LinkState  string `json:"linkState,omitempty"`
	// MTU is in bytes, 0 where Open vSwitch does not say.
	MTU int `json:"mtu,omitempty"`
}

const (
	typeInternal = "internal"
	typePatch    = "patch"
	down         = "down"
)

// BridgeByName finds a bridge.
func (v *View) BridgeByName(name string) (*Bridge, bool) {
	i, found := slices.BinarySearchFunc(v.Bridges, name, func(b Bridge, name string) int { return cmp.Compare(b.Name, name) })
	if !found {
		return nil, false
	}
	return &v.Bridges[i], true
}

// BridgeOfPort finds the bridge that has a port or interface of the given name as a member. The own port of a
// bridge is none: ovs-vsctl port-to-br hides it too. A port goes before another port's interface of that name.
func (v *View) BridgeOfPort(name string) (*Bridge, *Port, bool) {
	for _, byInterface := range []bool{false, true} {
		for i := range v.Bridges {
			b := &v.Bridges[i]
			for j := range b.Ports {
				p := &b.Ports[j]
				if p.Name == b.Name {
					continue
				}
				if p.Name == name || byInterface && p.Interface(name) != nil {
					return b, p, true
				}
			}
		}
	}
	return nil, nil, false
}

// Port finds a port of the bridge by its name or by that of an interface of it, the bridge's own included.
func (b *Bridge) Port(name string) *Port {
	for i := range b.Ports {
		if b.Ports[i].Name == name {
			return &b.Ports[i]
		}
	}
	for i := range b.Ports {
		if b.Ports[i].Interface(name) != nil {
			return &b.Ports[i]
		}
	}
	return nil
}

// own is the interface of the bridge itself, nil where the database lacks it.
func (b *Bridge) own() *Interface {
	if p := b.Port(b.Name); p != nil {
		return p.Interface(b.Name)
	}
	return nil
}

// Interface finds an interface of the port.
func (p *Port) Interface(name string) *Interface {
	for i := range p.Interfaces {
		if p.Interfaces[i].Name == name {
			return &p.Interfaces[i]
		}
	}
	return nil
}

// Dead says why the interface does not exist in the datapath; empty if it does. The database keeps interfaces
// whose device is gone, or that ovs-vswitchd has not come to yet.
func (i *Interface) Dead() string {
	switch {
	case i.Error != "":
		return i.Error
	case i.OFPort < 0:
		return "Open vSwitch could not add it"
	case i.OFPort == 0:
		return "Open vSwitch has not added it yet"
	}
	return ""
}

// Text is what the bridge is, in a form that changes when anything of it does.
func (b *Bridge) Text() string {
	text, err := json.Marshal(b)
	if err != nil { // there is nothing in it that JSON cannot hold
		return err.Error()
	}
	return string(text)
}
