// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/bridge"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/openflow"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/network"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// program makes the gateway of an Uplink: the flows that do not need OVN, OVN's rows, the bridge mapping, and, once
// ovn-controller has made the patch port, the flows that connect the two. The first come first because they keep what
// OVN sends on a port that nobody knows yet from moving the host's MAC address.
//
// The findings are about every active network. The error is what kept a step from being done, to be tried again; the
// findings have it too. again is when to look without an event.
func (r *Role) program(ctx context.Context, state *v1alpha1.UplinkState, active []tenant) (findings map[string]finding, again time.Duration, err error) {
	uplink := state.Spec.UplinkName
	if len(active) == 0 {
		rest, err := r.takeDown(ctx, uplink)
		return nil, rest, err
	}
	host, _ := uplinkstate.HostHalfOf(state)
	place, err := r.place(state, host.Data)
	if err != nil {
		// What is wrong there is for Resolved to say, and it will.
		waiting := uplinkstate.Problemf(uplinkstate.ReasonGatewayConfigurationPending, "find the bridge: %v", err)
		return all(active, waiting), 0, err
	}
	view, known := r.observer.OVS.Latest()
	if !known {
		err := fmt.Errorf("look at Open vSwitch: %w", r.observer.OVS.Ready())
		return all(active, failure(uplinkstate.ReasonUplinkBridgeMappingFailed, "look at the bridge mapping", err)), 0, err
	}

	vrf, again, vrfErr := r.settleDomain(ctx, uplink, r.interfaceOf(host.Data, place), host.Data, active)
	served := r.served(uplink, active)
	if len(served) == 0 {
		rest, err := r.takeDown(ctx, uplink)
		return problems(active), sooner(rest, again), errors.Join(vrfErr, err)
	}
	learned := r.learn(uplink, r.interfaceOf(host.Data, place), vrf, host.Data, active)
	wish := r.wish(uplink, view, host.Data, served, vrf, learned)
	flows, err := r.bridgeFlows(ctx, place, host.Data, learned)
	if err != nil {
		return all(active, failure(uplinkstate.ReasonUplinkGatewayProgrammingFailed, "look at the flows of the bridge", err)), again, err
	}
	patch, why := view.PatchPort(place.Bridge, ovn.PhysicalNetwork(uplink), ovn.LocalnetPort(uplink, r.node))
	var flowErr, mapErr error
	if patch == 0 {
		flowErr = r.push(ctx, flows)
	}
	outcome, _, ovnErr := r.nb.Apply(ctx, wish)
	if ovnErr == nil {
		r.outcomes[uplink] = outcome
		_, mapErr = r.observer.OVS.Map(ctx, ovn.PhysicalNetwork(uplink), r.mapTo(view, uplink, place.Bridge))
	}
	// Without the database the addresses of the networks are those that it had last.
	if outcome, seen := r.outcomes[uplink]; seen && patch != 0 {
		flows.Patch = patch
		flows.Services = steer(wish, outcome)
		flows.Advertised = advertised(outcome)
		flowErr = r.push(ctx, flows)
	}
	if before := r.bridges[uplink]; flowErr == nil && patch != 0 && before != place.Bridge {
		r.bridges[uplink] = place.Bridge
		if before != "" {
			flowErr = r.flows.Remove(ctx, before)
		}
	}

	findings, rest := r.findings(active, outcome, r.common(uplink, patch, why, ovnErr, mapErr, flowErr), view, uplink)
	if patch == 0 && rest == 0 {
		rest = r.waits.rest("patch port of "+uplink, realisation, time.Now())
	}
	return findings, sooner(again, rest), errors.Join(vrfErr, ovnErr, mapErr, flowErr)
}

// findings are what is wrong with each network: its own problem, or OVN's with it, or that of all, or that
// ovn-controller has yet to take it up, which rest is for.
func (r *Role) findings(active []tenant, outcome ovn.Outcome, common *uplinkstate.Problem, view *bridge.View, uplink string) (findings map[string]finding, rest time.Duration) {
	findings = problems(active)
	for _, t := range active {
		if findings[t.cudn] != nil {
			continue
		}
		found := cmp.Or(outcome.Networks[t.networkName()].Problem, common)
		if found == nil {
			var wait time.Duration
			found, wait = r.carriedOut(view, uplink, t)
			rest = sooner(rest, wait)
		}
		findings[t.cudn] = found
	}
	return findings, rest
}

