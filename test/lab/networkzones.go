// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// AddZone puts the network on one more node, as OVN-Kubernetes does when a
// node joins the cluster: all rows in the node's zone, those of the node in the
// others. It needs Interconnect first.
func (n *Network) AddZone(ctx context.Context, z *Zone) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.zones
	n.zones = append(slices.Clone(before), z)
	if err := n.check(); err != nil {
		n.zones = before
		return err
	}
	return n.each(func(on *Zone) error {
		if on == z {
			return n.writeZone(ctx, z)
		}
		b := n.builder(on)
		router, transit := &datapath{}, &datapath{}
		if n.Spec.Topology == Layer3 {
			b.transitRemote(router, transit, z)
			b.attach("Logical_Switch", n.Prefix+"transit_switch", "ports", transit.ports...)
		} else {
			b.transitPort(router, z, nil, map[string]string{"requested-chassis": z.Chassis})
			b.attach("Logical_Router", n.Router(on), "ports", router.ports...)
		}
		b.attach("Logical_Router", n.Router(on), "static_routes", router.routes...)
		return b.write(ctx)
	})
}

// RemoveZone takes the network off a node, as OVN-Kubernetes does when the
// node leaves the cluster: its zone keeps no rows, the others none of it. The
// namespaces of its pods there stay, without a network.
func (n *Network) RemoveZone(ctx context.Context, z *Zone) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.zones = slices.DeleteFunc(slices.Clone(n.zones), func(o *Zone) bool { return o == z })
	if err := n.deleteIn(ctx, z); err != nil {
		return fmt.Errorf("network %s on %s: %w", n.Spec.CUDN, z.Name, err)
	}
	n.pods = slices.DeleteFunc(n.pods, func(p *Pod) bool { return p.Zone == z })
	return n.each(func(on *Zone) error { return n.removeFrom(ctx, on, z) })
}

// removeFrom removes a node's rows from the zone of another.
func (n *Network) removeFrom(ctx context.Context, on, z *Zone) error {
	type rows struct{ holder, name, column, table, which string }
	sets := []rows{
		{"Logical_Router", n.Router(on), "static_routes", "Logical_Router_Static_Route", zoneNodeKey + "=" + z.Name},
		{"Logical_Switch", n.Prefix + "transit_switch", "ports", "Logical_Switch_Port", "node=" + z.Name},
	}
	if n.Spec.Topology == Layer2 {
		sets = []rows{
			{"Logical_Router", n.Router(on), "static_routes", "Logical_Router_Static_Route", nodeKey + "=" + z.Name},
			{"Logical_Router", n.Router(on), "ports", "Logical_Router_Port", nodeKey + "=" + z.Name},
			{"Logical_Switch", n.Switch(on), "ports", "Logical_Switch_Port", nodeKey + "=" + z.Name},
		}
	}
	var args []string
	for _, s := range sets {
		found, err := on.Nbctl(ctx, "--bare", "--columns=_uuid", "find", s.table,
			"external_ids:"+networkKey+"="+n.Name, "external_ids:"+s.which)
		if err != nil {
			return err
		}
		if uuids := strings.Fields(found); len(uuids) > 0 {
			args = append(append(args, "--", "remove", s.holder, s.name, s.column), uuids...)
		}
	}
	if len(args) == 0 {
		return nil
	}
	_, err := on.Nbctl(ctx, args...)
	return err
}
