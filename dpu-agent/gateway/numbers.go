// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strconv"
	"strings"
	"sync"

	"github.com/ovn-uplink/ovn-uplink/shared/network"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// numbers knows the ids that OVN-Kubernetes gave those networks whose VRF is named by it, from the NetworkAttachmentDefinitions that it made in the
// networks' namespaces. It is a kube.Sink of those.
type numbers struct {
	changed func()

	mu sync.Mutex
	// of has, by network, the id that each of its NetworkAttachmentDefinitions says.
	of map[string]map[string]int
}

func newNumbers(changed func()) *numbers {
	return &numbers{changed: changed, of: map[string]map[string]int{}}
}

// id is that of a network, nil while it has none. All of its NetworkAttachmentDefinitions say the same, or will.
func (n *numbers) id(networkName string) *int {
	n.mu.Lock()
	defer n.mu.Unlock()
	var lowest *int
	for _, id := range n.of[networkName] {
		if lowest == nil || id < *lowest {
			lowest = &id
		}
	}
	return lowest
}

// Replace implements kube.Sink.
func (n *numbers) Replace(all []*metav1.PartialObjectMetadata) {
	n.mu.Lock()
	clear(n.of)
	n.mu.Unlock()
	for _, o := range all {
		n.set(o, true)
	}
	n.changed()
}

// Put implements kube.Sink.
func (n *numbers) Put(o *metav1.PartialObjectMetadata) {
	if n.set(o, true) {
		n.changed()
	}
}

// Remove implements kube.Sink.
func (n *numbers) Remove(o *metav1.PartialObjectMetadata) {
	if n.set(o, false) {
		n.changed()
	}
}

// set remembers what an object says, or that it is gone, and tells whether that is news.
func (n *numbers) set(o *metav1.PartialObjectMetadata, there bool) bool {
	name := o.Annotations[network.NameAnnotation]
	id, err := strconv.Atoi(o.Annotations[network.IDAnnotation])
	cudn, isCUDN := strings.CutPrefix(name, network.Name(""))
	if !isCUDN || !network.NeedsID(cudn) || err != nil || id < 0 {
		return false // not of use, or the CNI is not done with it
	}
	key := o.Namespace + "/" + o.Name
	n.mu.Lock()
	defer n.mu.Unlock()
	before, known := n.of[name][key]
	switch {
	case there && n.of[name] == nil:
		n.of[name] = map[string]int{key: id}
	case there:
		n.of[name][key] = id
	default:
		delete(n.of[name], key)
		if len(n.of[name]) == 0 {
			delete(n.of, name)
		}
	}
	return known != there || before != id
}
