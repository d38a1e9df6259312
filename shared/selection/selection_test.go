// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"errors"
	"slices"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func config(iface string, labels map[string]string) v1alpha1.UplinkNodeConfig {
	return v1alpha1.UplinkNodeConfig{
		Type: v1alpha1.OVSBridge, NodeSelector: metav1.LabelSelector{MatchLabels: labels}, HostInterfaceName: v1alpha1.InterfaceName(iface),
	}
}

func TestSelect(t *testing.T) {
	blue, green := config("eth1", map[string]string{"rack": "blue"}), config("eth2", map[string]string{"rack": "green"})
	everything := config("eth3", nil)
	for name, tc := range map[string]struct {
		configs []v1alpha1.UplinkNodeConfig
		labels  map[string]string
		matches []int
		iface   string
	}{
		"one of two":               {[]v1alpha1.UplinkNodeConfig{blue, green}, map[string]string{"rack": "green"}, []int{1}, "eth2"},
		"none":                     {[]v1alpha1.UplinkNodeConfig{blue, green}, map[string]string{"rack": "red"}, nil, ""},
		"no labels":                {[]v1alpha1.UplinkNodeConfig{blue}, nil, nil, ""},
		"empty selects all":        {[]v1alpha1.UplinkNodeConfig{everything}, nil, []int{0}, "eth3"},
		"overlap":                  {[]v1alpha1.UplinkNodeConfig{blue, everything}, map[string]string{"rack": "blue"}, []int{0, 1}, ""},
		"overlap of equal entries": {[]v1alpha1.UplinkNodeConfig{blue, blue}, map[string]string{"rack": "blue"}, []int{0, 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Compile(&v1alpha1.Uplink{Spec: v1alpha1.UplinkSpec{NodeConfigs: tc.configs}})
			if err != nil {
				t.Fatal(err)
			}
			got := m.Select(tc.labels)
			if !slices.Equal(got.Matches, tc.matches) || got.Selected() != (len(tc.matches) > 0) || got.Overlap() != (len(tc.matches) > 1) {
				t.Errorf("got %+v, want matches %v", got, tc.matches)
			}
			if iface := interfaceOf(got); iface != tc.iface {
				t.Errorf("interface %q, want %q", iface, tc.iface)
			}
		})
	}
}

func TestInvalidSelectorNamesTheEntry(t *testing.T) {
	bad := config("eth1", nil)
	bad.NodeSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "rack", Operator: "Like", Values: []string{"blue"}}}
	_, err := Compile(&v1alpha1.Uplink{Spec: v1alpha1.UplinkSpec{NodeConfigs: []v1alpha1.UplinkNodeConfig{config("eth0", nil), bad}}})
	var invalid *InvalidSelectorError
	if !errors.As(err, &invalid) || invalid.Index != 1 {
		t.Errorf("got %v", err)
	}
}

func interfaceOf(s Selection) string {
	if s.Config == nil {
		return ""
	}
	return string(s.Config.HostInterfaceName)
}
