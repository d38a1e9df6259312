// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// Plan decides what to write so that the database has the rows of a Gateway and no other rows of its Uplink on this
// node. The operations are to be one transaction; there are none if nothing is to be written.
//
// What hinders one network is in the Outcome: its rows stay as they are, and the others get theirs. The error is one
// of the Gateway itself.
func Plan(v *View, g Gateway) ([]ovsdb.Operation, Outcome, error) {
	want, outcome, err := render(v, g)
	if err != nil {
		return nil, Outcome{}, fmt.Errorf("plan the gateway of Uplink %s: %w", g.Uplink, err)
	}
	return diff(v, g.Uplink, want), outcome, nil
}

// PlanRemoval decides what to write so that the database has no rows of an Uplink on this node.
func PlanRemoval(v *View, uplink string) []ovsdb.Operation { return diff(v, uplink, &desired{}) }

// renderer makes the rows of one Gateway.
type renderer struct {
	v *View
	g Gateway
	n names
	d *desired

	edge    under
	outcome Outcome
	// networks are those that rows are made for, sorted by name.
	networks []network
	taken    map[int]bool // transit blocks
}

// network is one for which everything is known that its rows are made from.
type network struct {
	*Network
	*attachment
	ids   map[string]string
	block int
}

func render(v *View, g Gateway) (*desired, Outcome, error) {
	if err := check(v, g); err != nil {
		return nil, Outcome{}, err
	}
	n := names{uplink: g.Uplink, node: v.node}
	r := &renderer{
		v: v, g: g, n: n,
		d:       &desired{guards: map[string][]ovsdb.Operation{}, kept: map[string]bool{}},
		outcome: Outcome{Networks: map[string]NetworkOutcome{}},
		taken:   map[int]bool{},
	}
	r.renderEdge()
	r.admit()
	for i := range r.networks {
		r.renderNetwork(&r.networks[i])
	}
	r.renderServices()
	return r.d, r.outcome, nil
}

// check finds mistakes of a Gateway.
func check(v *View, g Gateway) error {
	var errs []error
	if g.Uplink == "" || g.Chassis == "" {
		errs = append(errs, errors.New("the Uplink has no name, or this node no chassis name"))
	}
	if len(g.MAC) != 6 {
		errs = append(errs, fmt.Errorf("MAC %q is not one of Ethernet", g.MAC))
	}
	if len(g.Addresses) == 0 {
		errs = append(errs, errors.New("the Uplink has no address"))
	}
	for _, r := range v.ranges.named() {
		if p, q, overlap := overlapping(r.prefixes, g.Addresses); overlap {
			errs = append(errs, failed("the %s range %s overlaps the Uplink's own network %s; choose another range", r.name, p, q.Masked()))
		}
	}
	return errors.Join(errs...)
}

// admit finds out which networks rows can be made for, and gives them their transit blocks.
func (r *renderer) admit() {
	sorted := slices.Clone(r.g.Networks)
	slices.SortFunc(sorted, func(a, b Network) int { return cmp.Compare(a.Name, b.Name) })
	for i := range sorted {
		n := &sorted[i]
		if block, known := r.v.blockOf[user{uplink: r.g.Uplink, network: n.Name}]; known {
			r.setTransit(n, block)
		}
		a, problem := (*attachment)(nil), n.Hold
		if problem == nil {
			a, problem = r.v.attach(n)
		}
		if problem == nil {
			problem = r.obstacle(n, a)
		}
		if problem != nil {
			r.refuse(n, problem)
			continue
		}
		r.networks = append(r.networks, network{Network: n, attachment: a, ids: r.n.tags(n.Name), block: -1})
	}
	admitted := r.networks[:0]
	for _, n := range r.networks {
		var ok bool
		if n.block, ok = r.blockFor(n.Name); !ok {
			r.refuse(n.Network, failed("network %s: no block is free in the transit range %s", n.Name, list(r.v.ranges.Transit)))
			continue
		}
		r.setTransit(n.Network, n.block)
		admitted = append(admitted, n)
	}
	r.networks = admitted
}

func (r *renderer) refuse(n *Network, problem *uplinkstate.Problem) {
	out := r.outcome.Networks[n.Name]
	out.Problem, out.Advertised = problem, r.v.advertised(r.g.Uplink, n)
	r.outcome.Networks[n.Name] = out
	r.d.kept[n.Name] = true
}

func (r *renderer) setTransit(n *Network, block int) {
	var transit []netip.Addr
	for _, is6 := range r.families(n) {
		_, gateway := r.v.ranges.transit(block, is6)
		transit = append(transit, gateway.Addr())
	}
	r.outcome.Networks[n.Name] = NetworkOutcome{Transit: transit, Advertised: n.Advertised}
}

// families are those that a network and the Uplink both have, as the question whether it is IPv6. What else the
// network has keeps the CNI's gateway.
func (r *renderer) families(n *Network) []bool {
	var families []bool
	for _, is6 := range []bool{false, true} {
		if ofFamily(n.Subnets, is6).IsValid() && ofFamily(r.g.Addresses, is6).IsValid() {
			families = append(families, is6)
		}
	}
	return families
}

// blockFor gives a network the block that it has, or the lowest that no network of any Uplink has.
func (r *renderer) blockFor(network string) (int, bool) {
	if block, known := r.v.blockOf[user{uplink: r.g.Uplink, network: network}]; known {
		return block, true
	}
	blocks := int(min(size(ofFamily(r.v.ranges.Transit, false)), size(ofFamily(r.v.ranges.Transit, true))) / blockSize)
	for block := range blocks {
		if _, used := r.v.blocks[block]; !used && !r.taken[block] {
			r.taken[block] = true
			return block, true
		}
	}
	return 0, false
}

// obstacle is why a network cannot be linked where it should be, nil if it can.
func (r *renderer) obstacle(n *Network, a *attachment) *uplinkstate.Problem {
	if len(r.families(n)) == 0 {
		return failed("network %s has the subnets %s and Uplink %s the addresses %s: they have no family in common",
			n.Name, list(n.Subnets), r.g.Uplink, list(r.g.Addresses))
	}
	for _, own := range r.v.ranges.named() {
		for _, theirs := range []namedPrefixes{
			{"subnet", n.Subnets}, {"join subnet", a.join}, {"service CIDR", r.v.ranges.ServiceCIDRs},
		} {
			if p, q, overlap := overlapping(own.prefixes, theirs.prefixes); overlap {
				return failed("network %s: the %s range %s overlaps the network's %s %s; choose another range", n.Name, own.name, p, theirs.name, q)
			}
		}
	}
	for _, uuid := range a.router.Ports {
		port := r.v.routerPorts[uuid]
		if port == nil || mine(r.v, port) && port.ExternalIDs[uplinkKey] == r.g.Uplink {
			continue
		}
		p, q, overlap := overlapping(slices.Concat(r.v.ranges.Link, r.v.ranges.ServiceSNAT), parse(port.Networks))
		if overlap && mine(r.v, port) {
			return pending("network %s: router %s is still linked to Uplink %s", n.Name, a.router.Name, port.ExternalIDs[uplinkKey])
		}
		if overlap {
			return failed("network %s: the range %s overlaps %s of the Logical_Router_Port %s; choose another range", n.Name, p, q, port.Name)
		}
	}
	for _, is6 := range r.families(n) {
		if service := ofFamily(r.v.ranges.ServiceSNAT, is6); a.number >= size(service)/2 {
			return failed("network %s: the service SNAT range %s has no address for node number %d; choose a larger one", n.Name, service, a.number)
		}
	}
	return nil
}
