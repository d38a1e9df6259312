// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/reconcile"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
)

// States are collected when what they are of is gone. Whether it is, the API server is asked, past the watches: they
// are several, and one may be behind another.

// collectOrphans deletes the states of an Uplink that does not exist. The garbage collector of Kubernetes would do so
// too, by the owner; not every cluster has one, and it may take its time.
func (t *term) collectOrphans(ctx context.Context, name string) (reconcile.Result, error) {
	if !t.world.hasStates(name) {
		return reconcile.Result{}, nil
	}
	_, err := t.api.uplinks.Get(ctx, name)
	if err == nil {
		return reconcile.Result{}, nil // the watch brings it in a moment
	}
	if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("look whether Uplink %s is gone: %w", name, err)
	}
	return t.collect(ctx, fields.OneTermEqualSelector("spec.uplinkName", name), "Uplink", name)
}

// reconcileNode deletes the states of a Node that does not exist.
func (t *term) reconcileNode(ctx context.Context, name string) (reconcile.Result, error) {
	if !t.world.isMissing(name) {
		return reconcile.Result{}, nil
	}
	exists, err := t.api.nodes.Exists(ctx, name)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("look whether Node %s is gone: %w", name, err)
	}
	if exists {
		return reconcile.Result{}, nil // the watch brings it in a moment
	}
	return t.collect(ctx, fields.OneTermEqualSelector("spec.nodeName", name), "Node", name)
}

func (t *term) collect(ctx context.Context, selector fields.Selector, kind, name string) (reconcile.Result, error) {
	if err := t.api.states.DeleteAll(ctx, selector); err != nil {
		return reconcile.Result{}, fmt.Errorf("delete the states of the former %s %s: %w", kind, name, err)
	}
	slog.Info("deleted the UplinkStates of what is gone", "kind", kind, "name", name)
	return reconcile.Result{After: kube.CatchUp}, nil
}

// collectDeselected deletes the states of nodes that an Uplink does not select, once their host agents have had time
// to. It returns when the next one is due, zero for none.
func (t *term) collectDeselected(ctx context.Context, name string) (time.Duration, error) {
	known := t.deselected[name]
	now := time.Now()
	since := map[string]time.Time{}
	var next time.Duration
	for _, node := range t.world.deselectedNodes(name) {
		first, seen := known[node]
		if !seen {
			first = now
		}
		since[node] = first
		if wait := first.Add(t.config.Grace).Sub(now); wait > 0 {
			next = minDue(next, wait)
			continue
		}
		if err := t.deleteDeselected(ctx, name, node); err != nil {
			return 0, err
		}
	}
	t.deselected[name] = since
	return next, nil
}

func (t *term) deleteDeselected(ctx context.Context, uplink, node string) error {
	name := uplinkstate.Name(uplink, node)
	s, err := t.api.states.Get(ctx, name)
	if apierrors.IsNotFound(err) || err == nil && (s.Spec.UplinkName != uplink || s.Spec.NodeName != node) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s before it is deleted: %w", name, err)
	}
	if err := t.api.states.Delete(ctx, name, s.UID); err != nil && !kube.IsGone(err) {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	slog.Info("deleted the UplinkState of a node that is not selected and whose host agent did not", "uplink", uplink, "node", node)
	return nil
}

func minDue(a, b time.Duration) time.Duration {
	if a == 0 || b < a {
		return b
	}
	return a
}

func (w *world) hasStates(uplink string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.uplinks[uplink]
	return u != nil && len(u.states) > 0
}

// deselectedNodes are the nodes that have a state of an Uplink that does not select them.
func (w *world) deselectedNodes(name string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.uplinks[name]
	if u == nil || u.matcher == nil {
		return nil // nobody can say what is selected
	}
	var nodes []string
	for node := range u.states {
		_, exists := w.nodes[node]
		if _, is := u.selected[node]; exists && !is {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// isMissing tells whether a node has states and no Node.
func (w *world) isMissing(node string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, exists := w.nodes[node]; exists {
		return false
	}
	for _, u := range w.uplinks {
		if u.states[node] != nil {
			return true
		}
	}
	return false
}

// missingNodes are the nodes that have states and no Node.
func (w *world) missingNodes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	missing := map[string]bool{}
	for _, u := range w.uplinks {
		for node := range u.states {
			if _, exists := w.nodes[node]; !exists {
				missing[node] = true
			}
		}
	}
	return slices.Collect(maps.Keys(missing))
}
