// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb"
)

// difference is the way from the rows that an Uplink has to those that it is to have.
type difference struct {
	own  *ownRows
	want *desired

	// uuids are those of the routers and switches of this package by table and name, named ones for new rows; names is
	// the same the other way round, for those that there are.
	uuids map[[2]string]string
	names map[string]string
	// links are the references to add to and to take from each column, by table and UUID of the row.
	links map[[2]string]map[string]*link
	// gone are the routers and switches that are taken away.
	gone map[string]bool
	// touched are the networks that rows are written for.
	touched map[string]bool

	created int
	waits   []ovsdb.Operation
	inserts []ovsdb.Operation
	updates []ovsdb.Operation
	deletes []ovsdb.Operation
}

type link struct{ add, remove []any }

// key tells the rows of an Uplink on one node apart.
type key struct{ table, parent, identity string }

// diff gives the operations of one transaction, none if everything is as it should be.
func diff(v *View, uplink string, want *desired) []ovsdb.Operation {
	d := &difference{
		own: v.own[uplink], want: want,
		uuids: map[[2]string]string{}, names: map[string]string{}, links: map[[2]string]map[string]*link{},
		gone: map[string]bool{}, touched: map[string]bool{},
	}
	if d.own == nil {
		d.own = &ownRows{}
	}
	for name, r := range d.own.routers {
		d.uuids[[2]string{routerTable, name}], d.names[r.UUID] = r.UUID, name
	}
	for name, s := range d.own.switches {
		d.uuids[[2]string{switchTable, name}], d.names[s.UUID] = s.UUID, name
	}
	d.compare()
	return d.operations()
}

func (d *difference) compare() {
	have := make(map[key]*ownRow, len(d.own.rows))
	kept := make(map[*ownRow]bool, len(d.own.rows))
	for i := range d.own.rows {
		own := &d.own.rows[i]
		k := d.keyOf(own)
		if have[k] == nil {
			have[k] = own
		}
		kept[own] = d.want.kept[own.network]
	}
	attached := attachments(d.own)
	inserted := map[int]string{} // rows of desired to their named UUIDs
	seen := make(map[key]bool, len(d.want.rows))
	for i, want := range d.want.rows {
		k := key{table: want.table, parent: want.parent.name + want.parent.uuid, identity: want.row.identity()}
		if want.table == balancerTable {
			k.parent = ""
		}
		if seen[k] { // the same twice, as a default gateway that is listed twice, is once
			continue
		}
		seen[k] = true
		own := have[k]
		if own == nil {
			d.created++
			inserted[i] = fmt.Sprintf("r%d", d.created)
			if want.parent.table == "" {
				d.uuids[[2]string{want.table, want.row.identity()}] = inserted[i]
			}
			d.touch(want.row)
			continue
		}
		kept[own] = true
		if row := changes(own.row, want.row); row != nil {
			d.touch(want.row)
			d.updates = append(d.updates, ovsdb.Operation{Op: "update", Table: want.table, Where: byUUID(own.uuid), Row: row})
		}
		if want.table == balancerTable && !attached[[2]string{want.parent.name, own.uuid}] {
			d.touch(want.row)
			d.refer(want.parent, own.uuid)
		}
	}
	for i, want := range d.want.rows {
		if uuid := inserted[i]; uuid != "" && want.parent.table != "" {
			d.refer(want.parent, uuid)
		}
	}
	for i, want := range d.want.rows {
		if uuid := inserted[i]; uuid != "" {
			d.insert(want, uuid)
		}
	}
	for i := range d.own.rows {
		if own := &d.own.rows[i]; !kept[own] {
			d.remove(own)
		}
	}
}

// keyOf: the rows of a second router or switch of one name are nobody's.
func (d *difference) keyOf(own *ownRow) key {
	k := key{table: own.table, identity: own.row.identity()}
	if own.table == balancerTable || own.parent.table == "" {
		return k
	}
	if k.parent = d.names[own.parent.uuid]; k.parent == "" {
		k.parent = own.parent.uuid
	}
	return k
}

