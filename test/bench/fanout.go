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
		if err := sleep(ctx, full(b, 20*time.Second, 10*time.Second)); err != nil {
			return nil, err
		}
		var windows [][]heard
		for _, n := range changes {
			w, err := c.window(ctx, s, n)
			if err != nil {
				return nil, err
			}
			windows = append(windows, w)
		}
		return b.fanoutRows(windows), s.stop(ctx)
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

// window changes n states once each and returns what every agent received meanwhile. All windows have one length.
func (c *cluster) window(ctx context.Context, s subjects, n int) ([]heard, error) {
	length := full(c.b, 60*time.Second, 20*time.Second)
	c.b.say("%s while %d states of other nodes change", length, n)
	end := time.Now().Add(length)
	before, err := hear(ctx, s)
	if err != nil {
		return nil, err
	}
	nodes := numbered("other", n)
	err = parallel(ctx, n, func(ctx context.Context, i int) error {
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"ipAddresses": otherAddress(i, len(fmt.Sprint(n)))}})
		if err != nil {
			return err
		}
		_, err = c.uplinks.K8sV1alpha1().UplinkStates().Patch(ctx, uplinkstate.Name(foreignUplink, nodes[i]),
			types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("change state of node %s: %w", nodes[i], err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// What was sent must arrive within the window, too.
	if left := time.Until(end); left < length/4 {
		return nil, fmt.Errorf("the machine is too slow: %d changes took %s of a window of %s", n, (length - left).Round(time.Second), length)
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

func (b *bench) fanoutRows(windows [][]heard) []row {
	last := len(windows) - 1
	most := float64(changes[last])
	perChange := func(agent int) float64 {
		return float64(windows[last][agent].Bytes-windows[0][agent].Bytes) / most
	}
	all := perChange(2)
	var rows []row
	for i, name := range []string{"host-agent", "dpu-agent", "all-in-one"} {
		var events int64
		values := map[string]float64{"bytesPerChange": perChange(i)}
		var bytes, packets []int64
		for n, w := range windows {
			bytes, packets = append(bytes, w[i].Bytes), append(packets, w[i].Packets)
			events += w[i].events
			values[fmt.Sprintf("bytes%d", changes[n])] = float64(w[i].Bytes)
			values[fmt.Sprintf("packets%d", changes[n])] = float64(w[i].Packets)
			values[fmt.Sprintf("events%d", changes[n])] = float64(w[i].events)
		}
		number := func(n int64) string { return fmt.Sprint(n) }
		r := row{
			Measure: "API fan-out, " + name,
			How:     fmt.Sprintf("mgmt0 received in equal windows; %s other states changed", series(changes, func(n int) string { return fmt.Sprint(n) })),
			Figure: fmt.Sprintf("%s B; %s packets; %d events; %.2f B per change",
				series(bytes, number), series(packets, number), events, perChange(i)),
			Target:  fmt.Sprintf("0 events; ≤ %.0f %% of the all-in-one's bytes", maxLeak*100),
			Verdict: judge(events == 0 && perChange(i) <= maxLeak*all),
			Values:  values,
		}
		if name == "all-in-one" {
			r.Target, r.Verdict = "", noTarget
		}
		rows = append(rows, r)
	}
	return rows
}
