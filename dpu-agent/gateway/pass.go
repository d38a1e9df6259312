// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/network"
	"github.com/ovn-uplink/ovn-uplink/shared/reconcile"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

const (
	// tolerance is how long a gateway that was complete is still shown as such while it cannot be looked at or written
	// to: a database that restarts is no event for those who watch conditions.
	tolerance = 5 * time.Second
	// realisation is how long ovn-controller may take to make a patch port or to carry a gateway router out.
	realisation = 30 * time.Second
	// farewell is how long flows wait for the patch port to go when an Uplink is taken down.
	farewell = 10 * time.Second
	// sweepAgain is how soon a sweep is done again that could not be done completely.
	sweepAgain = 5 * time.Second
)

// reconcile makes the gateway of one Uplink what it should be. The empty key is the sweep.
func (r *Role) reconcile(ctx context.Context, uplink string) (reconcile.Result, error) {
	if uplink == "" {
		complete, err := r.sweep(ctx)
		if complete {
			return reconcile.Result{After: r.config.Resync}, err
		}
		return reconcile.Result{After: sweepAgain}, err
	}
	state, ok := r.states.Get(uplinkstate.Name(uplink, r.node))
	if !ok || state.Spec.UplinkName != uplink {
		return r.orphaned(ctx, uplink)
	}
	r.waits.end("state of " + uplink)
	if uplinkstate.Leaving(state) {
		return r.leave(ctx, state)
	}
	result, err := r.serve(ctx, state)
	if kube.IsGone(err) {
		return reconcile.Result{}, nil // the watch brings the news
	}
	return result, err
}

// orphaned deals with an Uplink of which something is programmed and whose state is not there. Without the mark of
// leaving its going was an accident, and the host makes it anew.
func (r *Role) orphaned(ctx context.Context, uplink string) (reconcile.Result, error) {
	if rest := r.waits.rest("state of "+uplink, r.config.DeletionGrace, time.Now()); rest > 0 {
		return reconcile.Result{After: rest}, nil
	}
	rest, err := r.takeDown(ctx, uplink)
	if err == nil && rest == 0 {
		r.forget(uplink)
		r.loop.Add("") // for flows whose bridge was not known any more
	}
	return reconcile.Result{After: rest}, err
}

// leave answers a state that is leaving.
func (r *Role) leave(ctx context.Context, state *v1alpha1.UplinkState) (reconcile.Result, error) {
	if !uplinkstate.HoldsGateway(state) && !r.holdsAnything(state.Spec.UplinkName) {
		return reconcile.Result{}, nil
	}
	rest, err := r.takeDown(ctx, state.Spec.UplinkName)
	if err != nil || rest > 0 {
		return reconcile.Result{After: rest}, err
	}
	r.forget(state.Spec.UplinkName)
	if err := r.publishNothing(ctx, state); err != nil {
		return reconcile.Result{}, err
	}
	r.loop.Add("") // for flows whose bridge was not known any more
	return reconcile.Result{After: kube.CatchUp}, nil
}

// serve programs and publishes.
func (r *Role) serve(ctx context.Context, state *v1alpha1.UplinkState) (reconcile.Result, error) {
	uplink := state.Spec.UplinkName
	published, isPublished := uplinkstate.GatewayHalfOf(state)
	r.seen = r.seen || r.nb.Ready() == nil
	if !isPublished && !r.seen {
		return reconcile.Result{}, nil // its being seen is an event
	}
	active, again := r.active(uplink, published)

	dpu, _ := uplinkstate.DPUHalfOf(state)
	if !dpu.Resolved.Status || dpu.Bridge == nil {
		if !isPublished {
			return reconcile.Result{After: again}, nil
		}
		// Not a wish to take anything down: what is there stays, what is new waits.
		waiting := uplinkstate.Problemf(uplinkstate.ReasonGatewayConfigurationPending,
			"the Uplink is not resolved on this node: %s: %s", dpu.Resolved.Reason, dpu.Resolved.Message)
		_, err := r.publish(ctx, state, conclude(keepReady(active, published, waiting)))
		return reconcile.Result{After: again}, err
	}
	if problem := r.conflict(state, active); problem != nil {
		_, err := r.publish(ctx, state, conclude(all(active, problem)))
		return reconcile.Result{After: again}, err
	}
	if !sameNetworks(active, published.Networks) {
		pending := uplinkstate.Problemf(uplinkstate.ReasonGatewayConfigurationPending, "the set of active networks has changed")
		var err error
		if state, err = r.publish(ctx, state, conclude(keepReady(active, published, pending))); err != nil {
			return reconcile.Result{}, err
		}
		published, _ = uplinkstate.GatewayHalfOf(state)
	}

	findings, rest, err := r.program(ctx, state, active)
	if err != nil {
		if left := r.waits.rest("trouble with "+uplink, tolerance, time.Now()); left > 0 {
			pending := uplinkstate.Problemf(uplinkstate.ReasonGatewayConfigurationPending, "%v", err)
			findings = keepReady(active, published, pending)
		}
	} else {
		r.waits.end("trouble with " + uplink)
	}
	if _, wrong := r.publish(ctx, state, conclude(findings)); wrong != nil {
		return reconcile.Result{}, errors.Join(err, wrong)
	}
	return reconcile.Result{After: sooner(again, rest)}, err
}

