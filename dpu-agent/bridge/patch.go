// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// maxPatches bounds the number of patch ports on the way to the wire. Service chains have one or two.
const maxPatches = 8

// step is a bridge on the way to the wire and how it was reached.
type step struct {
	bridge *Bridge
	via    []string // patch ports left by, "bridge/port"
	exit   *Port    // the first of them
}

// followPatches looks for the wire behind the patch ports of a bridge that has no usable port itself, nearest
// bridges first. A bridge is looked at once, so that loops end; OVN's integration bridge is not gone through.
func followPatches(v *View, b *Bridge, candidates []Candidate, classify Classifier) (Uplink, error) {
	var found []Uplink
	var unclear []string
	seen := map[string]bool{b.Name: true, v.IntegrationBridge(): true}
	todo := nextSteps(v, step{bridge: b}, candidates)
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		if seen[s.bridge.Name] || len(s.via) > maxPatches {
			continue
		}
		seen[s.bridge.Name] = true
		there := survey(s.bridge, classify)
		candidates = append(candidates, there...)
		chosen, err := choose(s.bridge, there)
		var problem *uplinkstate.Problem
		switch {
		case errors.As(err, &problem):
			unclear = append(unclear, problem.Message)
		case err != nil:
			return Uplink{Candidates: candidates}, err
		case chosen != nil:
			found = append(found, Uplink{
				Bridge: s.bridge.Name, Port: chosen.Name, Members: members(chosen), Exits: members(s.exit), Via: s.via,
			})
		default:
			todo = append(todo, nextSteps(v, s, there)...)
		}
	}
	switch len(found) {
	case 0:
		return Uplink{Candidates: candidates}, noUplink(b, candidates, unclear)
	case 1:
		found[0].Candidates = candidates
		return found[0], nil
	}
	return Uplink{Candidates: candidates}, severalEnds(b, found)
}

// nextSteps are the bridges behind the patch ports of a bridge. Where bridge-uplink names one of these ports, only
// the one behind it.
func nextSteps(v *View, s step, candidates []Candidate) []step {
	patches := with(candidates, Patch)
	hint := s.bridge.Port(s.bridge.ExternalIDs[hintKey])
	hinted := func(c Candidate) bool { return c.port == hint }
	if i := slices.IndexFunc(patches, hinted); i >= 0 {
		patches = patches[i : i+1]
	}
	var next []step
	for _, c := range patches {
		if b := peerBridge(v, c.port); b != nil {
			exit := s.exit
			if exit == nil {
				exit = c.port
			}
			next = append(next, step{bridge: b, via: append(slices.Clone(s.via), s.bridge.Name+"/"+c.Port), exit: exit})
		}
	}
	return next
}

// peerBridge is the bridge at the other end of a patch port; nil unless both ends name each other.
func peerBridge(v *View, p *Port) *Bridge {
	near := p.Interfaces[0]
	b, port, found := v.BridgeOfPort(near.Options["peer"])
	if !found {
		return nil
	}
	far := port.Interface(near.Options["peer"])
	if far == nil || far.Type != typePatch || far.Options["peer"] != near.Name || far.Dead() != "" {
		return nil
	}
	return b
}

func severalEnds(b *Bridge, found []Uplink) *uplinkstate.Problem {
	ends := make([]string, len(found))
	for i, end := range found {
		ends[i] = fmt.Sprintf("port %s of bridge %s behind %s", end.Port, end.Bridge, end.Via[len(end.Via)-1])
	}
	return uplinkstate.Problemf(uplinkstate.ReasonBridgeUplinkNotFound,
		"bridge %s reaches %d wires by its patch ports, %s, and nothing says which is meant; name the patch port: ovs-vsctl set Bridge %s external_ids:%s=PORT",
		b.Name, len(found), limit(ends), b.Name, hintKey)
}

// noUplink names everything that was looked at and why it is not it.
func noUplink(b *Bridge, candidates []Candidate, unclear []string) *uplinkstate.Problem {
	if len(unclear) > 0 {
		return uplinkstate.Problemf(uplinkstate.ReasonBridgeUplinkNotFound,
			"bridge %s has no port to the wire of its own; behind its patch ports, %s", b.Name, limit(unclear))
	}
	var looked []Candidate
	for _, c := range candidates {
		if c.Port != c.Bridge {
			looked = append(looked, c)
		}
	}
	seen := "it has no ports"
	if len(looked) > 0 {
		seen = list(looked)
	}
	if hint := b.ExternalIDs[hintKey]; hint != "" && b.Port(hint) == nil {
		seen = fmt.Sprintf("external_ids:%s names %s, which it does not have; %s", hintKey, hint, seen)
	}
	return uplinkstate.Problemf(uplinkstate.ReasonBridgeUplinkNotFound,
		"no port of bridge %s leads to the wire: %s; expected a physical port, a bond, or a patch port to a bridge that has one; add it: ovs-vsctl add-port %s PORT",
		b.Name, seen, b.Name)
}
