// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"strings"
	"testing"
)

func TestBridgeOfPort(t *testing.T) {
	v := view(
		br("br-eth0", port("eth0", "")),
		br("br-blue", bond("bond0", "p0", "p1"), port("pf0vf3", ""), Port{Name: "odd", Interfaces: []Interface{{Name: "even"}}}),
		br("br-red", Port{Name: "even", Interfaces: []Interface{{Name: "odd2"}}}),
	)
	for name, want := range map[string]string{
		"eth0":    "br-eth0",
		"pf0vf3":  "br-blue",
		"bond0":   "br-blue",
		"p1":      "br-blue", // B5: a member of a bond
		"odd":     "br-blue",
		"even":    "br-red", // the port of that name goes before another port's interface
		"odd2":    "br-red",
		"br-eth0": "", // B7: a bridge's own port
		"none":    "",
		"":        "",
	} {
		b, p, found := v.BridgeOfPort(name)
		if found != (want != "") || found && (b.Name != want || p == nil) {
			t.Errorf("%q is on %v, want %q", name, b, want)
		}
	}
}

func TestB12EffectiveSettings(t *testing.T) {
	v := &View{Chassis: "dpu-1", ExternalIDs: map[string]string{
		"ovn-bridge-mappings": "blue:br-blue", "ovn-bridge-mappings-dpu-1": "physnet:br-ex", "ovn-bridge": "br-a", "ovn-bridge-dpu-1": "br-b",
	}}
	if key, mappings := v.Mappings(); key != "ovn-bridge-mappings-dpu-1" || len(mappings) != 1 || mappings[0].Bridge != "br-ex" {
		t.Errorf("key %s, mappings %v", key, mappings)
	}
	if got := v.IntegrationBridge(); got != "br-b" {
		t.Errorf("integration bridge %s", got)
	}
	v.Chassis = "dpu-2"
	if key, mappings := v.Mappings(); key != "ovn-bridge-mappings" || mappings[0].Bridge != "br-blue" {
		t.Errorf("key %s, mappings %v", key, mappings)
	}
	if got := (&View{}).IntegrationBridge(); got != "br-int" {
		t.Errorf("integration bridge %s without a setting", got)
	}
}

func TestParseMappings(t *testing.T) {
	for value, want := range map[string]string{
		"":                            "",
		"physnet:br-ex":               "physnet=br-ex",
		"physnet:br-ex,blue:br-blue":  "physnet=br-ex blue=br-blue",
		" physnet : br-ex ,":          "physnet=br-ex =",
		",,":                          "= = =",
		"physnet,:br-x,net:,blue:b:c": "= = = blue=b:c",
	} {
		var got []string
		for _, m := range ParseMappings(value) {
			got = append(got, m.Network+"="+m.Bridge)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q gives %q, want %q", value, got, want)
		}
	}
}

// B14: whatever stands in the value is somebody's and stays, byte for byte.
func FuzzParseMappings(f *testing.F) {
	for _, seed := range []string{"", ",", "physnet:br-ex", "a:b,c:d", " a : b ,,x:", "a:b:c", "\x00:\xff,é:ü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		var texts []string
		for _, m := range ParseMappings(value) {
			texts = append(texts, m.Text)
			if (m.Network == "") != (m.Bridge == "") {
				t.Errorf("half a mapping: %+v", m)
			}
		}
		if strings.Join(texts, ",") != value {
			t.Errorf("%q became %q", value, strings.Join(texts, ","))
		}
	})
}
