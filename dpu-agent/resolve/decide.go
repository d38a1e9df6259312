// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"errors"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/locate"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// decide says what the dpu half of a state should be, from the host half alone and what find sees of Open
// vSwitch. Reasons are checked in the order of the contract. An error means that nobody can say: what is
// published stays.
func decide(host uplinkstate.HostHalf, published bool, find func(uplinkstate.HostData) (locate.Finding, error)) (uplinkstate.DPUHalf, locate.Finding, error) {
	if !published {
		return failed(uplinkstate.Problemf(uplinkstate.ReasonWaitingForDPUHost,
			"the host has published nothing yet; is the host-agent of this node running?"), 0), locate.Finding{}, nil
	}
	generation := host.Ready.Generation
	if !host.Ready.Status && !uplinkstate.IsHostReason(host.Ready.Reason) {
		return failed(uplinkstate.Problemf(uplinkstate.ReasonWaitingForDPUHost,
			"the host's data is not ready, for a reason that is not known here: %s: %s", host.Ready.Reason, host.Ready.Message), generation), locate.Finding{}, nil
	}
	if !host.Ready.Status {
		// The host's own reason, so that whoever looks at Resolved sees the cause and not that one waits for it.
		return failed(&uplinkstate.Problem{Reason: host.Ready.Reason, Message: host.Ready.Message}, generation), locate.Finding{}, nil
	}
	if missing := incomplete(host.Data); missing != "" {
		return failed(uplinkstate.Problemf(uplinkstate.ReasonWaitingForDPUHost,
			"the host says its data is complete, but %s is missing or unusable", missing), generation), locate.Finding{}, nil
	}
	found, err := find(host.Data)
	var problem *uplinkstate.Problem
	if errors.As(err, &problem) {
		return failed(problem, generation), found, nil
	}
	if err != nil {
		return uplinkstate.DPUHalf{}, found, err
	}
	return uplinkstate.DPUHalf{
		Bridge: &v1alpha1.OVSBridgeStatus{
			Name:       v1alpha1.InterfaceName(found.Bridge),
			UplinkPort: found.UplinkPort,
			VLAN:       found.VLAN,
		},
		Resolved: uplinkstate.True(uplinkstate.ReasonResolved, found.String(), generation),
	}, found, nil
}

func failed(problem *uplinkstate.Problem, generation int64) uplinkstate.DPUHalf {
	return uplinkstate.DPUHalf{Resolved: uplinkstate.False(problem, generation)}
}

// incomplete names what a host half lacks although it says it is complete: it comes from the other side of
// the split and is not trusted.
func incomplete(data uplinkstate.HostData) string {
	switch {
	case data.Interface == "":
		return "hostInterfaceName"
	case data.MAC == nil:
		return "macAddress"
	case len(data.Addresses) == 0:
		return "ipAddresses"
	}
	return ""
}
