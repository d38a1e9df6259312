// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// What the API server takes and refuses of a network's uplinks, with the CRD for clusters without OVN-Kubernetes.
func TestNetworkValidation(t *testing.T) {
	t.Parallel()
	c := newClusterWithNetworks(t)
	type spec = ovnk.ClusterUserDefinedNetworkSpec
	for name, tc := range map[string]struct {
		change  func(*spec)
		refused string
	}{
		"primary Layer3": {func(*spec) {}, ""},
		"primary Layer2": {func(s *spec) {
			s.Network = ovnk.NetworkSpec{Topology: ovnk.Layer2, Layer2: &ovnk.Layer2Config{Role: ovnk.RolePrimary, Subnets: []string{"10.100.0.0/16"}}}
		}, ""},
		"secondary": {func(s *spec) { s.Network.Layer3.Role = "Secondary" }, "primary Layer2 or Layer3"},
		"secondary without Uplink": {func(s *spec) {
			s.Network.Layer3.Role, s.Uplinks = "Secondary", nil
		}, ""},
		"Localnet":                {func(s *spec) { s.Network = ovnk.NetworkSpec{Topology: ovnk.Localnet} }, "primary Layer2 or Layer3"},
		"Layer2 without a config": {func(s *spec) { s.Network = ovnk.NetworkSpec{Topology: ovnk.Layer2} }, "primary Layer2 or Layer3"},
		"EVPN":                    {func(s *spec) { s.Network.Transport = ovnk.TransportEVPN }, "EVPN"},
		"EVPN without Uplink":     {func(s *spec) { s.Network.Transport, s.Uplinks = ovnk.TransportEVPN, nil }, ""},
		"two Uplinks":             {func(s *spec) { s.Uplinks = []string{"blue", "green"} }, "at most 1"},
		"dots in the name":        {func(s *spec) { s.Uplinks = []string{"tenant.blue"} }, "spec.uplinks[0]"},
		"64 characters":           {func(s *spec) { s.Uplinks = []string{strings.Repeat("a", 64)} }, "spec.uplinks[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := primary("x", "blue")
			tc.change(&s)
			_, err := c.networks().Create(t.Context(), networkObject("x", s, nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			switch {
			case tc.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.refused)):
				t.Errorf("got %v, want Invalid with %q", err, tc.refused)
			}
		})
	}

	// Immutable, including presence (L40); what the CRD does not model is kept.
	c.network("with", "blue")
	c.network("without")
	for _, tc := range []struct{ name, patch string }{
		{"with", `{"spec":{"uplinks":["green"]}}`},
		{"with", `{"spec":{"uplinks":null}}`},
		{"with", `{"spec":{"uplinks":[]}}`},
		{"without", `{"spec":{"uplinks":["blue"]}}`},
		{"with", `{"spec":{"network":{"layer3":{"role":"Secondary"}}}}`},
	} {
		if _, err := c.networks().Patch(t.Context(), tc.name, types.MergePatchType, []byte(tc.patch), metav1.PatchOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("%s %s: %v, want Invalid", tc.name, tc.patch, err)
		}
	}
	object := networkObject("more", primary("more", "blue"), nil)
	c.must(unstructured.SetNestedField(object.Object, "Allowed", "spec", "network", "layer3", "somethingNew"))
	made, err := c.networks().Create(t.Context(), object, metav1.CreateOptions{})
	c.must(err)
	if kept, _, _ := unstructured.NestedString(made.Object, "spec", "network", "layer3", "somethingNew"); kept != "Allowed" {
		t.Errorf("a field that is not modelled was dropped: %v", made.Object["spec"])
	}
	c.must(c.Apply(t.Context(), `
apiVersion: k8s.ovn.org/v1
kind: RouteAdvertisements
metadata: {name: blue}
spec:
  targetVRF: auto
  networkSelectors:
  - networkSelectionType: ClusterUserDefinedNetworks
    clusterUserDefinedNetworkSelector: {networkSelector: {matchLabels: {advertise: blue}}}
  nodeSelector: {}
  frrConfigurationSelector: {matchLabels: {network: blue}}
  advertisements: [PodNetwork]`))
}
