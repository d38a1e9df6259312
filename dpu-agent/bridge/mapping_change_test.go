// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"maps"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb/ovsdbtest"
)

func TestPlanMapping(t *testing.T) {
	const own = ownMappingsKey
	for name, tc := range map[string]struct {
		ids     map[string]string
		bridge  string
		want    update
		problem string
	}{
		"the first": {
			map[string]string{}, "br-blue", update{"ovn-bridge-mappings": "uplink-blue:br-blue", own: "uplink-blue"}, ""},
		"beside another's": {
			map[string]string{"ovn-bridge-mappings": "physnet:br-ex"}, "br-blue",
			update{"ovn-bridge-mappings": "physnet:br-ex,uplink-blue:br-blue", own: "uplink-blue"}, ""},
		"there, in whatever order": {
			map[string]string{"ovn-bridge-mappings": "uplink-blue:br-blue,physnet:br-ex", own: "uplink-blue"}, "br-blue", update{}, ""},
		"there, but not marked: adopted": {
			map[string]string{"ovn-bridge-mappings": "uplink-blue:br-blue"}, "br-blue", update{own: "uplink-blue"}, ""},
		"to another bridge": {
			map[string]string{"ovn-bridge-mappings": "uplink-blue:br-old,physnet:br-ex", own: "uplink-blue"}, "br-blue",
			update{"ovn-bridge-mappings": "physnet:br-ex,uplink-blue:br-blue"}, ""},
		"twice": {
			map[string]string{"ovn-bridge-mappings": "uplink-blue:br-blue,uplink-blue:br-blue", own: "uplink-blue"}, "br-blue",
			update{"ovn-bridge-mappings": "uplink-blue:br-blue"}, ""},
		"ours without a bridge is repaired, others' oddities stay": {
			map[string]string{"ovn-bridge-mappings": " physnet:br-ex ,,uplink-blue:,x", own: "uplink-blue"}, "br-blue",
			update{"ovn-bridge-mappings": " physnet:br-ex ,,x,uplink-blue:br-blue"}, ""},
		"another's of the same name": {
			map[string]string{"ovn-bridge-mappings": "uplink-blue:br-x"}, "br-blue", nil, `has "uplink-blue:br-x", which was not made by this agent`},
		"a key of the chassis hides the general one (B12)": {
			map[string]string{"system-id": "dpu-1", "ovn-bridge-mappings-dpu-1": "physnet:br-ex", "ovn-bridge-mappings": "x:br-x"}, "br-blue",
			update{"ovn-bridge-mappings-dpu-1": "physnet:br-ex,uplink-blue:br-blue", own: "uplink-blue"}, ""},
		"a key of the chassis appeared later": {
			map[string]string{"system-id": "dpu-1", "ovn-bridge-mappings-dpu-1": "physnet:br-ex", "ovn-bridge-mappings": "x:br-x,uplink-blue:br-blue", own: "uplink-blue"}, "br-blue",
			update{"ovn-bridge-mappings-dpu-1": "physnet:br-ex,uplink-blue:br-blue", "ovn-bridge-mappings": "x:br-x"}, ""},
		"taken out": {
			map[string]string{"ovn-bridge-mappings": "uplink-blue:br-blue,physnet:br-ex", own: "uplink-blue,uplink-red"}, "",
			update{"ovn-bridge-mappings": "physnet:br-ex", own: "uplink-red"}, ""},
		"taken out, the last": {
			map[string]string{"ovn-bridge-mappings": "uplink-blue:br-blue", own: "uplink-blue"}, "",
			update{"ovn-bridge-mappings": "", own: ""}, ""},
		"not there":            {map[string]string{"ovn-bridge-mappings": "physnet:br-ex"}, "", update{}, ""},
		"another's stays":      {map[string]string{"ovn-bridge-mappings": "uplink-blue:br-blue"}, "", update{}, ""},
		"lost, but remembered": {map[string]string{own: "uplink-blue"}, "", update{own: ""}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := &View{ExternalIDs: tc.ids, Chassis: tc.ids["system-id"]}
			got, err := planMapping(v, "uplink-blue", tc.bridge)
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Errorf("got %v, want %q", err, tc.problem)
				}
				return
			}
			if err != nil || !maps.Equal(got, tc.want) {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

// B14: what others write between the read and the write is not lost, and what is theirs stays byte for byte.
func TestB14MapBesideOthers(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("set", "Open_vSwitch", ".", "external_ids:system-id=c1", "external_ids:other=kept", `external_ids:ovn-bridge-mappings="physnet:br-ex"`)
	m := watch(t, Config{Endpoint: server.Endpoint()}, nil)
	ids := func() map[string]string {
		v, known := m.Latest()
		if !known {
			return nil
		}
		return v.ExternalIDs
	}
	eventually(t, "the view", func() bool { return ids()["system-id"] == "c1" })
	before := maps.Clone(ids())
	apply := func(bridge string) {
		t.Helper()
		eventually(t, "map to "+bridge, func() bool {
			_, err := m.Map(t.Context(), "uplink-blue", bridge)
			return err == nil
		})
	}
	apply("br-blue")
	// At once, too.
	if got := ids()["ovn-bridge-mappings"]; got != "physnet:br-ex,uplink-blue:br-blue" {
		t.Errorf("the mapping is %q", got)
	}
	if changed, err := m.Map(t.Context(), "uplink-blue", "br-blue"); changed || err != nil {
		t.Errorf("written again: %v, %v", changed, err)
	}

	// The CNI writes its own view of the string, without ours.
	server.Vsctl("set", "Open_vSwitch", ".", `external_ids:ovn-bridge-mappings="physnet:br-ex"`, "external_ids:late=1")
	eventually(t, "the loss", func() bool { return ids()["late"] == "1" })
	apply("br-blue")
	eventually(t, "the mapping again", func() bool { return ids()["ovn-bridge-mappings"] == "physnet:br-ex,uplink-blue:br-blue" })

	// A view that is behind is refused.
	old, _ := m.Latest()
	server.Vsctl("set", "Open_vSwitch", ".", "external_ids:later=1")
	change, err := planMapping(old, "uplink-blue", "br-new")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Transact(t.Context(), change.operations(old)...); err == nil {
		t.Error("a change made from an old view was accepted")
	}
	eventually(t, "the newest view", func() bool { return ids()["later"] == "1" })
	apply("")
	server.Vsctl("remove", "Open_vSwitch", ".", "external_ids", "late", "--", "remove", "Open_vSwitch", ".", "external_ids", "later")
	eventually(t, "everything as before", func() bool { return maps.Equal(ids(), before) })
}
