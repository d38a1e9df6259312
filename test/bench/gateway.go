// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
)

// steps are the networks whose addition is measured. Those between are there by then.
func (b *bench) steps() []int { return full(b, []int{1, 2, 10, 50, 100}, []int{1, 2, 10}) }

// addition is what it took to add one network, or one service.
type addition struct {
	flows   int
	nb, ovs written
	took    time.Duration
	// states are the versions of UplinkStates, and flaps those in which a network that was there is not ready.
	states, flaps int
}

// gateway measures the whole of the agent on a real OVN: networks and services that come, its restart, its weight.
func (b *bench) gateway(ctx context.Context) ([]row, error) {
	return b.withSite(ctx, func(ctx context.Context, s *site) ([]row, error) {
		idle, err := s.weigh(ctx, s.b.idleAge())
		if err != nil {
			return nil, err
		}
		rows, err := s.grow(ctx)
		if err != nil {
			return rows, err
		}
		costs, err := s.costs(ctx)
		rows = append(rows, costs...)
		if err != nil {
			return rows, err
		}
		service, err := s.fill(ctx)
		if err != nil {
			return rows, err
		}
		rows = append(rows, service)
		routes, err := s.routes(ctx)
		rows = append(rows, routes...)
		if err != nil {
			return rows, err
		}
		restart, err := s.restart(ctx)
		rows = append(rows, restart...)
		if err != nil {
			return rows, err
		}
		busy, err := s.more(ctx)
		return append(rows, weightRow(idle, busy, s)), err
	})
}

// grow adds networks, measures some of the additions, and what ARP costs with the first and with all.
func (s *site) grow(ctx context.Context) ([]row, error) {
	var added []addition
	var arp []arpCost
	steps := s.b.steps()
	for _, k := range steps {
		if err := s.crowdNetworks(ctx, k-1); err != nil {
			return nil, err
		}
		s.b.say("adding network %d", k)
		a, err := s.addNetwork(ctx)
		if err != nil {
			return nil, fmt.Errorf("add network %d: %w", k, err)
		}
		added = append(added, a)
		if k == 1 || k == steps[len(steps)-1] {
			cost, err := s.arp(ctx)
			if err != nil {
				return nil, err
			}
			arp = append(arp, cost)
		}
	}
	return append(networkRows(steps, added), arpRow(len(s.networks), arp[0], arp[1])), nil
}

// crowdNetworks adds networks until there are n, all at once.
func (s *site) crowdNetworks(ctx context.Context, n int) error {
	for len(s.networks) < n {
		if err := s.prepareNetwork(ctx); err != nil {
			return err
		}
		if err := s.CreateCUDN(ctx, s.networks[len(s.networks)-1].Spec, wire); err != nil {
			return err
		}
	}
	return s.covered(ctx, n)
}

// addNetwork adds one more and measures that. What the CNI does for it comes first, and is not counted.
func (s *site) addNetwork(ctx context.Context) (a addition, err error) {
	if err := s.prepareNetwork(ctx); err != nil {
		return a, err
	}
	if err := s.zone.Sync(ctx); err != nil {
		return a, err
	}
	j, err := s.watch(ctx)
	if err != nil {
		return a, err
	}
	defer j.close()
	n := len(s.networks)
	added := s.networks[n-1].Spec
	a, err = s.measure(ctx, func() error {
		if err := s.CreateCUDN(ctx, added, wire); err != nil {
			return err
		}
		return s.covered(ctx, n)
	})
	a.states, a.flaps = j.count(), flaps(j.all(), n-1, added.CUDN)
	return a, err
}

// flaps counts the versions in which not all of the networks that were there are ready.
func flaps(writes []write, networks int, added string) (n int) {
	for _, w := range writes {
		ready := 0
		for _, status := range w.state.Status.Networks {
			if status.Phase == v1alpha1.NetworkReady && status.Name != added {
				ready++
			}
		}
		if ready != networks {
			n++
		}
	}
	return n
}

// measure is what f, which waits for its effect, makes the agent write.
func (s *site) measure(ctx context.Context, f func() error) (a addition, err error) {
	flows, err := s.flows.changes()
	if err != nil {
		return a, err
	}
	nb, ovs, began := s.nb.sum(), s.ovs.sum(), time.Now()
	if err := f(); err != nil {
		return a, err
	}
	a.took = time.Since(began)
	if err := sleep(ctx, settleFlows); err != nil {
		return a, err
	}
	after, err := s.flows.changes()
	if err != nil {
		return a, err
	}
	a.flows, a.nb, a.ovs = after-flows, s.nb.sum().minus(nb), s.ovs.sum().minus(ovs)
	return a, nil
}

// networkRows judges the additions of networks.
func networkRows(steps []int, added []addition) []row {
	sizes := series(steps, func(k int) string { return fmt.Sprint(k) })
	silent, same, steady := true, true, true
	flows, writes, times, values := map[string]float64{}, map[string]float64{}, map[string]float64{}, map[string]float64{}
	for i, a := range added {
		k := fmt.Sprint(steps[i])
		flows[k], writes["inserts"+k], writes["changes"+k] = float64(a.flows), float64(a.nb.inserts), float64(a.nb.changes)
		writes["transactions"+k], writes["ovs"+k], times[k] = float64(a.nb.transactions), float64(a.ovs.transactions), a.took.Seconds()
		values["states"+k], values["flaps"+k] = float64(a.states), float64(a.flaps)
		steady = steady && a.flaps == 0 && a.states > 0
		// The first also makes what all share.
		if i > 0 {
			silent = silent && a.flows == 0 && a.ovs.transactions == 0
			same = same && a.nb == added[1].nb && a.nb.transactions == 1
		}
	}
	how := fmt.Sprintf("network %s on one Uplink, whole OVN", sizes)
	return []row{{
		Measure: "add a network: flow mods, Open_vSwitch transactions", How: how,
		Figure: series(added, func(a addition) string { return fmt.Sprintf("%d, %d", a.flows, a.ovs.transactions) }),
		Target: "0, 0 but for the first", Verdict: judge(silent), Values: flows,
	}, {
		Measure: "add a network: northbound rows", How: how + "; inserted + changed, in transactions",
		Figure: series(added, func(a addition) string {
			return fmt.Sprintf("%d + %d in %d", a.nb.inserts, a.nb.changes, a.nb.transactions)
		}),
		Target: "the same but for the first, in 1", Verdict: judge(same), Values: writes,
	}, {
		Measure: "add a network: UplinkState writes", How: how + "; and those in which a network that was there is not ready",
		Figure: series(added, func(a addition) string { return fmt.Sprintf("%d, %d", a.states, a.flaps) }),
		Target: "not ready: 0", Verdict: judge(steady), Values: values,
	}, {
		Measure: "add a network: until ready", How: how + "; northd and ovn-controller included",
		Figure: series(added, func(a addition) string { return millis(a.took) }), Verdict: noTarget, Values: times,
	}}
}

// maxFlowsPerPort is how many flows a port of a service may have, per family.
const maxFlowsPerPort = 4
