// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

func TestApplyAndRemove(t *testing.T) {
	onEach(t, func(t *testing.T, n *northbound) {
		blue, green := layer3("blue-1"), layer2("green")
		n.cni(blue)
		n.cni(green)
		before, _ := n.rows()
		db := n.open(Ranges{})
		blue.LoadBalancers = []LoadBalancer{
			{Name: "a", Protocol: "tcp", Port: 30080, Backends: backends("10.200.0.5:80"), Affinity: time.Minute},
			{Name: "b", Protocol: "udp", Address: netip.MustParseAddr("198.51.100.7"), Port: 53, Local: true},
		}
		g := gateway("wire", blue, green)
		mustApply(t, db, g)
		idle(t, db, g)
		foreign, own := n.rows()
		if !maps.Equal(before, foreign) {
			t.Errorf("rows of others changed:\n%s\nwant\n%s", sorted(foreign), sorted(before))
		}
		n.Kill()
		eventually(t, "the connection to be lost", func() bool { return db.Ready() != nil })
		n.Restart()
		eventually(t, "a new connection", func() bool { return db.Ready() == nil })
		idle(t, db, g)
		idle(t, n.open(Ranges{}), g) // as after a restart of the agent

		if uplinks, err := db.Uplinks(); err != nil || !slices.Equal(uplinks, []string{"wire"}) {
			t.Errorf("Uplinks %v, error %v", uplinks, err)
		}
		changed, err := db.Remove(t.Context(), "wire")
		if err != nil || !changed {
			t.Fatalf("Remove: changed %v, error %v", changed, err)
		}
		after, left := n.rows()
		if !maps.Equal(before, after) || len(left) > 0 {
			t.Errorf("after removal of %d rows:\n%s\nwant\n%s", len(own), sorted(after)+sorted(left), sorted(before))
		}
		if changed, err := db.Remove(t.Context(), "wire"); changed || err != nil {
			t.Errorf("a second removal: changed %v, error %v", changed, err)
		}
	})
}

// A change of one service is a change of its own rows only.
func TestChangesAreSmall(t *testing.T) {
	onEach(t, func(t *testing.T, n *northbound) {
		blue, red := layer3("blue"), layer3("red")
		n.cni(blue)
		n.cni(red)
		db := n.open(Ranges{})
		lb := LoadBalancer{Name: "a", Protocol: "tcp", Port: 30080, Backends: backends("10.200.0.5:80")}
		blue.LoadBalancers = []LoadBalancer{lb, {Name: "b", Protocol: "tcp", Port: 30081}}
		mustApply(t, db, gateway("wire", blue, red))
		for _, c := range []struct {
			name       string
			change     func(g *Gateway)
			operations string
		}{
			{"a backend", func(g *Gateway) { g.Networks[0].LoadBalancers[0].Backends = backends("10.200.0.6:80") }, "update Load_Balancer"},
			{"a new service", func(g *Gateway) {
				g.Networks[0].LoadBalancers = append(g.Networks[0].LoadBalancers, LoadBalancer{Name: "c", Protocol: "sctp", Port: 30082})
			}, "insert Load_Balancer, mutate Logical_Router"},
			{"a service less", func(g *Gateway) { g.Networks[0].LoadBalancers = g.Networks[0].LoadBalancers[1:] }, "delete Load_Balancer"},
			{"a new address of the Uplink", func(g *Gateway) { g.Addresses = prefixes("192.0.2.11/24", "2001:db8:1::10/64") }, "update Logical_Router_Port"},
			{"a new MAC", func(g *Gateway) { g.MAC = []byte{2, 0, 0, 0, 1, 2} }, "update Logical_Router_Port"},
			{"another gateway", func(g *Gateway) { g.DefaultGateways = addrs("192.0.2.2", "2001:db8:1::1") },
				"insert Logical_Router_Static_Route, mutate Logical_Router"},
		} {
			t.Run(c.name, func(t *testing.T) {
				b := blue
				b.LoadBalancers = slices.Clone(blue.LoadBalancers)
				g := gateway("wire", b, red)
				c.change(&g)
				view, err := db.View()
				if err != nil {
					t.Fatal(err)
				}
				operations, _, err := Plan(view, g)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, op := range operations {
					if op.Op != "wait" {
						got = append(got, op.Op+" "+op.Table)
					}
				}
				if text := strings.Join(got, ", "); text != c.operations {
					t.Errorf("operations %s, want %s", text, c.operations)
				}
				mustApply(t, db, g)
				mustApply(t, db, gateway("wire", blue, red))
			})
		}
	})
}

