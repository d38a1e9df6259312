// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/network"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// tenant is a ClusterUserDefinedNetwork that names an Uplink, as far as its gateway depends on it.
type tenant struct {
	cudn     string
	topology ovnk.NetworkTopology
	subnets  []netip.Prefix
	// namespaces selects the namespaces that are on the network.
	namespaces labels.Selector
	// invalid says why the network can have no gateway; empty for one that can.
	invalid string
	object  *ovnk.ClusterUserDefinedNetwork

	// domain is where its routes are; see decide.
	domain network.Domain
	// problem is why the network cannot be served as it should. One that is held keeps what it has; another one that
	// has something is served on, and one that has nothing gets nothing.
	problem *uplinkstate.Problem
	held    bool
}

// tenants are the networks that name an Uplink, sorted by name.
func tenants(uplink string, cudns []*ovnk.ClusterUserDefinedNetwork) []tenant {
	var all []tenant
	for _, cudn := range cudns {
		names, problem := network.Uplinks(cudn)
		if problem != nil || !slices.Contains(names, uplink) || !network.CanUseUplink(cudn.Spec.Network) ||
			cudn.Spec.Network.Transport == ovnk.TransportEVPN {
			continue // UplinksReady of the CUDN says so
		}
		all = append(all, newTenant(cudn))
	}
	slices.SortFunc(all, func(a, b tenant) int { return cmp.Compare(a.cudn, b.cudn) })
	return all
}

func newTenant(cudn *ovnk.ClusterUserDefinedNetwork) tenant {
	t := tenant{cudn: cudn.Name, topology: cudn.Spec.Network.Topology, object: cudn}
	var texts []string
	switch spec := cudn.Spec.Network; spec.Topology {
	case ovnk.Layer2:
		texts = spec.Layer2.Subnets
	case ovnk.Layer3:
		for _, s := range spec.Layer3.Subnets {
			texts = append(texts, s.CIDR)
		}
	case ovnk.Localnet:
	}
	for _, text := range texts {
		subnet, err := netip.ParsePrefix(text)
		if err != nil {
			t.invalid = fmt.Sprintf("subnet %q of the network is not valid", text)
			continue
		}
		t.subnets = append(t.subnets, subnet.Masked())
	}
	if len(t.subnets) == 0 && t.invalid == "" {
		t.invalid = "the network has no subnets; a gateway needs to know the pods' addresses"
	}
	var err error
	if t.namespaces, err = metav1.LabelSelectorAsSelector(&cudn.Spec.NamespaceSelector); err != nil {
		t.invalid, t.namespaces = fmt.Sprintf("its namespaceSelector cannot be evaluated: %v", err), labels.Nothing()
	}
	return t
}

// activity decides which networks are active on the node where they need not be on all (Dynamic UDN): those that have
// a pod here, and for a while those that had one, so that a rollout does not take a gateway down and up again.
type activity struct {
	dynamic bool
	grace   time.Duration
	// left is since when a network that was active has had no pod here, by CUDN.
	left map[string]time.Time
}

// active tells whether a network is active now; covered says that its gateway is there already. again is when that
// may change without an event, zero for never.
func (a *activity) active(cudn string, occupied, covered bool, now time.Time) (yes bool, again time.Duration) {
	if !a.dynamic || occupied {
		delete(a.left, cudn)
		return true, 0
	}
	if !covered {
		delete(a.left, cudn)
		return false, 0
	}
	since, known := a.left[cudn]
	if !known {
		since = now
		a.left[cudn] = now
	}
	if rest := a.grace - now.Sub(since); rest > 0 {
		return true, rest
	}
	return false, 0
}
