// SPDX-License-Identifier: Apache-2.0

package network

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	if got := Name("blue-1"); got != "cluster_udn_blue-1" {
		t.Errorf("Name = %q", got)
	}
	if got := Prefix("blue-1"); got != "cluster_udn_blue.1_" {
		t.Errorf("Prefix = %q", got)
	}
}

func TestVRFName(t *testing.T) {
	id := 3
	for name, tc := range map[string]struct {
		cudn string
		id   *int
		want string
	}{
		"short":                   {"blue", &id, "blue"},
		"fifteen characters":      {"abcdefghijklmno", &id, "abcdefghijklmno"},
		"default is not a name":   {"default", &id, "mp3-udn-vrf"},
		"long, id known":          {"a-network-with-a-long-name", &id, "mp3-udn-vrf"},
		"long, id not known (G8)": {strings.Repeat("n", 40), nil, "udn-527ccc3e4ef"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := VRFName(tc.cudn, tc.id); got != tc.want {
				t.Errorf("VRFName = %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzVRFName(f *testing.F) {
	f.Add("blue", 3)
	f.Fuzz(func(t *testing.T, cudn string, id int) {
		if id < 0 || id > 99999 || cudn == "" {
			t.Skip("OVN-Kubernetes allots no such ids")
		}
		for _, networkID := range []*int{nil, &id} {
			if got := VRFName(cudn, networkID); len(got) > maxInterfaceName || got == "default" {
				t.Errorf("VRFName(%q) = %q", cudn, got)
			}
		}
	})
}
