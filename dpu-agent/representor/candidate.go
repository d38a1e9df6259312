// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"fmt"
	"slices"
)

// Candidate is a representor that came into question.
type Candidate struct {
	Netdev string `json:"netdev"`
	// Port is the devlink port or the entry of the representor map.
	Port   string `json:"port,omitempty"`
	Method Method `json:"method"`
	// Rejected is why it is not the one; empty if it may be.
	Rejected string `json:"rejected,omitempty"`

	verified bool
	rank     int
}

// What speaks for a candidate, least first. Its host may change the address of a function; that of the PF a card
// may have twice, behind a bond; and whose function it is, the kernel knows.
const (
	rankVerified = 1 << iota // the function has the published MAC address
	rankAnchored             // its PF has the published MAC address
	rankSaid                 // the kernel or the administrator says that it is the host's
)

// judge completes a candidate with what speaks for and against it whichever way it was found.
func (c Candidate) judge(r *Representor, q Query) Candidate {
	wrong := Local
	if q.Local {
		wrong = Host
	}
	switch {
	case c.Rejected != "":
		return c
	case r.Side == wrong:
		c.Rejected = "it stands for a function of this machine, not of a host"
		if q.Local {
			c.Rejected = "it stands for a function of a host, not of this machine"
		}
		return c
	case r.Netdev == "":
		c.Rejected = "it has no network interface here"
		return c
	case r.Side != Unsaid:
		c.rank |= rankSaid
	}
	return c.verify(r, q)
}

// verify compares the MAC address that the card knows of the function with the published one.
func (c Candidate) verify(r *Representor, q Query) Candidate {
	if r.mac == nil || q.MAC == nil {
		return c
	}
	if !slices.Equal(r.mac, q.MAC) {
		c.Rejected = fmt.Sprintf("its function has MAC address %s, not %s", r.mac, q.MAC)
		return c
	}
	c.verified = true
	c.rank |= rankVerified
	return c
}

// fittest are the candidates that most speaks for.
func fittest(all []Candidate) []Candidate {
	best := 0
	for _, c := range all {
		if c.Rejected == "" {
			best = max(best, c.rank)
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(c Candidate) bool { return c.Rejected != "" || c.rank != best })
}