// The CNI deletes a network's routers and makes them anew, with the same names. What was on them is put back;
// meanwhile nothing else of the network is touched, nor of others.
func TestCNIReplacesItsRouter(t *testing.T) {
	onEach(t, func(t *testing.T, n *northbound) {
		for _, blue := range []Network{layer3("blue"), layer2("blue")} {
			t.Run(string(blue.Topology), func(t *testing.T) {
				red := layer3("red")
				n.cni(blue)
				n.cni(red)
				db := n.open(Ranges{})
				g := gateway("wire", blue, red)
				first := mustApply(t, db, g)
				_, own := n.rows()
				for _, uuid := range strings.Fields(n.nbctl("--bare", "--columns=_uuid", "find", "logical_router", "external_ids:"+cniNetworkKey+"="+blue.Name)) {
					n.nbctl("destroy", "logical_router", uuid)
				}
				_, rest := n.rows()
				if len(rest) == len(own) {
					t.Fatal("nothing went with the router")
				}
				eventually(t, "the router's end in the view", func() bool {
					out, _, err := db.Apply(t.Context(), g)
					return err == nil && out.Networks[blue.Name].Problem != nil
				})
				out, _, err := db.Apply(t.Context(), g)
				if err != nil {
					t.Fatal(err)
				}
				lost := out.Networks[blue.Name]
				if lost.Problem.Reason != uplinkstate.ReasonGatewayConfigurationPending || !slices.Equal(lost.Transit, first.Networks[blue.Name].Transit) {
					t.Errorf("meanwhile: %+v", lost)
				}
				if out.Networks[red.Name].Problem != nil {
					t.Errorf("another network: %v", out.Networks[red.Name].Problem)
				}
				_, now := n.rows()
				for uuid, line := range rest { // static MACs of ports that are gone go too
					if now[uuid] != line && !strings.HasPrefix(line, staticMACTable) {
						t.Errorf("changed meanwhile: %s", line)
					}
				}
				n.cni(blue)
				eventually(t, "everything to be back", func() bool {
					out, _, err = db.Apply(t.Context(), g)
					_, now = n.rows()
					return err == nil && out.Networks[blue.Name].Problem == nil && len(now) == len(own)
				})
				for uuid, line := range rest {
					if now[uuid] != line && !strings.HasPrefix(line, staticMACTable) {
						t.Errorf("changed: %s", line)
					}
				}
				idle(t, db, g)
				if _, err := db.Remove(t.Context(), "wire"); err != nil {
					t.Fatal(err)
				}
				for _, uuid := range strings.Fields(n.nbctl("--bare", "--columns=_uuid", "list", "logical_router")) {
					n.nbctl("destroy", "logical_router", uuid)
				}
			})
		}
	})
}

// A network moves to another Uplink: the other waits until the first has let go.
func TestNetworkMovesToAnotherUplink(t *testing.T) {
	onEach(t, func(t *testing.T, n *northbound) {
		blue := layer3("blue")
		n.cni(blue)
		db := n.open(Ranges{})
		a := mustApply(t, db, gateway("a", blue))
		out, _, err := db.Apply(t.Context(), gateway("b", blue))
		if err != nil {
			t.Fatal(err)
		}
		if p := out.Networks[blue.Name].Problem; p == nil || p.Reason != uplinkstate.ReasonGatewayConfigurationPending || !strings.Contains(p.Message, "Uplink a") {
			t.Errorf("problem %v", p)
		}
		mustApply(t, db, gateway("a"))
		b := mustApply(t, db, gateway("b", blue))
		if !slices.Equal(a.Networks[blue.Name].Transit, b.Networks[blue.Name].Transit) {
			t.Errorf("the lowest block is not used again: %v then %v", a, b)
		}
	})
}

