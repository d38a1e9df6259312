// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// dual are a network's subnets in both families.
var dual = []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16"), netip.MustParsePrefix("fd10::/48")}

// onVersions runs a test in a lab of each version of OVN.
func onVersions(t *testing.T, test func(*testing.T, *lab.Lab, lab.Version)) {
	t.Helper()
	for _, v := range lab.OVNVersions(t) {
		t.Run(v.Name, func(t *testing.T) {
			test(t, lab.ForTest(t, lab.Options{NoAPIServer: true, OVS: v.Build}), v)
		})
	}
}

// startZones makes nodes with an OVN each, joined if there are several.
func startZones(t *testing.T, l *lab.Lab, names ...string) []*lab.Zone {
	t.Helper()
	var zones []*lab.Zone
	for _, name := range names {
		n, err := l.AddNode(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.StartOVS(t.Context()); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		z, err := n.StartOVN(t.Context(), lab.OVNSpec{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("zone %s took %s", name, time.Since(begin))
		zones = append(zones, z)
	}
	if len(zones) > 1 {
		if err := l.Interconnect(t.Context(), zones...); err != nil {
			t.Fatal(err)
		}
	}
	return zones
}

func addNetwork(t *testing.T, l *lab.Lab, spec lab.NetworkSpec, zones ...*lab.Zone) *lab.Network {
	t.Helper()
	n, err := l.Network(t.Context(), spec, zones...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func addPod(t *testing.T, n *lab.Network, z *lab.Zone, name string) *lab.Pod {
	t.Helper()
	p, err := n.Pod(t.Context(), z, name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNetworks(t *testing.T) {
	onVersions(t, func(t *testing.T, l *lab.Lab, v lab.Version) {
		zones := startZones(t, l, "worker-a", "worker-b")
		cases := []struct {
			name  string
			spec  lab.NetworkSpec
			zones []*lab.Zone
		}{
			{"Layer3 in one zone", lab.NetworkSpec{CUDN: "one-3"}, zones[:1]},
			{"Layer3 in two zones", lab.NetworkSpec{CUDN: "two-3", Subnets: dual}, zones},
			{"Layer3 of IPv6 only", lab.NetworkSpec{CUDN: "six-3", Subnets: dual[1:]}, zones},
			{"Layer2 in one zone", lab.NetworkSpec{CUDN: "one-2", Topology: lab.Layer2, Subnets: dual}, zones[:1]},
			{"Layer2 in two zones", lab.NetworkSpec{CUDN: "two-2", Topology: lab.Layer2, Subnets: dual}, zones},
		}
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				n, err := l.Network(t.Context(), c.spec, c.zones...)
				if c.spec.Topology == lab.Layer2 && len(c.zones) > 1 && !v.TransitRouters {
					if !errors.Is(err, lab.ErrNoTransitRouter) {
						t.Fatalf("made it: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				a, b := addPod(t, n, c.zones[0], "a"), addPod(t, n, c.zones[len(c.zones)-1], "b")
				for _, to := range append(b.Addresses, n.Gateways(a.Zone)...) {
					ping(t, a.Node, to, 10*time.Second)
				}
			})
		}
	})
}

// Networks with the same subnets and pods with the same addresses are side by
// side, and no packet of one gets into another.
func TestEqualSubnets(t *testing.T) {
	onVersions(t, func(t *testing.T, l *lab.Lab, _ lab.Version) {
		ctx := t.Context()
		z := startZones(t, l, "worker-a")[0]
		var clients, servers []*lab.Pod
		for _, name := range []string{"blue", "red"} {
			n := addNetwork(t, l, lab.NetworkSpec{CUDN: name, Subnets: dual}, z)
			clients, servers = append(clients, addPod(t, n, z, "client")), append(servers, addPod(t, n, z, "server"))
		}
		if clients[0].Addresses[0] != clients[1].Addresses[0] || servers[0].Addresses[1] != servers[1].Addresses[1] {
			t.Fatalf("addresses differ: %v and %v", servers[0].Addresses, servers[1].Addresses)
		}
		for i, s := range servers {
			for _, addr := range s.Addresses {
				at := netip.AddrPortFrom(addr, 80)
				if _, err := s.StartHTTP(at, s.Name); err != nil {
					t.Fatal(err)
				}
				err := lab.Eventually(ctx, 10*time.Second, func(ctx context.Context) error {
					got, err := clients[i].HTTPGet(ctx, at)
					if err == nil && (got.Name != s.Name || got.Client.Addr().Is4() != addr.Is4()) {
						err = fmt.Errorf("answer %+v, want one of %s", got, s.Name)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		}
		// A pod that only one of them has.
		only := addPod(t, servers[0].Network, z, "only")
		ping(t, clients[0].Node, only.Addresses[0], 5*time.Second)
		if _, err := clients[1].Exec(ctx, "ping", "-c1", "-W1", only.Addresses[0].String()); err == nil {
			t.Error("a pod of one network reaches a pod of another")
		}
		if err := only.Delete(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := clients[0].Exec(ctx, "ping", "-c1", "-W1", only.Addresses[0].String()); err == nil {
			t.Error("a deleted pod answers")
		}
		addPod(t, servers[0].Network, z, "only")
	})
}

func TestDeleteAndRecreateNetwork(t *testing.T) {
	onVersions(t, func(t *testing.T, l *lab.Lab, v lab.Version) {
		ctx := t.Context()
		names := []string{"worker-a", "worker-b"}
		topology := lab.Layer2
		if !v.TransitRouters {
			topology = lab.Layer3
		}
		zones := startZones(t, l, names...)
		n := addNetwork(t, l, lab.NetworkSpec{CUDN: "blue-1", Topology: topology}, zones...)
		other := addNetwork(t, l, lab.NetworkSpec{CUDN: "green"}, zones...)
		a, b := addPod(t, n, zones[0], "a"), addPod(t, n, zones[1], "b")
		ping(t, a.Node, b.Addresses[0], 10*time.Second)
		uuid := func(router string) string {
			out, err := zones[0].Nbctl(ctx, "--bare", "--columns=_uuid", "find", "Logical_Router", "name="+router)
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(out)
		}
		before, foreign := uuid(n.Router(zones[0])), uuid(other.Router(zones[0]))
		if err := n.Delete(ctx); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"Logical_Router", "Logical_Switch", "Logical_Switch_Port", "Logical_Router_Port"} {
			out, err := zones[1].Nbctl(ctx, "--bare", "--columns=name", "find", table, "external_ids:k8s.ovn.org/network="+n.Name)
			if err != nil || strings.TrimSpace(out) != "" {
				t.Errorf("left in %s: %q, %v", table, out, err)
			}
		}
		if got := uuid(other.Router(zones[0])); got != foreign {
			t.Errorf("another network's router is now %q, was %q", got, foreign)
		}
		if err := n.Recreate(ctx); err != nil {
			t.Fatal(err)
		}
		ping(t, a.Node, b.Addresses[0], 10*time.Second)
		if after := uuid(n.Router(zones[0])); before == "" || after == before {
			t.Errorf("the router is %q, was %q", after, before)
		}
	})
}

// A node joins a network and leaves it again. The rows of the others stay the
// same ones.
func TestZonesOfNetwork(t *testing.T) {
	onVersions(t, func(t *testing.T, l *lab.Lab, v lab.Version) {
		zones := startZones(t, l, "worker-a", "worker-b")
		topologies := []string{lab.Layer3}
		if v.TransitRouters {
			topologies = append(topologies, lab.Layer2)
		}
		for _, topology := range topologies {
			t.Run(topology, func(t *testing.T) {
				ctx := t.Context()
				n := addNetwork(t, l, lab.NetworkSpec{CUDN: "net-" + strings.ToLower(topology), Topology: topology, Subnets: dual}, zones[0])
				rows := func() string {
					var all string
					// Not the columns that ovn-northd fills, when it comes to it.
					for table, columns := range map[string]string{
						"Logical_Router":      "_uuid,name,options,external_ids,ports,static_routes,policies,nat",
						"Logical_Router_Port": "_uuid,name,mac,networks,peer,options,external_ids",
						"Logical_Switch":      "_uuid,name,other_config,external_ids,ports",
						"Logical_Switch_Port": "_uuid,name,type,addresses,options,external_ids",
					} {
						out, err := zones[0].Nbctl(ctx, "--format=csv", "--no-headings", "--columns="+columns, "list", table)
						if err != nil {
							t.Fatal(err)
						}
						all += out
					}
					lines := strings.Split(all, "\n")
					slices.Sort(lines)
					return strings.Join(lines, "\n")
				}
				a := addPod(t, n, zones[0], "a")
				before := rows()
				for _, name := range []string{"b", "again"} {
					if err := n.AddZone(ctx, zones[1]); err != nil {
						t.Fatal(err)
					}
					b := addPod(t, n, zones[1], name)
					for _, to := range b.Addresses {
						ping(t, a.Node, to, 10*time.Second)
					}
					if err := n.RemoveZone(ctx, zones[1]); err != nil {
						t.Fatal(err)
					}
					if after := rows(); after != before {
						t.Errorf("rows before:\n%s\nafter:\n%s", before, after)
					}
				}
			})
		}
	})
}
