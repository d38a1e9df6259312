// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/openflow"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// flowRows judges how adding a service to a bridge grows.
func flowRows(steps []flowStep) []row {
	sizes := series(steps, func(s flowStep) string { return fmt.Sprint(s.services) })
	last := steps[len(steps)-1]
	most := slices.MaxFunc(steps, func(a, b flowStep) int { return a.mods - b.mods }).mods
	faster := float64(last.replace) / float64(last.took)
	values := map[string]float64{"faster": faster}
	for _, s := range steps {
		n := fmt.Sprint(s.services)
		values["mods"+n], values["seconds"+n], values["replace"+n] = float64(s.mods), s.took.Seconds(), s.replace.Seconds()
	}
	return []row{{
		Measure: "add a service: flow mods", How: fmt.Sprintf("beside %s on a real bridge, the most of 10; node ports and addresses", sizes),
		Figure: series(steps, func(s flowStep) string { return fmt.Sprint(s.mods) }), Target: fmt.Sprintf("≤ %d", maxFlowsPerPort),
		Verdict: judge(most > 0 && most <= maxFlowsPerPort), Values: values,
	}, {
		Measure: "add a service: time on the bridge", How: "the same, median of 10; ovs-ofctl replace-flows of the same set",
		Figure: fmt.Sprintf("%s; replace-flows %s = %.0fx with %d flows",
			series(steps, func(s flowStep) string { return short(s.took) }), series(steps, func(s flowStep) string { return short(s.replace) }),
			faster, last.flows),
		Target: fmt.Sprintf("≥ %dx at the last", minFaster), Verdict: judge(faster >= minFaster), Values: values,
	}}
}

// traceAdvertised traces what is routed without translation, both ways.
func traceAdvertised(ctx context.Context, p *openflow.Programmer, node *lab.Regular, b openflow.Bridge) (row, error) {
	b.Services, b.Advertised = nil, []netip.Prefix{netip.MustParsePrefix("10.200.0.0/16")}
	if _, err := p.Program(ctx, b); err != nil {
		return row{}, err
	}
	var paths []path
	for _, t := range []struct{ name, flow string }{
		{"in", fmt.Sprintf("in_port=%d,tcp,dl_dst=%s,nw_src=203.0.113.9,nw_dst=10.200.1.5,nw_ttl=64", b.Uplinks[0], b.MAC)},
		{"out", fmt.Sprintf("in_port=%d,tcp,dl_src=%s,nw_src=10.200.1.5,nw_dst=203.0.113.9,nw_ttl=64", b.Patch, b.MAC)},
	} {
		out, err := node.OVS.Appctl(ctx, "ofproto/trace", b.Name, t.flow)
		if err != nil {
			return row{}, err
		}
		c, arrives := tracedCost(out)
		if !arrives {
			return row{}, fmt.Errorf("advertised, %s: the packet is dropped:\n%s", t.name, out)
		}
		paths = append(paths, path{t.name, c})
	}
	return advertisedRow(paths), nil
}

// tracedCost is what the datapath is told to do with a traced packet; false says that it is dropped somewhere.
func tracedCost(trace string) (total cost, arrives bool) {
	arrives = true
	for line := range strings.Lines(trace) {
		actions, found := strings.CutPrefix(line, "Datapath actions: ")
		if !found {
			continue
		}
		c, _ := costOf(actions)
		total = total.plus(c)
		arrives = arrives && trim(actions) != "drop"
	}
	return total, arrives && strings.Contains(trace, "Datapath actions: ")
}

func advertisedRow(paths []path) row {
	r := row{
		Measure: "conntrack passes, advertised", How: "traced on the bridge, rendered rows: in / out",
		Figure: series(paths, func(p path) string { return p.bridge.String() }), Target: "0", Verdict: met,
	}
	for _, p := range paths {
		if p.bridge.plus(p.ovn) != (passes{}) {
			r.Verdict = missed
		}
	}
	return r
}
