// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/locate"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/events"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/reconcile"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// reconcile makes the dpu half of one state what it should be.
func (r *Role) reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	state, ok := r.states.Get(name)
	if !ok {
		r.forget(name)
		return reconcile.Result{}, nil
	}
	if want := uplinkstate.Name(state.Spec.UplinkName, state.Spec.NodeName); name != want {
		// Not made by a host agent. It would be resolved beside the real one.
		slog.Debug("ignoring a state whose name does not fit its spec", "state", name, "want", want)
		return reconcile.Result{}, nil
	}
	if uplinkstate.Leaving(state) {
		return r.release(ctx, state)
	}
	host, published := uplinkstate.HostHalfOf(state)
	wish, found, err := decide(host, published, func(data uplinkstate.HostData) (locate.Finding, error) {
		found, _, err := r.observer.Find(data)
		return found, err
	})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("resolve %s: %w", name, err)
	}
	if !wish.Resolved.Status {
		found.Warnings = nil // the condition says what is wrong
	}
	r.warn(state, found)
	return r.publish(ctx, state, host, wish)
}

func (r *Role) publish(ctx context.Context, state *v1alpha1.UplinkState, host uplinkstate.HostHalf, wish uplinkstate.DPUHalf) (reconcile.Result, error) {
	made, seen := r.hosts[state.Name]
	if !seen {
		made = host // after a start: what is published was made from what is there, as far as one can tell
	}
	now, ok := uplinkstate.DPUHalfOf(state)
	if ok && now.Equal(wish) {
		r.hosts[state.Name] = host
		r.settle.Done(state.Name)
		uplinkstate.Publish(state.Name, uplinkstate.Resolved, wish.Resolved)
		return reconcile.Result{}, nil
	}
	// What follows from a new host half has settled there already.
	if wait := r.settle.Wait(state.Name, wish, time.Now()); ok && made.Equal(host) && wait > 0 {
		return reconcile.Result{After: wait}, nil
	}
	written, err := r.client.Apply(ctx, state.Name, uplinkstate.ManagerDPU, uplinkstate.ApplyDPU(state, wish, time.Now()))
	if err == nil {
		if published, _ := uplinkstate.DPUHalfOf(written); !published.Equal(wish) {
			slog.Warn("another manager owns fields of the dpu half; correcting them", "state", state.Name)
			written, err = r.client.Merge(ctx, state.Name, uplinkstate.ManagerDPU, uplinkstate.CorrectDPU(written, wish, time.Now()))
		}
	}
	if kube.IsGone(err) {
		return reconcile.Result{}, nil // the watch brings the news
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("publish the bridge of %s: %w", state.Name, err)
	}
	r.states.Wrote(written)
	r.hosts[state.Name] = host
	r.settle.Done(state.Name)
	r.announce(state, now, wish, ok)
	return reconcile.Result{After: kube.CatchUp}, nil
}

// release answers a state that is leaving: it takes everything of the dpu's out of it.
func (r *Role) release(ctx context.Context, state *v1alpha1.UplinkState) (reconcile.Result, error) {
	r.forget(state.Name)
	if !holds(state) || uplinkstate.HoldsGateway(state) {
		return reconcile.Result{}, nil // nothing left to do, or the gateway goes first; its going is an event
	}
	written, err := r.client.Apply(ctx, state.Name, uplinkstate.ManagerDPU, uplinkstate.ApplyNothing(state))
	switch {
	case err == nil && holds(written):
		written, err = r.client.Merge(ctx, state.Name, uplinkstate.ManagerDPU, uplinkstate.CorrectNothing(written))
	case apierrors.IsInvalid(err) && !kube.IsGone(err):
		// Another manager owns a part of the condition, and one that is cut in half is refused.
		written, err = r.client.Merge(ctx, state.Name, uplinkstate.ManagerDPU, uplinkstate.CorrectNothing(state))
	}
	if kube.IsGone(err) {
		return reconcile.Result{}, nil // the watch brings the news
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("release %s: %w", state.Name, err)
	}
	r.states.Wrote(written)
	slog.Info("released", "uplink", state.Spec.UplinkName)
	return reconcile.Result{After: kube.CatchUp}, nil
}

// holds tells whether anything of the dpu half is in a state.
func holds(state *v1alpha1.UplinkState) bool {
	_, ok := uplinkstate.DPUHalfOf(state)
	return ok || state.Status.OVSBridge != nil
}

func (r *Role) announce(state *v1alpha1.UplinkState, before, now uplinkstate.DPUHalf, published bool) {
	slog.Info("published bridge", "uplink", state.Spec.UplinkName, "resolved", now.Resolved.Status,
		"reason", now.Resolved.Reason, "message", now.Resolved.Message)
	if published && before.Resolved.Status == now.Resolved.Status && before.Resolved.Reason == now.Resolved.Reason {
		return
	}
	kind := events.Warning
	if now.Resolved.Status {
		kind = events.Normal
	}
	r.recorder.Record(about(state), kind, now.Resolved.Reason, "Resolve", now.Resolved.Message)
}

// warn reports what is not in the way but will surprise, each once while it lasts.
func (r *Role) warn(state *v1alpha1.UplinkState, found locate.Finding) {
	warning := strings.Join(found.Warnings, "; ")
	if r.warned[state.Name] == warning {
		return
	}
	r.warned[state.Name] = warning
	setWarnings(state.Name, len(found.Warnings))
	if warning != "" {
		slog.Warn("uplink works, but", "uplink", state.Spec.UplinkName, "warning", warning)
		r.recorder.Record(about(state), events.Warning, "UplinkMisconfigured", "Resolve", warning)
	}
}

func (r *Role) forget(name string) {
	delete(r.hosts, name)
	delete(r.warned, name)
	r.settle.Done(name)
	setWarnings(name, 0)
	uplinkstate.Retract(name, uplinkstate.Resolved)
}

func about(state *v1alpha1.UplinkState) events.Object {
	return events.Object{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "UplinkState", Name: state.Name, UID: state.UID,
	}
}
