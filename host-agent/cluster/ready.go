// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// readyOrder are the reasons of nodes, highest first.
var readyOrder = []string{
	uplinkstate.ReasonNodeSelectorOverlap,
	uplinkstate.ReasonMissingUplinkState,
	uplinkstate.ReasonUplinkStateIdentityError,
	uplinkstate.ReasonUplinkStateNotResolved,
}

// ready says what an Uplink's Ready should be. users are the networks that still hold it, sorted; occupied is as
// for judge.
func (u *uplink) ready(users []string, occupied func(name string) bool) uplinkstate.Condition {
	fail := func(reason, format string, args ...any) uplinkstate.Condition {
		return uplinkstate.False(uplinkstate.Problemf(reason, format, args...), u.generation)
	}
	switch {
	case u.terminating() && len(users) > 0:
		return fail(uplinkstate.ReasonUplinkTerminating, "the Uplink is being deleted; it stays until no ClusterUserDefinedNetwork names it: %s", sample(users))
	case u.terminating():
		return fail(uplinkstate.ReasonUplinkTerminating, "the Uplink is being deleted")
	case u.invalid != nil:
		return fail(uplinkstate.ReasonInvalidSpec, "%v; correct the selector", u.invalid)
	case len(u.selected) == 0:
		return fail(uplinkstate.ReasonNoMatchingNodes, "no nodeConfig selects any node; label the nodes or correct the nodeSelectors")
	}
	var count tally
	found := map[string]bool{}
	for node, choice := range u.selected {
		f := u.judge(node, choice, occupied)
		if f.reason == "" {
			count.good()
			continue
		}
		count.bad(node, f.detail)
		found[f.reason] = true
	}
	for _, reason := range readyOrder {
		if found[reason] {
			return fail(reason, "%s", count.message("selected"))
		}
	}
	return uplinkstate.True(uplinkstate.ReasonReady, "every selected node has resolved the Uplink", u.generation)
}

// sample names the first few of a sorted list.
func sample(names []string) string {
	if len(names) > maxNames {
		return strings.Join(names[:maxNames], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}
