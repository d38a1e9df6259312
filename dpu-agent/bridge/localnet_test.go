// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"slices"
	"testing"
)

func TestWherePatchPortsAre(t *testing.T) {
	port := func(name, localnet string) Port {
		return Port{Name: name, ExternalIDs: map[string]string{localnetKey: localnet}}
	}
	v := &View{Bridges: []Bridge{
		{Name: "br-int", Ports: []Port{port("a", "blue"), port("b", "red")}}, // its ends have the mark too
		{Name: "br-one", Ports: []Port{{Name: "p0"}, port("c", "blue"), port("d", "red")}},
		{Name: "br-two"},
	}}
	for localnet, want := range map[string]string{"blue": "br-one", "red": "br-one", "green": "", "": ""} {
		if got := v.LocalnetBridge(localnet); got != want {
			t.Errorf("%q is on bridge %q, want %q", localnet, got, want)
		}
	}
	for bridge, want := range map[string][]string{"br-one": {"blue", "red"}, "br-two": nil, "br-none": nil} {
		if got := v.LocalnetPorts(bridge); !slices.Equal(got, want) {
			t.Errorf("bridge %s has %q, want %q", bridge, got, want)
		}
	}
	if _, why := v.PatchPort("br-two", "net", "blue"); why != "ovn-controller has the patch port of blue still on bridge br-one" {
		t.Errorf("why there is none: %s", why)
	}
}