// Transit addresses are unique over all Uplinks, and stay as they are while others come and go.
func TestTransitAddresses(t *testing.T) {
	onEach(t, func(t *testing.T, n *northbound) {
		networks := []Network{layer3("a"), layer3("b"), layer3("c"), layer3("d")}
		for _, w := range networks {
			n.cni(w)
		}
		db := n.open(Ranges{})
		of := func(out Outcome, w Network) string { return fmt.Sprint(out.Networks[w.Name].Transit) }
		first := mustApply(t, db, gateway("one", networks[2], networks[1]))
		second := mustApply(t, db, gateway("two", networks[3]))
		if of(first, networks[1])+of(first, networks[2])+of(second, networks[3]) != "[100.91.0.2 fd91::2][100.91.0.6 fd91::6][100.91.0.10 fd91::a]" {
			t.Errorf("first: %v %v", first, second)
		}
		third := mustApply(t, n.open(Ranges{}), gateway("one", networks[0], networks[2]))
		// Not b's block, which is free only once b is gone: answers to b may still be on their way.
		if of(third, networks[0])+of(third, networks[2]) != "[100.91.0.14 fd91::e][100.91.0.6 fd91::6]" {
			t.Errorf("after b went and a came: %v", third)
		}
		fourth := mustApply(t, db, gateway("one", networks[0], networks[1], networks[2]))
		if of(fourth, networks[1]) != "[100.91.0.2 fd91::2]" {
			t.Errorf("after b came again: %v", fourth)
		}
		moved := mustApply(t, n.open(Ranges{Transit: prefixes("198.18.0.0/24", "fd91::/64")}), gateway("two", networks[3]))
		if of(moved, networks[3]) != "[198.18.0.10 fd91::a]" {
			t.Errorf("in another range: %v", moved)
		}
	})
}

// B22: what is not marked as ours stays, and what others did to our rows is undone.
func TestB22DriftAndForeignRows(t *testing.T) {
	onEach(t, func(t *testing.T, n *northbound) {
		blue := layer3("blue")
		n.cni(blue)
		db := n.open(Ranges{})
		g := gateway("wire", blue)
		mustApply(t, db, g)
		_, want := n.rows()
		gw := names{uplink: "wire", node: "n1"}.gateway(blue.Prefix)
		for _, c := range []struct {
			name     string
			commands []string
		}{
			{"a router is gone", []string{"lr-del " + gw}},
			{"the edge is gone", []string{"lr-del uplink_wire_edge_n1"}},
			{"a switch is gone", []string{"ls-del uplink_wire_ext_n1"}},
			{"an option changed", []string{"set logical_router " + gw + " options:chassis=x"}},
			{"a MAC changed", []string{"set logical_router_port uplink_wire_edge_n1-ext mac=\"02:00:00:00:00:09\""}},
			{"the localnet port went", []string{"lsp-del uplink_wire_phys_n1"}},
			{"routes are gone", []string{"lr-route-del " + gw, "lr-nat-del " + gw}},
			{"a policy is gone", []string{"lr-policy-del " + blue.Prefix + "ovn_cluster_router 91"}},
			{"the port to it is gone", []string{"lrp-del uplink_wire_link_" + blue.Prefix + "n1-router"}},
			{"a second of one name", []string{"--add-duplicate ls-add uplink_wire_ext_n1", "--id=@d create logical_router name=" + gw + " external_ids:ovn-uplink/owner=dpu-agent external_ids:ovn-uplink/node=n1 external_ids:ovn-uplink/uplink=wire"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				n.do(c.commands...)
				eventually(t, "repair", func() bool {
					if _, _, err := db.Apply(t.Context(), g); err != nil && !errors.Is(err, ovsdb.ErrNotConnected) {
						t.Fatal(err)
					}
					_, now := n.rows()
					return slices.Equal(kinds(now), kinds(want))
				})
				idle(t, db, g)
			})
		}
		foreign, _ := n.rows()
		if lines := sorted(foreign); !strings.Contains(lines, `name="uplink_wire_ext_n1"`) {
			t.Error("a switch that only has the name was taken away")
		}
	})
}

// kinds are rows without UUIDs.
func kinds(rows map[string]string) []string {
	var lines []string
	for _, line := range rows {
		lines = append(lines, uuids.ReplaceAllString(line, ""))
	}
	slices.Sort(lines)
	return lines
}

