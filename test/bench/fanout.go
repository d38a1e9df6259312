// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// foreignUplink is the Uplink whose states on other nodes change.
	foreignUplink = "tenant-blue"
	// maxLeak is how many of the bytes that a change costs an agent that watches everything may reach one that
	// watches its own node.
	maxLeak = 0.01
	// ownChanges are made to the worker's own state at the end.
	ownChanges = 10
	// allInOne is the place of the all-in-one agent among all.
	allInOne = 2
)

// changes are how many other nodes' states change; 0 is the window that the others are compared with.
var changes = []int{0, 10, 100, 1000}

// heard is what one agent received in a window.
type heard struct {
	traffic
	// events are the passes of the agent's loop, which every event causes, or for the all-in-one agent the events.
	events int64
}

// fanout measures what an agent receives while states of other nodes change.
func (b *bench) fanout(ctx context.Context) ([]row, error) {
	return b.withCluster(ctx, func(c *cluster) ([]row, error) {
		if err := c.others(ctx); err != nil {
			return nil, err
		}
		// The periodic look at everything comes from caches; it would only blur the count of passes.
		s, err := c.start(ctx, "--resync", "1h")
		if err != nil {
			return nil, err
		}
		if err := c.waitResolved(ctx, foreignUplink); err != nil {
			return nil, err
		}
		if err := sleep(ctx, 10*time.Second); err != nil {
			return nil, err
		}
		var windows [][]heard
		for _, n := range changes {
			w, err := c.window(ctx, s, fmt.Sprintf("%d states of other nodes change", n), func(ctx context.Context) error {
				return c.changeOthers(ctx, n)
			})
			if err != nil {
				return nil, err
			}
			windows = append(windows, w)
		}
		own, err := c.window(ctx, s, fmt.Sprintf("the worker's own state changes %d times", ownChanges), c.changeOwn)
		if err != nil {
			return nil, err
		}
		return fanoutRows(windows, own), s.stop(ctx)
	})
}

// others creates the other nodes and a complete state of each.
func (c *cluster) others(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	nodes := numbered("other", changes[len(changes)-1])
	if err := c.otherNodes(ctx, client, nodes); err != nil {
		return err
	}
	if err := c.addUplink(ctx, foreignUplink, nil); err != nil {
		return err
	}
	c.b.say("creating %d UplinkStates of other nodes", len(nodes))
	return parallel(ctx, len(nodes), func(ctx context.Context, i int) error {
		_, err := c.uplinks.K8sV1alpha1().UplinkStates().Create(ctx, otherState(i, nodes[i]), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create state of node %s: %w", nodes[i], err)
		}
		return nil
	})
}

func otherState(i int, node string) *v1alpha1.UplinkState {
	now := metav1.Now()
	return &v1alpha1.UplinkState{
		ObjectMeta: metav1.ObjectMeta{Name: uplinkstate.Name(foreignUplink, node)},
		Spec:       v1alpha1.UplinkStateSpec{UplinkName: foreignUplink, NodeName: node},
		Status: v1alpha1.UplinkStateStatus{
			Type: v1alpha1.OVSBridge, HostInterfaceName: "ens1f0", MACAddress: fmt.Sprintf("02:42:ac:1d:%02x:%02x", i/256, i%256),
			OVSBridge:   &v1alpha1.OVSBridgeStatus{Name: "br-ext", UplinkPort: "p0"},
			IPAddresses: otherAddress(i, 0), DefaultGateways: []string{"172.29.0.1"},
			Conditions: []metav1.Condition{
				{Type: uplinkstate.HostDataReady, Status: metav1.ConditionTrue, Reason: uplinkstate.ReasonHostDataDiscovered,
					Message: "interface ens1f0 was measured", LastTransitionTime: now},
				{Type: uplinkstate.Resolved, Status: metav1.ConditionTrue, Reason: uplinkstate.ReasonResolved,
					Message: "bridge br-ext found by host function, uplink port p0", LastTransitionTime: now},
			},
		},
	}
}

// otherAddress is a node's address after a round of changes.
func otherAddress(i, round int) []string {
	return []string{fmt.Sprintf("172.%d.%d.%d/16", 29+round, i/250, 2+i%250)}
}

