// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb/ovsdbtest"
)

func watch(t *testing.T, c Config, onChange func()) *Monitor {
	t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	m, err := NewMonitor(c)
	if err != nil {
		t.Fatal(err)
	}
	if onChange != nil {
		m.OnChange(onChange)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := m.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return m
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: ", what)
		}
	}
}

// uplink is the uplink of br-blue as the monitor sees it now, or the error.
func uplink(m *Monitor) string {
	v, known := m.Latest()
	if !known {
		return "unknown"
	}
	u, err := FindUplink(v, "br-blue", card)
	if err != nil {
		return err.Error()
	}
	return u.Port
}

func TestMonitor(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("set", "Open_vSwitch", ".", "external_ids:system-id=c1", "external_ids:ovn-bridge-mappings=physnet:br-eth0",
		"--", "add-br", "br-blue", "--", "set", "Bridge", "br-blue", "fail_mode=secure", "datapath_type=netdev", "external_ids:a=b",
		"--", "add-bond", "br-blue", "bond0", "p1", "p0", "tag=7", "bond_mode=active-backup",
		"--", "set", "Interface", "p0", "ofport=3", "type=dpdk", "options:x=y", "mtu=9000", "link_state=up", "admin_state=up", "ifindex=12",
		`mac_in_use="00:00:5e:00:53:01"`, "--", "set", "Interface", "p1", "ofport=-1", "error=gone",
		"--", "add-br", "br-a")
	m := watch(t, Config{Endpoint: server.Endpoint()}, nil)
	eventually(t, "a view", func() bool { _, known := m.Latest(); return known })
	v, _ := m.Latest()

	if v.Chassis != "c1" || v.UUID == "" || len(v.Bridges) != 2 || v.Bridges[0].Name != "br-a" || v.Dangling != nil {
		t.Errorf("view %+v", v)
	}
	b, _ := v.BridgeByName("br-blue")
	if b.FailMode != "secure" || b.DatapathType != "netdev" || b.ExternalIDs["a"] != "b" || len(b.Ports) != 2 {
		t.Errorf("bridge %+v", b)
	}
	p := b.Port("bond0")
	if value(p.Tag) != 7 || p.BondMode != "active-backup" || len(p.Interfaces) != 2 || p.Interfaces[1].Dead() != "gone" {
		t.Errorf("port %+v", p)
	}
	got := p.Interfaces[0]
	if got.Name != "p0" || got.Type != "dpdk" || got.OFPort != 3 || got.Options["x"] != "y" || got.MTU != 9000 ||
		got.LinkState != "up" || got.AdminState != "up" || got.IfIndex != 12 || got.MAC != "00:00:5e:00:53:01" || got.Dead() != "" {
		t.Errorf("interface %+v", got)
	}
	if _, err := json.Marshal(v); err != nil {
		t.Error(err)
	}
}

