// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// What a datapath shows of a pod's connection to the outside, without what does not matter here.
const egressDump = `flow-dump from the main thread:
recirc_id(0),in_port(up0),eth_type(0x0806),arp(op=1/0xff), packets:1, actions:ovsbr1
ct_state(-trk),recirc_id(0),in_port(x2),eth(src=0a:58:0a:c8:01:05),eth_type(0x0800),ipv4(proto=6), packets:14, actions:set(ipv4(ttl=62)),ct(zone=22,nat),recirc(0x3)
ct_state(-new+trk),recirc_id(0x3),in_port(x2),eth_type(0x0800),ipv4(frag=no), packets:11, actions:ct(commit,zone=21,nat(src=100.91.0.2)),recirc(0x4)
ct_state(+new+trk),recirc_id(0x3),in_port(x2),eth_type(0x0800),ipv4(frag=no), packets:2, actions:ct(commit,zone=22,nat(src)),ct(commit,zone=21,nat(src=100.91.0.2)),recirc(0x4)
recirc_id(0x4),in_port(x2),eth_type(0x0800),ipv4(frag=no), packets:2, actions:ct_clear,set(ipv4(ttl=61)),ct(commit,zone=64200,mark=0x2/0xffffffff,nat(src=172.28.0.2)),recirc(0x5)
recirc_id(0x5),in_port(x2),eth_type(0x0800),ipv4(src=172.28.0.2,frag=no), packets:14, actions:up0
recirc_id(0),in_port(up0),eth_type(0x0800),ipv4(dst=172.28.0.2,frag=no), packets:13, actions:ct(zone=64200,nat),recirc(0x2)
recirc_id(0x2),in_port(up0),eth_type(0x0800),ipv4(frag=no), packets:13, actions:ovsbr1
`

func TestPathCost(t *testing.T) {
	got, err := pathCost(egressDump, "x2")
	if want := (cost{passes{1, 1}, passes{3, 2}}); err != nil || got != want {
		t.Errorf("egress: %+v, %v, want %+v", got, err, want)
	}
	if got, err := pathCost(egressDump, "up0"); err != nil || got.bridge != (passes{1, 1}) {
		t.Errorf("reply: %+v, %v", got, err)
	}
	if _, err := pathCost(egressDump, "x3"); err == nil {
		t.Error("a port without flows is no error")
	}
	if _, err := pathCost(strings.ReplaceAll(egressDump, "recirc_id(0x5)", "recirc_id(0x6)"), "x2"); err == nil {
		t.Error("a way that ends in nothing is no error")
	}
	circle := "recirc_id(0),in_port(a),eth_type(0x0800), actions:ct(zone=1),recirc(0x1)\n" +
		"recirc_id(0x1),in_port(a),eth_type(0x0800), actions:ct(zone=1),recirc(0x1)\n"
	if _, err := pathCost(circle, "a"); err == nil {
		t.Error("a circle is no error")
	}
}

func TestTracedCost(t *testing.T) {
	for name, tt := range map[string]struct {
		trace   string
		want    cost
		arrives bool
	}{
		"routed":     {"Datapath actions: set(ipv4(ttl=63)),2\n", cost{}, true},
		"translated": {"Datapath actions: ct(zone=64200,nat),recirc(0x1)\n\nDatapath actions: 2\n", cost{bridge: passes{1, 1}}, true},
		"dropped":    {"Datapath actions: drop\n", cost{}, false},
		"no trace":   {"", cost{}, false},
	} {
		if got, arrives := tracedCost(tt.trace); got != tt.want || arrives != tt.arrives {
			t.Errorf("%s: %+v, %t", name, got, arrives)
		}
	}
	if n := lookups("Flow: arp\n\nbridge(\"br0\")\n 0. arp, priority 1\n    resubmit(,8)\n        8. priority 0\n"); n != 2 {
		t.Errorf("%d lookups", n)
	}
}

