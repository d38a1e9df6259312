// SPDX-License-Identifier: Apache-2.0

package representor

// Class is what an interface is to the machine that the card's ports are on.
type Class int

const (
	// Unclassified means that it could not be told just now; asking again may help.
	Unclassified Class = iota
	// Absent means that there is no interface of that name.
	Absent
	// Plain is an interface that represents nothing: a plain network card's, a bond, a veth.
	Plain
	// Physical is a network port of a switching card.
	Physical
	// HostFacing represents a function of a host that the card serves.
	HostFacing
	// LocalFunction represents a function of the machine itself, or one of which an old kernel does not say whose it is.
	LocalFunction
)

// Classify tells what the interface of a name or alternative name is.
func (x *Index) Classify(name string) Class {
	if netdev, alternative := x.names[name]; alternative {
		name = netdev
	}
	class, known := x.classes[name]
	switch {
	case known:
		return class
	case x.stale != nil:
		return Unclassified
	}
	return Absent
}