// attachments are the load balancers of each router, by the router's name.
func attachments(own *ownRows) map[[2]string]bool {
	attached := map[[2]string]bool{}
	for name, r := range own.routers {
		for _, uuid := range r.LoadBalancers {
			attached[[2]string{name, uuid}] = true
		}
	}
	return attached
}

func (d *difference) touch(r row) { d.touched[r.ids()[networkKey]] = true }

// refer adds a reference to a row to its parent.
func (d *difference) refer(p parent, uuid string) {
	to := p.uuid
	if to == "" {
		to = d.uuids[[2]string{p.table, p.name}]
	}
	l := d.linkOf(p.table, to, p.column)
	l.add = append(l.add, ovsdb.UUID{GoUUID: uuid})
}

func (d *difference) linkOf(table, uuid, column string) *link {
	of := [2]string{table, uuid}
	if d.links[of] == nil {
		d.links[of] = map[string]*link{}
	}
	if d.links[of][column] == nil {
		d.links[of][column] = &link{}
	}
	return d.links[of][column]
}

func (d *difference) insert(want desiredRow, uuid string) {
	row := newRow(want.row)
	if want.parent.table == "" {
		if want.table != staticMACTable { // where the database itself sees to it that there is one
			d.waits = append(d.waits, wait(want.table, "name", want.row.identity(), "!=", "name", want.row.identity()))
		}
		this := [2]string{want.table, uuid}
		for column, l := range d.links[this] {
			row[column] = ovsdb.Set{GoSet: l.add}
		}
		delete(d.links, this)
	}
	d.inserts = append(d.inserts, ovsdb.Operation{Op: "insert", Table: want.table, UUIDName: uuid, Row: row})
}

// remove takes a row away. What only others refer to goes with the last reference.
func (d *difference) remove(own *ownRow) {
	d.touched[own.network] = true
	switch own.table {
	case routerTable, switchTable, balancerTable, staticMACTable:
		d.gone[own.uuid] = true
		d.deletes = append(d.deletes, ovsdb.Operation{Op: "delete", Table: own.table, Where: byUUID(own.uuid)})
		return
	}
	if own.parent.uuid != "" && !d.gone[own.parent.uuid] { // routers and switches come first
		l := d.linkOf(own.parent.table, own.parent.uuid, own.parent.column)
		l.remove = append(l.remove, ovsdb.UUID{GoUUID: own.uuid})
	}
}

// operations puts the parts in order: what must be so, what is new, what changes.
func (d *difference) operations() []ovsdb.Operation {
	var mutations []ovsdb.Operation
	for _, of := range slices.SortedFunc(maps.Keys(d.links), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		op := ovsdb.Operation{Op: "mutate", Table: of[0], Where: byUUID(of[1])}
		for _, column := range slices.Sorted(maps.Keys(d.links[of])) {
			l := d.links[of][column]
			if len(l.remove) > 0 {
				op.Mutations = append(op.Mutations, ovsdb.Mutation{Column: column, Mutator: "delete", Value: ovsdb.Set{GoSet: l.remove}})
			}
			if len(l.add) > 0 {
				op.Mutations = append(op.Mutations, ovsdb.Mutation{Column: column, Mutator: "insert", Value: ovsdb.Set{GoSet: l.add}})
			}
		}
		mutations = append(mutations, op)
	}
	for _, network := range slices.Sorted(maps.Keys(d.touched)) {
		d.waits = append(d.waits, d.want.guards[network]...)
	}
	return slices.Concat(d.waits, d.inserts, d.updates, mutations, d.deletes)
}

func byUUID(uuid string) []ovsdb.Condition {
	return []ovsdb.Condition{{Column: "_uuid", Function: "==", Value: ovsdb.UUID{GoUUID: uuid}}}
}
