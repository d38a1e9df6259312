// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/vrf"
	"github.com/ovn-uplink/ovn-uplink/shared/network"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// settleDomain decides in which routing domain each active network of an Uplink is, puts the Uplink's interface there, and
// returns the VRF that it is in, empty for none. What is wrong is in the networks' problems; the error is what is to be
// tried again.
func (r *Role) settleDomain(ctx context.Context, uplink, iface string, host uplinkstate.HostData, active []tenant) (in string, again time.Duration, err error) {
	current, err := r.routing.current(uplink)
	if err != nil {
		troubled(active, "", failure(uplinkstate.ReasonUplinkVRFAttachmentFailed, "look which VRF the interface is in", err))
		return "", 0, err
	}
	decide(active, host.Addresses, current.Name, r.advertising.domainOf)
	name, cudn, keep := wantedVRF(active)
	if keep {
		return current.Name, 0, nil
	}
	to := vrf.VRF{}
	if name != "" {
		to = vrf.VRF{Name: name, Network: network.Name(cudn), Uplink: uplink}
	}
	if again, err = r.routing.settle(ctx, uplink, iface, to); err != nil {
		if current, wrong := r.routing.current(uplink); wrong == nil {
			in = current.Name
		}
		troubled(active, in, failure(uplinkstate.ReasonUplinkVRFAttachmentFailed, fmt.Sprintf("put interface %s into VRF %s", iface, network.Domain{VRF: name}), err))
		var problem *uplinkstate.Problem
		if errors.As(err, &problem) {
			err = nil // again says when
		}
		return in, again, err
	}
	if d, wrong := r.routing.drift(uplink); wrong && name != "" {
		troubled(active, name, drift(d))
	}
	return name, 0, nil
}

// troubled gives all networks a problem with the VRF. Those that are in that VRF, or in none if that is so, are served on.
func troubled(active []tenant, in string, problem *uplinkstate.Problem) {
	for i := range active {
		t := &active[i]
		t.problem, t.held = problem, t.domain.VRF != in
	}
}

// decide gives the active networks of an Uplink their routing domains, and a problem to each that cannot be served
// beside the others. It is the same for everybody concerned, whoever was first. current is the VRF that the Uplink's
// interface is in; what works in it goes on working.
func decide(active []tenant, own []netip.Prefix, current string, domainOf domainOf) {
	for i := range active {
		t := &active[i]
		t.domain, t.problem = domainOf(t)
		t.held = t.problem != nil
	}
	crowd(active, current)
	overlap(active, own)
}

// crowd: an interface is in one VRF, and what is in none is in another domain.
func crowd(active []tenant, current string) {
	i := slices.IndexFunc(active, func(t tenant) bool { return t.domain.VRF != "" })
	if i < 0 || len(active) == 1 {
		return
	}
	var names []string
	for _, t := range active {
		names = append(names, t.cudn)
	}
	problem := uplinkstate.Problemf(uplinkstate.ReasonUplinkConfigurationConflict,
		"networks %s are active on this node and share the Uplink, but %s is advertised in VRF %s, which the Uplink's interface would have to be in for it alone; "+
			"give each its own Uplink, or keep them on different nodes", strings.Join(names, ", "), active[i].cudn, active[i].domain.VRF)
	for i := range active {
		t := &active[i]
		if t.held {
			continue
		}
		t.problem, t.held = problem, t.domain.VRF != current
	}
}

// overlap: what comes for an address that is advertised for two networks could be for either.
func overlap(active []tenant, own []netip.Prefix) {
	for i := range active {
		t := &active[i]
		if !t.domain.Advertised || t.problem != nil {
			continue
		}
		for _, p := range own {
			if q, ok := overlapping(t.subnets, []netip.Prefix{p.Masked()}); ok {
				t.conflict("network %s is advertised, but its subnet %s overlaps the Uplink's own network %s", t.cudn, q, p.Masked())
			}
		}
		for j := range active[:i] {
			o := &active[j]
			if q, ok := overlapping(t.subnets, o.subnets); ok && o.domain.Advertised {
				for _, party := range []*tenant{t, o} {
					party.conflict("networks %s and %s are both advertised through the Uplink, and their subnets overlap at %s; give each its own Uplink and VRF", o.cudn, t.cudn, q)
				}
			}
		}
	}
}

// conflict holds a network.
func (t *tenant) conflict(format string, args ...any) {
	t.problem, t.held = uplinkstate.Problemf(uplinkstate.ReasonUplinkConfigurationConflict, format, args...), true
}

func overlapping(a, b []netip.Prefix) (netip.Prefix, bool) {
	for _, p := range a {
		if slices.ContainsFunc(b, p.Overlaps) {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// wantedVRF is the VRF that the Uplink's interface is to be in, empty for none. keep says that it stays where it is:
// somebody has a problem that would only be moved about.
func wantedVRF(active []tenant) (vrf, cudn string, keep bool) {
	if slices.ContainsFunc(active, func(t tenant) bool { return t.problem != nil }) {
		return "", "", true
	}
	for _, t := range active {
		if t.domain.VRF != "" {
			return t.domain.VRF, t.cudn, false // the only one
		}
	}
	return "", "", false
}
