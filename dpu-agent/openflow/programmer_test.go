// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// kinds are bridges that have every kind of row between them.
func kinds(t testing.TB) map[string]Bridge {
	full := dual(t)
	full.Advertised = prefixes("10.200.1.0/24", "fd10::/64")
	full.Services = []Service{
		{TCP, addr("192.0.2.10"), 30080, addr("100.91.0.6")},
		{UDP, addr("192.0.2.10"), 30080, addr("100.91.0.10")},
		{SCTP, addr("2001:db8:1::10"), 30081, addr("fd91::6")},
		{TCP, addr("198.51.100.7"), 80, netip.Addr{}},
		{UDP, addr("2001:db8:7::7"), 53, netip.Addr{}},
	}
	vlan, bond, secure, first, card := full, full, full, full, full
	vlan.VLAN = 100
	bond.Uplinks, bond.VLAN = []uint32{3, 1}, 100
	secure.Secure = true
	first.Patch = 0
	card.HostPort = 5
	v4, v6 := dual(t), dual(t)
	v4.Addresses, v4.Gateways = v4.Addresses[:1], v4.Gateways[:1]
	v6.Addresses, v6.Gateways = v6.Addresses[1:], v6.Gateways[1:]
	return map[string]Bridge{
		"full": full, "vlan": vlan, "bond": bond, "secure": secure, "no patch yet": first, "card": card,
		"ipv4": v4, "ipv6": v6, "dual": dual(t),
	}
}

// TestRoundTrip programs every kind of row and reads it back: what Open vSwitch prints is what was rendered, so that
// a restarted agent has nothing to send.
func TestRoundTrip(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		p := r.programmer(t)
		for name, b := range kinds(t) {
			program(t, p, b)
			have, err := p.Dump(t.Context(), "br0")
			do(t, err)
			want, err := b.Flows()
			do(t, err)
			if diff := cmp.Diff(flowText(want), flowText(have)); diff != "" {
				t.Errorf("%s: rendered and shown flows differ:\n%s", name, diff)
			}
			again := r.programmer(t)
			change := program(t, again, b)
			if flows, ports := again.Mods(); change != (Change{}) || flows+ports != 0 {
				t.Errorf("%s: a restart sent %+v, %d flow mods, %d port mods", name, change, flows, ports)
			}
		}
	})
}

// TestOnlyTheDifferenceIsSent counts what a change takes.
func TestOnlyTheDifferenceIsSent(t *testing.T) {
	r := newRig(t, nil)
	p := r.programmer(t)
	b := full(t)
	b.Services = append(b.Services, services(100)...)
	all, err := b.Flows()
	do(t, err)
	for _, c := range []struct {
		name   string
		change func()
		want   Change
	}{
		{"at first", func() {}, Change{Added: len(all)}},
		{"nothing", func() {}, Change{}},
		{"other order", func() { b.Services[3], b.Services[30] = b.Services[30], b.Services[3] }, Change{}},
		{"one more", func() { b.Services = append(b.Services, services(101)[100]) }, Change{Added: 2}},
		{"another target", func() { b.Services[len(b.Services)-1].Target = addr("100.91.0.10") }, Change{Added: 2}},
		{"one less", func() { b.Services = b.Services[:len(b.Services)-1] }, Change{Deleted: 2}},
		{"no patch port", func() { b.Patch = 0 }, Change{Added: 1, Deleted: 17}},
		{"the patch port again", func() { b.Patch = 2 }, Change{Added: 18}},
		{"a subnet", func() { b.Advertised = append(b.Advertised, prefixes("10.201.0.0/16")...) }, Change{Added: 2}},
	} {
		c.change()
		flows, _ := p.Mods()
		if got := program(t, p, b); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if now, _ := p.Mods(); now-flows != uint64(c.want.Added+c.want.Deleted) {
			t.Errorf("%s: %d flow mods were counted", c.name, now-flows)
		}
	}
	if _, ports := p.Mods(); ports != 1 {
		t.Errorf("%d port mods for one patch port", ports)
	}
}

// ofctlScript is an ovs-ofctl that does something else first.
func ofctlScript(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ovs-ofctl")
	do(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\nexec ovs-ofctl \"$@\"\n"), 0o755))
	return path
}

