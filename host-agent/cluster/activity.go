// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"

	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	uplinknetwork "github.com/ovn-uplink/ovn-uplink/shared/network"
	"k8s.io/apimachinery/pkg/labels"
)

// activity knows on which nodes the pods of each namespace are (Dynamic UDN).
type activity struct {
	namespaces map[string]map[string]string // name to labels
	pods       map[podKey]string            // to node
	counts     map[string]map[string]int    // namespace to node to number of pods
	texts      texts
}

type podKey struct{ namespace, name string }

func newActivity() *activity {
	return &activity{
		namespaces: map[string]map[string]string{},
		pods:       map[podKey]string{},
		counts:     map[string]map[string]int{},
		texts:      texts{},
	}
}

// put counts a pod where it is now, and tells whether a node became active for its namespace, or ceased to be.
func (a *activity) put(pod *core.Pod) bool {
	if !uplinknetwork.Occupies(pod) {
		return a.remove(pod)
	}
	key := podKey{a.texts.of(pod.Namespace), pod.Name}
	before, known := a.pods[key]
	if known && before == pod.Spec.NodeName {
		return false
	}
	if known {
		a.remove(pod)
	}
	node := a.texts.of(pod.Spec.NodeName)
	a.pods[key] = node
	if a.counts[key.namespace] == nil {
		a.counts[key.namespace] = map[string]int{}
	}
	a.counts[key.namespace][node]++
	return known || a.counts[key.namespace][node] == 1
}

// remove stops counting a pod, and tells whether its node ceased to be active for its namespace.
func (a *activity) remove(pod *core.Pod) bool {
	key := podKey{pod.Namespace, pod.Name}
	node, known := a.pods[key]
	if !known {
		return false
	}
	delete(a.pods, key)
	a.counts[key.namespace][node]--
	if a.counts[key.namespace][node] > 0 {
		return false
	}
	delete(a.counts[key.namespace], node)
	return true
}

// relabel takes over a namespace's labels, nil when it is gone, and tells whether they changed.
func (a *activity) relabel(namespace string, labels map[string]string, exists bool) bool {
	before, known := a.namespaces[namespace]
	if !exists {
		delete(a.namespaces, namespace)
		return known
	}
	a.namespaces[namespace] = labels
	return !known || !maps.Equal(before, labels)
}

// nodes are those with a pod in a namespace that the selector selects.
func (a *activity) nodes(selector labels.Selector) map[string]bool {
	nodes := map[string]bool{}
	if selector == nil {
		return nodes
	}
	for namespace, set := range a.namespaces {
		if len(a.counts[namespace]) == 0 || !selector.Matches(labels.Set(set)) {
			continue
		}
		for node := range a.counts[namespace] {
			nodes[node] = true
		}
	}
	return nodes
}
