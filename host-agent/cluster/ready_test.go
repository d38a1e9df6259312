// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUplinkReady(t *testing.T) {
	bad := config("e0")
	bad.NodeSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "rack", Operator: "Near"}}
	twoOfThem := func(options ...stateOption) []*v1alpha1.UplinkState {
		return []*v1alpha1.UplinkState{stateObject("blue", "a", options...), stateObject("blue", "b")}
	}
	one := func(detail string) string {
		return "False UplinkStateNotResolved: 1 of 2 selected nodes are not ready: " + detail + " 1 (a)"
	}
	for name, tc := range map[string]struct {
		uplink *v1alpha1.Uplink // default: selects a and b
		states []*v1alpha1.UplinkState
		want   string
	}{
		"all resolved":          {nil, twoOfThem(), "True Ready: every selected node has resolved the Uplink"},
		"nothing published":     {nil, nil, "False MissingUplinkState: 2 of 2 selected nodes are not ready: MissingUplinkState 2 (a, b)"},
		"no node":               {uplinkObject("blue", 1, config("e0", "x=y")), twoOfThem(), "False NoMatchingNodes: no nodeConfig selects any node; label the nodes or correct the nodeSelectors"},
		"invalid selector":      {uplinkObject("blue", 1, config("e1", "x=y"), bad), twoOfThem(), `False InvalidSpec: spec.nodeConfigs[1].nodeSelector is invalid: "Near" is not a valid label selector operator; correct the selector`},
		"terminating":           {terminating(uplinkObject("blue", 1, bad), time.Unix(1, 0)), nil, "False UplinkTerminating: the Uplink is being deleted"},
		"overlap on one":        {uplinkObject("blue", 1, config("e0"), config("e0", "rack=r1")), twoOfThem(), "False NodeSelectorOverlap: 1 of 2 selected nodes are not ready: NodeSelectorOverlap 1 (a)"},
		"foreign owner":         {nil, twoOfThem(func(s *v1alpha1.UplinkState) { s.OwnerReferences[0].UID = "an earlier one" }), "False UplinkStateIdentityError: 1 of 2 selected nodes are not ready: UplinkStateIdentityError 1 (a)"},
		"foreign object":        {nil, twoOfThem(func(s *v1alpha1.UplinkState) { s.Spec.NodeName = "z" }), "False UplinkStateIdentityError: 1 of 2 selected nodes are not ready: UplinkStateIdentityError 1 (a)"},
		"host fails":            {nil, twoOfThem(host("HostInterfaceNotFound", 1), dpu("HostInterfaceNotFound", 1)), one("HostInterfaceNotFound")},
		"host fails, dpu late":  {nil, twoOfThem(host("HostInterfaceNotFound", 1)), one("HostInterfaceNotFound")},
		"node leaves":           {nil, twoOfThem(host("NodeNotSelected", 1)), one("NodeNotSelected")},
		"dpu fails":             {nil, twoOfThem(dpu("BridgeNotFound", 1)), one("BridgeNotFound")},
		"host silent":           {nil, twoOfThem(without(uplinkstate.HostDataReady), without(uplinkstate.Resolved)), one("WaitingForDPUHost")},
		"host silent, dpu told": {nil, twoOfThem(without(uplinkstate.HostDataReady), dpu("WaitingForDPUHost", 0)), one("WaitingForDPUHost")},
		"dpu silent":            {nil, twoOfThem(without(uplinkstate.Resolved)), one("ResolvedConditionMissing")},
		"host of a former spec": {uplinkObject("blue", 2, config("e0")), []*v1alpha1.UplinkState{stateObject("blue", "a"), stateObject("blue", "b", host("", 2), dpu("", 2))}, one("HostDataStale")},
		"dpu of a former spec":  {uplinkObject("blue", 2, config("e0")), []*v1alpha1.UplinkState{stateObject("blue", "a", host("", 2)), stateObject("blue", "b", host("", 2), dpu("", 2))}, one("ResolvedStale")},
		"no generation given":   {uplinkObject("blue", 2, config("e0")), []*v1alpha1.UplinkState{stateObject("blue", "a", host("", 0), dpu("", 0)), stateObject("blue", "b", host("", 2), dpu("", 2))}, "True Ready: every selected node has resolved the Uplink"},
		"another interface":     {nil, twoOfThem(func(s *v1alpha1.UplinkState) { s.Status.HostInterfaceName = "e1" }), one("NodeConfigMismatch")},
		"another type":          {nil, twoOfThem(func(s *v1alpha1.UplinkState) { s.Status.Type = "" }), one("NodeConfigMismatch")},
		"different causes":      {nil, []*v1alpha1.UplinkState{stateObject("blue", "a", dpu("HostInterfaceNotFound", 1)), stateObject("blue", "b", dpu("BridgeNotFound", 1))}, "False UplinkStateNotResolved: 2 of 2 selected nodes are not ready: HostInterfaceNotFound 1 (a), BridgeNotFound 1 (b)"},
		"missing goes before":   {nil, []*v1alpha1.UplinkState{stateObject("blue", "a", dpu("BridgeNotFound", 1))}, "False MissingUplinkState: 2 of 2 selected nodes are not ready: BridgeNotFound 1 (a), MissingUplinkState 1 (b)"},
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
			for _, s := range tc.states {
				w.state(s)
			}
			got, exists := w.uplinkReady("blue")
			expect(t, got, exists, tc.want)
			if got.Generation != u.Generation {
				t.Errorf("generation %d, want %d", got.Generation, u.Generation)
			}
		})
	}
}

func TestTally(t *testing.T) {
	var c tally
	for range 110 {
		c.good()
	}
	for _, node := range []string{"w9", "w1", "w5", "w3", "w2"} {
		c.bad(node, "BridgeNotFound")
	}
	c.bad("w0", "HostInterfaceNotFound")
	c.bad("w7", "BridgeInvalid")
	want := "7 of 117 selected nodes are not ready: BridgeNotFound 5 (w1, w2, w3, …), HostInterfaceNotFound 1 (w0), BridgeInvalid 1 (w7)"
	if got := c.message("selected"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
