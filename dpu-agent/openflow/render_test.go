// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"flag"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the expected flows anew")

// TestFlows compares all flows of each situation with the expected ones in testdata.
func TestFlows(t *testing.T) {
	for name, b := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			flows, err := b.Flows()
			do(t, err)
			got := flowText(flows)
			path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".flows")
			if *update {
				do(t, os.WriteFile(path, []byte(got), 0o644))
			}
			want, err := os.ReadFile(path)
			do(t, err)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("flows differ from %s:\n%s", path, diff)
			}
			places := map[place]bool{}
			for _, f := range flows {
				if places[f.place()] {
					t.Errorf("two flows in the place of %s", f)
				}
				places[f.place()] = true
				if f.Table == 0 && (f.Match == "" || f.Priority == 0) {
					t.Errorf("%s could be another's", f)
				}
			}
		})
	}
}

// TestSize: rows are constant but for services, of which each takes at most four flow mods.
func TestSize(t *testing.T) {
	b := dual(t)
	count := func(b Bridge) int {
		flows, err := b.Flows()
		do(t, err)
		return len(flows)
	}
	bond := b
	bond.Uplinks, bond.VLAN = []uint32{1, 3, 4, 5}, 7
	for name, b := range map[string]Bridge{"one port": b, "bond": bond} {
		none := count(b)
		for _, s := range []Service{
			services(1)[0], {UDP, addr("198.51.100.7"), 53, netip.Addr{}}, {TCP, addr("2001:db8:7::7"), 53, netip.Addr{}},
		} {
			b.Services = []Service{s}
			if n := count(b) - none; n > 4 {
				t.Errorf("%s: service %s takes %d flows", name, s, n)
			}
		}
	}
	if n := count(b); n > 60 {
		t.Errorf("%d flows without any service", n)
	}
}

// TestDifferences: every way from one bridge to another, by services alone or by all, ends at the other's flows.
func TestDifferences(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var pool []Service
	for _, b := range kinds(t) {
		pool = append(pool, b.Services...)
	}
	pool = append(pool, services(20)...)
	for i := range services(20) {
		pool = append(pool, Service{UDP, addr("198.51.100.8"), uint16(1 + i), netip.Addr{}})
	}
	b := kinds(t)["full"]
	b.Services = nil
	items, err := b.items()
	do(t, err)
	set := collect(b.flows(items), 0)
	bridge := collect(b.flows(items), 0) // what a switch would hold
	for range 300 {
		b.Services = nil
		for _, s := range pool {
			if r.IntN(3) == 0 {
				if s.Target.IsValid() && s.Target.Is4() && r.IntN(4) == 0 {
					s.Target = addr("100.91.0.14")
				}
				b.Services = append(b.Services, s)
			}
		}
		slices.SortFunc(b.Services, Service.compare)
		b.Services = slices.CompactFunc(b.Services, func(a, b Service) bool { return a.compare(b) == 0 })
		next, err := b.items()
		do(t, err)
		want := collect(b.flows(next), 0)
		todo := betweenItems(&b, set, items, next)
		items = next
		for _, p := range []plan{between(bridge, want), todo} {
			holds := flowSet{}
			for at, f := range bridge {
				holds[at] = f
			}
			for _, f := range p.del {
				delete(holds, f.place())
			}
			for _, f := range p.add {
				holds[f.place()] = f
			}
			if diff := cmp.Diff(want, holds); diff != "" {
				t.Fatalf("the difference leads elsewhere:\n%s", diff)
			}
		}
		if diff := cmp.Diff(want, set); diff != "" {
			t.Fatalf("the set was not brought along:\n%s", diff)
		}
		bridge = want
	}
}

