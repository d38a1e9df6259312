// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"

// fault is why a node's uplink does not count.
type fault struct {
	// reason is the one of the Uplink's Ready; empty: the node counts.
	reason string
	// detail is what is counted in messages: the underlying reason.
	detail string
}

// judge says what is wrong with an Uplink on a node that it selects. occupied tells whether an object has the name
// that the node's state must have, with the identity of another.
func (u *uplink) judge(node string, choice selected, occupied func(name string) bool) fault {
	if choice == overlap {
		return fault{uplinkstate.ReasonNodeSelectorOverlap, uplinkstate.ReasonNodeSelectorOverlap}
	}
	s := u.states[node]
	switch {
	case s == nil && occupied(uplinkstate.Name(u.name, node)), s != nil && s.owner != u.uid:
		return fault{uplinkstate.ReasonUplinkStateIdentityError, uplinkstate.ReasonUplinkStateIdentityError}
	case s == nil:
		return fault{uplinkstate.ReasonMissingUplinkState, uplinkstate.ReasonMissingUplinkState}
	}
	if detail := u.unresolved(s, choice); detail != "" {
		return fault{uplinkstate.ReasonUplinkStateNotResolved, detail}
	}
	return fault{}
}

// unresolved says why a state does not show the Uplink resolved as it is now; empty if it does.
func (u *uplink) unresolved(s *state, choice selected) string {
	config := u.configs[choice]
	switch {
	case !s.host.known && s.resolved.known && !s.resolved.ok:
		return s.resolved.reason
	case !s.host.known:
		return uplinkstate.ReasonWaitingForDPUHost
	case behind(s.host, u.generation):
		return uplinkstate.DetailHostDataStale
	case !s.host.ok:
		// Resolved may still say what was true before.
		return s.host.reason
	case s.kind != config.Type, s.iface != string(config.HostInterfaceName):
		return uplinkstate.DetailNodeConfigMismatch
	case !s.resolved.known:
		return uplinkstate.DetailResolvedConditionMissing
	case behind(s.resolved, u.generation):
		return uplinkstate.DetailResolvedStale
	case !s.resolved.ok:
		return s.resolved.reason
	}
	return ""
}

// behind tells whether a finding was made for an earlier spec. One that names no generation cannot tell.
func behind(f finding, generation int64) bool { return f.generation != 0 && f.generation < generation }
