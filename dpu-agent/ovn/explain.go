// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"slices"
)

// Fact is one thing that there is, or that there should be.
type Fact struct {
	What string
	// Text says which it is, or why it is not there.
	Text string
	OK   bool
}

// Explain tells by the rows which Uplink a network has on this node, empty for none, and which of the rows that make
// its gateway there are.
func (v *View) Explain(network, prefix string) (uplink string, facts []Fact) {
	for _, u := range v.Uplinks() {
		if slices.ContainsFunc(v.own[u].rows, func(o ownRow) bool { return o.row.ids()[networkKey] == network }) {
			uplink = u
			break
		}
	}
	if uplink == "" {
		return "", nil
	}
	n, own := names{uplink, v.node}, v.own[uplink]
	fact := func(what, name string, found bool) {
		f := Fact{What: what, Text: name, OK: found}
		if !found {
			f.Text = fmt.Sprintf("no row %s", name)
		}
		facts = append(facts, f)
	}
	fact("edge router", n.edge(), own.routers[n.edge()] != nil)
	fact("localnet port", n.localnet(), slices.ContainsFunc(own.rows, func(o ownRow) bool {
		port, is := o.row.(*switchPortRow)
		return is && port.Name == n.localnet()
	}))
	fact("gateway router", n.gateway(prefix), own.routers[n.gateway(prefix)] != nil)
	facts = append(facts, v.explainAttachment(network, n.routerLink(prefix), own))
	return uplink, facts
}

// explainAttachment tells whether the CNI's router of the network leads to the gateway.
func (v *View) explainAttachment(network, port string, own *ownRows) Fact {
	f := Fact{What: "attachment"}
	if len(v.routersOf[network]) == 0 {
		f.Text = fmt.Sprintf("the CNI has no router with external_ids:%s=%s", cniNetworkKey, network)
		return f
	}
	policies, routes := 0, 0
	var router string
	for _, o := range own.rows {
		at, known := v.routers[o.parent.uuid]
		if !known || at.ExternalIDs[cniNetworkKey] != network || o.row.ids()[networkKey] != network {
			continue
		}
		switch row := o.row.(type) {
		case *routerPortRow:
			if row.Name == port {
				router = at.Name
			}
		case *policyRow:
			policies++
		case *routeRow:
			routes++
		}
	}
	if router == "" {
		f.Text = fmt.Sprintf("no router of the CNI's has port %s", port)
		return f
	}
	f.OK, f.Text = policies > 0, fmt.Sprintf("port %s on router %s, %d policies, %d routes", port, router, policies, routes)
	return f
}