// TestUnlikeFlowsAreNotSentForEver: an Open vSwitch that prints flows in another form gets them once and works.
func TestUnlikeFlowsAreNotSentForEver(t *testing.T) {
	r := newRig(t, nil)
	p := New(Config{RunDir: r.node.OVS.RunDir(), Program: ofctlScript(t,
		`case "$*" in *dump-flows*) ovs-ofctl "$@" | sed s/goto_table:/jump:/; exit;; esac`)})
	drifts := run(t, p)
	b := full(t)
	_, err := p.Program(t.Context(), b)
	if !errors.Is(err, ErrUnlike) || !strings.Contains(err.Error(), "jump:17") || !strings.Contains(err.Error(), "br0") {
		t.Errorf("error %v", err)
	}
	eventually(t, 5*time.Second, func(ctx context.Context) error { return ping(ctx, r.node, "203.0.113.9") })
	do(t, ping(t.Context(), r.ovn, "203.0.113.9"))
	flows, _ := p.Mods()
	for range 3 {
		if change, err := p.Program(t.Context(), b); !errors.Is(err, ErrUnlike) || change != (Change{}) {
			t.Errorf("again: %+v, %v", change, err)
		}
	}
	quietFor(t, p, drifts, time.Second)
	if now, _ := p.Mods(); now != flows {
		t.Errorf("%d more flow mods were sent", now-flows)
	}
	b.Services = append(b.Services, services(1)...)
	if change, err := p.Program(t.Context(), b); !errors.Is(err, ErrUnlike) || change.Added < 2 {
		t.Errorf("a new service: %+v, %v", change, err)
	}
	echoTCP(t, r.ovn, "100.91.0.6:20000")
	_, err = askTCP(r.wire, "", "192.0.2.10:20000")
	do(t, err)
}

// TestRefusals: an error names the bridge and has the words of Open vSwitch.
func TestRefusals(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		p := r.programmer(t)
		b := full(t)
		check := func(name string, parts ...string) {
			t.Helper()
			_, err := p.Program(t.Context(), b)
			for _, part := range parts {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("%s: error %v lacks %q", name, err, part)
				}
			}
		}
		b.Patch = 9
		check("a port that is not there", "bridge br0 has no port 9")
		b.Patch = 2
		program(t, p, b)

		r.vsctl(t, "--", "--id=@t", "create", "Flow_Table", "flow_limit=20", "overflow_policy=refuse", "--",
			"set", "bridge", "br0", "flow_tables:170=@t")
		b.Services = append(b.Services, services(100)...)
		check("a full table", "br0", "TABLE_FULL", "table:170")
		r.vsctl(t, "clear", "bridge", "br0", "flow_tables")
		program(t, p, b)

		r.vsctl(t, "set", "bridge", "br0", "protocols=OpenFlow13")
		b.Services = nil
		check("another OpenFlow", "br0", "version negotiation failed")
		r.vsctl(t, "clear", "bridge", "br0", "protocols")
		program(t, p, b)

		b.Name = "br9"
		check("a bridge that is not there", "br9", "No such file")

		err := p.ofctl.send(t.Context(), "br0", plan{add: []Flow{{Match: "ip", Actions: "drop"}, {Table: 9, Actions: "goto_table:3"}}})
		if err == nil || !strings.Contains(err.Error(), "table=9,priority=0,actions=goto_table:3") {
			t.Errorf("a flow that makes no sense: %v", err)
		}
	})
}

// TestSlowBridge: one that does not answer holds up no other, and ends with an error.
func TestSlowBridge(t *testing.T) {
	r := newRig(t, nil)
	r.vsctl(t, "add-br", "br1", "--", "set", "bridge", "br1", "datapath_type=netdev")
	p := New(Config{RunDir: r.node.OVS.RunDir(), Timeout: 3 * time.Second,
		Program: ofctlScript(t, `case "$*" in *br1.mgmt*) exec sleep 30;; esac`)})
	slow := dual(t)
	slow.Name = "br1"
	failed := make(chan error, 1)
	go func() {
		_, err := p.Program(context.Background(), slow)
		failed <- err
	}()
	begin := time.Now()
	program(t, p, dual(t))
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("the other bridge took %v", took)
	}
	if err := <-failed; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "br1") {
		t.Errorf("the slow bridge: %v", err)
	}
}

// TestManyServicesOnABridge: 20 000 services are programmed, and changed one at a time, on the real thing.
func TestManyServicesOnABridge(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		p := r.programmer(t)
		drifts := run(t, p)
		b := full(t)
		program(t, p, b)
		b.Services = services(20000)
		begin := time.Now()
		program(t, p, b)
		all, best := time.Since(begin), time.Hour
		for i := range 5 {
			b.Services = slices.Clone(b.Services)
			b.Services[i].Port = uint16(100 + i)
			begin := time.Now()
			program(t, p, b)
			best = min(best, time.Since(begin))
		}
		begin = time.Now()
		again := r.programmer(t)
		program(t, again, b)
		read := time.Since(begin)
		if flows, ports := again.Mods(); flows+ports != 0 {
			t.Errorf("a restart sent %d flow mods and %d port mods", flows, ports)
		}
		t.Logf("programmed in %v, one changed in %v, read in %v", all, best, read)
		if all > 20*time.Second || best > 500*time.Millisecond {
			t.Errorf("all took %v, one %v", all, best)
		}
		quietFor(t, p, drifts, 2*time.Second)
		b.Services = nil
		begin = time.Now()
		program(t, p, b)
		// The same number of flows; what grows with the square of it takes a minute.
		if gone := time.Since(begin); gone > 3*all+2*time.Second {
			t.Errorf("deleting them took %v, adding %v", gone, all)
		}
	})
}
