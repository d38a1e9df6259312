// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// state is what the role keeps of an UplinkState. A cluster may have hundreds of thousands of them, so that a
// whole object each would not do; every text is interned.
type state struct {
	owner    types.UID // of the Uplink that controls it
	kind     v1alpha1.UplinkType
	iface    string
	host     finding
	resolved finding
	networks []coverage // sorted by name
}

// finding is what one condition says; the zero value is an absent condition.
type finding struct {
	known, ok  bool
	reason     string
	generation int64
}

// coverage is how far a node's gateway is with one network.
type coverage struct {
	network string
	phase   v1alpha1.NetworkPhase
	reason  string
}

// texts interns what many states say alike.
type texts map[string]string

// maxTexts bounds what is remembered: nodes may say what they like.
const maxTexts = 100_000

func (t texts) of(s string) string {
	if known, ok := t[s]; ok {
		return known
	}
	if len(t) >= maxTexts {
		clear(t) // what is in use stays in use
	}
	t[s] = s
	return s
}

// fold takes from an UplinkState what the role needs.
func fold(s *v1alpha1.UplinkState, t texts) *state {
	out := &state{
		kind:     v1alpha1.UplinkType(t.of(string(s.Status.Type))),
		iface:    t.of(string(s.Status.HostInterfaceName)),
		host:     foldCondition(s, uplinkstate.HostDataReady, t),
		resolved: foldCondition(s, uplinkstate.Resolved, t),
	}
	if owner := metav1.GetControllerOfNoCopy(s); owner != nil {
		out.owner = types.UID(t.of(string(owner.UID)))
	}
	if len(s.Status.Networks) > 0 {
		out.networks = make([]coverage, 0, len(s.Status.Networks))
	}
	for _, n := range s.Status.Networks {
		out.networks = append(out.networks, coverage{t.of(n.Name), v1alpha1.NetworkPhase(t.of(string(n.Phase))), t.of(n.Reason)})
	}
	slices.SortFunc(out.networks, byNetwork)
	return out
}

func foldCondition(s *v1alpha1.UplinkState, kind string, t texts) finding {
	c := meta.FindStatusCondition(s.Status.Conditions, kind)
	if c == nil {
		return finding{}
	}
	return finding{true, c.Status == metav1.ConditionTrue, t.of(c.Reason), c.ObservedGeneration}
}

// sameFindings tells whether two states say the same of everything but the networks.
func (s *state) sameFindings(o *state) bool {
	return s != nil && o != nil && s.owner == o.owner && s.kind == o.kind && s.iface == o.iface &&
		s.host == o.host && s.resolved == o.resolved
}

// changedNetworks are the networks of which two states, either of which may be nil, say different things.
func changedNetworks(a, b *state) []string {
	var names []string
	for _, pair := range [][2]*state{{a, b}, {b, a}} {
		if pair[0] == nil {
			continue
		}
		for _, c := range pair[0].networks {
			if other, ok := pair[1].covers(c.network); !ok || other != c {
				names = append(names, c.network)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// covers looks up what the node's gateway says of a network.
func (s *state) covers(network string) (coverage, bool) {
	if s == nil {
		return coverage{}, false
	}
	i, ok := slices.BinarySearchFunc(s.networks, coverage{network: network}, byNetwork)
	if !ok {
		return coverage{}, false
	}
	return s.networks[i], true
}

func byNetwork(a, b coverage) int { return cmp.Compare(a.network, b.network) }
