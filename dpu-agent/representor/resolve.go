// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// Query is what the host published of the function behind its interface.
type Query struct {
	// Function may be nil.
	Function *v1alpha1.HostFunction
	// MAC is that of the interface; an unusable one counts as none.
	MAC net.HardwareAddr
	// Local asks for functions of this machine itself, as on a server with a card in it, instead of a host's.
	Local bool
}

// Method is how a representor was found.
type Method string

const (
	// ByMap is by an entry of the administrator's representor map.
	ByMap Method = "representor map"
	// ByFunction is by the numbers of the PCI function that the host published.
	ByFunction Method = "host function"
	// ByMAC is by the MAC address that the host published.
	ByMAC Method = "host MAC"
)

// Resolution is the representor that belongs to a Query.
type Resolution struct {
	// Netdev is the name of its network interface.
	Netdev string `json:"netdev,omitempty"`
	Method Method `json:"method,omitempty"`
	// Verified tells whether the MAC address of the function is known here and is the published one. Else the
	// function's numbers stand alone.
	Verified bool `json:"verified"`
	// Candidates are all representors that came into question, also if none was chosen.
	Candidates []Candidate `json:"candidates,omitempty"`
}

// ErrUnknown is the error of a Query whose answer may be among what could not be read. Keep the last answer, and
// try again.
var ErrUnknown = errors.New("the ports of the card could not be read")

// Resolve finds the representor of the host's function: by the administrator's map, by the function, by the MAC
// address, in this order. The error is a *uplinkstate.Problem with reason BridgeNotFound if there is none, or if
// several fit equally well, or it wraps ErrUnknown.
func (x *Index) Resolve(q Query) (Resolution, error) {
	f, hasFunction := functionOf(q.Function)
	if !uplinkstate.UsableMAC(q.MAC) {
		q.MAC = nil
	}
	var r Resolution
	for _, look := range []func() []Candidate{
		func() []Candidate { return x.fromMap(q, f, hasFunction) },
		func() []Candidate { return x.fromFunction(q, f, hasFunction) },
		func() []Candidate { return x.fromMAC(q) },
	} {
		found := look()
		r.Candidates = append(r.Candidates, found...)
		best := fittest(found)
		if len(best) > 1 {
			return r, ambiguous(q, f, hasFunction, best)
		}
		if len(best) == 1 {
			r.Netdev, r.Method, r.Verified = best[0].Netdev, best[0].Method, best[0].verified
			return r, nil
		}
	}
	if err := errors.Join(x.stale, x.unreadable); err != nil {
		return r, fmt.Errorf("find the representor of %s: %w: %w", wanted(q, f, hasFunction), ErrUnknown, err)
	}
	return r, notFound(q, f, hasFunction, r.Candidates)
}

// fromFunction looks among the functions with the published numbers.
func (x *Index) fromFunction(q Query, f function, known bool) []Candidate {
	if !known {
		return nil
	}
	var found []Candidate
	for _, r := range x.byFunction[f.key] {
		c := Candidate{Netdev: r.Netdev, Port: r.Port, Method: ByFunction}
		switch {
		case f.controller != nil && r.Controller != nil && *f.controller != *r.Controller:
			c.Rejected = fmt.Sprintf("it is on controller %d, not %d", *r.Controller, *f.controller)
		case f.pfMAC != nil:
			anchors := x.anchors(r, q.Local)
			switch {
			case anchors.has(f.pfMAC):
				c.rank |= rankAnchored
			case len(anchors) > 0:
				c.Rejected = fmt.Sprintf("its PF has MAC address %s, not %s", anchors, f.pfMAC)
			case x.isAnchor(f.pfMAC, q.Local):
				c.Rejected = fmt.Sprintf("it does not belong to the PF with MAC address %s", f.pfMAC)
			}
		}
		found = append(found, c.judge(r, q))
	}
	return found
}

// fromMAC looks among the functions of which the card knows the MAC address.
func (x *Index) fromMAC(q Query) []Candidate {
	var found []Candidate
	for _, r := range x.byMAC[string(q.MAC)] {
		found = append(found, Candidate{Netdev: r.Netdev, Port: r.Port, Method: ByMAC}.judge(r, q))
	}
	return found
}

// fromMap looks among the administrator's entries. They are believed, unless the card itself says otherwise.
func (x *Index) fromMap(q Query, f function, known bool) []Candidate {
	var found []Candidate
	add := func(e *mapEntry) {
		c := Candidate{Netdev: x.names[e.Representor], Port: e.where, Method: ByMap, rank: rankSaid}
		r := x.byNetdev[c.Netdev]
		switch {
		case c.Netdev == "":
			c.Netdev, c.Rejected = e.Representor, "there is no such network interface"
		case x.classes[c.Netdev] == Physical:
			c.Rejected = "it is a network port of the card"
		case r != nil:
			c = c.judge(r, q)
		case e.mac != nil:
			c.verified = true
		}
		if !slices.ContainsFunc(found, func(other Candidate) bool { return other.Netdev == c.Netdev && other.Rejected == "" }) {
			found = append(found, c)
		}
	}
	if known {
		for _, e := range x.mapByFunction[f.key] {
			if e.Function.function.includes(f) {
				add(e)
			}
		}
	}
	for _, e := range x.mapByMAC[string(q.MAC)] {
		add(e)
	}
	return found
}

// anchors are the MAC addresses of the PF that a representor's function belongs to, none if they are not known. A
// machine's own PF has no representor, but the physical ports of its device have its address.
func (x *Index) anchors(r *Representor, local bool) macs {
	if local {
		return x.portMACs[r.Device]
	}
	if mac, known := x.pfMACs[r.pf()]; known {
		return macs{mac}
	}
	return nil
}

// isAnchor tells whether some PF is known to have the MAC address.
func (x *Index) isAnchor(mac net.HardwareAddr, local bool) bool {
	if local {
		return x.ownPFs[string(mac)]
	}
	return x.hostPFs[string(mac)]
}
