// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"slices"
)

// claims is which services want which address and port. Mostly there is one that does.
type claims struct {
	sole      map[claim]*record
	contested map[claim][]*record // two or more
}

// add notes what a service claims, and whom that concerns.
func (c *claims) add(r *record, touched touched) {
	for key := range r.spec.claims() {
		if rivals := c.contested[key]; rivals != nil {
			c.concern(rivals, touched)
			c.contested[key] = append(rivals, r)
		} else if rival := c.sole[key]; rival != nil {
			delete(c.sole, key)
			touched.note(rival.namespace)
			c.contested[key] = []*record{rival, r}
		} else {
			c.sole[key] = r
		}
	}
}

// remove forgets what a service claimed when it was p.
func (c *claims) remove(r *record, p *spec, touched touched) {
	for key := range p.claims() {
		rivals := c.contested[key]
		if rivals == nil {
			delete(c.sole, key)
			continue
		}
		rivals = slices.DeleteFunc(rivals, func(other *record) bool { return other == r })
		c.concern(rivals, touched)
		c.contested[key] = rivals
		if len(rivals) == 1 {
			delete(c.contested, key)
			c.sole[key] = rivals[0]
		}
	}
}

func (c *claims) concern(rivals []*record, touched touched) {
	for _, r := range rivals {
		touched.note(r.namespace)
	}
}

// settle decides between those services that one look sees: who is older, then who is first by name, has it.
func (c *claims) settle(look uint64) []lost {
	var all []lost
	for key, rivals := range c.contested {
		var winner *record
		for _, r := range rivals {
			if r.namespace.look == look && (winner == nil || before(r, winner)) {
				winner = r
			}
		}
		for _, r := range rivals {
			if r.namespace.look == look && r != winner {
				all = append(all, lost{key, r, winner})
			}
		}
	}
	slices.SortFunc(all, func(a, b lost) int {
		return cmp.Or(cmp.Compare(a.by.name, b.by.name), a.claim.compare(b.claim))
	})
	return all
}

// lost is a claim that a service does not get.
type lost struct {
	claim  claim
	by, to *record
}

func before(a, b *record) bool {
	return cmp.Or(cmp.Compare(a.spec.created, b.spec.created), cmp.Compare(a.name, b.name)) < 0
}
