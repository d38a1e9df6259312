// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb"
)

// desired are the rows that an Uplink is to have on this node.
type desired struct {
	rows []desiredRow
	// guards are, by network, what its rows were made from and must not have changed.
	guards map[string][]ovsdb.Operation
	// kept are the networks whose rows are to stay as they are.
	kept map[string]bool
}

// desiredRow is a row and where it is to be referred to.
type desiredRow struct {
	table  string
	row    row
	parent parent
}

// parent is a column of a row of this package, by its name, or of one of the CNI's, by its UUID.
type parent struct{ table, name, uuid, column string }

// tagger makes the external_ids of rows. They are shared by all rows of a network and not to be changed.
func (n names) tags(network string) map[string]string {
	ids := map[string]string{ownerKey: owner, uplinkKey: n.uplink, nodeKey: n.node}
	if network != "" {
		ids[networkKey] = network
	}
	return ids
}

// under are the rows that one router or switch is to have.
type under struct {
	d                 *desired
	table, name, uuid string
	ids               map[string]string
}

// router adds a router of this package.
func (d *desired) router(r *routerRow) under {
	d.rows = append(d.rows, desiredRow{table: routerTable, row: r})
	return under{d: d, table: routerTable, name: r.Name, ids: r.ExternalIDs}
}

// logicalSwitch adds a switch of this package.
func (d *desired) logicalSwitch(s *switchRow) under {
	d.rows = append(d.rows, desiredRow{table: switchTable, row: s})
	return under{d: d, table: switchTable, name: s.Name, ids: s.ExternalIDs}
}

// foreign is a router of the CNI's, which rows with the given external_ids are added to.
func (d *desired) foreign(uuid string, ids map[string]string) under {
	return under{d: d, table: routerTable, uuid: uuid, ids: ids}
}

// of is the same with the external_ids of a network.
func (u under) of(ids map[string]string) under {
	u.ids = ids
	return u
}

func (u under) add(table, column string, r row) {
	u.d.rows = append(u.d.rows, desiredRow{table: table, row: r, parent: parent{table: u.table, name: u.name, uuid: u.uuid, column: column}})
}

func (u under) port(p *routerPortRow) {
	p.ExternalIDs = u.ids
	slices.Sort(p.Networks)
	u.add(routerPortTable, "ports", p)
}

func (u under) route(prefix, nextHop, outputPort string) {
	u.add(routeTable, "static_routes", &routeRow{Prefix: prefix, NextHop: nextHop, OutputPort: &outputPort, ExternalIDs: u.ids})
}

// routeFromWire is a route for what comes from the wire only.
func (u under) routeFromWire(prefix, nextHop, outputPort string) {
	u.add(routeTable, "static_routes", &routeRow{
		Prefix: prefix, NextHop: nextHop, OutputPort: &outputPort, RouteTable: fromWire, ExternalIDs: u.ids,
	})
}

func (u under) policy(priority int, match, action string, nextHops ...string) {
	u.add(policyTable, "policies", &policyRow{Priority: priority, Match: match, Action: action, NextHops: nextHops, ExternalIDs: u.ids})
}

func (u under) snat(external, logical string) {
	u.add(natTable, "nat", &natRow{Type: "snat", ExternalIP: external, LogicalIP: logical, ExternalIDs: u.ids})
}

func (u under) balancer(b *balancerRow) {
	b.ExternalIDs = u.ids
	u.add(balancerTable, "load_balancer", b)
}

// staticMAC tells the router of a port the MAC behind an address.
func (u under) staticMAC(port, ip, mac string) {
	u.d.rows = append(u.d.rows, desiredRow{table: staticMACTable, row: &staticMACRow{LogicalPort: port, IP: ip, MAC: mac}})
}

// switchPort adds a port to a switch.
func (u under) switchPort(name, kind, address string, options map[string]string) {
	u.add(switchPortTable, "ports", &switchPortRow{
		Name: name, Type: kind, Addresses: []string{address}, Options: options, ExternalIDs: u.ids,
	})
}

// routerSwitchPort adds a port to a switch that joins it to a router.
func (u under) routerSwitchPort(name, routerPort string) {
	u.switchPort(name, "router", "router", map[string]string{"router-port": routerPort})
}

// guard adds what must still be so when the rows of a network are written.
func (d *desired) guard(network, table, uuid, column string, is any) {
	d.guards[network] = append(d.guards[network], wait(table, "_uuid", ovsdb.UUID{GoUUID: uuid}, "==", column, is))
}

// wait is the operation that fails unless a row has a value, or, until "!=", if one has.
func wait(table, key string, keyIs any, until, column string, is any) ovsdb.Operation {
	now := 0
	return ovsdb.Operation{
		Op: "wait", Table: table, Timeout: &now, Until: until,
		Where:   []ovsdb.Condition{{Column: key, Function: "==", Value: keyIs}},
		Columns: []string{column}, Rows: []ovsdb.Row{{column: is}},
	}
}

// String gives the rows as text, for people: one row a line, sorted, without external_ids.
func (d *desired) String() string {
	lines := make([]string, len(d.rows))
	for i, r := range d.rows {
		where := ""
		if r.parent.table != "" {
			where = " in " + r.parent.name + r.parent.uuid
		}
		lines[i] = r.table + where + ":" + describe(r.row)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func describe(r row) string {
	var b strings.Builder
	for _, f := range fieldsOf(r) {
		var text string
		switch v := f.value.(type) {
		case string:
			text = v
		case *string:
			text = value(v)
		case int:
			text = fmt.Sprint(v)
		case []string:
			text = strings.Join(v, ",")
		case map[string]string:
			var pairs []string
			for _, k := range slices.Sorted(maps.Keys(v)) {
				pairs = append(pairs, k+"="+v[k])
			}
			text = strings.Join(pairs, ",")
		}
		if text != "" && f.column != idsColumn {
			fmt.Fprintf(&b, " %s=%q", f.column, text)
		}
	}
	return b.String()
}
