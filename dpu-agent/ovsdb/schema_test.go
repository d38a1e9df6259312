// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb/ovsdbtest"
)

// schemaWithout writes the schema of this machine's Open vSwitch without some columns and with another version.
func schemaWithout(t *testing.T, version, table string, columns ...string) string {
	t.Helper()
	text, err := os.ReadFile(ovsdbtest.Schema)
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	schema["version"] = version
	known := schema["tables"].(map[string]any)[table].(map[string]any)["columns"].(map[string]any)
	for _, column := range columns {
		delete(known, column)
	}
	if text, err = json.Marshal(schema); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "schema")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// E5: an older or newer Open vSwitch lacks a column.
func TestE5MissingColumns(t *testing.T) {
	if testing.Short() {
		t.Skip("needs ovsdb-server")
	}
	t.Run("optional", func(t *testing.T) {
		server := ovsdbtest.StartEmpty(t, schemaWithout(t, "8.3.1", "Interface", "mtu"))
		server.Vsctl("init", "--", "add-br", "br-blue", "--", "set", "Interface", "br-blue", "error=oops")
		c := run(t, config(server.Endpoint()))
		eventually(t, "br-blue", sees(c, "br-blue"))
		content, _ := c.Content()
		rows := Rows[interfaceRow](content, "Interface")
		for uuid, row := range rows {
			if row.UUID != uuid || row.Name != "br-blue" || row.Type != "internal" || row.Error == nil || *row.Error != "oops" || row.MTU != nil {
				t.Errorf("row %+v", row)
			}
		}
		if len(rows) != 1 {
			t.Errorf("%d rows, want 1", len(rows))
		}
	})
	t.Run("required", func(t *testing.T) {
		server := ovsdbtest.StartEmpty(t, schemaWithout(t, "8.3.1", "Port", "tag"))
		c := run(t, config(server.Endpoint()))
		eventually(t, "an error that names the column", func() bool {
			_, err := c.Content()
			return err != nil && strings.Contains(err.Error(), "no column Port.tag of type *int")
		})
	})
}

type absentRow struct {
	UUID string `ovsdb:"_uuid"`
	Name string `ovsdb:"name" optional:"true"`
}

func TestE5MissingTable(t *testing.T) {
	server := ovsdbtest.Start(t)
	cfg := config(server.Endpoint())
	cfg.Tables["Sampling_App"] = &absentRow{}
	c := run(t, cfg)
	eventually(t, "connected without the table", c.Connected)
	content, _ := c.Content()
	if rows := Rows[absentRow](content, "Sampling_App"); len(rows) != 0 {
		t.Errorf("rows %v", rows)
	}
}

// E5: the schema is converted under a connected client.
func TestE5LiveConvert(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("add-br", "br-blue")
	c := run(t, config(server.Endpoint()))
	eventually(t, "br-blue", sees(c, "br-blue"))

	ovsdbtest.Run(t, "ovsdb-client", "convert", server.Endpoint(), schemaWithout(t, "8.9.0", "Interface", "mtu", "link_speed"))
	server.Vsctl("add-br", "br-red")
	eventually(t, "changes after the conversion", sees(c, "br-blue", "br-red"))
	c.mu.Lock()
	missing := c.session.fit.missing
	c.mu.Unlock()
	if !slices.Equal(missing, []string{"Interface.mtu"}) {
		t.Errorf("missing %v, want Interface.mtu", missing)
	}
}

// E6: statistics change every few seconds and are nobody's business here.
func TestE6StatisticsAreNotMonitored(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("add-br", "br-blue")
	p := newProxy(t, server.Dir, server.Socket())
	var updates atomic.Int32
	p.set(func(m map[string]json.RawMessage) map[string]json.RawMessage {
		if strings.HasPrefix(string(m["method"]), `"update`) {
			updates.Add(1)
		}
		return m
	})
	c := run(t, config(p.endpoint))
	eventually(t, "br-blue", sees(c, "br-blue"))
	server.Vsctl("set", "Interface", "br-blue", "statistics:rx_bytes=17", "link_speed=1000")
	during(t, 300*time.Millisecond, "no update arrives", func() bool { return updates.Load() == 0 })
	server.Vsctl("set", "Interface", "br-blue", "mtu=1400")
	eventually(t, "the update of a column that is followed", func() bool { return updates.Load() == 1 })
}
