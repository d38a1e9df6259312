// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"maps"
	"sync"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/network"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// domainOf is the routing domain of a network on this node.
type domainOf func(*tenant) (network.Domain, *uplinkstate.Problem)

// advertising knows what decides the routing domains of networks on a node: which are advertised, from which nodes, and
// what their VRFs are called.
type advertising struct {
	advertisements *kube.Informer[*ovnk.RouteAdvertisements]
	nodes          *kube.Informer[*metav1.PartialObjectMetadata]
	numbers        *numbers
	changed        func()

	mu sync.Mutex
	// labels are those that the Node object had last: its going is no reason to move its networks.
	labels map[string]string
	known  bool
}

// advertise has the world see what decides routing domains.
func (w *world) advertise(rc *rest.Config, changed func()) error {
	a := &advertising{numbers: newNumbers(changed), changed: changed}
	w.advertising = a
	resource, err := kube.RouteAdvertisements(rc)
	if err != nil {
		return err
	}
	a.advertisements = kube.NewInformer(resource, nil)
	a.advertisements.SetOptional()
	a.advertisements.OnChange(func(*ovnk.RouteAdvertisements) { changed() })
	if a.nodes, err = kube.NewNodeInformer(rc, w.node); err != nil {
		return err
	}
	a.nodes.OnChange(a.seeNode)
	w.add(a.advertisements)
	w.add(a.nodes)
	attachments, err := kube.NetworkAttachments(rc)
	if err != nil {
		return err
	}
	w.add(kube.NewMetadataFeed(attachments, a.numbers, network.NameAnnotation, network.IDAnnotation))
	return nil
}

// seeNode is told of every change of the Node object, of which labels are but a few.
func (a *advertising) seeNode(node *metav1.PartialObjectMetadata) {
	if _, there := a.nodes.Get(node.Name); !there {
		return
	}
	a.mu.Lock()
	same := a.known && maps.Equal(a.labels, node.Labels)
	a.labels, a.known = node.Labels, true
	a.mu.Unlock()
	if !same {
		a.changed()
	}
}

// domainOf implements the type of that name.
func (a *advertising) domainOf(t *tenant) (network.Domain, *uplinkstate.Problem) {
	a.mu.Lock()
	labels, known := a.labels, a.known
	a.mu.Unlock()
	if !known {
		return network.Domain{}, uplinkstate.Problemf(uplinkstate.ReasonGatewayConfigurationPending,
			"waiting for the Node object, whose labels say which networks are advertised from here")
	}
	id := a.numbers.id(t.networkName())
	domain, problem := network.DomainOf(t.object, id, labels, a.advertisements.List())
	if problem == nil && domain.VRF != "" && id == nil && network.NeedsID(t.cudn) {
		problem = uplinkstate.Problemf(uplinkstate.ReasonGatewayConfigurationPending,
			"waiting for the network's id, of which the name of its VRF is made: annotation %s of a NetworkAttachmentDefinition of network %s",
			network.IDAnnotation, t.networkName())
	}
	return domain, problem
}