// conflict says that two Uplinks with active networks share a bridge. It is shown on each of them, whoever was first,
// and what works already is left working.
func (r *Role) conflict(state *v1alpha1.UplinkState, active []tenant) *uplinkstate.Problem {
	if len(active) == 0 {
		return nil
	}
	own, bridge := state.Spec.UplinkName, state.Status.OVSBridge.Name
	others := r.states.List()
	slices.SortFunc(others, func(a, b *v1alpha1.UplinkState) int { return strings.Compare(a.Name, b.Name) })
	for _, o := range others {
		if o.Spec.UplinkName == own || o.Status.OVSBridge == nil || o.Status.OVSBridge.Name != bridge || uplinkstate.Leaving(o) {
			continue
		}
		published, _ := uplinkstate.GatewayHalfOf(o)
		if theirs, _ := r.active(o.Spec.UplinkName, published); len(theirs) > 0 {
			return uplinkstate.Problemf(uplinkstate.ReasonUplinkConfigurationConflict,
				"Uplinks %s and %s both have active networks and are on bridge %s of this node; give each its own bridge",
				min(own, o.Spec.UplinkName), max(own, o.Spec.UplinkName), bridge)
		}
	}
	return nil
}

// keepReady are the findings while nothing can be found out: what was ready is, what is new has the problem.
func keepReady(active []tenant, published uplinkstate.GatewayHalf, problem *uplinkstate.Problem) map[string]finding {
	findings := map[string]finding{}
	for _, t := range active {
		findings[t.cudn] = problem
		if published.Phase(t.cudn) == v1alpha1.NetworkReady {
			findings[t.cudn] = nil
		}
	}
	return findings
}

func all(active []tenant, problem *uplinkstate.Problem) map[string]finding {
	findings := map[string]finding{}
	for _, t := range active {
		findings[t.cudn] = problem
	}
	return findings
}

func sameNetworks(active []tenant, published []v1alpha1.NetworkStatus) bool {
	if len(active) != len(published) {
		return false
	}
	names := map[string]bool{}
	for _, n := range published {
		names[n.Name] = true
	}
	for _, t := range active {
		if !names[t.cudn] {
			return false
		}
	}
	return true
}

// sooner is the shorter of two times that are not zero.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// failure turns the error of a step into what is published: its own reason if it has one, else the step's.
func failure(reason, what string, err error) *uplinkstate.Problem {
	var problem *uplinkstate.Problem
	if errors.As(err, &problem) {
		return problem
	}
	return uplinkstate.Problemf(reason, "%s: %v", what, err)
}

// active are the networks of an Uplink that are active on the node, and when that may change without an event.
func (r *Role) active(uplink string, published uplinkstate.GatewayHalf) (active []tenant, again time.Duration) {
	for _, t := range tenants(uplink, r.cudns.List()) {
		occupied := !r.config.Dynamic || r.occupancy.occupied(t.namespaces)
		yes, rest := r.activity.active(t.cudn, occupied, published.Phase(t.cudn) != "", time.Now())
		if yes {
			active = append(active, t)
		}
		again = sooner(again, rest)
	}
	if len(active) > uplinkstate.MaxNetworks {
		active = active[:uplinkstate.MaxNetworks] // those that are left out show as not covered
	}
	return active, again
}

// networkName is what OVN-Kubernetes calls the network.
func (t tenant) networkName() string { return network.Name(t.cudn) }
