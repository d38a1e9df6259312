// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb/ovsdbtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// schemas are those of the northbound databases that tests run on, by the version of OVN: the installed one, and the
// newer one that test/lab keeps in its cache.
func schemas(t *testing.T) map[string]string {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	newer, err := filepath.Glob(filepath.Join(cache, "ovn-uplink", "ovn", "*", "root", "usr", "share", "ovn", "ovn-nb.ovsschema"))
	if err != nil || len(newer) == 0 {
		t.Fatalf("no newer OVN in %s: run the tests of test/lab, which fetch it (%v)", cache, err)
	}
	return map[string]string{"installed": "/usr/share/ovn/ovn-nb.ovsschema", "newer": newer[len(newer)-1]}
}

// onEach runs a test on the schemas of all versions.
func onEach(t *testing.T, test func(t *testing.T, n *northbound)) {
	if testing.Short() {
		t.Skip("needs ovsdb-server, which tests run with -short do without")
	}
	for version, schema := range schemas(t) {
		t.Run(version, func(t *testing.T) { test(t, startNorthbound(t, schema)) })
	}
}

// northbound is a real northbound database without the rest of OVN.
type northbound struct {
	*ovsdbtest.Server
	t testing.TB
}

func startNorthbound(t testing.TB, schema string) *northbound {
	t.Helper()
	n := &northbound{Server: ovsdbtest.StartEmpty(t, schema), t: t}
	n.nbctl("init")
	return n
}

func (n *northbound) nbctl(args ...string) string {
	n.t.Helper()
	return ovsdbtest.Run(n.t, "ovn-nbctl", append([]string{"--db=" + n.Endpoint(), "--timeout=10"}, args...)...)
}

// do runs several commands, one a line, as one transaction.
func (n *northbound) do(commands ...string) {
	n.t.Helper()
	var args []string
	for _, c := range commands {
		args = append(append(args, "--"), strings.Fields(c)...)
	}
	n.nbctl(args...)
}

// rows are all rows of the database, a line of JSON for each, by UUID. References to rows of this package are left out.
func (n *northbound) rows() (foreign, own map[string]string) {
	n.t.Helper()
	type table struct {
		Caption  string
		Headings []string
		Data     [][]any
	}
	var tables []table
	mine := map[string]bool{}
	dump := ovsdbtest.Run(n.t, "ovsdb-client", "-f", "json", "dump", n.Endpoint(), "OVN_Northbound")
	for decoder := json.NewDecoder(strings.NewReader(dump)); decoder.More(); {
		var next table
		if err := decoder.Decode(&next); err != nil {
			n.t.Fatal(err)
		}
		tables = append(tables, next)
		for _, cells := range next.Data {
			if text := fmt.Sprint(cells); strings.Contains(text, "ovn-uplink/owner") ||
				next.Caption == staticMACTable+" table" && strings.Contains(text, "uplink_") {
				mine[cells[0].([]any)[1].(string)] = true
			}
		}
	}
	foreign, own = map[string]string{}, map[string]string{}
	for _, t := range tables {
		for _, cells := range t.Data {
			uuid, line := cells[0].([]any)[1].(string), t.Caption
			for i, cell := range cells {
				if !mine[uuid] {
					cell = without(cell, mine)
				}
				text, err := json.Marshal(cell)
				if err != nil {
					n.t.Fatal(err)
				}
				line += " " + t.Headings[i] + "=" + string(text)
			}
			if mine[uuid] {
				own[uuid] = line
			} else {
				foreign[uuid] = line
			}
		}
	}
	return foreign, own
}

// without takes references to some rows out of the value of a column.
func without(cell any, rows map[string]bool) any {
	list, ok := cell.([]any)
	if !ok || len(list) != 2 {
		return cell
	}
	if uuid, isText := list[1].(string); list[0] == "uuid" && isText && rows[uuid] {
		return []any{"set", []any{}}
	}
	elements, ok := list[1].([]any)
	if list[0] != "set" || !ok {
		return cell
	}
	kept := []any{}
	for _, e := range elements {
		if ref, ok := e.([]any); ok && ref[0] == "uuid" && rows[ref[1].(string)] {
			continue
		}
		kept = append(kept, e)
	}
	if len(kept) == 1 {
		return kept[0]
	}
	return []any{"set", kept}
}

// open follows a database for the node n1.
func (n *northbound) open(ranges Ranges) *DB {
	n.t.Helper()
	db, err := New(Config{Endpoint: n.Endpoint(), Node: "n1", Ranges: ranges, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = db.Run(ctx) })
	n.t.Cleanup(func() { cancel(); running.Wait() })
	eventually(n.t, "a connection", func() bool { return db.Ready() == nil })
	return db
}

// mustApply applies a gateway whose networks have no problem.
func mustApply(t testing.TB, db *DB, g Gateway) Outcome {
	t.Helper()
	out, _, err := db.Apply(context.Background(), g)
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range out.Networks {
		if n.Problem != nil {
			t.Fatalf("network %s: %v", name, n.Problem)
		}
	}
	return out
}

func idle(t testing.TB, db *DB, g Gateway) {
	t.Helper()
	_, changed, err := db.Apply(context.Background(), g)
	if err != nil {
		t.Fatal(err)
	}
	if changed {
		t.Error("a second apply wrote something")
	}
}

