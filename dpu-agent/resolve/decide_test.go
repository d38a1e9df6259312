// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/locate"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

func goodHost() uplinkstate.HostHalf {
	return uplinkstate.HostHalf{
		Data: uplinkstate.HostData{
			Interface: "ens1f0",
			MAC:       net.HardwareAddr{2, 0, 0, 0, 0, 1},
			Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.5/24")},
		},
		Ready: uplinkstate.True(uplinkstate.ReasonHostDataDiscovered, "measured", 7),
	}
}

func TestDecide(t *testing.T) {
	fails := func(reason string) uplinkstate.HostHalf {
		half := goodHost()
		half.Ready = uplinkstate.False(uplinkstate.Problemf(reason, "the host's own words"), 7)
		return half
	}
	lacks := func(take func(*uplinkstate.HostData)) uplinkstate.HostHalf {
		half := goodHost()
		take(&half.Data)
		return half
	}
	found := func(uplinkstate.HostData) (locate.Finding, error) {
		return locate.Finding{Bridge: "br-ext", UplinkPort: "p0", Method: "host MAC"}, nil
	}
	problem := func(reason string) func(uplinkstate.HostData) (locate.Finding, error) {
		return func(uplinkstate.HostData) (locate.Finding, error) {
			return locate.Finding{Bridge: "br-x"}, uplinkstate.Problemf(reason, "seen on the bridge")
		}
	}
	for name, tc := range map[string]struct {
		host      uplinkstate.HostHalf
		published bool
		find      func(uplinkstate.HostData) (locate.Finding, error)
		reason    string
		message   string
	}{
		"good":                          {goodHost(), true, found, uplinkstate.ReasonResolved, "bridge br-ext found by host MAC, uplink port p0"},
		"no host half":                  {uplinkstate.HostHalf{}, false, found, uplinkstate.ReasonWaitingForDPUHost, "host-agent"},
		"host failure passes through":   {fails(uplinkstate.ReasonHostInterfaceNotFound), true, found, uplinkstate.ReasonHostInterfaceNotFound, "the host's own words"},
		"overlap passes through":        {fails(uplinkstate.ReasonNodeSelectorOverlap), true, found, uplinkstate.ReasonNodeSelectorOverlap, "the host's own words"},
		"True without MAC (A3)":         {lacks(func(d *uplinkstate.HostData) { d.MAC = nil }), true, found, uplinkstate.ReasonWaitingForDPUHost, "macAddress"},
		"True without interface":        {lacks(func(d *uplinkstate.HostData) { d.Interface = "" }), true, found, uplinkstate.ReasonWaitingForDPUHost, "hostInterfaceName"},
		"True without addresses":        {lacks(func(d *uplinkstate.HostData) { d.Addresses = nil }), true, found, uplinkstate.ReasonWaitingForDPUHost, "ipAddresses"},
		"bridge problem":                {goodHost(), true, problem(uplinkstate.ReasonBridgeInvalid), uplinkstate.ReasonBridgeInvalid, "seen on the bridge"},
		"host's failure goes before it": {fails(uplinkstate.ReasonInvalidHostInterface), true, problem(uplinkstate.ReasonBridgeInvalid), uplinkstate.ReasonInvalidHostInterface, "the host's own words"},
	} {
		t.Run(name, func(t *testing.T) {
			half, _, err := decide(tc.host, tc.published, tc.find)
			if err != nil {
				t.Fatal(err)
			}
			if half.Resolved.Reason != tc.reason || !strings.Contains(half.Resolved.Message, tc.message) {
				t.Errorf("got %+v", half.Resolved)
			}
			if good := tc.reason == uplinkstate.ReasonResolved; half.Resolved.Status != good || (half.Bridge != nil) != good {
				t.Errorf("status %v with bridge %+v", half.Resolved.Status, half.Bridge)
			}
			if tc.published && half.Resolved.Generation != 7 {
				t.Errorf("generation %d, want the host half's", half.Resolved.Generation)
			}
		})
	}
}

// What cannot be read is unknown: no condition is made from it.
func TestUnknownIsNotFalse(t *testing.T) {
	unknown := errors.New("devlink is busy")
	_, _, err := decide(goodHost(), true, func(uplinkstate.HostData) (locate.Finding, error) { return locate.Finding{}, unknown })
	if !errors.Is(err, unknown) {
		t.Errorf("got %v", err)
	}
}

func TestFindingString(t *testing.T) {
	f := locate.Finding{Bridge: "br-ovn", Method: "host function", UplinkPort: "p0", Via: []string{"br-ovn/puplinkbrovn"}, Unverified: true}
	want := "bridge br-ovn found by host function, uplink port p0 via br-ovn/puplinkbrovn; identity not verified by MAC"
	if got := f.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
