// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"iter"
	"slices"
	"strings"
	"time"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	uplinknetwork "github.com/ovn-uplink/ovn-uplink/shared/network"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// network is what the role keeps of a CUDN besides the object itself.
type network struct {
	name       string
	generation int64
	created    time.Time
	// uplinks are the Uplinks that it goes by; named are all that it names, which it holds.
	uplinks []string
	named   []string
	// problem says that uplinks cannot be told.
	problem *uplinkstate.Problem
	fits    bool // its kind can use an Uplink
	evpn    bool
	// namespaces selects its namespaces; nil when the selector is invalid and selects nothing.
	namespaces labels.Selector
	// late are the Uplinks that it began to name when they were terminating already.
	late map[string]bool
}

func newNetwork(object *ovnk.ClusterUserDefinedNetwork) *network {
	n := &network{
		name:       object.Name,
		generation: object.Generation,
		created:    object.CreationTimestamp.Time,
		named:      uplinknetwork.NamedUplinks(object),
		fits:       uplinknetwork.CanUseUplink(object.Spec.Network),
		evpn:       object.Spec.Network.Transport == ovnk.TransportEVPN,
		late:       map[string]bool{},
	}
	n.uplinks, n.problem = uplinknetwork.Uplinks(object)
	if selector, err := metav1.LabelSelectorAsSelector(&object.Spec.NamespaceSelector); err == nil {
		n.namespaces = selector
	}
	return n
}

// holds tells whether the network keeps an Uplink from going: it does not prolong one that was terminating already
// when it began to name it.
func (n *network) holds(u *uplink) bool {
	return slices.Contains(n.named, u.name) && (!u.terminating() || !n.late[u.name] && !n.created.After(u.deleted))
}

// networkOrder are the reasons of nodes, in the order in which they decide between reasons that as many nodes have.
var networkOrder = []string{
	uplinkstate.ReasonUplinkConfigurationConflict,
	uplinkstate.ReasonUplinkVRFAttachmentFailed,
	uplinkstate.ReasonUplinkBridgeMappingFailed,
	uplinkstate.ReasonUplinkGatewayProgrammingFailed,
	uplinkstate.ReasonGatewayConfigurationPending,
	uplinkstate.ReasonUplinkNotResolvedForNode,
	uplinkstate.ReasonUplinkNotFoundForNode,
	uplinkstate.ReasonUplinkOverlapOnNode,
}

// surroundings is what a network's readiness depends on besides itself.
type surroundings struct {
	sharedGateway bool
	uplink        func(name string) *uplink // nil if there is none
	active        iter.Seq[string]          // nodes
	occupied      func(name string) bool    // as for judge
}

// ready says what a CUDN's UplinksReady should be.
func (n *network) ready(s surroundings) uplinkstate.Condition {
	if n.problem != nil {
		return uplinkstate.False(n.problem, n.generation)
	}
	if len(n.uplinks) == 0 {
		return uplinkstate.True(uplinkstate.ReasonUplinksReady, "the network names no Uplink; it uses the cluster's default gateway", n.generation)
	}
	uplinks, problem := n.resolve(s)
	if problem != nil {
		return uplinkstate.False(problem, n.generation)
	}
	var count tally
	for node := range s.active {
		if reason := n.nodeFault(uplinks, node, s.occupied); reason != "" {
			count.bad(node, reason)
		} else {
			count.good()
		}
	}
	switch {
	case count.nodes == 0:
		return uplinkstate.True(uplinkstate.ReasonUplinksReady, "the network is active on no node", n.generation)
	case count.failing == 0:
		return uplinkstate.True(uplinkstate.ReasonUplinksReady, "every active node's gateway covers the network", n.generation)
	}
	return uplinkstate.False(&uplinkstate.Problem{Reason: mostFrequent(&count), Message: count.message("active")}, n.generation)
}

// resolve looks up the Uplinks of the network, or says what is wrong before any node is looked at.
func (n *network) resolve(s surroundings) ([]*uplink, *uplinkstate.Problem) {
	names := strings.Join(n.uplinks, ", ")
	switch {
	case !s.sharedGateway:
		return nil, uplinkstate.Problemf(uplinkstate.ReasonUplinkUnsupportedGatewayMode,
			"the network names Uplink %s, but the cluster is in local gateway mode; Uplinks need shared gateway mode", names)
	case n.evpn:
		return nil, uplinkstate.Problemf(uplinkstate.ReasonUplinkUnsupportedTransport,
			"the network names Uplink %s, but its transport is EVPN; a network with an Uplink must use the overlay", names)
	case !n.fits:
		return nil, uplinkstate.Problemf(uplinkstate.ReasonUplinkUnsupportedTopology,
			"the network names Uplink %s, but only a primary Layer2 or Layer3 network can have one", names)
	}
	var uplinks []*uplink
	for _, name := range n.uplinks {
		u := s.uplink(name)
		switch {
		case u == nil || !u.exists:
			return nil, uplinkstate.Problemf(uplinkstate.ReasonUplinkNotFound, "Uplink %s does not exist; create it", name)
		case u.terminating():
			return nil, uplinkstate.Problemf(uplinkstate.ReasonUplinkTerminating, "Uplink %s is being deleted", name)
		case u.invalid != nil:
			return nil, uplinkstate.Problemf(uplinkstate.ReasonUplinkNotResolvedForNode,
				"nobody can tell which nodes Uplink %s selects: %v; correct the selector", name, u.invalid)
		}
		uplinks = append(uplinks, u)
	}
	return uplinks, nil
}

// nodeFault is the reason for which an active node is not ready, or empty.
func (n *network) nodeFault(uplinks []*uplink, node string, occupied func(string) bool) string {
	for _, u := range uplinks {
		choice, ok := u.selected[node]
		switch {
		case !ok:
			return uplinkstate.ReasonUplinkNotFoundForNode
		case choice == overlap:
			return uplinkstate.ReasonUplinkOverlapOnNode
		case u.judge(node, choice, occupied).reason != "":
			return uplinkstate.ReasonUplinkNotResolvedForNode
		}
		if c, ok := u.states[node].covers(n.name); !ok || c.phase != v1alpha1.NetworkReady {
			return gatewayReason(c)
		}
	}
	return ""
}

// gatewayReason is why a network is not covered. What a node says is not trusted to be of the vocabulary.
func gatewayReason(c coverage) string {
	if c.phase != v1alpha1.NetworkFailed {
		return uplinkstate.ReasonGatewayConfigurationPending
	}
	switch c.reason {
	case uplinkstate.ReasonUplinkConfigurationConflict, uplinkstate.ReasonUplinkVRFAttachmentFailed, uplinkstate.ReasonUplinkBridgeMappingFailed:
		return c.reason
	}
	return uplinkstate.ReasonUplinkGatewayProgrammingFailed
}

// mostFrequent is the reason that most nodes have; of several, the first in networkOrder.
func mostFrequent(t *tally) string {
	var best *group
	for _, reason := range networkOrder {
		if g := t.groups[reason]; g != nil && (best == nil || g.count > best.count) {
			best = g
		}
	}
	return best.reason
}
