// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"fmt"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// hintKey is the key of Bridge.external_ids by which an administrator says which port leads to the wire.
const hintKey = "bridge-uplink"

// Uplink is the port by which the frames of a bridge reach the wire.
type Uplink struct {
	// Bridge is where Port is: the bridge that was asked for, or the one at the end of the patch path.
	Bridge string `json:"bridge,omitempty"`
	// Port is the name of the OVS port, a bond's name if it is one.
	Port string `json:"port,omitempty"`
	// Members are the interfaces of Port that the datapath has, sorted by name.
	Members []Member `json:"members,omitempty"`
	// Exits are the interfaces by which the frames leave the bridge that was asked for: Members, the one that a bond
	// uses first, or the patch port at the beginning of the path.
	Exits []Member `json:"exits,omitempty"`
	// Via is the path from the bridge that was asked for, as "bridge/port" of every patch port that is left by.
	Via []string `json:"via,omitempty"`
	// Candidates are all ports that were looked at, with the verdict on each, also if no uplink was found.
	Candidates []Candidate `json:"candidates,omitempty"`
}

// Member is one interface of an uplink.
type Member struct {
	Interface string `json:"interface"`
	OFPort    int    `json:"ofport"`
	// Down says that the interface is administratively down or has no carrier; empty if it is up.
	Down string `json:"down,omitempty"`
	MTU  int    `json:"mtu,omitempty"`
}

// FindUplink finds how a bridge reaches the wire. The error is a *uplinkstate.Problem with reason
// BridgeUplinkNotFound for a finding, or wraps ErrUnclassified.
//
// The one usable port of the bridge is it; of several, the one that Bridge.external_ids:bridge-uplink names. If the
// bridge has none, the bridges that its patch ports lead to are looked at. Names tell nothing: a bridge called br-x
// need not have a port called x.
func FindUplink(v *View, name string, classify Classifier) (Uplink, error) {
	b, found := v.BridgeByName(name)
	if !found {
		return Uplink{}, uplinkstate.Problemf(uplinkstate.ReasonBridgeNotFound, "Open vSwitch has no bridge %s", name)
	}
	candidates := survey(b, classify)
	chosen, err := choose(b, candidates)
	if err != nil {
		return Uplink{Candidates: candidates}, err
	}
	if chosen != nil {
		return Uplink{Bridge: b.Name, Port: chosen.Name, Members: members(chosen), Exits: exits(chosen), Candidates: candidates}, nil
	}
	return followPatches(v, b, candidates, classify)
}

// choose picks the port of one bridge, nil if the bridge has none.
func choose(b *Bridge, candidates []Candidate) (*Port, error) {
	hint := b.ExternalIDs[hintKey]
	if hint != "" {
		for _, c := range candidates {
			if (c.Verdict == Usable || c.Verdict == Hinted) && b.Port(hint) == c.port {
				return c.port, nil
			}
		}
	}
	for _, c := range with(candidates, Undecided) {
		return nil, fmt.Errorf("port %s of bridge %s: %w", c.Port, b.Name, ErrUnclassified)
	}
	usable := with(candidates, Usable)
	switch {
	case len(usable) == 0:
		return nil, nil
	case len(usable) == 1:
		return usable[0].port, nil
	case hint == "":
		return nil, uplinkstate.Problemf(uplinkstate.ReasonBridgeUplinkNotFound,
			"bridge %s has %d ports that may lead to the wire, %s, and nothing says which does; name it: ovs-vsctl set Bridge %s external_ids:%s=PORT",
			b.Name, len(usable), list(usable), b.Name, hintKey)
	}
	return nil, uplinkstate.Problemf(uplinkstate.ReasonBridgeUplinkNotFound,
		"external_ids:%s of bridge %s names %s, but %s; expected one of its ports %s",
		hintKey, b.Name, hint, whyNot(hint, b, candidates), list(usable))
}

// whyNot says what is wrong with the port that the hint names.
func whyNot(hint string, b *Bridge, candidates []Candidate) string {
	for _, c := range candidates {
		if b.Port(hint) == c.port {
			return "that port cannot be used: " + c.Why
		}
	}
	return "the bridge has no such port"
}

// members are the interfaces of a port that the datapath has.
func members(p *Port) []Member {
	var members []Member
	for i := range p.Interfaces {
		iface := &p.Interfaces[i]
		if iface.Dead() == "" {
			members = append(members, Member{Interface: iface.Name, OFPort: iface.OFPort, Down: iface.Down(), MTU: iface.MTU})
		}
	}
	return members
}

// exits are the members, the one first that the bond uses.
func exits(p *Port) []Member {
	all := members(p)
	for i, m := range all {
		if iface := p.Interface(m.Interface); p.BondActive != "" && iface.MAC == p.BondActive {
			return slices.Concat(all[i:i+1], all[:i], all[i+1:])
		}
	}
	return all
}

// Down says that the interface is administratively down or has no carrier; empty if it is up, or if Open vSwitch
// does not say.
func (i *Interface) Down() string {
	switch {
	case i.AdminState == down:
		return "administratively down"
	case i.LinkState == down:
		return "no carrier"
	}
	return ""
}