func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: ", what)
		}
	}
}

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range list {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

func addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, text := range list {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

func backends(list ...string) []netip.AddrPort {
	var out []netip.AddrPort
	for _, text := range list {
		out = append(out, netip.MustParseAddrPort(text))
	}
	return out
}

func gateway(uplink string, networks ...Network) Gateway {
	return Gateway{
		Uplink: uplink, Chassis: "chassis-1", MAC: net.HardwareAddr{2, 0, 0, 0, 1, 1},
		Addresses: prefixes("192.0.2.10/24", "2001:db8:1::10/64"), DefaultGateways: addrs("192.0.2.1", "2001:db8:1::1"),
		Networks: networks,
	}
}

// layer3 is a network that exists on two nodes; n1 has the number 2.
func layer3(name string) Network {
	return Network{
		Name: "cluster_udn_" + name, Prefix: "cluster_udn_" + strings.ReplaceAll(name, "-", ".") + "_", Topology: Layer3,
		Subnets: prefixes("10.200.0.0/16", "fd10::/48"),
	}
}

func layer2(name string) Network {
	return Network{
		Name: "cluster_udn_" + name, Prefix: "cluster_udn_" + strings.ReplaceAll(name, "-", ".") + "_", Topology: Layer2,
		Subnets: prefixes("10.201.0.0/16", "fd11::/64"),
	}
}

// cni makes the rows that the CNI makes for a network, of those that matter.
func (n *northbound) cni(w Network) {
	n.t.Helper()
	p, id := w.Prefix, " external_ids:k8s.ovn.org/network="+w.Name
	if w.Topology == Layer3 {
		n.do("lr-add "+p+"ovn_cluster_router", "set logical_router "+p+"ovn_cluster_router"+id,
			"lr-add GR_"+p+"n1", "set logical_router GR_"+p+"n1 options:chassis=chassis-1"+id,
			"lrp-add "+p+"ovn_cluster_router rtos-"+p+"n1 0a:58:0a:c8:00:01 10.200.0.1/24 fd10::1/64",
			"lrp-add GR_"+p+"n1 rtoj-GR_"+p+"n1 0a:58:64:41:00:02 100.65.0.2/16 fd99::2/64",
			"lr-policy-add "+p+"ovn_cluster_router 1004 ip4.dst==172.18.0.2 reroute 10.200.0.2",
			"lr-route-add "+p+"ovn_cluster_router 100.65.0.2 100.65.0.2",
			"--policy=src-ip lr-route-add "+p+"ovn_cluster_router 10.200.0.0/24 100.65.0.2")
		n.route(p+"ovn_cluster_router", "100.65.0.3/32", "100.88.0.3", "ic-node=n2", "k8s.ovn.org/network="+w.Name)
		n.route(p+"ovn_cluster_router", "10.200.1.0/24", "100.88.0.3", "ic-node=n2", "k8s.ovn.org/network="+w.Name)
		n.route(p+"ovn_cluster_router", "fd99::3/128", "fd97::3", "ic-node=n2", "k8s.ovn.org/network="+w.Name)
		return
	}
	n.do("lr-add "+p+"transit_router", "set logical_router "+p+"transit_router options:requested-tnl-key=16715779"+id,
		"lr-add GR_"+p+"n1", "set logical_router GR_"+p+"n1 options:chassis=chassis-1"+id,
		"lrp-add "+p+"transit_router trtos-"+p+"ovn_layer2_switch 0a:58:0a:c9:00:01 10.201.0.1/16 fd11::1/64",
		"lrp-add "+p+"transit_router trtor-GR_"+p+"n1 0a:58:64:58:00:04 100.88.0.4/31 fd97::4/127 peer=rtotr-GR_"+p+"n1",
		"set logical_router_port trtor-GR_"+p+"n1 options:requested-tnl-key=12",
		"lrp-add GR_"+p+"n1 rtotr-GR_"+p+"n1 0a:58:64:41:00:02 100.65.0.2/16 fd99::2/64 100.88.0.5/31 fd97::5/127 peer=trtor-GR_"+p+"n1",
		"lrp-add "+p+"transit_router trtor-GR_"+p+"n2 0a:58:64:58:00:06 100.88.0.6/31 fd97::6/127",
		"set logical_router_port trtor-GR_"+p+"n2 options:requested-tnl-key=13 options:requested-chassis=chassis-2",
		"lr-route-add "+p+"transit_router 100.65.0.3 100.88.0.7")
}

// route adds a route of the CNI's with external_ids.
func (n *northbound) route(router, prefix, nextHop string, ids ...string) {
	n.t.Helper()
	args := []string{"--", "--id=@r", "create", "logical_router_static_route", fmt.Sprintf("ip_prefix=%q", prefix), fmt.Sprintf("nexthop=%q", nextHop)}
	for _, id := range ids {
		args = append(args, "external_ids:"+id)
	}
	n.nbctl(append(args, "--", "add", "logical_router", router, "static_routes", "@r")...)
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

func sorted(m map[string]string) string {
	var lines []string
	for _, line := range m {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
