// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	uplinknetwork "github.com/ovn-uplink/ovn-uplink/shared/network"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUplinksReady(t *testing.T) {
	ready := covers("tenant", v1alpha1.NetworkReady, "")
	bothOf := func(a, b []stateOption) []*v1alpha1.UplinkState {
		return []*v1alpha1.UplinkState{stateObject("blue", "a", a...), stateObject("blue", "b", b...)}
	}
	is := func(options ...stateOption) []stateOption { return options }
	failed := func(reason string) []stateOption { return is(covers("tenant", v1alpha1.NetworkFailed, reason)) }
	for name, tc := range map[string]struct {
		network func(*ovnk.ClusterUserDefinedNetwork)
		uplink  *v1alpha1.Uplink
		states  []*v1alpha1.UplinkState
		want    string
	}{
		"covered":           {nil, nil, bothOf(is(ready), is(ready)), "True UplinksReady: every active node's gateway covers the network"},
		"no Uplink":         {func(n *ovnk.ClusterUserDefinedNetwork) { n.Spec.Uplinks = nil }, nil, nil, "True UplinksReady: the network names no Uplink; it uses the cluster's default gateway"},
		"EVPN":              {func(n *ovnk.ClusterUserDefinedNetwork) { n.Spec.Network.Transport = "EVPN" }, nil, nil, "False UplinkUnsupportedTransport: the network names Uplink blue, but its transport is EVPN; a network with an Uplink must use the overlay"},
		"secondary":         {func(n *ovnk.ClusterUserDefinedNetwork) { n.Spec.Network.Layer3.Role = "Secondary" }, nil, nil, "False UplinkUnsupportedTopology: the network names Uplink blue, but only a primary Layer2 or Layer3 network can have one"},
		"another Uplink":    {func(n *ovnk.ClusterUserDefinedNetwork) { n.Spec.Uplinks = []string{"green"} }, nil, nil, "False UplinkNotFound: Uplink green does not exist; create it"},
		"terminating":       {nil, terminating(uplinkObject("blue", 1, config("e0")), time.Unix(1, 0)), bothOf(is(ready), is(ready)), "False UplinkTerminating: Uplink blue is being deleted"},
		"not selected":      {nil, uplinkObject("blue", 1, config("e0", "rack=r1")), bothOf(is(ready), is(ready)), "False UplinkNotFoundForNode: 1 of 2 active nodes are not ready: UplinkNotFoundForNode 1 (b)"},
		"overlap":           {nil, uplinkObject("blue", 1, config("e0"), config("e0", "rack=r1")), bothOf(is(ready), is(ready)), "False UplinkOverlapOnNode: 1 of 2 active nodes are not ready: UplinkOverlapOnNode 1 (a)"},
		"nothing published": {nil, nil, nil, "False UplinkNotResolvedForNode: 2 of 2 active nodes are not ready: UplinkNotResolvedForNode 2 (a, b)"},
		"stale":             {nil, uplinkObject("blue", 2, config("e0")), bothOf(is(ready, host("", 2), dpu("", 2)), is(ready)), "False UplinkNotResolvedForNode: 1 of 2 active nodes are not ready: UplinkNotResolvedForNode 1 (b)"},
		"not resolved":      {nil, nil, bothOf(is(ready), is(ready, dpu("BridgeNotFound", 1))), "False UplinkNotResolvedForNode: 1 of 2 active nodes are not ready: UplinkNotResolvedForNode 1 (b)"},
		"others covered":    {nil, nil, bothOf(is(ready), is(covers("other", v1alpha1.NetworkReady, ""))), "False GatewayConfigurationPending: 1 of 2 active nodes are not ready: GatewayConfigurationPending 1 (b)"},
		"pending":           {nil, nil, bothOf(is(ready), is(covers("tenant", v1alpha1.NetworkPending, "GatewayConfigurationPending"))), "False GatewayConfigurationPending: 1 of 2 active nodes are not ready: GatewayConfigurationPending 1 (b)"},
		"conflict":          {nil, nil, bothOf(is(ready), failed("UplinkConfigurationConflict")), "False UplinkConfigurationConflict: 1 of 2 active nodes are not ready: UplinkConfigurationConflict 1 (b)"},
		"VRF":               {nil, nil, bothOf(is(ready), failed("UplinkVRFAttachmentFailed")), "False UplinkVRFAttachmentFailed: 1 of 2 active nodes are not ready: UplinkVRFAttachmentFailed 1 (b)"},
		"mapping":           {nil, nil, bothOf(is(ready), failed("UplinkBridgeMappingFailed")), "False UplinkBridgeMappingFailed: 1 of 2 active nodes are not ready: UplinkBridgeMappingFailed 1 (b)"},
		"programming":       {nil, nil, bothOf(is(ready), failed("UplinkGatewayProgrammingFailed")), "False UplinkGatewayProgrammingFailed: 1 of 2 active nodes are not ready: UplinkGatewayProgrammingFailed 1 (b)"},
		"a made-up reason":  {nil, nil, bothOf(is(ready), failed("not a reason!")), "False UplinkGatewayProgrammingFailed: 1 of 2 active nodes are not ready: UplinkGatewayProgrammingFailed 1 (b)"},
		"neighbour failed":  {nil, nil, bothOf(is(ready), is(ready, covers("other", v1alpha1.NetworkFailed, "UplinkConfigurationConflict"))), "True UplinksReady: every active node's gateway covers the network"},
		"tie":               {nil, nil, bothOf(nil, failed("UplinkConfigurationConflict")), "False UplinkConfigurationConflict: 2 of 2 active nodes are not ready: GatewayConfigurationPending 1 (a), UplinkConfigurationConflict 1 (b)"},
		"annotated": {func(n *ovnk.ClusterUserDefinedNetwork) {
			n.Spec.Uplinks, n.Annotations = nil, map[string]string{uplinknetwork.UplinksAnnotation: "blue"}
		}, nil, bothOf(is(ready), is(ready)), "True UplinksReady: every active node's gateway covers the network"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(false)
			w.node("a", "rack=r1")
			w.node("b")
			u := tc.uplink
			if u == nil {
				u = uplinkObject("blue", 1, config("e0"))
			}
			w.setUplink("blue", u)
			n := networkObject("tenant", "blue")
			if tc.network != nil {
				tc.network(n)
			}
			w.setNetwork("tenant", n)
			for _, s := range tc.states {
				w.state(s)
			}
			got, exists := w.networkReady("tenant")
			expect(t, got, exists, tc.want)
		})
	}
}

