// SPDX-License-Identifier: Apache-2.0

package network

import (
	"cmp"
	"slices"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Domain is where the routes of a network are on a node.
type Domain struct {
	// VRF is the name of the VRF that the Uplink's interface has to be in, empty for the default VRF.
	VRF string
	// Advertised says that the network's pods are known outside by their own addresses: they are not translated.
	Advertised bool
}

// What a RouteAdvertisements may say.
const (
	vrfAuto        = "auto"
	vrfDefault     = "default"
	podNetwork     = "PodNetwork"
	selectsCUDNs   = "ClusterUserDefinedNetworks"
	acceptedStatus = "Accepted"
)

// DomainOf is the domain of a CUDN on a node with these labels, from all RouteAdvertisements of the cluster. networkID
// is that of VRFName. A Problem with reason UplinkConfigurationConflict says that there is none: two of them disagree, or
// one asks for a VRF that is not the network's.
func DomainOf(cudn *ovnk.ClusterUserDefinedNetwork, networkID *int, node map[string]string, all []*ovnk.RouteAdvertisements) (Domain, *uplinkstate.Problem) {
	own := VRFName(cudn.Name, networkID)
	var domain Domain
	var first string
	for _, ra := range slices.SortedFunc(slices.Values(all), func(a, b *ovnk.RouteAdvertisements) int { return cmp.Compare(a.Name, b.Name) }) {
		if !advertises(ra, cudn.Labels, node) {
			continue
		}
		var said Domain
		switch ra.Spec.TargetVRF {
		case "", vrfDefault:
			said = Domain{Advertised: true}
		case vrfAuto, own:
			said = Domain{VRF: own, Advertised: true}
		default:
			return Domain{}, uplinkstate.Problemf(uplinkstate.ReasonUplinkConfigurationConflict,
				"RouteAdvertisements %s advertises network %s in VRF %s, which is not supported; expected %s, %s or %s",
				ra.Name, cudn.Name, ra.Spec.TargetVRF, vrfAuto, vrfDefault, own)
		}
		if first != "" && said != domain {
			return Domain{}, uplinkstate.Problemf(uplinkstate.ReasonUplinkConfigurationConflict,
				"RouteAdvertisements %s and %s advertise network %s in different VRFs, %s and %s; have one of them select it on this node",
				first, ra.Name, cudn.Name, domain, said)
		}
		domain, first = said, ra.Name
	}
	return domain, nil
}

// String names the VRF.
func (d Domain) String() string { return cmp.Or(d.VRF, vrfDefault) }

// advertises tells whether a RouteAdvertisements has the pods of a network with these labels advertised from a node with
// those. One that cannot be read selects nothing: the CNI says so in its status.
func advertises(ra *ovnk.RouteAdvertisements, network, node map[string]string) bool {
	if !slices.Contains(ra.Spec.Advertisements, podNetwork) || meta.IsStatusConditionFalse(ra.Status.Conditions, acceptedStatus) ||
		!selects(&ra.Spec.NodeSelector, node) {
		return false
	}
	return slices.ContainsFunc(ra.Spec.NetworkSelectors, func(s ovnk.NetworkSelector) bool {
		return s.NetworkSelectionType == selectsCUDNs && s.ClusterUserDefinedNetworkSelector != nil &&
			selects(&s.ClusterUserDefinedNetworkSelector.NetworkSelector, network)
	})
}

func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(labels.Set(set))
}
