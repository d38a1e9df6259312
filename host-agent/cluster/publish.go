// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/events"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/reconcile"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// target is a kind of object that the role sets one condition on, by server-side apply of nothing else.
type target[T kube.Object] struct {
	apiVersion, kind string
	condition        string
	of               func(T) []metav1.Condition
	informer         *kube.Informer[T]
	client           kube.Resource[T]
	pace             pace
	recorder         *events.Recorder
}

func (t *term) onUplink() target[*v1alpha1.Uplink] {
	return target[*v1alpha1.Uplink]{
		apiVersion: v1alpha1.SchemeGroupVersion.String(), kind: "Uplink", condition: uplinkstate.Ready,
		informer: t.Role.uplinks, client: t.api.uplinks, pace: t.uplinkWrites, recorder: t.recorder,
		of: func(u *v1alpha1.Uplink) []metav1.Condition { return u.Status.Conditions },
	}
}

func (t *term) onNetwork() target[*ovnk.ClusterUserDefinedNetwork] {
	return target[*ovnk.ClusterUserDefinedNetwork]{
		apiVersion: ovnk.SchemeGroupVersion.String(), kind: "ClusterUserDefinedNetwork", condition: uplinkstate.UplinksReady,
		informer: t.Role.networks, client: t.api.networks, pace: t.networkWrites, recorder: t.recorder,
		of: func(n *ovnk.ClusterUserDefinedNetwork) []metav1.Condition { return n.Status.Conditions },
	}
}

// publish makes an object's condition what it should be.
func (t target[T]) publish(ctx context.Context, name string, wish uplinkstate.Condition) (reconcile.Result, error) {
	object, ok := t.informer.Get(name)
	if !ok {
		return reconcile.Result{}, nil
	}
	published, known := uplinkstate.PublishedCondition(t.of(object), t.condition)
	if known && published == wish {
		return reconcile.Result{}, nil
	}
	now := time.Now()
	if wait := t.pace.wait(name, published, wish, now); known && wait > 0 {
		return reconcile.Result{After: wait}, nil
	}
	patch := uplinkstate.ApplyCondition(t.apiVersion, t.kind, object, t.condition, wish, t.of(object), now)
	written, err := t.client.ApplyStatus(ctx, name, uplinkstate.ManagerCluster, patch)
	if kube.IsGone(err) {
		return reconcile.Result{After: kube.CatchUp}, nil // the watch brings the news, as a rule
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("set %s of %s %s: %w", t.condition, t.kind, name, err)
	}
	t.informer.Wrote(written)
	t.pace.wrote(name, now)
	slog.Info("published condition", "kind", t.kind, "name", name, "condition", t.condition,
		"status", wish.Status, "reason", wish.Reason, "message", wish.Message)
	if !known || published.Status != wish.Status || published.Reason != wish.Reason {
		t.announce(object, wish)
	}
	return reconcile.Result{After: kube.CatchUp}, nil
}

func (t target[T]) announce(object T, wish uplinkstate.Condition) {
	kind := events.Warning
	if wish.Status {
		kind = events.Normal
	}
	about := events.Object{APIVersion: t.apiVersion, Kind: t.kind, Name: object.GetName(), UID: object.GetUID()}
	t.recorder.Record(about, kind, wish.Reason, "Aggregate", wish.Message)
}