// With as many nodes for each reason, the one further down the table decides; with more for one, that one.
func TestMostFrequentReason(t *testing.T) {
	for i, first := range networkOrder {
		for _, second := range networkOrder[i+1:] {
			var c tally
			c.bad("a", second)
			c.bad("b", first)
			if got := mostFrequent(&c); got != first {
				t.Errorf("of %s and %s: %s", first, second, got)
			}
			c.bad("c", second)
			if got := mostFrequent(&c); got != second {
				t.Errorf("of %s and twice %s: %s", first, second, got)
			}
		}
	}
}

// Who keeps a terminating Uplink, and who came too late.
func TestWhoHoldsAnUplink(t *testing.T) {
	deleted := time.Unix(1000, 0)
	made := func(at time.Time) *ovnk.ClusterUserDefinedNetwork {
		n := networkObject("tenant", "blue")
		n.CreationTimestamp = metav1.Time{Time: at}
		return n
	}
	annotated := made(deleted.Add(-time.Hour))
	annotated.Spec.Uplinks, annotated.Annotations = nil, map[string]string{uplinknetwork.UplinksAnnotation: "blue"}
	plain := made(deleted.Add(-time.Hour))
	plain.Spec.Uplinks = nil
	for name, tc := range map[string]struct {
		before, after *ovnk.ClusterUserDefinedNetwork // seen before and after the Uplink terminates
		starting      bool                            // the role has only just begun to watch
		holds         bool
	}{
		"made before":                           {made(deleted.Add(-time.Second)), nil, false, true},
		"made before, seen after":               {nil, made(deleted.Add(-time.Second)), false, true},
		"made in the same second, seen before":  {made(deleted), nil, false, true},
		"made in the same second, seen after":   {nil, made(deleted), false, false},
		"made in the same second, at our start": {nil, made(deleted), true, true},
		"made after":                            {nil, made(deleted.Add(time.Second)), false, false},
		"made after, at our start":              {nil, made(deleted.Add(time.Second)), true, false},
		"annotated before":                      {annotated, nil, false, true},
		"annotated after":                       {plain, annotated, false, false},
		"annotated, at our start":               {nil, annotated, true, true},
		"changed after, named before":           {made(deleted), made(deleted), false, true},
		"named before, not any more":            {annotated, plain, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(false)
			w.live = !tc.starting
			w.setUplink("blue", uplinkObject("blue", 1, config("e0")))
			if tc.before != nil {
				w.setNetwork("tenant", tc.before)
			}
			w.setUplink("blue", terminating(uplinkObject("blue", 1, config("e0")), deleted))
			if tc.after != nil {
				w.setNetwork("tenant", tc.after)
			}
			if got := w.protection("blue", true, true) == leave; got != tc.holds {
				t.Errorf("holds: %t, want %t", got, tc.holds)
			}
		})
	}
}

func TestProtection(t *testing.T) {
	for name, tc := range map[string]struct {
		named, has, terminating bool
		want                    verb
	}{
		"named, not protected":                 {true, false, false, protect},
		"named, protected":                     {true, true, false, leave},
		"not named":                            {false, false, false, leave},
		"not named, protected":                 {false, true, false, unprotect},
		"terminating, named":                   {true, true, true, leave},
		"terminating, named, not protected":    {true, false, true, leave},
		"terminating, not named":               {false, true, true, release},
		"terminating, kept by somebody else's": {false, false, true, leave},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(false)
			u := uplinkObject("blue", 1, config("e0"))
			if tc.named {
				w.setNetwork("tenant", networkObject("tenant", "blue"))
			}
			if tc.terminating {
				terminating(u, time.Unix(1000, 0))
			}
			w.setUplink("blue", u)
			if got := w.protection("blue", tc.has, tc.terminating); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
			if got := w.protection("blue", tc.has, !tc.terminating); got != leave {
				t.Errorf("acted on an Uplink that the world does not know so: %d", got)
			}
		})
	}
}
