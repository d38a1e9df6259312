// SPDX-License-Identifier: Apache-2.0

package network

import (
	"slices"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUplinks(t *testing.T) {
	for name, tc := range map[string]struct {
		spec       []string
		annotation string
		want       []string
		problem    string
		named      []string
	}{
		"none":                        {},
		"in the spec":                 {[]string{"blue"}, "", []string{"blue"}, "", []string{"blue"}},
		"in the annotation":           {nil, "blue", []string{"blue"}, "", []string{"blue"}},
		"annotation with white space": {nil, " blue ,", []string{"blue"}, "", []string{"blue"}},
		"empty annotation":            {nil, " ", nil, "", nil},
		"both the same":               {[]string{"blue"}, "blue", []string{"blue"}, "", []string{"blue"}},
		"both, different":             {[]string{"blue"}, "green", nil, "spec.uplinks names blue, but the annotation " + UplinksAnnotation + " names green", []string{"blue", "green"}},
		"two annotated":               {nil, "green,blue", nil, "2 Uplinks are named (green, blue)", []string{"blue", "green"}},
		"no name":                     {nil, "Tenant.Blue", nil, `"Tenant.Blue" cannot be the name of an Uplink`, []string{"Tenant.Blue"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &ovnk.ClusterUserDefinedNetwork{
				ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{UplinksAnnotation: tc.annotation}},
				Spec:       ovnk.ClusterUserDefinedNetworkSpec{Uplinks: tc.spec},
			}
			got, problem := Uplinks(n)
			if (problem == nil) != (tc.problem == "") || problem != nil && (problem.Reason != "UplinkReferenceConflict" || !strings.HasPrefix(problem.Message, tc.problem)) {
				t.Errorf("problem %v, want %q", problem, tc.problem)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
			if named := NamedUplinks(n); !slices.Equal(named, tc.named) {
				t.Errorf("named %v, want %v", named, tc.named)
			}
		})
	}
}

func TestCanUseUplink(t *testing.T) {
	for name, tc := range map[string]struct {
		spec ovnk.NetworkSpec
		want bool
	}{
		"primary Layer3":   {ovnk.NetworkSpec{Topology: ovnk.Layer3, Layer3: &ovnk.Layer3Config{Role: "Primary"}}, true},
		"primary Layer2":   {ovnk.NetworkSpec{Topology: ovnk.Layer2, Layer2: &ovnk.Layer2Config{Role: "Primary"}}, true},
		"secondary Layer3": {ovnk.NetworkSpec{Topology: ovnk.Layer3, Layer3: &ovnk.Layer3Config{Role: "Secondary"}}, false},
		"secondary Layer2": {ovnk.NetworkSpec{Topology: ovnk.Layer2, Layer2: &ovnk.Layer2Config{Role: "Secondary"}}, false},
		"config missing":   {ovnk.NetworkSpec{Topology: ovnk.Layer3, Layer2: &ovnk.Layer2Config{Role: "Primary"}}, false},
		"Localnet":         {ovnk.NetworkSpec{Topology: ovnk.Localnet}, false},
		"one of tomorrow":  {ovnk.NetworkSpec{Topology: "Layer4"}, false},
	} {
		if got := CanUseUplink(tc.spec); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestOccupies(t *testing.T) {
	for _, tc := range []struct {
		node, phase string
		want        bool
	}{
		{"", "Pending", false}, {"a", "Pending", true}, {"a", "Running", true}, {"a", "Unknown", true}, {"a", "", true},
		{"a", "Succeeded", false}, {"a", "Failed", false},
	} {
		pod := &core.Pod{Spec: core.PodSpec{NodeName: tc.node}, Status: core.PodStatus{Phase: tc.phase}}
		if got := Occupies(pod); got != tc.want {
			t.Errorf("on %q, %s: %t", tc.node, tc.phase, got)
		}
	}
}
