// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/bridge"
)

func TestNudge(t *testing.T) {
	var passes atomic.Int32
	n := &nudge{pass: func() { passes.Add(1) }}
	start := time.Now()
	n.now()
	if passes.Load() != 1 {
		t.Fatal("the first event was not passed on at once")
	}
	for range 1000 {
		n.now()
	}
	for deadline := start.Add(5 * time.Second); passes.Load() < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("events that followed were never passed on")
		}
	}
	if took := time.Since(start); took < calm {
		t.Errorf("events that followed were passed on after %s", took)
	}
	if got := passes.Load(); got != 2 {
		t.Errorf("%d passes for a burst, want 2", got)
	}
}

// A node where pods come and go has changes of Open vSwitch all the time, which no gateway depends on.
func TestPodsDoNotMatter(t *testing.T) {
	view := func(change func(integration, uplink *bridge.Bridge, ids map[string]string)) []string {
		integration := bridge.Bridge{Name: "br-int", ExternalIDs: map[string]string{"ct-zone-uplink_a_gw_x-edge": "7"}}
		uplink := bridge.Bridge{Name: "ovsbr1", Ports: []bridge.Port{{Name: "up0"}}}
		ids := map[string]string{"ovn-bridge": "br-int"}
		if change != nil {
			change(&integration, &uplink, ids)
		}
		return matters(&bridge.View{ExternalIDs: ids, Bridges: []bridge.Bridge{integration, uplink}})
	}
	before := view(nil)
	for name, tc := range map[string]struct {
		change  func(integration, uplink *bridge.Bridge, ids map[string]string)
		matters bool
	}{
		"a pod's port": {func(i, _ *bridge.Bridge, _ map[string]string) {
			i.Ports = append(i.Ports, bridge.Port{Name: "veth1", Interfaces: []bridge.Interface{{Name: "veth1"}}})
		}, false},
		"a pod's conntrack zone": {func(i, _ *bridge.Bridge, _ map[string]string) { i.ExternalIDs["ct-zone-default_pod"] = "8" }, false},
		"a router of ours is carried out": {func(i, _ *bridge.Bridge, _ map[string]string) {
			i.ExternalIDs["ct-zone-uplink_a_gw_y-edge"] = "9"
		}, true},
		"the other end of a patch port": {func(i, _ *bridge.Bridge, _ map[string]string) {
			i.Ports = append(i.Ports, bridge.Port{Name: "p", Interfaces: []bridge.Interface{{Options: map[string]string{"peer": "q"}}}})
		}, true},
		"an OpenFlow port of the uplink": {func(_, u *bridge.Bridge, _ map[string]string) {
			u.Ports[0].Interfaces = []bridge.Interface{{Name: "up0", OFPort: 7}}
		}, true},
		"a mapping": {func(_, _ *bridge.Bridge, ids map[string]string) { ids["ovn-bridge-mappings"] = "x:y" }, true},
	} {
		if got := !slices.Equal(before, view(tc.change)); got != tc.matters {
			t.Errorf("%s: matters %v, want %v", name, got, tc.matters)
		}
	}
}