// Networks and services come and go at random: the rows are those of the last gateway, whatever came before.
func TestConverges(t *testing.T) {
	onEach(t, func(t *testing.T, n *northbound) {
		var networks []Network
		for i := range 6 {
			w := layer3(fmt.Sprint("net-", i))
			if i%2 == 1 {
				w = layer2(fmt.Sprint("net-", i))
			}
			networks = append(networks, w)
			n.cni(w)
		}
		before, _ := n.rows()
		db := n.open(Ranges{})
		seed := uint64(time.Now().UnixNano())
		t.Log("seed", seed)
		random := rand.New(rand.NewPCG(seed, 1))
		for step := range 40 {
			g := randomGateway(random, networks)
			mustApply(t, db, g)
			idle(t, db, g)
			foreign, own := n.rows()
			if !maps.Equal(before, foreign) {
				t.Fatalf("step %d: rows of others changed", step)
			}
			view, err := db.View()
			if err != nil {
				t.Fatal(err)
			}
			want, _, err := render(view, g)
			if err != nil {
				t.Fatal(err)
			}
			if distinct := map[string]bool{}; true {
				for _, r := range want.rows {
					distinct[fmt.Sprint(r.table, r.parent, r.row.identity())] = true
				}
				if len(own) != len(distinct) {
					t.Fatalf("step %d: %d rows, want %d", step, len(own), len(distinct))
				}
			}
		}
		if _, err := db.Remove(t.Context(), "wire"); err != nil {
			t.Fatal(err)
		}
		after, own := n.rows()
		if !maps.Equal(before, after) || len(own) > 0 {
			t.Errorf("after removal:\n%s", sorted(own))
		}
	})
}

func randomGateway(random *rand.Rand, networks []Network) Gateway {
	g := gateway("wire")
	g.Addresses = prefixes(fmt.Sprintf("192.0.2.%d/24", 10+random.IntN(2)), "2001:db8:1::10/64")
	for _, w := range networks {
		if random.IntN(3) == 0 {
			continue
		}
		for i := range random.IntN(8) {
			lb := LoadBalancer{Name: fmt.Sprint("lb", i), Protocol: []string{"tcp", "udp", "sctp"}[random.IntN(3)], Port: uint16(30000 + i), Local: random.IntN(2) == 0}
			if random.IntN(2) == 0 {
				lb.Address = netip.AddrFrom4([4]byte{198, 51, 100, byte(random.IntN(4))})
			}
			for b := range random.IntN(3) {
				lb.Backends = append(lb.Backends, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 200, 0, byte(b)}), 80))
			}
			w.LoadBalancers = append(w.LoadBalancers, lb)
		}
		if random.IntN(4) == 0 {
			w.Advertised = w.Subnets
		}
		g.Networks = append(g.Networks, w)
	}
	return g
}

// What is not known is an error, not nothing.
func TestNotConnected(t *testing.T) {
	db, err := New(Config{Endpoint: "unix:/nowhere", Node: "n1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, changed, err := db.Apply(context.Background(), gateway("wire")); changed || !errors.Is(err, ovsdb.ErrNotConnected) {
		t.Errorf("Apply: %v", err)
	}
	if changed, err := db.Remove(context.Background(), "wire"); changed || !errors.Is(err, ovsdb.ErrNotConnected) {
		t.Errorf("Remove: %v", err)
	}
	if uplinks, err := db.Uplinks(); uplinks != nil || !errors.Is(err, ovsdb.ErrNotConnected) {
		t.Errorf("Uplinks: %v", err)
	}
	if err := db.Ready(); !errors.Is(err, ovsdb.ErrNotConnected) {
		t.Errorf("Ready: %v", err)
	}
}

// The CNI changes a router between plan and transaction: nothing is written, the next plan is made on what is so.
func TestStalePlanWritesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, n *northbound) {
		blue := layer3("blue")
		n.cni(blue)
		db := n.open(Ranges{})
		g := gateway("wire", blue)
		view, err := db.View()
		if err != nil {
			t.Fatal(err)
		}
		stale, _, err := Plan(view, g)
		if err != nil {
			t.Fatal(err)
		}
		n.nbctl("set", "logical_router_port", "rtos-"+blue.Prefix+"n1", `networks="10.200.9.1/24"`)
		if _, err := db.db.Transact(t.Context(), stale...); !errors.Is(err, ovsdb.ErrChanged) {
			t.Fatalf("a stale plan: error %v", err)
		}
		if _, own := n.rows(); len(own) > 0 {
			t.Fatalf("rows of a stale plan:\n%s", sorted(own))
		}
		mustApply(t, db, g) // at once: the content has what the failed transaction ran into
		if _, own := n.rows(); !strings.Contains(sorted(own), "10.200.9.0/24") {
			t.Error("the plan was not made on what the CNI wrote")
		}
		view, _ = db.View()
		again, _, _ := Plan(view, gateway("wire2"))
		mustApply(t, db, gateway("wire2"))
		if _, err := db.db.Transact(t.Context(), again...); !errors.Is(err, ovsdb.ErrChanged) {
			t.Errorf("a router was made twice: error %v", err)
		}
	})
}
