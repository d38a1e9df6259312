// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

func TestConclude(t *testing.T) {
	mapping := uplinkstate.Problemf(uplinkstate.ReasonUplinkBridgeMappingFailed, "no patch port")
	flows := uplinkstate.Problemf(uplinkstate.ReasonUplinkGatewayProgrammingFailed, "refused")
	pending := uplinkstate.Problemf(uplinkstate.ReasonGatewayConfigurationPending, "waiting for a router")
	for name, tc := range map[string]struct {
		findings map[string]finding
		status   bool
		reason   string
		message  string
		networks string
	}{
		"no network":  {nil, true, "GatewayConfigured", "no network is active on this node", "[]"},
		"one":         {map[string]finding{"blue": nil}, true, "GatewayConfigured", "the gateway covers 1 network", "[{blue Ready  }]"},
		"two, sorted": {map[string]finding{"red": nil, "blue": nil}, true, "GatewayConfigured", "the gateway covers 2 networks", "[{blue Ready  } {red Ready  }]"},
		"one of two pending": {map[string]finding{"red": pending, "blue": nil}, false, "GatewayConfigurationPending",
			"1 of 2 networks: red: waiting for a router", "[{blue Ready  } {red Pending GatewayConfigurationPending waiting for a router}]"},
		"the highest reason wins": {map[string]finding{"a": pending, "b": flows, "c": mapping}, false, "UplinkBridgeMappingFailed",
			"1 of 3 networks: c: no patch port",
			"[{a Pending GatewayConfigurationPending waiting for a router} {b Failed UplinkGatewayProgrammingFailed refused} {c Failed UplinkBridgeMappingFailed no patch port}]"},
		"many": {map[string]finding{"a": flows, "b": flows, "c": flows, "d": flows, "e": nil}, false, "UplinkGatewayProgrammingFailed",
			"4 of 5 networks: a, b, c and 1 more: refused",
			"[{a Failed UplinkGatewayProgrammingFailed refused} {b Failed UplinkGatewayProgrammingFailed refused} {c Failed UplinkGatewayProgrammingFailed refused} {d Failed UplinkGatewayProgrammingFailed refused} {e Ready  }]"},
	} {
		t.Run(name, func(t *testing.T) {
			half := conclude(tc.findings)
			if half.Ready.Status != tc.status || half.Ready.Reason != tc.reason || half.Ready.Message != tc.message {
				t.Errorf("got %+v", half.Ready)
			}
			if got := fmt.Sprint(half.Networks); got != tc.networks {
				t.Errorf("got %s\nwant %s", got, tc.networks)
			}
		})
	}
}

func TestKeepReady(t *testing.T) {
	published := uplinkstate.GatewayHalf{Networks: []v1alpha1.NetworkStatus{
		{Name: "blue", Phase: v1alpha1.NetworkReady}, {Name: "gone", Phase: v1alpha1.NetworkReady}, {Name: "red", Phase: v1alpha1.NetworkFailed},
	}}
	problem := uplinkstate.Problemf(uplinkstate.ReasonGatewayConfigurationPending, "wait")
	active := []tenant{{cudn: "blue"}, {cudn: "green"}, {cudn: "red"}}
	got := keepReady(active, published, problem)
	if len(got) != 3 || got["blue"] != nil || got["green"] != problem || got["red"] != problem {
		t.Errorf("got %v", got)
	}
	if sameNetworks(active, published.Networks) || !sameNetworks(active[:0], nil) ||
		!sameNetworks([]tenant{{cudn: "red"}, {cudn: "gone"}, {cudn: "blue"}}, published.Networks) {
		t.Error("sets are not compared as sets")
	}
}

func TestFailure(t *testing.T) {
	own := uplinkstate.Problemf(uplinkstate.ReasonUplinkConfigurationConflict, "two")
	if got := failure("Other", "try", fmt.Errorf("wrapped: %w", own)); got != own {
		t.Errorf("got %v", got)
	}
	if got := failure("Other", "try", errors.New("broken")); got.Reason != "Other" || got.Message != "try: broken" {
		t.Errorf("got %v", got)
	}
}