// problems are the findings about networks that need no look at what is programmed.
func problems(active []tenant) map[string]finding {
	findings := map[string]finding{}
	for _, t := range active {
		findings[t.cudn] = t.problem
		if t.invalid != "" {
			findings[t.cudn] = uplinkstate.Problemf(uplinkstate.ReasonUplinkGatewayProgrammingFailed, "%s", t.invalid)
		}
	}
	return findings
}

// advertised are the pod subnets that what comes from the wire may be for, sorted.
func advertised(outcome ovn.Outcome) []netip.Prefix {
	var all []netip.Prefix
	for _, n := range outcome.Networks {
		if len(n.Transit) > 0 {
			all = append(all, n.Advertised...)
		}
	}
	slices.SortFunc(all, netip.Prefix.Compare)
	return slices.Compact(all)
}

// place follows the chain to the bridge with the same data and by the same code as the role that published it.
func (r *Role) place(state *v1alpha1.UplinkState, host uplinkstate.HostData) (bridge.Report, error) {
	_, report, err := r.observer.Find(host)
	if err != nil {
		return bridge.Report{}, err
	}
	if report.Bridge == nil || report.Bridge.Bridge != string(state.Status.OVSBridge.Name) {
		return bridge.Report{}, uplinkstate.Problemf(uplinkstate.ReasonGatewayConfigurationPending,
			"the bridge is about to change from %s", state.Status.OVSBridge.Name)
	}
	return *report.Bridge, nil
}

// interfaceOf is the interface that belongs into a network's VRF: the one with the Uplink's addresses, or on a DPU, where
// that is the host's, the bridge's own.
func (r *Role) interfaceOf(host uplinkstate.HostData, place bridge.Report) string {
	if r.observer.Regular() {
		return host.Interface
	}
	return place.Bridge
}

// mapTo is the bridge that the Uplink is to be mapped to, none while ovn-controller has its patch port on another one.
// OVN 23.03 does not move a patch port: it tries to make another one of the same name, for ever.
func (r *Role) mapTo(view *bridge.View, uplink, name string) string {
	if there := view.LocalnetBridge(ovn.LocalnetPort(uplink, r.node)); there != "" && there != name {
		return ""
	}
	return name
}

// common is what is wrong with all networks of an Uplink, highest reason first.
func (r *Role) common(uplink string, patch uint32, why string, ovnErr, mapErr, flowErr error) *uplinkstate.Problem {
	switch {
	case mapErr != nil:
		return failure(uplinkstate.ReasonUplinkBridgeMappingFailed, "write the bridge mapping", mapErr)
	case ovnErr != nil:
		return failure(uplinkstate.ReasonUplinkGatewayProgrammingFailed, "write the northbound database of OVN", ovnErr)
	case flowErr != nil:
		return failure(uplinkstate.ReasonUplinkGatewayProgrammingFailed, "program the flows", flowErr)
	case patch == 0:
		if r.waits.rest("patch port of "+uplink, realisation, time.Now()) > 0 {
			return uplinkstate.Problemf(uplinkstate.ReasonGatewayConfigurationPending, "waiting for the patch port: %s", why)
		}
		return uplinkstate.Problemf(uplinkstate.ReasonUplinkBridgeMappingFailed, "no patch port within %s: %s", realisation, why)
	}
	r.waits.end("patch port of " + uplink)
	return nil
}

// carriedOut tells whether ovn-controller has taken up the gateway router of a network.
func (r *Role) carriedOut(view *bridge.View, uplink string, t tenant) (finding, time.Duration) {
	what := "router of " + t.cudn
	port := ovn.RouterPort(uplink, r.node, network.Prefix(t.cudn))
	if view.CarriedOut(port) {
		r.waits.end(what)
		return nil, 0
	}
	rest := r.waits.rest(what, realisation, time.Now())
	if rest > 0 {
		return uplinkstate.Problemf(uplinkstate.ReasonGatewayConfigurationPending, "waiting for ovn-controller to carry out the network's gateway router"), rest
	}
	return uplinkstate.Problemf(uplinkstate.ReasonUplinkGatewayProgrammingFailed,
		"ovn-controller has not carried out router port %s within %s; are ovn-northd and ovn-controller running, and is the chassis name %q?",
		port, realisation, view.Chassis), 0
}

// push programs the flows of a bridge.
func (r *Role) push(ctx context.Context, flows openflow.Bridge) error {
	_, err := r.flows.Program(ctx, flows)
	return err
}