// TestRepair: whatever a bridge holds, the plan makes it what it should be, and leaves what is right.
func TestRepair(t *testing.T) {
	b := kinds(t)["full"]
	items, err := b.items()
	do(t, err)
	want := collect(b.flows(items), 0)
	one := slices.SortedFunc(b.flows(items), Flow.compare)[0]
	higher, other, cookie, timed, extra := one, one, one, one, one
	higher.Priority++
	other.Actions = "NORMAL"
	cookie.Cookie++
	timed.Extra = "idle_timeout=5"
	extra.Match = "ip"
	for name, c := range map[string]struct {
		instead  []Flow
		del, add int
	}{
		"nothing wrong": {[]Flow{one}, 0, 0}, "missing": {nil, 0, 1}, "at another priority too": {[]Flow{one, higher}, 1, 0},
		"at another priority": {[]Flow{higher}, 1, 1}, "other actions": {[]Flow{other}, 0, 1},
		"other cookie": {[]Flow{cookie}, 0, 1}, "a timeout": {[]Flow{timed}, 0, 1}, "one too many": {[]Flow{extra, one}, 1, 0},
	} {
		r := newRepair(want)
		for _, f := range want {
			if f != one {
				r.has(f)
			}
		}
		for _, f := range c.instead {
			r.has(f)
		}
		if p := r.plan(); len(p.del) != c.del || len(p.add) != c.add {
			t.Errorf("%s: the plan is %+v, want %d deleted and %d added", name, p, c.del, c.add)
		}
	}
}

func TestInvalidBridges(t *testing.T) {
	for want, change := range map[string]func(*Bridge){
		"no port leads to the wire":      func(b *Bridge) { b.Uplinks = nil },
		"cannot lead to the wire":        func(b *Bridge) { b.Uplinks = []uint32{2} },
		"cannot be the patch port":       func(b *Bridge) { b.Patch = Local },
		"host port 0":                    func(b *Bridge) { b.HostPort = 0 },
		"VLAN 4095":                      func(b *Bridge) { b.VLAN = 4095 },
		"no MAC":                         func(b *Bridge) { b.MAC = nil },
		"a second of its family":         func(b *Bridge) { b.Addresses = append(b.Addresses, addr("192.0.2.11")) },
		"gateway":                        func(b *Bridge) { b.Gateways = []netip.Addr{addr("fe80::1%eth0")} },
		"range 10.1.2.3/8":               func(b *Bridge) { b.Transit = []netip.Prefix{netip.MustParsePrefix("10.1.2.3/8")} },
		"no conntrack zone":              func(b *Bridge) { b.Zone = 0 },
		"neither tcp":                    func(b *Bridge) { b.Services = []Service{{1, addr("192.0.2.10"), 1, addr("1.1.1.1")}} },
		"no port":                        func(b *Bridge) { b.Services = []Service{{TCP, addr("192.0.2.10"), 0, addr("1.1.1.1")}} },
		"a target is needed":             func(b *Bridge) { b.Services = []Service{{TCP, addr("192.0.2.10"), 1, netip.Addr{}}} },
		"for no other":                   func(b *Bridge) { b.Services = []Service{{TCP, addr("192.0.2.99"), 1, addr("1.1.1.1")}} },
		"target fd91::6 is of the other": func(b *Bridge) { b.Services = []Service{{TCP, addr("192.0.2.10"), 1, addr("fd91::6")}} },
		"two targets, 1.1.1.1 and 1.1.1.2": func(b *Bridge) {
			b.Services = []Service{{TCP, addr("192.0.2.10"), 1, addr("1.1.1.1")}, {TCP, addr("192.0.2.10"), 1, addr("1.1.1.2")}}
		},
	} {
		b := dual(t)
		change(&b)
		if _, err := b.Flows(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestManyServices: 20 000 services are rendered fast, and a change of one does not cost what all do.
func TestManyServices(t *testing.T) {
	b := dual(t)
	b.Services = services(20000)
	begin := time.Now()
	items, err := b.items()
	do(t, err)
	set := collect(b.flows(items), 0)
	all := time.Since(begin)
	best := time.Hour
	for i := range 5 {
		b.Services = slices.Clone(b.Services)
		b.Services[i].Port = uint16(100 + i)
		begin := time.Now()
		next, err := b.items()
		do(t, err)
		todo := betweenItems(&b, set, items, next)
		best = min(best, time.Since(begin))
		if items = next; len(todo.add) != 2 || len(todo.del) != 2 {
			t.Fatalf("a change of one service takes %+v", todo)
		}
	}
	t.Logf("all %v, one %v", all, best)
	if all > 5*time.Second || best*4 > all {
		t.Errorf("rendering took %v, a change of one service %v", all, best)
	}
}