func TestCountChanges(t *testing.T) {
	log := "OFPST_FLOW_MONITOR reply (OF1.4) (xid=0x0):\n event=ADDED table=0 cookie=0x1 arp actions=NORMAL\n" +
		" event=DELETED reason=delete table=0 cookie=0x1 arp\n event=ABBREV xid=0x5\n"
	if n := countChanges(log); n != 2 {
		t.Errorf("%d changes", n)
	}
}

func TestSumWrites(t *testing.T) {
	text := `apiserver_request_total{code="200",resource="uplinkstates",verb="GET"} 40
apiserver_request_total{code="200",resource="uplinkstates",verb="APPLY"} 3
apiserver_request_total{code="409",resource="events",verb="POST"} 2
apiserver_request_total{code="200",resource="leases",verb="PUT"} 70
`
	if n, err := sumWrites(text); n != 5 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := sumWrites("apiserver_requests 5\n"); err == nil {
		t.Error("a metric with another name is no error")
	}
}

// What passes a tap arrives unchanged, and writes are counted, with whatever is between them.
func TestTap(t *testing.T) {
	dir := t.TempDir()
	server, err := net.Listen("unix", filepath.Join(dir, "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	sent := `{"id":1,"method":"echo","params":[]}{"id":2,"method":"transact","params":["OVN_Northbound",` +
		`{"op":"wait"},{"op":"insert"},{"op":"insert"},{"op":"mutate"},{"op":"delete"}]} {"id":3,"method":"monitor","params":[]}`
	tp, err := newTap(filepath.Join(dir, "tap"), "unix:"+filepath.Join(dir, "db"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("unix", filepath.Join(dir, "tap"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(client, sent); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != sent {
		t.Errorf("%q arrived, %v", got, err)
	}
	if _, err := io.WriteString(conn, "{}"); err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.NewDecoder(client).Decode(&answer); err != nil {
		t.Error(err)
	}
	_ = client.Close()
	if err := tp.Close(); err != nil {
		t.Error(err)
	}
	if want := (written{1, 2, 1, 1}); tp.sum() != want {
		t.Errorf("counted %+v, want %+v", tp.sum(), want)
	}
	if _, err := newTap(filepath.Join(dir, "other"), "tcp:127.0.0.1:6641"); err == nil {
		t.Error("a database behind TCP is no error")
	}
}

// missedRows are the numbers of the rows whose target was missed.
func missedRows(rows []row) (n []int) {
	for i, r := range rows {
		if r.Verdict == missed {
			n = append(n, i)
		}
	}
	return n
}

func TestGatewayRowsCanMiss(t *testing.T) {
	first := addition{flows: 50, nb: written{2, 22, 1, 0}, ovs: written{1, 0, 1, 0}, took: time.Second, states: 3}
	next := addition{nb: written{1, 16, 2, 0}, took: time.Second, states: 3}
	flow, map1, flap, rows := next, next, next, next
	flow.flows, map1.ovs.transactions, flap.flaps, rows.nb.inserts = 1, 1, 1, 17
	all, some := lab.PingResult{Sent: 100, Received: 100}, lab.PingResult{Sent: 100, Received: 99}
	good, bad := pings{all, all}, pings{some, all}
	cheap, dear := flowStep{10, 40, 4, 10 * time.Millisecond, 20 * time.Millisecond}, flowStep{20000, 60000, 4, 20 * time.Millisecond, time.Second}
	greedy, slow := dear, dear
	greedy.mods, slow.took = 5, 21*time.Millisecond
	one := step{1, time.Millisecond, written{1, 16, 2, 0}}
	many := step{101, 2 * time.Millisecond, written{1, 16, 2, 0}}
	grows, apart := many, many
	grows.took, apart.transactions = 102*time.Millisecond, 2
	service, third := step{10, time.Millisecond, written{1, 2, 2, 0}}, step{10, time.Millisecond, written{1, 3, 2, 0}}
	for name, tt := range map[string]struct {
		rows []row
		want []int
	}{
		"networks":           {networkRows([]int{1, 2, 9}, []addition{first, next, next}), nil},
		"a flow mod":         {networkRows([]int{1, 2, 9}, []addition{first, next, flow}), []int{0}},
		"a mapping":          {networkRows([]int{1, 2, 9}, []addition{first, next, map1}), []int{0}},
		"a row more":         {networkRows([]int{1, 2, 9}, []addition{first, next, rows}), []int{1}},
		"another not ready":  {networkRows([]int{1, 2, 9}, []addition{first, next, flap}), []int{2}},
		"ARP":                {[]row{arpRow(9, arpCost{1, 52}, arpCost{1, 52})}, nil},
		"ARP grows":          {[]row{arpRow(9, arpCost{1, 52}, arpCost{1, 53})}, []int{0}},
		"ARP is not seen":    {[]row{arpRow(9, arpCost{}, arpCost{})}, []int{0}},
		"one pass":           {[]row{costRow([]path{{"x", cost{passes{1, 1}, passes{5, 5}}}})}, nil},
		"two passes":         {[]row{costRow([]path{{"x", cost{passes{2, 1}, passes{}}}})}, []int{0}},
		"advertised":         {[]row{advertisedRow([]path{{"in", cost{}}})}, nil},
		"advertised, a pass": {[]row{advertisedRow([]path{{"in", cost{bridge: passes{1, 0}}}})}, []int{0}},
		"restart":            {restarted{pings: good, calm: good}.rows(1, 1), nil},
		"a busy machine":     {restarted{pings: bad, calm: bad}.rows(1, 1), nil},
		"restart writes":     {restarted{api: 1, pings: good, calm: good}.rows(1, 1), []int{0}},
		"restart loses":      {restarted{pings: bad, calm: good}.rows(1, 1), []int{1}},
		"restart, no pings":  {restarted{}.rows(1, 1), []int{1}},
		"flows":              {flowRows([]flowStep{cheap, dear}), nil},
		"five flows":         {flowRows([]flowStep{cheap, greedy}), []int{0}},
		"not fast enough":    {flowRows([]flowStep{cheap, slow}), []int{1}},
		"database":           {databaseRows([]step{one, many, many}, []step{service, service}), nil},
		"two transactions":   {databaseRows([]step{one, many, apart}, []step{service}), []int{0}},
		"time grows":         {databaseRows([]step{one, many, grows}, []step{service}), []int{1}},
		"rows grow":          {databaseRows([]step{one, many, many}, []step{service, third}), []int{2}},
	} {
		if got := missedRows(tt.rows); !slices.Equal(got, tt.want) {
			t.Errorf("%s: missed are %v, want %v", name, got, tt.want)
		}
	}
}

func TestFlaps(t *testing.T) {
	state := func(phases ...v1alpha1.NetworkPhase) write {
		s := &v1alpha1.UplinkState{}
		for i, p := range phases {
			s.Status.Networks = append(s.Status.Networks, v1alpha1.NetworkStatus{Name: strings.Repeat("n", i+1), Phase: p})
		}
		return write{state: s}
	}
	ready, pending := v1alpha1.NetworkReady, v1alpha1.NetworkPending
	writes := []write{state(ready, pending), state(pending, pending), state(ready, ready), state(ready)}
	if n := flaps(writes, 1, "nn"); n != 1 {
		t.Errorf("%d flaps, want 1", n)
	}
}

func TestWholeBridge(t *testing.T) {
	b, err := describe(lab.RegularSpec{
		Bridge: "br0", MAC: "02:00:00:00:00:01", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24")},
	}, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 10, 20000} {
		b.Services = someServices(b, n)
		text, flows, err := wholeBridge(b)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(text), "\n"); lines != flows+1 || flows < n {
			t.Errorf("%d services: %d lines, %d flows", n, lines, flows)
		}
	}
}
