// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb"
)

// The rows have only what is used, so that a change of anything else is no event. What an older Open vSwitch may
// lack is optional.
type (
	rootRow struct {
		UUID        string            `ovsdb:"_uuid"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}

	bridgeRow struct {
		UUID         string            `ovsdb:"_uuid"`
		Name         string            `ovsdb:"name"`
		DatapathType string            `ovsdb:"datapath_type" optional:"true"`
		FailMode     *string           `ovsdb:"fail_mode" optional:"true"`
		ExternalIDs  map[string]string `ovsdb:"external_ids"`
		Ports        []string          `ovsdb:"ports"`
	}

	portRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Name        string            `ovsdb:"name"`
		Tag         *int              `ovsdb:"tag"`
		VLANMode    *string           `ovsdb:"vlan_mode" optional:"true"`
		BondMode    *string           `ovsdb:"bond_mode" optional:"true"`
		BondActive  *string           `ovsdb:"bond_active_slave" optional:"true"`
		FakeBridge  bool              `ovsdb:"fake_bridge" optional:"true"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
		Interfaces  []string          `ovsdb:"interfaces"`
	}

	interfaceRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Name        string            `ovsdb:"name"`
		Type        string            `ovsdb:"type"`
		OFPort      *int              `ovsdb:"ofport"`
		Error       *string           `ovsdb:"error" optional:"true"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
		Options     map[string]string `ovsdb:"options"`
		IfIndex     *int              `ovsdb:"ifindex" optional:"true"`
		MACInUse    *string           `ovsdb:"mac_in_use" optional:"true"`
		AdminState  *string           `ovsdb:"admin_state" optional:"true"`
		LinkState   *string           `ovsdb:"link_state" optional:"true"`
		MTU         *int              `ovsdb:"mtu" optional:"true"`
	}
)

const rootTable = "Open_vSwitch"

func tables() map[string]any {
	return map[string]any{rootTable: &rootRow{}, "Bridge": &bridgeRow{}, "Port": &portRow{}, "Interface": &interfaceRow{}}
}

// newView joins the rows. A reference to a row that is not there is left out and noted: one bad row never hides
// a bridge.
func newView(content *ovsdb.Content, chassis string) *View {
	j := joiner{
		ports:      ovsdb.Rows[portRow](content, "Port"),
		interfaces: ovsdb.Rows[interfaceRow](content, "Interface"),
	}
	v := &View{}
	for uuid, root := range ovsdb.Rows[rootRow](content, rootTable) {
		v.UUID, v.ExternalIDs = uuid, root.ExternalIDs
	}
	v.Chassis = cmp.Or(chassis, v.ExternalIDs["system-id"])
	for _, row := range ovsdb.Rows[bridgeRow](content, "Bridge") {
		v.Bridges = append(v.Bridges, j.bridge(row))
	}
	slices.SortFunc(v.Bridges, func(a, b Bridge) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(j.dangling)
	v.Dangling = j.dangling
	return v
}

type joiner struct {
	ports      map[string]*portRow
	interfaces map[string]*interfaceRow
	dangling   []string
}

func (j *joiner) bridge(row *bridgeRow) Bridge {
	b := Bridge{Name: row.Name, DatapathType: row.DatapathType, FailMode: value(row.FailMode), ExternalIDs: row.ExternalIDs}
	for _, uuid := range row.Ports {
		port, found := j.ports[uuid]
		if !found {
			j.dangling = append(j.dangling, fmt.Sprintf("bridge %s has a port %s that is not in the database", row.Name, uuid))
			continue
		}
		b.Ports = append(b.Ports, j.port(port))
	}
	slices.SortFunc(b.Ports, func(a, b Port) int { return cmp.Compare(a.Name, b.Name) })
	return b
}

func (j *joiner) port(row *portRow) Port {
	p := Port{
		Name: row.Name, Tag: row.Tag, VLANMode: value(row.VLANMode), BondMode: value(row.BondMode), BondActive: value(row.BondActive),
		FakeBridge: row.FakeBridge, ExternalIDs: row.ExternalIDs,
	}
	for _, uuid := range row.Interfaces {
		i, found := j.interfaces[uuid]
		if !found {
			j.dangling = append(j.dangling, fmt.Sprintf("port %s has an interface %s that is not in the database", row.Name, uuid))
			continue
		}
		p.Interfaces = append(p.Interfaces, Interface{
			Name: i.Name, Type: i.Type, OFPort: value(i.OFPort), Error: value(i.Error),
			ExternalIDs: i.ExternalIDs, Options: i.Options, IfIndex: value(i.IfIndex), MAC: value(i.MACInUse),
			AdminState: value(i.AdminState), LinkState: value(i.LinkState), MTU: value(i.MTU),
		})
	}
	slices.SortFunc(p.Interfaces, func(a, b Interface) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// value is what an optional column holds, or the zero value.
func value[T any](optional *T) T {
	if optional == nil {
		return *new(T)
	}
	return *optional
}
