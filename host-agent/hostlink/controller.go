// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/reconcile"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// reconcile makes the host half of one Uplink's state on this node what it should be.
func (r *Role) reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	snapshot, ok := r.kernel.Latest()
	if !ok {
		return reconcile.Result{}, errors.New("links are not known yet")
	}
	uplink, _ := r.uplinks.Get(name)
	state, exists := r.states.Get(uplinkstate.Name(name, r.config.Node))
	if !exists {
		state = nil
	} else if err := foreign(state, name, r.config.Node); err != nil {
		return reconcile.Result{}, err
	}
	var labels map[string]string
	node, nodeKnown := r.nodes.Get(r.config.Node)
	if nodeKnown {
		labels = node.Labels
	}

	d := decide(uplink, labels, nodeKnown, state, r.measure(ctx, snapshot, state))
	switch d.verb {
	case publish:
		return r.publish(ctx, uplink, state, d)
	case leave:
		return r.leave(ctx, uplink, state, d)
	case keep:
	}
	r.say(ctx, name, d)
	r.settle.Done(name)
	if state == nil {
		uplinkstate.Retract(uplinkstate.Name(name, r.config.Node), uplinkstate.HostDataReady)
	}
	return reconcile.Result{}, nil
}

// say logs why nothing is published, each cause once.
func (r *Role) say(ctx context.Context, uplink string, d decision) {
	if r.said[uplink] == d.why {
		return
	}
	r.said[uplink] = d.why
	level := slog.LevelDebug
	if d.wrong {
		level = slog.LevelWarn
	}
	slog.Log(ctx, level, "nothing to publish", "uplink", uplink, "why", d.why)
}

// measure reads an interface. state is what is published, nil for nothing.
func (r *Role) measure(ctx context.Context, snapshot *kernel.Snapshot, state *v1alpha1.UplinkState) measurer {
	return func(config v1alpha1.UplinkNodeConfig) (measurement, *uplinkstate.Problem) {
		data, problem := Discover(snapshot, string(config.HostInterfaceName))
		if problem != nil {
			return measurement{}, problem
		}
		// Best effort: without it the dpu finds the representor by MAC alone.
		function, err := r.functions.Function(ctx, snapshot, data.Interface)
		if err != nil {
			slog.Debug("PCI function not read", "interface", data.Interface, "error", err)
			if function == nil {
				function = publishedFunction(state, data)
			}
		}
		data.Function = function
		return measurement{data, WhyNoGateway(snapshot, data.Interface)}, nil
	}
}

// publishedFunction is the function that is published for the same interface with the same MAC address: one that
// cannot be read now has not gone.
func publishedFunction(state *v1alpha1.UplinkState, data uplinkstate.HostData) *v1alpha1.HostFunction {
	if state == nil {
		return nil
	}
	half, _ := uplinkstate.HostHalfOf(state)
	if half.Data.Interface != data.Interface || !slices.Equal(half.Data.MAC, data.MAC) {
		return nil
	}
	return half.Data.Function
}

func (r *Role) publish(ctx context.Context, uplink *v1alpha1.Uplink, state *v1alpha1.UplinkState, d decision) (reconcile.Result, error) {
	if state != nil {
		published, ok := uplinkstate.HostHalfOf(state)
		if ok && published.Equal(d.half) && uplinkstate.OwnedBy(state, uplink) {
			r.settle.Done(uplink.Name)
			uplinkstate.Publish(state.Name, uplinkstate.HostDataReady, d.half.Ready)
			return reconcile.Result{}, nil
		}
		if wait := r.settle.Wait(uplink.Name, d, time.Now()); ok && wait > 0 {
			return reconcile.Result{After: wait}, nil
		}
	}
	written, err := r.apply(ctx, uplinkstate.ApplyHost(uplink, r.config.Node, d.half, state, time.Now()))
	if err == nil {
		err = r.correct(ctx, written, d.half)
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("publish host data of Uplink %s: %w", uplink.Name, err)
	}
	slog.Info("published host data", "uplink", uplink.Name, "interface", d.half.Data.Interface,
		"ready", d.half.Ready.Status, "reason", d.half.Ready.Reason, "message", d.half.Ready.Message)
	r.settle.Done(uplink.Name)
	return reconcile.Result{After: kube.CatchUp}, nil
}

// leave takes a state away: first the mark, on which the dpu takes down what it programmed; when nothing of
// the dpu's is left in the state, or it did not answer in time, the state goes.
func (r *Role) leave(ctx context.Context, uplink *v1alpha1.Uplink, state *v1alpha1.UplinkState, d decision) (reconcile.Result, error) {
	name, uid := state.Spec.UplinkName, string(state.UID)
	if !uplinkstate.Leaving(state) {
		delete(r.leaving, uid)
		// A label that comes back within the settle time is no wish to leave. A deleted Uplink is.
		if wait := r.settle.WaitRest(name, d, time.Now()); uplink != nil && wait > 0 {
			return reconcile.Result{After: wait}, nil
		}
		_, err := r.apply(ctx, uplinkstate.ApplyLeaving(state, d.half, time.Now()))
		if kube.IsGone(err) {
			return reconcile.Result{}, nil // the watch brings the news
		}
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("mark %s as leaving: %w", state.Name, err)
		}
		slog.Info("leaving: waiting for the dpu to take its half down", "uplink", name)
		r.settle.Done(name)
		return reconcile.Result{After: kube.CatchUp}, nil
	}
	since, seen := r.leaving[uid]
	if !seen {
		since = time.Now()
		r.leaving[uid] = since
	}
	left := uplinkstate.Left(state)
	if wait := patience(left, since, time.Now()); wait > 0 {
		return reconcile.Result{After: wait}, nil
	}
	if err := r.client.Delete(ctx, state.Name, state.UID); err != nil && !kube.IsGone(err) {
		return reconcile.Result{}, fmt.Errorf("delete %s: %w", state.Name, err)
	}
	delete(r.leaving, uid)
	slog.Info("left: state deleted", "uplink", name, "answered", left)
	return reconcile.Result{}, nil
}

// patience is how long a state that was marked then is still left to the dpu; zero or less means that it may go.
func patience(left bool, marked, now time.Time) time.Duration {
	if left {
		return 0
	}
	return marked.Add(uplinkstate.LeaveAnswerTimeout).Sub(now)
}

func (r *Role) apply(ctx context.Context, patch uplinkstate.Patch) (*v1alpha1.UplinkState, error) {
	written, err := r.client.Apply(ctx, patch.Metadata.Name, uplinkstate.ManagerHost, patch)
	if err == nil {
		r.states.Wrote(written)
	}
	return written, err
}

// correct takes out of a state what an apply could not, because another manager owns it too.
func (r *Role) correct(ctx context.Context, state *v1alpha1.UplinkState, half uplinkstate.HostHalf) error {
	if published, ok := uplinkstate.HostHalfOf(state); ok && published.Equal(half) {
		return nil
	}
	slog.Warn("another manager owns fields of the host half; correcting them", "state", state.Name)
	written, err := r.client.Merge(ctx, state.Name, uplinkstate.ManagerHost, uplinkstate.CorrectHost(state, half, time.Now()))
	if err == nil {
		r.states.Wrote(written)
	}
	return err
}