// window makes changes and returns what every agent received meanwhile. All windows have one length.
func (c *cluster) window(ctx context.Context, s subjects, what string, change func(context.Context) error) ([]heard, error) {
	length := full(c.b, 20*time.Second, 15*time.Second)
	c.b.say("%s while %s", length, what)
	end := time.Now().Add(length)
	before, err := hear(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := change(ctx); err != nil {
		return nil, err
	}
	// What was sent must arrive within the window, too.
	if left := time.Until(end); left < length/4 {
		return nil, fmt.Errorf("the machine is too slow: the changes took %s of a window of %s", (length - left).Round(time.Second), length)
	}
	if err := sleep(ctx, time.Until(end)); err != nil {
		return nil, err
	}
	after, err := hear(ctx, s)
	if err != nil {
		return nil, err
	}
	for i := range after {
		after[i].Bytes -= before[i].Bytes
		after[i].Packets -= before[i].Packets
		after[i].events -= before[i].events
	}
	return after, nil
}

// changeOthers changes the states of n other nodes once each.
func (c *cluster) changeOthers(ctx context.Context, n int) error {
	nodes := numbered("other", n)
	return parallel(ctx, n, func(ctx context.Context, i int) error {
		// No two of the numbers that are used have as many digits.
		round := len(fmt.Sprint(n))
		return c.patchState(ctx, nodes[i], map[string]any{"status": map[string]any{"ipAddresses": otherAddress(i, round)}})
	})
}

// changeOwn changes what nobody looks at in the worker's own state: a check that events are seen where there are any.
func (c *cluster) changeOwn(ctx context.Context) error {
	for i := range ownChanges {
		annotation := map[string]string{"example.com/seen": fmt.Sprint(i)}
		if err := c.patchState(ctx, worker, map[string]any{"metadata": map[string]any{"annotations": annotation}}); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) patchState(ctx context.Context, node string, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = c.uplinks.K8sV1alpha1().UplinkStates().Patch(ctx, uplinkstate.Name(foreignUplink, node),
		types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("change state of node %s: %w", node, err)
	}
	return nil
}

// hear reads the counters of all agents.
func hear(ctx context.Context, s subjects) ([]heard, error) {
	var all []heard
	for _, a := range s.all() {
		metric := "ovn_uplink_reconcile_total"
		if a == s.allinone {
			metric = "allinone_uplinkstate_events_total"
		}
		events, err := a.counter(ctx, metric)
		if err != nil {
			return nil, err
		}
		t, err := received(ctx, a.node)
		if err != nil {
			return nil, err
		}
		all = append(all, heard{traffic: t, events: int64(events)})
	}
	return all, nil
}

// fanoutRows judges the windows, one for each of changes, and the one in which the worker's own state changed.
func fanoutRows(windows [][]heard, own []heard) []row {
	last := len(windows) - 1
	perChange := func(agent int) float64 {
		return float64(windows[last][agent].Bytes-windows[0][agent].Bytes) / float64(changes[last])
	}
	sizes := series(changes, func(n int) string { return fmt.Sprint(n) })
	number := func(n int64) string { return fmt.Sprint(n) }
	var rows []row
	for i, name := range []string{"host-agent", "dpu-agent", "all-in-one"} {
		var bytes, packets, events []int64
		silent := true
		values := map[string]float64{"bytesPerChange": perChange(i), "eventsOfOwn": float64(own[i].events), "bytesOfOwn": float64(own[i].Bytes)}
		for n, w := range windows {
			bytes, packets, events = append(bytes, w[i].Bytes), append(packets, w[i].Packets), append(events, w[i].events)
			silent = silent && w[i].events == 0
			values[fmt.Sprintf("bytes%d", changes[n])] = float64(w[i].Bytes)
			values[fmt.Sprintf("packets%d", changes[n])] = float64(w[i].Packets)
			values[fmt.Sprintf("events%d", changes[n])] = float64(w[i].events)
		}
		received := row{
			Measure: "API bytes, " + name, How: fmt.Sprintf("received while %s states of other nodes change", sizes),
			Figure:  fmt.Sprintf("%s B in %s packets", series(bytes, number), series(packets, number)),
			Verdict: noTarget, Values: values,
		}
		woken := row{
			Measure: "API events, " + name, How: fmt.Sprintf("of these, and of %d changes of its own", ownChanges),
			Figure: fmt.Sprintf("%s; own %d", series(events, number), own[i].events), Verdict: noTarget,
		}
		if i != allInOne {
			received.Target = fmt.Sprintf("≤ %.1f B per change, %.0f %% of all-in-one", maxLeak*perChange(allInOne), maxLeak*100)
			received.Verdict = judge(perChange(i) <= maxLeak*perChange(allInOne))
			// An agent that hears nothing of itself either would prove nothing.
			woken.Target, woken.Verdict = "0; own > 0", judge(silent && own[i].events > 0)
		}
		rows = append(rows, received, woken)
	}
	return rows
}
