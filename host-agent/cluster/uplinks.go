// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	uplinknetwork "github.com/ovn-uplink/ovn-uplink/shared/network"
	"github.com/ovn-uplink/ovn-uplink/shared/reconcile"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
)

// lingering is when to look again for states that were deleted and are still there, for a finalizer of theirs.
const lingering = time.Second

// reconcileUplink sees to one Uplink: whether it may go, its Ready, and the states that nobody else removes.
func (t *term) reconcileUplink(ctx context.Context, name string) (reconcile.Result, error) {
	uplink, exists := t.Role.uplinks.Get(name)
	if !exists {
		t.uplinkWrites.forget(name)
		delete(t.deselected, name)
		return t.collectOrphans(ctx, name)
	}
	switch t.world.protection(name, slices.Contains(uplink.Finalizers, uplinkstate.Finalizer), uplink.DeletionTimestamp != nil) {
	case protect:
		return reconcile.Result{After: kube.CatchUp}, t.setFinalizers(ctx, uplink, append(slices.Clone(uplink.Finalizers), uplinkstate.Finalizer))
	case unprotect:
		return reconcile.Result{After: kube.CatchUp}, t.unprotect(ctx, uplink)
	case release:
		return t.release(ctx, uplink)
	case leave:
	}
	wish, exists := t.world.uplinkReady(name)
	if !exists {
		return reconcile.Result{}, nil // the world hears of it in a moment
	}
	result, err := t.onUplink().publish(ctx, name, wish)
	if err != nil {
		return result, err
	}
	due, err := t.collectDeselected(ctx, name)
	if due > 0 {
		result.After = minDue(result.After, due)
	}
	return result, err
}

// verb is what is to be done about an Uplink's finalizer.
type verb int

const (
	leave     verb = iota // it is as it should be
	protect               // a network needs the Uplink
	unprotect             // no network does, and nobody deletes it
	release               // no network does, and it is being deleted
)

// protection says what is to be done about the finalizer of an Uplink.
func (w *world) protection(name string, has, terminating bool) verb {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.uplinks[name]
	if u == nil || u.terminating() != terminating {
		return leave // the world hears of it in a moment
	}
	held := len(w.holders(u)) > 0
	switch {
	case held && !has && !terminating:
		return protect
	case !held && has && !terminating:
		return unprotect
	case !held && has:
		return release
	}
	return leave
}

// release lets a terminating Uplink go: its states first, so that none is left of it, then the finalizer. Host agents
// make no states for an Uplink that is terminating.
func (t *term) release(ctx context.Context, uplink *v1alpha1.Uplink) (reconcile.Result, error) {
	if holder, err := t.stillHeld(ctx, uplink); err != nil || holder != "" {
		return reconcile.Result{After: lingering}, err
	}
	own := fields.OneTermEqualSelector("spec.uplinkName", uplink.Name)
	if err := t.api.states.DeleteAll(ctx, own); err != nil {
		return reconcile.Result{}, fmt.Errorf("delete the states of Uplink %s: %w", uplink.Name, err)
	}
	if left, err := t.api.states.Any(ctx, own); err != nil || left {
		return reconcile.Result{After: lingering}, err
	}
	slog.Info("released: no network names the Uplink, its states are deleted", "uplink", uplink.Name)
	return reconcile.Result{After: kube.CatchUp}, t.unprotect(ctx, uplink)
}

// stillHeld asks the API server, past the watch, which network that the watch has not brought yet holds a terminating
// Uplink: what is let go cannot be taken back.
func (t *term) stillHeld(ctx context.Context, uplink *v1alpha1.Uplink) (string, error) {
	all, err := t.api.networks.List(ctx)
	if err != nil {
		return "", fmt.Errorf("list networks before Uplink %s is released: %w", uplink.Name, err)
	}
	for _, object := range all {
		if t.world.knowsNetwork(object.Name) {
			continue
		}
		if slices.Contains(uplinknetwork.NamedUplinks(object), uplink.Name) && !object.CreationTimestamp.After(uplink.DeletionTimestamp.Time) {
			return object.Name, nil
		}
	}
	return "", nil
}

func (t *term) unprotect(ctx context.Context, uplink *v1alpha1.Uplink) error {
	rest := slices.DeleteFunc(slices.Clone(uplink.Finalizers), func(f string) bool { return f == uplinkstate.Finalizer })
	return t.setFinalizers(ctx, uplink, rest)
}

// setFinalizers writes the whole list, if the object is still the one that was looked at.
func (t *term) setFinalizers(ctx context.Context, uplink *v1alpha1.Uplink, finalizers []string) error {
	patch := map[string]any{"metadata": map[string]any{
		"resourceVersion": uplink.ResourceVersion,
		"finalizers":      finalizers,
	}}
	written, err := t.api.uplinks.Merge(ctx, uplink.Name, uplinkstate.ManagerCluster, patch)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("set the finalizers of Uplink %s: %w", uplink.Name, err)
	}
	if written.DeletionTimestamp == nil || len(written.Finalizers) > 0 { // else it is gone by now
		t.Role.uplinks.Wrote(written)
	}
	slog.Info("set finalizers", "uplink", uplink.Name, "finalizers", finalizers)
	return nil
}
