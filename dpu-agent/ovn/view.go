// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb"
)

// View is what the northbound database holds at one moment, as far as it matters to one node. It does not change.
type View struct {
	node   string
	ranges Ranges

	routers     map[string]*routerRow
	routerPorts map[string]*routerPortRow
	routes      map[string]*routeRow

	// portsByName are the router ports by name.
	portsByName map[string]*routerPortRow
	// routersOf are the CNI's routers by the network that they are of, sorted by name.
	routersOf map[string][]*routerRow
	// own are this node's rows of this package by Uplink.
	own map[string]*ownRows
	// blocks are the transit blocks in use and by whom, blockOf the same the other way round.
	blocks  map[int]user
	blockOf map[user]int
}

// ownRows are the rows of one Uplink on this node.
type ownRows struct {
	// rows are in the order of table and UUID.
	rows []ownRow
	// routers and switches by name; of several of one name the one with the lowest UUID.
	routers  map[string]*routerRow
	switches map[string]*switchRow
}

// ownRow is a row of this package.
type ownRow struct {
	table, uuid string
	row         row
	// network is what it is for, empty if it is for all.
	network string
	// parent is the row that refers to it.
	parent reference
}

// reference is a column of a row that refers to other rows.
type reference struct{ table, uuid, column string }

// user is who uses a transit block.
type user struct{ uplink, network string }

// database is what the followed tables hold, by UUID.
type database struct {
	routers     map[string]*routerRow
	routerPorts map[string]*routerPortRow
	routes      map[string]*routeRow
	policies    map[string]*policyRow
	nats        map[string]*natRow
	switches    map[string]*switchRow
	switchPorts map[string]*switchPortRow
	balancers   map[string]*balancerRow
	staticMACs  map[string]*staticMACRow
}

func read(content *ovsdb.Content) database {
	return database{
		routers:     ovsdb.Rows[routerRow](content, routerTable),
		routerPorts: ovsdb.Rows[routerPortRow](content, routerPortTable),
		routes:      ovsdb.Rows[routeRow](content, routeTable),
		policies:    ovsdb.Rows[policyRow](content, policyTable),
		nats:        ovsdb.Rows[natRow](content, natTable),
		switches:    ovsdb.Rows[switchRow](content, switchTable),
		switchPorts: ovsdb.Rows[switchPortRow](content, switchPortTable),
		balancers:   ovsdb.Rows[balancerRow](content, balancerTable),
		staticMACs:  ovsdb.Rows[staticMACRow](content, staticMACTable),
	}
}

func newView(db database, node string, ranges Ranges) *View {
	v := &View{
		node: node, ranges: ranges,
		routers: db.routers, routerPorts: db.routerPorts, routes: db.routes,
		portsByName: map[string]*routerPortRow{},
		routersOf:   map[string][]*routerRow{},
		own:         map[string]*ownRows{},
		blocks:      map[int]user{},
		blockOf:     map[user]int{},
	}
	for _, port := range v.routerPorts {
		v.portsByName[port.Name] = port
	}
	for _, router := range v.routers {
		if network := router.ExternalIDs[cniNetworkKey]; network != "" {
			v.routersOf[network] = append(v.routersOf[network], router)
		}
	}
	for _, routers := range v.routersOf {
		slices.SortFunc(routers, func(a, b *routerRow) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UUID, b.UUID)) })
	}
	parents := v.parents(db.switches)
	collect(v, routerTable, v.routers, nil)
	collect(v, switchTable, db.switches, nil)
	collect(v, routerPortTable, v.routerPorts, parents)
	collect(v, routeTable, v.routes, parents)
	collect(v, policyTable, db.policies, parents)
	collect(v, natTable, db.nats, parents)
	collect(v, switchPortTable, db.switchPorts, parents)
	collect(v, balancerTable, db.balancers, parents)
	v.collectStaticMACs(db.staticMACs)
	v.findBlocks()
	return v
}

// parents finds what refers to each row, by its UUID.
func (v *View) parents(switches map[string]*switchRow) map[string]reference {
	parents := map[string]reference{}
	add := func(table, uuid, column string, children []string) {
		for _, child := range children {
			parents[child] = reference{table: table, uuid: uuid, column: column}
		}
	}
	for uuid, r := range v.routers {
		ours := mine(v, r)
		add(routerTable, uuid, "ports", r.Ports)
		if ours || r.ExternalIDs[cniNetworkKey] != "" { // there are no rows of this package on other routers
			add(routerTable, uuid, "static_routes", r.StaticRoutes)
			add(routerTable, uuid, "policies", r.Policies)
		}
		if ours {
			add(routerTable, uuid, "nat", r.NAT)
			add(routerTable, uuid, "load_balancer", r.LoadBalancers)
		}
	}
	for uuid, s := range switches {
		add(switchTable, uuid, "ports", s.Ports)
	}
	return parents
}

// mine tells whether a row is of this package and this node.
func mine(v *View, r row) bool {
	ids := r.ids()
	return ids[ownerKey] == owner && ids[nodeKey] == v.node
}

// collect takes this node's own rows of a table into the view.
func collect[T any, R interface {
	*T
	row
}](v *View, table string, rows map[string]*T, parents map[string]reference) {
	var uuids []string
	for uuid, r := range rows {
		if mine(v, R(r)) {
			uuids = append(uuids, uuid)
		}
	}
	slices.Sort(uuids)
	for _, uuid := range uuids {
		r := R(rows[uuid])
		own := v.ownOf(r.ids()[uplinkKey])
		own.rows = append(own.rows, ownRow{table: table, uuid: uuid, row: r, network: r.ids()[networkKey], parent: parents[uuid]})
		switch r := any(r).(type) {
		case *routerRow:
			if own.routers[r.Name] == nil {
				own.routers[r.Name] = r
			}
		case *switchRow:
			if own.switches[r.Name] == nil {
				own.switches[r.Name] = r
			}
		}
	}
}

func (v *View) ownOf(uplink string) *ownRows {
	own := v.own[uplink]
	if own == nil {
		own = &ownRows{routers: map[string]*routerRow{}, switches: map[string]*switchRow{}}
		v.own[uplink] = own
	}
	return own
}

// collectStaticMACs takes the rows in that belong to ports of this package. Such a row stays when its port goes with
// the CNI's router.
func (v *View) collectStaticMACs(rows map[string]*staticMACRow) {
	for _, uuid := range slices.Sorted(maps.Keys(rows)) {
		r := rows[uuid]
		uplink, ok := uplinkOfLink(r.LogicalPort)
		if !ok {
			continue
		}
		network := ""
		if port := v.portsByName[r.LogicalPort]; port != nil {
			network = port.ExternalIDs[networkKey]
		}
		own := v.ownOf(uplink)
		own.rows = append(own.rows, ownRow{table: staticMACTable, uuid: uuid, row: r, network: network})
	}
}

// Uplinks are the Uplinks that have rows on this node, sorted: those that are not wanted any more are to be removed.
func (v *View) Uplinks() []string { return slices.Sorted(maps.Keys(v.own)) }
