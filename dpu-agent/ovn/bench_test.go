// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// many are networks with load balancers, and a database that has the CNI's rows of them.
func many(networks, balancers int) (*memory, Gateway) {
	var all []Network
	for i := range networks {
		w := layer3(fmt.Sprintf("net-%03d", i))
		for j := range balancers / networks {
			w.LoadBalancers = append(w.LoadBalancers, LoadBalancer{
				Name: fmt.Sprintf("ns/svc-%d/tcp/80", j), Protocol: "tcp", Port: uint16(10000 + j),
				Backends: []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 200, byte(j >> 8), byte(j)}), 80)},
			})
		}
		all = append(all, w)
	}
	return newMemory(all...), gateway("wire", all...)
}

// adopt puts the rows of a gateway into the database, as a transaction would.
func (m *memory) adopt(g Gateway) {
	want, _, err := render(m.view(Ranges{}), g)
	if err != nil {
		panic(err)
	}
	uuids := map[string]string{}
	for _, r := range want.rows {
		uuid := m.uuid()
		switch row := r.row.(type) {
		case *routerRow:
			row.UUID, m.routers[uuid] = uuid, row
			uuids[row.Name] = uuid
		case *switchRow:
			row.UUID, m.switches[uuid] = uuid, row
			uuids[row.Name] = uuid
		case *routerPortRow:
			row.UUID, m.routerPorts[uuid] = uuid, row
		case *routeRow:
			row.UUID, m.routes[uuid] = uuid, row
		case *policyRow:
			row.UUID, m.policies[uuid] = uuid, row
		case *natRow:
			row.UUID, m.nats[uuid] = uuid, row
		case *switchPortRow:
			row.UUID, m.switchPorts[uuid] = uuid, row
		case *balancerRow:
			row.UUID, m.balancers[uuid] = uuid, row
		}
		if r.parent.table == "" {
			continue
		}
		if r.parent.table == switchTable {
			s := m.switches[uuids[r.parent.name]]
			s.Ports = append(s.Ports, uuid)
			continue
		}
		router := m.routers[r.parent.uuid+uuids[r.parent.name]]
		switch r.parent.column {
		case "ports":
			router.Ports = append(router.Ports, uuid)
		case "static_routes":
			router.StaticRoutes = append(router.StaticRoutes, uuid)
		case "policies":
			router.Policies = append(router.Policies, uuid)
		case "nat":
			router.NAT = append(router.NAT, uuid)
		case "load_balancer":
			router.LoadBalancers = append(router.LoadBalancers, uuid)
		}
	}
}

// One more network, or one more service, beside many that are as they should be.
func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct{ networks, balancers int }{{1, 0}, {500, 0}, {1, 20000}, {500, 20000}} {
		m, g := many(c.networks, c.balancers)
		m.adopt(g)
		more := layer3("net-more")
		m.cni(more)
		name := fmt.Sprintf("networks=%d/balancers=%d", c.networks, c.balancers)
		b.Run("view/"+name, func(b *testing.B) {
			for b.Loop() {
				m.view(Ranges{})
			}
		})
		v := m.view(Ranges{})
		next := g
		next.Networks = append(next.Networks[:len(next.Networks):len(next.Networks)], more)
		b.Run("plan/"+name, func(b *testing.B) {
			for b.Loop() {
				if operations, _, err := Plan(v, next); err != nil || len(operations) < 10 {
					b.Fatal(len(operations), err)
				}
			}
		})
	}
}

// The same as a bound, which holds on a slow machine too.
func TestPlanningTimeIsBounded(t *testing.T) {
	m, g := many(500, 20000)
	m.adopt(g)
	best := time.Hour
	for range 3 {
		begin := time.Now()
		operations, _, err := Plan(m.view(Ranges{}), g)
		if err != nil {
			t.Fatal(err)
		}
		if len(operations) > 0 {
			t.Fatalf("%d operations at rest", len(operations))
		}
		best = min(best, time.Since(begin))
	}
	t.Logf("500 networks and 20000 load balancers, view and plan: %s", best)
	if best > 3*time.Second {
		t.Errorf("planning takes %s", best)
	}
}
