// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/selection"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// verb is what is to be done about the host half of one state.
type verb int

const (
	// keep leaves everything as it is: the wish is met, or nobody can say what the wish is.
	keep verb = iota
	// publish makes the host half what the decision says.
	publish
	// leave takes the state away: mark, wait for the dpu, delete.
	leave
)

// decision is the outcome of decide.
type decision struct {
	verb verb
	half uplinkstate.HostHalf
	// why explains keep, for the log; wrong says that somebody has to do something about it.
	why   string
	wrong bool
}

// measurer finds out what there is to publish of one interface.
type measurer func(config v1alpha1.UplinkNodeConfig) (measurement, *uplinkstate.Problem)

// measurement is what there is to publish, and why it has no gateway where one might be expected.
type measurement struct {
	uplinkstate.HostData
	noGateway string
}

// decide says what the host half of a state should be. uplink is nil when it does not exist, state likewise;
// labels are nil while the Node object is not there.
func decide(uplink *v1alpha1.Uplink, labels map[string]string, nodeKnown bool, state *v1alpha1.UplinkState, measure measurer) decision {
	if uplink == nil {
		return leaveIf(state)
	}
	if !nodeKnown {
		return decision{why: "the cluster has no Node of this node's name", wrong: true}
	}
	if uplink.DeletionTimestamp != nil && state == nil {
		return decision{why: "the Uplink is terminating"}
	}
	matcher, err := selection.Compile(uplink)
	if err != nil {
		// Nobody can say which nodes are meant; what works goes on working, the cluster role reports it.
		return decision{why: err.Error(), wrong: true}
	}
	selected := matcher.Select(labels)
	if !selected.Selected() {
		return leaveIf(state)
	}
	if selected.Overlap() {
		return decision{verb: publish, half: overlapping(selected, uplink, state)}
	}
	return decision{verb: publish, half: measured(*selected.Config, uplink.Generation, measure)}
}

func leaveIf(state *v1alpha1.UplinkState) decision {
	if state == nil {
		return decision{why: "not selected"}
	}
	half, _ := uplinkstate.HostHalfOf(state)
	half.Ready = uplinkstate.False(uplinkstate.Problemf(uplinkstate.ReasonNodeNotSelected,
		"the Uplink no longer selects this node; the state is deleted once the gateway is taken down"), half.Ready.Generation)
	return decision{verb: leave, half: half}
}

func measured(config v1alpha1.UplinkNodeConfig, generation int64, measure measurer) uplinkstate.HostHalf {
	data, problem := measure(config)
	data.Type = config.Type
	if problem != nil {
		// Nothing but the name: addresses that were measured before do not belong to what is there now.
		return uplinkstate.HostHalf{
			Data:  uplinkstate.HostData{Type: config.Type, Interface: string(config.HostInterfaceName)},
			Ready: uplinkstate.False(problem, generation),
		}
	}
	return uplinkstate.HostHalf{
		Data:  data.HostData,
		Ready: uplinkstate.True(uplinkstate.ReasonHostDataDiscovered, describe(data), generation),
	}
}

func overlapping(selected selection.Selection, uplink *v1alpha1.Uplink, state *v1alpha1.UplinkState) uplinkstate.HostHalf {
	var indexes []string
	for _, i := range selected.Matches {
		indexes = append(indexes, fmt.Sprint(i))
	}
	data := uplinkstate.HostData{Type: v1alpha1.OVSBridge}
	if state != nil {
		data.Interface = string(state.Status.HostInterfaceName)
	}
	return uplinkstate.HostHalf{Data: data, Ready: uplinkstate.False(uplinkstate.Problemf(uplinkstate.ReasonNodeSelectorOverlap,
		"nodeConfigs %s of Uplink %s all select this node; change their nodeSelectors so that only one does",
		strings.Join(indexes, ", "), uplink.Name), uplink.Generation)}
}

// describe is the message of a host half that is complete.
func describe(data measurement) string {
	switch {
	case data.noGateway != "":
		return fmt.Sprintf("interface %s was measured; %s", data.Interface, data.noGateway)
	case len(data.Gateways) == 0:
		return fmt.Sprintf("interface %s was measured; it has no default gateway", data.Interface)
	}
	return fmt.Sprintf("interface %s was measured", data.Interface)
}

// foreign tells whether a state of the name that this node's state must have belongs to somebody else.
func foreign(state *v1alpha1.UplinkState, uplink, node string) error {
	if state.Spec.UplinkName == uplink && state.Spec.NodeName == node {
		return nil
	}
	return errors.New("UplinkState " + state.Name + " is of Uplink " + state.Spec.UplinkName + " on node " + state.Spec.NodeName)
}
