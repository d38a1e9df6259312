// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"testing"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb/ovsdbtest"
)

// Rows that match none of the conditions are not there; they come and go as they begin and cease to match.
func TestWhere(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("--", "add-br", "br-blue", "--", "add-br", "br-red", "--", "add-br", "br-own", "--", "set", "bridge", "br-own", "external_ids:owner=us")
	cfg := config(server.Endpoint())
	cfg.Where = map[string][]Condition{"Bridge": {
		{Column: "external_ids", Function: "includes", Value: Map{GoMap: map[any]any{"owner": "us"}}},
		{Column: "name", Function: "==", Value: "br-red"},
	}}
	c := run(t, cfg)
	eventually(t, "only what matches one", sees(c, "br-own", "br-red"))
	content, _ := c.Content()
	if len(Rows[portRow](content, "Port")) != 3 {
		t.Error("a table without conditions is not whole")
	}
	server.Vsctl("set", "bridge", "br-blue", "external_ids:owner=us")
	eventually(t, "what begins to match", sees(c, "br-blue", "br-own", "br-red"))
	server.Vsctl("remove", "bridge", "br-own", "external_ids", "owner")
	eventually(t, "what ceases to match", sees(c, "br-blue", "br-red"))

	cfg.Where["Other"] = nil
	if _, err := New(cfg); err == nil {
		t.Error("a condition for a table that is not followed is taken")
	}
}

// Whoever plans on the content after a transaction plans on what the transaction left.
func TestContentHasWhatWasWritten(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("add-br", "br-0")
	c := run(t, config(server.Endpoint()))
	eventually(t, "br-0", sees(c, "br-0"))
	for tag := 1; tag < 5; tag++ {
		content, err := c.Content()
		if err != nil {
			t.Fatal(err)
		}
		for uuid := range Rows[portRow](content, "Port") {
			_, err := c.Transact(t.Context(), Operation{Op: "update", Table: "Port", Row: Row{"tag": tag},
				Where: []Condition{{Column: "_uuid", Function: "==", Value: UUID{GoUUID: uuid}}}})
			if err != nil {
				t.Fatal(err)
			}
			content, _ := c.Content()
			if port := Rows[portRow](content, "Port")[uuid]; port == nil || port.Tag == nil || *port.Tag != tag {
				t.Fatalf("after the reply: %+v, want tag %d", port, tag)
			}
		}
	}
}
