// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync"

	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	"github.com/ovn-uplink/ovn-uplink/shared/network"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// occupancy knows which namespaces have pods on the node.
type occupancy struct {
	mu         sync.Mutex
	namespaces map[string]labels.Set
	pods       map[string]map[string]bool // namespace, name
	changed    func()
}

func newOccupancy(changed func()) *occupancy {
	return &occupancy{namespaces: map[string]labels.Set{}, pods: map[string]map[string]bool{}, changed: changed}
}

// occupied tells whether a selected namespace has a pod on the node that has not ended.
func (o *occupancy) occupied(selector labels.Selector) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for namespace := range o.pods {
		if set, known := o.namespaces[namespace]; known && selector.Matches(set) {
			return true
		}
	}
	return false
}

// setNamespace remembers the labels of a namespace, nil for one that is gone.
func (o *occupancy) setNamespace(name string, set labels.Set) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if set == nil {
		delete(o.namespaces, name)
	} else {
		o.namespaces[name] = set
	}
}

// namespaceSink feeds the labels of namespaces.
type namespaceSink struct{ *occupancy }

// Replace implements kube.Sink.
func (s namespaceSink) Replace(all []*metav1.PartialObjectMetadata) {
	s.mu.Lock()
	clear(s.namespaces)
	s.mu.Unlock()
	for _, n := range all {
		s.setNamespace(n.Name, set(n))
	}
	s.changed()
}

// Put implements kube.Sink.
func (s namespaceSink) Put(n *metav1.PartialObjectMetadata) {
	s.setNamespace(n.Name, set(n))
	s.changed()
}

// Remove implements kube.Sink.
func (s namespaceSink) Remove(n *metav1.PartialObjectMetadata) {
	s.setNamespace(n.Name, nil)
	s.changed()
}

// set are the labels of a namespace, not nil.
func set(n *metav1.PartialObjectMetadata) labels.Set {
	if n.Labels == nil {
		return labels.Set{}
	}
	return n.Labels
}

// podSink feeds the pods of the node.
type podSink struct{ *occupancy }

// Replace implements kube.Sink.
func (s podSink) Replace(all []*core.Pod) {
	s.mu.Lock()
	clear(s.pods)
	s.mu.Unlock()
	for _, p := range all {
		s.set(p, network.Occupies(p))
	}
	s.changed()
}

// Put implements kube.Sink.
func (s podSink) Put(p *core.Pod) {
	if s.set(p, network.Occupies(p)) {
		s.changed()
	}
}

// Remove implements kube.Sink.
func (s podSink) Remove(p *core.Pod) {
	if s.set(p, false) {
		s.changed()
	}
}

// set remembers whether a pod is here, and tells whether that changed what its namespace counts for.
func (s podSink) set(p *core.Pod, here bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	pods := s.pods[p.Namespace]
	before := len(pods) > 0
	switch {
	case here && pods == nil:
		s.pods[p.Namespace] = map[string]bool{p.Name: true}
	case here:
		pods[p.Name] = true
	case pods != nil:
		delete(pods, p.Name)
		if len(pods) == 0 {
			delete(s.pods, p.Namespace)
		}
	}
	return before != (len(s.pods[p.Namespace]) > 0)
}
