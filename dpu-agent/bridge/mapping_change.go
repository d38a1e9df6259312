// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// ownMappingsKey is the external_ids key of the Open_vSwitch row that remembers which physical networks of
// ovn-bridge-mappings are this product's. The elements of a mapping cannot be marked themselves, and a name alone
// proves nothing: an administrator may have mapped a network of the same name.
const ownMappingsKey = "ovn-uplink-mappings"

// OwnMappings are the physical networks of the bridge mappings that this product made, sorted.
func (v *View) OwnMappings() []string {
	var names []string
	for name := range strings.SplitSeq(v.ExternalIDs[ownMappingsKey], ",") {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Mapped is the bridge that ovn-controller is told for a physical network, empty where there is none.
func (v *View) Mapped(network string) string {
	_, mappings := v.Mappings()
	for _, m := range mappings {
		if m.Network == network {
			return m.Bridge
		}
	}
	return ""
}

// Map has the database map a physical network to a bridge, or to none if the bridge is empty. It changes only this
// product's elements of the key that ovn-controller reads, and takes them out of the keys that it does not read;
// others' stay where they are, byte for byte. changed tells whether anything had to be written.
//
// The error is a *uplinkstate.Problem with reason UplinkBridgeMappingFailed where somebody else has mapped the network;
// it wraps ovsdb.ErrChanged where somebody else wrote in between.
func (m *Monitor) Map(ctx context.Context, network, bridge string) (changed bool, err error) {
	view, known := m.Latest()
	if !known {
		return false, fmt.Errorf("map physical network %s: %w", network, m.Ready())
	}
	update, err := planMapping(view, network, bridge)
	if err != nil || len(update) == 0 {
		return false, err
	}
	_, err = m.Transact(ctx, update.operations(view)...)
	// Whoever looks next, at once, is not to write again what is there, nor from what was refused.
	m.refresh()
	if err != nil {
		return false, fmt.Errorf("map physical network %s to bridge %q: %w", network, bridge, err)
	}
	return true, nil
}

// update is what external_ids keys are to hold. An empty value removes the key, unless it is one of a chassis: that
// one hides the general key as long as it is there, so that its going would change what others have mapped.
type update map[string]string

// planMapping says which external_ids have to change so that a network is mapped to a bridge, or to none.
func planMapping(v *View, network, bridge string) (update, error) {
	own := v.OwnMappings()
	is := func(m Mapping) bool {
		name, _, _ := strings.Cut(m.Text, ":")
		return strings.TrimSpace(name) == network
	}
	ours := slices.Contains(own, network)
	effective, mappings := v.Mappings()
	change := update{}
	// Where ovn-controller does not look, only the traces of an earlier effective key are removed.
	for _, key := range []string{mappingsKey, mappingsKey + "-" + v.Chassis} {
		if key == effective || !ours {
			continue
		}
		if value, found := v.ExternalIDs[key]; found {
			change.set(v, key, join(slices.DeleteFunc(ParseMappings(value), is)))
		}
	}
	var kept []Mapping
	there := false
	for _, m := range mappings {
		if !is(m) {
			kept = append(kept, m)
			continue
		}
		if bridge != "" && m.Network == network && m.Bridge == bridge && !there {
			kept, there = append(kept, m), true
			continue
		}
		if !ours {
			if bridge == "" {
				return nil, nil // somebody else's
			}
			return nil, uplinkstate.Problemf(uplinkstate.ReasonUplinkBridgeMappingFailed,
				"external_ids:%s of Open vSwitch has %q, which was not made by this agent, where %s:%s is needed; remove it", effective, m.Text, network, bridge)
		}
	}
	if bridge != "" && !there {
		kept = append(kept, Mapping{Text: network + ":" + bridge})
	}
	change.set(v, effective, join(kept))
	own = slices.DeleteFunc(own, func(name string) bool { return name == network })
	if bridge != "" {
		own = append(own, network)
		slices.Sort(own)
	}
	change.set(v, ownMappingsKey, strings.Join(own, ","))
	return change, nil
}

func (u update) set(v *View, key, value string) {
	if v.ExternalIDs[key] != value {
		u[key] = value
	}
}

func join(mappings []Mapping) string {
	texts := make([]string, len(mappings))
	for i, m := range mappings {
		texts[i] = m.Text
	}
	return strings.Join(texts, ",")
}

// operations write the update, provided that external_ids are still those of the view.
func (u update) operations(v *View) []ovsdb.Operation {
	where := []ovsdb.Condition{{Column: "_uuid", Function: "==", Value: ovsdb.UUID{GoUUID: v.UUID}}}
	held := ovsdb.Map{GoMap: map[any]any{}}
	for key, value := range v.ExternalIDs {
		held.GoMap[key] = value
	}
	remove := ovsdb.Set{}
	insert := ovsdb.Map{GoMap: map[any]any{}}
	for _, key := range slices.Sorted(maps.Keys(u)) {
		remove.GoSet = append(remove.GoSet, key)
		if u[key] != "" || key != mappingsKey && key != ownMappingsKey {
			insert.GoMap[key] = u[key]
		}
	}
	timeout := 0
	return []ovsdb.Operation{
		{Op: "wait", Table: rootTable, Where: where, Columns: []string{"external_ids"}, Until: "==",
			Rows: []ovsdb.Row{{"external_ids": held}}, Timeout: &timeout},
		{Op: "mutate", Table: rootTable, Where: where, Mutations: []ovsdb.Mutation{
			{Column: "external_ids", Mutator: "delete", Value: remove},
			{Column: "external_ids", Mutator: "insert", Value: insert},
		}},
	}
}
