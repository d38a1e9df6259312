// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/bridge"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
)

// takeDown removes everything of an Uplink: OVN's rows, the bridge mapping, the VRF attachment, and the flows once the patch port is gone,
// because they keep what OVN still sends from moving the host's MAC address. Each step is done whatever became of the
// others. rest is when to come again although nothing failed.
func (r *Role) takeDown(ctx context.Context, uplink string) (rest time.Duration, err error) {
	view, known := r.observer.OVS.Latest()
	if !known {
		return 0, r.observer.OVS.Ready()
	}
	name := r.bridges[uplink]
	if name == "" && slices.Contains(view.OwnMappings(), ovn.PhysicalNetwork(uplink)) {
		name = view.Mapped(ovn.PhysicalNetwork(uplink))
		r.bridges[uplink] = name // the mapping goes before the flows
	}
	r.listen(uplink, nil, "", nil)
	if r.importer != nil { // a command has none
		r.importer.Forget(uplink)
	}
	var ovnErr error
	if !r.withoutOVN {
		_, ovnErr = r.nb.Remove(ctx, uplink)
	}
	delete(r.outcomes, uplink)
	_, mapErr := r.observer.OVS.Map(ctx, ovn.PhysicalNetwork(uplink), "")
	if err := errors.Join(ovnErr, mapErr, r.routing.release(ctx, uplink)); err != nil {
		return 0, err
	}
	if name == "" || r.shared(uplink, name) {
		delete(r.bridges, uplink)
		return 0, nil
	}
	if patch, _ := view.PatchPort(name, ovn.PhysicalNetwork(uplink), ovn.LocalnetPort(uplink, r.node)); patch != 0 {
		if rest := r.waits.rest("farewell of "+uplink, farewell, time.Now()); rest > 0 {
			return rest, nil // its going is an event
		}
	}
	r.waits.end("farewell of " + uplink)
	if err := r.flows.Remove(ctx, name); err != nil {
		return 0, err
	}
	delete(r.bridges, uplink)
	return 0, nil
}

// shared tells whether another Uplink has its flows on the bridge.
func (r *Role) shared(uplink, name string) bool {
	for other, b := range r.bridges {
		if other != uplink && b == name {
			return true
		}
	}
	return false
}

// holdsAnything tells whether anything of an Uplink is programmed, as far as one can see.
func (r *Role) holdsAnything(uplink string) bool {
	return r.bridges[uplink] != "" || slices.Contains(r.programmed(r.nb), uplink)
}

// programmed are the Uplinks that have rows, mappings or VRFs of ours on this node.
func (r *Role) programmed(nb *ovn.DB) []string {
	uplinks, _ := nb.Uplinks() // what cannot be seen is seen later
	uplinks = append(uplinks, r.routing.uplinks()...)
	if view, known := r.observer.OVS.Latest(); known {
		for _, name := range view.OwnMappings() {
			if uplink, ok := strings.CutPrefix(name, ovn.PhysicalNetwork("")); ok {
				uplinks = append(uplinks, uplink)
			}
		}
	}
	slices.Sort(uplinks)
	return slices.Compact(uplinks)
}

// sweep removes flows from bridges that belong to no Uplink: what is left where an agent was killed after the rest was
// gone, or while the Uplink moved to another bridge. Where OVN still has its patch port they stay until that goes,
// see takeDown. complete is false where it has to be done again for want of sight, or for such a patch port.
func (r *Role) sweep(ctx context.Context) (complete bool, err error) {
	view, known := r.observer.OVS.Latest()
	if !known || r.nb.Ready() != nil && !r.withoutOVN {
		return false, nil
	}
	used := map[string]bool{view.IntegrationBridge(): true}
	for _, uplink := range r.programmed(r.nb) {
		used[view.Mapped(ovn.PhysicalNetwork(uplink))] = true
	}
	for _, name := range r.bridges {
		used[name] = true
	}
	for _, bridge := range r.covering() {
		used[bridge] = true
	}
	var errs []error
	complete = true
	for i := range view.Bridges {
		switch name := view.Bridges[i].Name; {
		case used[name]:
		case r.patched(view, name):
			complete = false
		default:
			errs = append(errs, r.flows.Remove(ctx, name))
		}
	}
	return complete, errors.Join(errs...)
}

// covering are the bridges of the states that cover networks: a bridge is used from before anything is programmed.
func (r *Role) covering() (bridges []string) {
	if r.states == nil {
		return nil // a command, which does not see them
	}
	for _, state := range r.states.List() {
		if b := state.Status.OVSBridge; b != nil && len(state.Status.Networks) > 0 {
			bridges = append(bridges, string(b.Name))
		}
	}
	return bridges
}

// patched tells whether OVN has a patch port of an Uplink on a bridge. A command does not wait for its going.
func (r *Role) patched(view *bridge.View, name string) bool {
	return r.states != nil && slices.ContainsFunc(view.LocalnetPorts(name), func(port string) bool { return ovn.IsLocalnetPort(port, r.node) })
}

// forget drops what is remembered of an Uplink.
func (r *Role) forget(uplink string) {
	delete(r.said, uplink)
	delete(r.noted, uplink)
	r.routing.forget(uplink)
	for _, what := range []string{"state of ", "trouble with ", "patch port of ", "farewell of "} {
		r.waits.end(what + uplink)
	}
}
