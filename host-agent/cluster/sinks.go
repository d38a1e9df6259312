// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"

	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodes is the world's ear for Nodes.
type nodes struct{ *world }

func (w nodes) Replace(all []*metav1.PartialObjectMetadata) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := make(map[string]bool, len(all))
	for _, node := range all {
		now[node.Name] = true
		w.put(node)
	}
	for name := range w.nodes {
		if !now[name] {
			w.remove(name)
		}
	}
}

func (w nodes) Put(node *metav1.PartialObjectMetadata) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(node)
}

func (w nodes) Remove(node *metav1.PartialObjectMetadata) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(node.Name)
}

func (w nodes) put(node *metav1.PartialObjectMetadata) {
	before, known := w.nodes[node.Name]
	if known && maps.Equal(before, node.Labels) {
		return
	}
	name := w.texts.of(node.Name)
	w.nodes[name] = node.Labels
	for _, u := range w.uplinks {
		if u.choose(name, node.Labels) {
			w.changed.uplink(u.name)
			if known {
				w.usersChanged(u.name)
			}
		}
	}
	if !known {
		w.networksChanged() // one node more may be active
	}
}

func (w nodes) remove(name string) {
	delete(w.nodes, name)
	for _, u := range w.uplinks {
		if u.unchoose(name) {
			w.changed.uplink(u.name)
		}
	}
	w.changed.node(name)
	w.networksChanged()
}

// states is the world's ear for UplinkStates.
type states struct {
	*world
	intruders *uplinkstate.Intruders
}

func (w states) Replace(all []*v1alpha1.UplinkState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := make(map[stateIdentity]bool, len(all))
	strangers := map[string]bool{}
	for _, s := range all {
		w.put(s)
		if canonical(s) {
			now[identity(s)] = true
		} else {
			strangers[s.Name] = true
		}
	}
	for _, u := range w.uplinks {
		for node := range u.states {
			if !now[stateIdentity{u.name, node}] {
				w.remove(uplinkstate.Name(u.name, node), stateIdentity{u.name, node}, true)
			}
		}
	}
	for name, id := range w.strangers {
		if !strangers[name] {
			w.remove(name, id, false)
		}
	}
}

func (w states) Put(s *v1alpha1.UplinkState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.put(s)
}

func (w states) Remove(s *v1alpha1.UplinkState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remove(s.Name, identity(s), canonical(s))
}

func (w states) put(s *v1alpha1.UplinkState) {
	w.intruders.See(s)
	if !canonical(s) {
		w.strangers[s.Name] = identity(s)
		w.strangerChanged()
		return
	}
	u, node := w.uplink(s.Spec.UplinkName), w.texts.of(s.Spec.NodeName)
	w.replace(u, node, fold(s, w.texts))
	if _, exists := w.nodes[node]; !exists && w.live {
		w.changed.node(node)
	}
}

func (w states) remove(name string, id stateIdentity, canonical bool) {
	w.intruders.Forget(name)
	if !canonical {
		delete(w.strangers, name)
		w.strangerChanged()
		return
	}
	u := w.uplink(id.uplink)
	w.replace(u, id.node, nil)
	w.tidy(u)
}

// replace takes over what a node says of an Uplink, nil for nothing, and has looked at again what depends on it.
func (w states) replace(u *uplink, node string, now *state) {
	before := u.states[node]
	if now == nil {
		delete(u.states, node)
	} else {
		u.states[node] = now
	}
	if before == nil && now == nil {
		return
	}
	if !before.sameFindings(now) {
		w.changed.uplink(u.name)
		w.usersChanged(u.name)
		return
	}
	for _, name := range changedNetworks(before, now) {
		if w.users[u.name][name] {
			w.changed.network(name)
		}
	}
}

// strangerChanged has everything looked at again: which Uplink the name of such a state would be for cannot be told.
func (w states) strangerChanged() {
	for name := range w.uplinks {
		w.changed.uplink(name)
		w.usersChanged(name)
	}
}

func identity(s *v1alpha1.UplinkState) stateIdentity {
	return stateIdentity{s.Spec.UplinkName, s.Spec.NodeName}
}

func canonical(s *v1alpha1.UplinkState) bool {
	return s.Name == uplinkstate.Name(s.Spec.UplinkName, s.Spec.NodeName)
}

// namespaces is the world's ear for Namespaces.
type namespaces struct{ *world }

func (w namespaces) Replace(all []*metav1.PartialObjectMetadata) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := make(map[string]map[string]string, len(all))
	for _, n := range all {
		now[n.Name] = n.Labels
	}
	w.activity.namespaces = now
	w.networksChanged()
}

func (w namespaces) Put(n *metav1.PartialObjectMetadata)    { w.set(n, true) }
func (w namespaces) Remove(n *metav1.PartialObjectMetadata) { w.set(n, false) }

func (w namespaces) set(n *metav1.PartialObjectMetadata, exists bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.activity.relabel(n.Name, n.Labels, exists) {
		w.networksChanged()
	}
}

// pods is the world's ear for Pods.
type pods struct{ *world }

func (w pods) Replace(all []*core.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fresh := newActivity()
	fresh.namespaces = w.activity.namespaces
	for _, p := range all {
		fresh.put(p)
	}
	w.activity = fresh
	w.networksChanged()
}

func (w pods) Put(p *core.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.activity.put(p) {
		w.activityChanged(p.Namespace)
	}
}

func (w pods) Remove(p *core.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.activity.remove(p) {
		w.activityChanged(p.Namespace)
	}
}
