// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
	"github.com/ovn-uplink/ovn-uplink/shared/network"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// maxGrowth is by how much planning and writing one network may take longer for each network that is there: all of
// an Uplink is compared with the database.
const maxGrowth = time.Millisecond

// maxRowsPerPort is how many rows a port of a service may have: a load balancer, and the edge router's way to an address
// of its own.
const maxRowsPerPort = 2

// networkSteps are the networks that are added one by one to the database.
func (b *bench) networkSteps() []int { return full(b, []int{1, 10, 100, 500}, []int{1, 10, 50}) }

// database is a northbound database with what the CNI has in it, and the agent's package that writes to it.
type database struct {
	*ovn.DB
	tap     *tap
	gateway ovn.Gateway
}

// step is what one change of a gateway took, and what was written.
type step struct {
	size int
	took time.Duration
	written
}

// databaseRows adds networks, and then services to one of them, to a real database without northd.
func (b *bench) databaseRows(ctx context.Context, l *lab.Lab, node *lab.Regular, zone *lab.Zone) ([]row, error) {
	t, err := newTap(filepath.Join(node.Dir(), "nb.tap"), zone.NB())
	if err != nil {
		return nil, err
	}
	db, err := ovn.New(ovn.Config{Endpoint: t.endpoint, Node: worker, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = db.Run(running)
	}()
	defer func() {
		stop()
		<-done
		_ = t.Close()
	}()
	if err := lab.Eventually(ctx, time.Minute, func(context.Context) error { return db.Ready() }); err != nil {
		return nil, err
	}
	mac, err := net.ParseMAC(node.Spec.MAC)
	if err != nil {
		return nil, err
	}
	d := &database{DB: db, tap: t, gateway: ovn.Gateway{
		Uplink: wire, Chassis: zone.Chassis, MAC: mac, Addresses: node.Spec.Addresses, DefaultGateways: node.Spec.Gateways,
	}}

	networks, err := b.growNetworks(ctx, d, func(ctx context.Context, spec lab.NetworkSpec) error {
		_, err := l.Network(ctx, spec, zone)
		return err
	})
	if err != nil {
		return nil, err
	}
	services, err := b.growServices(ctx, d)
	if err != nil {
		return nil, err
	}
	return databaseRows(networks, services), nil
}

// apply makes the database have the gateway as it is now.
func (d *database) apply(ctx context.Context) error {
	outcome, _, err := d.Apply(ctx, d.gateway)
	if err != nil {
		return err
	}
	return problems(outcome)
}

// known waits until the agent's copy of the database has what the CNI wrote for all networks.
func (d *database) known(ctx context.Context) error {
	return lab.Eventually(ctx, time.Minute, func(context.Context) error {
		view, err := d.View()
		if err != nil {
			return err
		}
		_, outcome, err := ovn.Plan(view, d.gateway)
		if err != nil {
			return err
		}
		return problems(outcome)
	})
}

func problems(outcome ovn.Outcome) error {
	for name, n := range outcome.Networks {
		if n.Problem != nil {
			return fmt.Errorf("network %s: %w", name, n.Problem)
		}
	}
	return nil
}

// measure applies a change.
func (d *database) measure(ctx context.Context, size int) (s step, err error) {
	before, began := d.tap.sum(), time.Now()
	if err := d.apply(ctx); err != nil {
		return s, err
	}
	return step{size, time.Since(began), d.tap.sum().minus(before)}, nil
}

// growNetworks adds networks up to the last of the steps and measures these.
func (b *bench) growNetworks(ctx context.Context, d *database, cni func(context.Context, lab.NetworkSpec) error) ([]step, error) {
	var steps []step
	for _, k := range b.networkSteps() {
		b.say("network %d of a database", k)
		for n := len(d.gateway.Networks) + 1; n <= k; n++ {
			spec := lab.NetworkSpec{CUDN: fmt.Sprintf("net-%03d", n)}
			if err := cni(ctx, spec); err != nil {
				return nil, err
			}
			if n == k {
				// All before it at once.
				if err := errors.Join(d.known(ctx), d.apply(ctx)); err != nil {
					return nil, err
				}
			}
			d.gateway.Networks = append(d.gateway.Networks, ovn.Network{
				Name: network.Name(spec.CUDN), Prefix: network.Prefix(spec.CUDN), Topology: ovn.Layer3,
				Subnets: []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16")},
			})
		}
		if err := d.known(ctx); err != nil {
			return nil, err
		}
		s, err := d.measure(ctx, k)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// growServices gives the networks services and measures one more, beside each of the numbers.
func (b *bench) growServices(ctx context.Context, d *database) ([]step, error) {
	var steps []step
	count := 0
	add := func() {
		n := &d.gateway.Networks[count%len(d.gateway.Networks)]
		n.LoadBalancers = append(n.LoadBalancers, ovn.LoadBalancer{
			Name: fmt.Sprintf("ns/service-%05d:web/tcp/%s:80", count, externalAddress(count)), Protocol: "tcp",
			Address: externalAddress(count), Port: 80,
			Backends: []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 200, 1, byte(5 + count%200)}), 8080)},
		})
		count++
	}
	for _, m := range b.serviceSteps() {
		b.say("a service beside %d in a database", m)
		for count < m {
			add()
		}
		// Thousands at once may take longer than the agent waits; it looks again then, too.
		if err := lab.Eventually(ctx, converged, d.apply); err != nil {
			return nil, err
		}
		add()
		s, err := d.measure(ctx, m)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// databaseRows judges how adding networks and services to a database grows.
func databaseRows(networks, services []step) []row {
	sizes := func(steps []step) string { return series(steps, func(s step) string { return fmt.Sprint(s.size) }) }
	rows := func(steps []step) string {
		return series(steps, func(s step) string { return fmt.Sprintf("%d + %d", s.inserts, s.changes) })
	}
	times := func(steps []step) (string, map[string]float64) {
		values := map[string]float64{}
		for _, s := range steps {
			values["seconds"+fmt.Sprint(s.size)], values["inserts"+fmt.Sprint(s.size)] = s.took.Seconds(), float64(s.inserts)
		}
		return series(steps, func(s step) string { return short(s.took) }), values
	}
	constant := func(steps []step, first int) bool {
		for _, s := range steps[first:] {
			if s.written != steps[first].written || s.transactions != 1 {
				return false
			}
		}
		return true
	}
	perNetwork := (networks[len(networks)-1].took - networks[0].took) / time.Duration(networks[len(networks)-1].size-networks[0].size)
	networkTimes, networkValues := times(networks)
	serviceTimes, serviceValues := times(services)
	few := services[0].inserts <= maxRowsPerPort && services[0].deletes == 0
	return []row{{
		Measure: "add a network: rows, in process", How: fmt.Sprintf("network %s, northbound database without northd; inserted + changed in one transaction", sizes(networks)),
		Figure: rows(networks), Target: "the same but for the first", Verdict: judge(constant(networks, 1)), Values: networkValues,
	}, {
		Measure: "add a network: plan and write", How: "the same; all of the Uplink is compared with the database",
		Figure: fmt.Sprintf("%s = %s per network there", networkTimes, short(perNetwork)),
		Target: "≤ " + short(maxGrowth) + " per network there", Verdict: judge(perNetwork <= maxGrowth), Values: networkValues,
	}, {
		Measure: "add a service: rows", How: fmt.Sprintf("beside %s in %d networks, northbound database without northd; inserted + changed", sizes(services), networks[len(networks)-1].size),
		Figure: rows(services), Target: fmt.Sprintf("the same, ≤ %d inserted", maxRowsPerPort), Verdict: judge(constant(services, 0) && few), Values: serviceValues,
	}, {
		Measure: "add a service: plan and write", How: "the same", Figure: serviceTimes, Verdict: noTarget, Values: serviceValues,
	}}
}
