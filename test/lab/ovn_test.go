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

func TestRestartOVN(t *testing.T) {
	onVersions(t, func(t *testing.T, l *lab.Lab, _ lab.Version) {
		ctx := t.Context()
		z := startZones(t, l, "worker-a")[0]
		n := addNetwork(t, l, lab.NetworkSpec{CUDN: "blue"}, z)
		a, b := addPod(t, n, z, "a"), addPod(t, n, z, "b")
		ping(t, a.Node, b.Addresses[0], 5*time.Second)
		for _, step := range []struct {
			name string
			end  func(context.Context) error
			do   func(context.Context) error
		}{
			{"northbound database", z.NBProcess().Kill, z.StartNB},
			{"southbound database", z.StopSB, z.StartSB},
			{"ovn-northd", z.NorthdProcess().Kill, z.StartNorthd},
			{"ovn-controller killed", z.ControllerProcess().Kill, z.StartController},
		} {
			if err := errors.Join(step.end(ctx), step.do(ctx)); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
			if err := z.Sync(ctx); err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
			ping(t, a.Node, b.Addresses[0], 5*time.Second)
		}
		if err := errors.Join(z.StopController(ctx), z.StopNorthd(ctx), z.StopNB(ctx)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(z.StartNB(ctx), z.StartNorthd(ctx), z.StartController(ctx)); err != nil {
			t.Fatal(err)
		}
		ping(t, a.Node, b.Addresses[0], 10*time.Second)
		addPod(t, n, z, "c")
	})
}

func TestChassisName(t *testing.T) {
	for name, spec := range map[string]lab.OVNSpec{
		"system-id":     {SystemID: "chassis-1"},
		"override file": {SystemID: "chassis-1", Override: "chassis-2"},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{NoAPIServer: true})
			ctx := t.Context()
			p, err := l.Pair(ctx, "worker-b", lab.PairSpec{})
			if err != nil {
				t.Fatal(err)
			}
			z, err := p.Card.StartOVN(ctx, spec)
			if err != nil {
				t.Fatal(err)
			}
			want := spec.SystemID
			if spec.Override != "" {
				want = spec.Override
			}
			got, err := z.Sbctl(ctx, "--bare", "--columns=name", "list", "Chassis")
			if err != nil || strings.TrimSpace(got) != want || z.Chassis != want {
				t.Errorf("chassis is %q, %q for the lab, want %s; %v", got, z.Chassis, want, err)
			}
			if got, err := p.Card.Exec(ctx, "ovn-nbctl", "get", "NB_Global", ".", "name"); err != nil || strings.TrimSpace(got) != "worker-b" {
				t.Errorf("a command on the card finds zone %q, %v, want the host's", got, err)
			}
			shown := func(alive bool) {
				t.Helper()
				want := []lab.ZoneStatus{{Node: "worker-b-dpu", Northbound: z.NB(), Alive: alive}}
				if s, err := lab.ReadStatus(l.Dir()); err != nil || !slices.Equal(s.Zones, want) {
					t.Errorf("status shows %+v, %v, want %+v", s.Zones, err, want)
				}
			}
			shown(true)
			// Rows are named after the Node object, and a card has none.
			n := addNetwork(t, l, lab.NetworkSpec{CUDN: "blue"}, z)
			if got, err := z.Nbctl(ctx, "get", "Logical_Router_Port", "rtos-"+n.Prefix+"worker-b", "_uuid"); err != nil {
				t.Errorf("router port of the host's name: %q, %v", got, err)
			}
			if err := z.StopNorthd(ctx); err != nil {
				t.Fatal(err)
			}
			shown(false)
		})
	}
}
