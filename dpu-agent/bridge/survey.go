// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"fmt"
	"slices"
)

// Class is what an interface is to the card or machine that Open vSwitch runs on.
type Class int

const (
	// Unclassified means that it could not be told just now; asking again may help.
	Unclassified Class = iota
	// Plain is an interface that represents nothing: a network card's, a kernel bond, a veth.
	Plain
	// Physical is a network port of a switching card.
	Physical
	// HostFacing represents a function of a host that the card serves.
	HostFacing
	// LocalFunction represents a function of the machine that Open vSwitch itself runs on.
	LocalFunction
	// Absent means that the kernel has no interface of that name. For an interface that DPDK drives itself that is
	// how it should be; for another one it is a matter of time.
	Absent
)

// Classifier tells the class of an interface by its name.
type Classifier func(iface string) Class

// ErrUnclassified is the error of a decision that an Unclassified interface stands in the way of. It is no finding
// about the bridge: keep what was decided before, and try again.
var ErrUnclassified = errors.New("it cannot be told now what the interface is")

// Verdict is what a port is worth as the way to the wire.
type Verdict string

const (
	// Usable leads to the wire, as far as can be told.
	Usable Verdict = "usable"
	// Hinted is used only if external_ids:bridge-uplink of the bridge names it.
	Hinted Verdict = "only if bridge-uplink names it"
	// Patch leads to another bridge.
	Patch Verdict = "patch"
	// Dead is not realised in the datapath.
	Dead Verdict = "dead"
	// Rejected leads elsewhere.
	Rejected Verdict = "rejected"
	// Undecided depends on an Unclassified interface.
	Undecided Verdict = "undecided"
)

// Candidate is a port of a bridge and what it is worth as the way to the wire.
type Candidate struct {
	Bridge  string  `json:"bridge"`
	Port    string  `json:"port"`
	Verdict Verdict `json:"verdict"`
	// Why is the reason of the verdict.
	Why string `json:"why,omitempty"`
	// DeadMembers are interfaces of a bond that are not realised, each with the reason.
	DeadMembers []string `json:"deadMembers,omitempty"`

	port *Port
}

func (c Candidate) String() string {
	if c.Why == "" {
		return c.Port
	}
	return fmt.Sprintf("%s (%s)", c.Port, c.Why)
}

// survey gives the verdict on every port of a bridge, in the order of their names.
func survey(b *Bridge, classify Classifier) []Candidate {
	candidates := make([]Candidate, 0, len(b.Ports))
	for i := range b.Ports {
		p := &b.Ports[i]
		c := Candidate{Bridge: b.Name, Port: p.Name, port: p}
		if p.Name == b.Name {
			c.Verdict, c.Why = Rejected, "the bridge's own port"
		} else {
			c.judge(classify)
		}
		candidates = append(candidates, c)
	}
	return candidates
}

// judge looks at every interface of the port. One that is not realised is not classified: its device may be gone,
// and asking what it is would find no answer for ever.
func (c *Candidate) judge(classify Classifier) {
	alive := 0
	for i := range c.port.Interfaces {
		iface := &c.port.Interfaces[i]
		if why := wrongType(iface, len(c.port.Interfaces)); why != "" {
			c.Verdict, c.Why = Rejected, why
			return
		}
		if why := iface.Dead(); why != "" {
			c.DeadMembers = append(c.DeadMembers, fmt.Sprintf("%s: %s", iface.Name, why))
			continue
		}
		alive++
		if iface.Type == typePatch {
			c.Verdict, c.Why = Patch, "patch port to "+iface.Options["peer"]
			return
		}
		if verdict, why := judgeClass(classify(iface.Name), iface.Type); verdict != Usable {
			c.Verdict, c.Why = verdict, why
			return
		}
	}
	switch {
	case len(c.port.Interfaces) == 0:
		c.Verdict, c.Why = Dead, "the database has no interface of it"
	case alive == 0:
		c.Verdict, c.Why = Dead, "dead: "+limit(c.DeadMembers)
	default:
		c.Verdict = Usable
	}
}

// physicalTypes are the types of interface that can be a network port. The empty type means system.
var physicalTypes = []string{"", "system", "dpdk", "afxdp", "afxdp-nonpmd"}

// wrongType says why the type of an interface rules its port out; empty if it does not.
func wrongType(i *Interface, members int) string {
	switch {
	case slices.Contains(physicalTypes, i.Type), i.Type == typePatch && members == 1:
		return ""
	case i.Type == typeInternal:
		return "internal port"
	}
	// Tunnels, ports of virtual machines, taps, mirrors: whatever they are, no wire is behind them.
	return "type " + i.Type
}

func judgeClass(class Class, kind string) (Verdict, string) {
	switch class {
	case Plain, Physical:
		return Usable, ""
	case Absent:
		if kind == "dpdk" {
			return Usable, ""
		}
	case HostFacing:
		return Rejected, "host-facing representor"
	case LocalFunction:
		return Hinted, "representor of a function of this machine"
	case Unclassified:
	}
	return Undecided, "it cannot be told now what the interface is"
}

// with keeps the candidates of one verdict.
func with(candidates []Candidate, verdict Verdict) []Candidate {
	return slices.DeleteFunc(slices.Clone(candidates), func(c Candidate) bool { return c.Verdict != verdict })
}
