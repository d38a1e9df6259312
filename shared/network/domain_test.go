// SPDX-License-Identifier: Apache-2.0

package network

import (
	"strings"
	"testing"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ra advertises networks labelled advertise=blue from nodes labelled bgp=yes, unless changed.
func ra(name, vrf string, change func(*ovnk.RouteAdvertisements)) *ovnk.RouteAdvertisements {
	r := &ovnk.RouteAdvertisements{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: ovnk.RouteAdvertisementsSpec{
			TargetVRF: vrf,
			NetworkSelectors: []ovnk.NetworkSelector{{
				NetworkSelectionType: "ClusterUserDefinedNetworks",
				ClusterUserDefinedNetworkSelector: &ovnk.ClusterUserDefinedNetworkSelector{
					NetworkSelector: metav1.LabelSelector{MatchLabels: map[string]string{"advertise": "blue"}},
				},
			}},
			NodeSelector:   metav1.LabelSelector{MatchLabels: map[string]string{"bgp": "yes"}},
			Advertisements: []string{"PodNetwork"},
		},
	}
	if change != nil {
		change(r)
	}
	return r
}

func TestDomainOf(t *testing.T) {
	status := func(s metav1.ConditionStatus) func(*ovnk.RouteAdvertisements) {
		return func(r *ovnk.RouteAdvertisements) {
			r.Status.Conditions = []metav1.Condition{{Type: "Accepted", Status: s}}
		}
	}
	id := 7
	for name, tc := range map[string]struct {
		cudn    string
		node    map[string]string
		all     []*ovnk.RouteAdvertisements
		want    Domain
		problem string
	}{
		"none":                 {},
		"default VRF":          {all: []*ovnk.RouteAdvertisements{ra("a", "default", nil)}, want: Domain{Advertised: true}},
		"no VRF named":         {all: []*ovnk.RouteAdvertisements{ra("a", "", nil)}, want: Domain{Advertised: true}},
		"its own VRF":          {all: []*ovnk.RouteAdvertisements{ra("a", "auto", nil)}, want: Domain{VRF: "blue", Advertised: true}},
		"its own VRF, by name": {all: []*ovnk.RouteAdvertisements{ra("a", "blue", nil)}, want: Domain{VRF: "blue", Advertised: true}},
		"a long name's own VRF, by network id (G8)": {
			cudn: "a-network-with-a-long-name", all: []*ovnk.RouteAdvertisements{ra("a", "mp7-udn-vrf", nil)},
			want: Domain{VRF: "mp7-udn-vrf", Advertised: true}},
		"another VRF": {all: []*ovnk.RouteAdvertisements{ra("a", "red", nil)},
			problem: "RouteAdvertisements a advertises network blue in VRF red, which is not supported; expected auto, default or blue"},
		"another node": {node: map[string]string{}, all: []*ovnk.RouteAdvertisements{ra("a", "auto", nil)}},
		"another network": {all: []*ovnk.RouteAdvertisements{ra("a", "auto", func(r *ovnk.RouteAdvertisements) {
			r.Spec.NetworkSelectors[0].ClusterUserDefinedNetworkSelector.NetworkSelector.MatchLabels["advertise"] = "red"
		})}},
		"the default network": {all: []*ovnk.RouteAdvertisements{ra("a", "", func(r *ovnk.RouteAdvertisements) {
			r.Spec.NetworkSelectors = []ovnk.NetworkSelector{{NetworkSelectionType: "DefaultNetwork"}}
		})}},
		"egress IPs only":       {all: []*ovnk.RouteAdvertisements{ra("a", "auto", func(r *ovnk.RouteAdvertisements) { r.Spec.Advertisements = []string{"EgressIP"} })}},
		"refused by the CNI":    {all: []*ovnk.RouteAdvertisements{ra("a", "auto", status(metav1.ConditionFalse))}},
		"accepted":              {all: []*ovnk.RouteAdvertisements{ra("a", "auto", status(metav1.ConditionTrue))}, want: Domain{VRF: "blue", Advertised: true}},
		"two that say the same": {all: []*ovnk.RouteAdvertisements{ra("b", "blue", nil), ra("a", "auto", nil)}, want: Domain{VRF: "blue", Advertised: true}},
		"two that disagree, in whatever order": {all: []*ovnk.RouteAdvertisements{ra("b", "auto", nil), ra("a", "", nil)},
			problem: "RouteAdvertisements a and b advertise network blue in different VRFs, default and blue; have one of them select it on this node"},
		"two that disagree, one on another node": {all: []*ovnk.RouteAdvertisements{ra("b", "auto", nil), ra("a", "", func(r *ovnk.RouteAdvertisements) { r.Spec.NodeSelector.MatchLabels["rack"] = "b" })},
			want: Domain{VRF: "blue", Advertised: true}},
		"a selector that cannot be evaluated": {all: []*ovnk.RouteAdvertisements{ra("a", "auto", func(r *ovnk.RouteAdvertisements) {
			r.Spec.NodeSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			cudn := &ovnk.ClusterUserDefinedNetwork{ObjectMeta: metav1.ObjectMeta{Name: "blue", Labels: map[string]string{"advertise": "blue"}}}
			if tc.cudn != "" {
				cudn.Name = tc.cudn
			}
			node := map[string]string{"bgp": "yes"}
			if tc.node != nil {
				node = tc.node
			}
			got, problem := DomainOf(cudn, &id, node, tc.all)
			if tc.problem != "" {
				if problem == nil || !strings.Contains(problem.Message, tc.problem) || problem.Reason != "UplinkConfigurationConflict" {
					t.Errorf("got %v, want %q", problem, tc.problem)
				}
				return
			}
			if problem != nil || got != tc.want {
				t.Errorf("got %+v, %v, want %+v", got, problem, tc.want)
			}
		})
	}
}