// Unknown is not "no bridges": while the database is away the last view stays, and says that it is old.
func TestMonitorKeepsTheLastView(t *testing.T) {
	server := ovsdbtest.Start(t)
	server.Vsctl("add-br", "br-blue", "--", "add-port", "br-blue", "p0", "--", "set", "Interface", "p0", "ofport=3")
	other := filepath.Join(t.TempDir(), "system-id-override")
	if err := os.WriteFile(other, []byte("other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var told atomic.Int32
	m := watch(t, Config{Endpoint: server.Endpoint(), ChassisFile: other}, func() { told.Add(1) })
	eventually(t, "the uplink", func() bool { return uplink(m) == "p0" })
	if v, _ := m.Latest(); v.Chassis != "other" {
		t.Errorf("chassis %s", v.Chassis)
	}
	if err := m.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	before := told.Load()
	server.Kill()
	eventually(t, "unknown", func() bool { return uplink(m) == "unknown" })
	if v, _ := m.Latest(); len(v.Bridges) != 1 || told.Load() == before || m.Ready() == nil {
		t.Errorf("view %+v, told %d times, ready %v", v, told.Load()-before, m.Ready())
	}
	server.Restart()
	eventually(t, "the uplink again", func() bool { return uplink(m) == "p0" })

	// B23: drift after success shows at once.
	started := time.Now()
	server.Vsctl("del-port", "br-blue", "p0")
	eventually(t, "the loss of the port", func() bool { return strings.Contains(uplink(m), "it has no ports") })
	if took := time.Since(started); took > 5*time.Second { // an event, not the resync
		t.Errorf("drift was seen after %s", took)
	}
	// What nobody asks about is no change.
	before = told.Load()
	server.Vsctl("set", "Bridge", "br-blue", "other_config:x=y", "--", "set", "Interface", "br-blue", "statistics:rx_bytes=1")
	server.Vsctl("set", "Bridge", "br-blue", "external_ids:x=y")
	eventually(t, "a change that counts", func() bool { return told.Load() > before })
	if got := told.Load(); got != before+1 {
		t.Errorf("told of %d changes, want 1", got-before)
	}
}

// B10, B17: the shapes that a real ovs-vswitchd makes.
func TestMonitorWithVswitchd(t *testing.T) {
	server := ovsdbtest.Start(t)
	vswitchd := server.Vswitchd()
	for _, name := range []string{"p0", "p1"} {
		vswitchd.IP("link", "add", name, "type", "veth", "peer", "name", "far-"+name)
		vswitchd.IP("link", "set", name, "up")
		vswitchd.IP("link", "set", "far-"+name, "up")
	}
	vswitchd.Vsctl("add-br", "br-blue", "--", "set", "Bridge", "br-blue", "datapath_type=netdev", "--", "add-port", "br-blue", "p0")
	vswitchd.IP("link", "set", "br-blue", "up")
	m := watch(t, Config{Endpoint: server.Endpoint()}, nil)
	eventually(t, "the uplink", func() bool { return uplink(m) == "p0" })

	validate := func() (Report, error) {
		v, _ := m.Latest()
		return Validate(v, Target{Bridge: "br-blue", HostPort: "br-blue", DefaultGatewayBridge: "br-eth0"}, card)
	}
	eventually(t, "a valid bridge", func() bool { _, err := validate(); return err == nil })
	if r, _ := validate(); r.HostOFPort != 65534 || len(r.Uplink.Members) != 1 || r.Uplink.Members[0].OFPort < 1 {
		t.Errorf("report %+v", r)
	}

	// A port whose device does not exist has ofport -1 and hides nothing; ovs-vsctl fails, but adds it.
	server.Vsctl("add-port", "br-blue", "vf3")
	eventually(t, "the dead port", func() bool {
		v, _ := m.Latest()
		b, _ := v.BridgeByName("br-blue")
		p := b.Port("vf3")
		return p != nil && p.Interfaces[0].OFPort == -1 && strings.Contains(p.Interfaces[0].Dead(), "No such device")
	})
	if got := uplink(m); got != "p0" {
		t.Errorf("uplink %s", got)
	}

	// A port that is made again has another number.
	first, _ := validate()
	vswitchd.Vsctl("del-port", "br-blue", "p0", "--", "add-port", "br-blue", "p0", "--", "set", "Interface", "p0", "ofport_request=77")
	eventually(t, "the new port number", func() bool {
		r, err := validate()
		return err == nil && r.Uplink.Members[0].OFPort == 77 && first.Uplink.Members[0].OFPort != 77
	})

	vswitchd.IP("link", "set", "far-p0", "down")
	eventually(t, "the lost carrier", func() bool {
		_, err := validate()
		return err != nil && strings.Contains(err.Error(), "p0: no carrier")
	})
	vswitchd.IP("link", "set", "far-p0", "up")
	vswitchd.Vsctl("del-port", "br-blue", "p0", "--", "add-bond", "br-blue", "bond0", "p0", "p1")
	eventually(t, "the bond", func() bool {
		r, err := validate()
		return err == nil && r.Uplink.Port == "bond0" && len(r.Uplink.Members) == 2
	})

	// A chain of bridges, with a patch port that has no peer yet.
	vswitchd.Vsctl("del-port", "br-blue", "bond0", "--", "add-port", "br-blue", "a1", "--", "set", "Interface", "a1", "type=patch", "options:peer=a2")
	eventually(t, "no wire", func() bool { return strings.Contains(uplink(m), "a1") })
	vswitchd.Vsctl("add-br", "br-sfc", "--", "set", "Bridge", "br-sfc", "datapath_type=netdev", "--", "add-port", "br-sfc", "p1",
		"--", "add-port", "br-sfc", "a2", "--", "set", "Interface", "a2", "type=patch", "options:peer=a1")
	eventually(t, "the wire behind the patch port", func() bool {
		r, err := validate()
		return err == nil && r.Uplink.Bridge == "br-sfc" && r.Uplink.Port == "p1" && slices.Equal(r.Uplink.Via, []string{"br-blue/a1"})
	})
}

// B10: references to rows that are not there are left out and reported.
func TestB10DanglingRows(t *testing.T) {
	j := joiner{
		ports:      map[string]*portRow{"u1": {Name: "p0", Interfaces: []string{"i1", "i9"}}},
		interfaces: map[string]*interfaceRow{"i1": {Name: "p0"}},
	}
	b := j.bridge(&bridgeRow{Name: "br-blue", Ports: []string{"u9", "u1"}})
	if len(b.Ports) != 1 || len(b.Ports[0].Interfaces) != 1 {
		t.Errorf("bridge %+v", b)
	}
	want := []string{
		"bridge br-blue has a port u9 that is not in the database",
		"port p0 has an interface i9 that is not in the database",
	}
	if !slices.Equal(j.dangling, want) {
		t.Errorf("dangling %q", j.dangling)
	}
}

// A database that has lost all its bridges at once was made anew, more likely than not: it is believed after a while
// only (E2).
func TestNoBridgesAreDoubted(t *testing.T) {
	m := &Monitor{view: &View{Bridges: []Bridge{{Name: "br-ext"}}}}
	start := time.Now()
	for after, want := range map[time.Duration]bool{0: true, emptyGrace - time.Second: true, emptyGrace: false} {
		m.doubted = start
		if got := m.doubt(&View{}, start.Add(after)); got != want {
			t.Errorf("after %s doubted: %v", after, got)
		}
	}
	if m.doubt(&View{Bridges: []Bridge{{Name: "br-x"}}}, start) || !m.doubted.IsZero() {
		t.Error("a database with bridges is doubted")
	}
	if fresh := (&Monitor{}); fresh.doubt(&View{}, start) {
		t.Error("a machine that never had a bridge is doubted")
	}
}
