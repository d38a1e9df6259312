// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/locate"
	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovn"
	"github.com/ovn-uplink/ovn-uplink/shared/network"
)

// Line is one link of the chain from a network to the wire.
type Line struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	// Text says what is there, or why not.
	Text string `json:"text"`
}

// Explanation is the whole chain of one network on this node.
type Explanation struct {
	CUDN    string `json:"cudn"`
	Network string `json:"network"`
	Node    string `json:"node"`
	// Uplink is empty where the network has none on this node.
	Uplink string `json:"uplink,omitempty"`
	Lines  []Line `json:"lines"`
}

// OK tells whether every link holds.
func (e Explanation) OK() bool {
	for _, l := range e.Lines {
		if !l.OK {
			return false
		}
	}
	return e.Uplink != ""
}

// Explain follows the chain of a network: mapping, localnet port, patch port, flows, rows. It reads what is there, from
// Open vSwitch and OVN, and needs no API server. The error is about those two not being there.
func Explain(ctx context.Context, system locate.System, config Config, cudn string) (Explanation, error) {
	e := Explanation{CUDN: cudn, Network: network.Name(cudn)}
	err := once(ctx, system, config, func(r *Role) error {
		e.Node = r.node
		rows, err := r.nb.View()
		if err != nil {
			return fmt.Errorf("read the northbound database of OVN at %s: %w", config.Northbound, err)
		}
		var facts []ovn.Fact
		e.Uplink, facts = rows.Explain(e.Network, network.Prefix(cudn))
		if e.Uplink == "" {
			e.add("rows", false, "OVN has no rows of ours for network %s on node %s. Does the ClusterUserDefinedNetwork name an Uplink that selects this node? See 'kubectl get uplinkstates --field-selector spec.nodeName=%s -o yaml'", e.Network, e.Node, e.Node)
			return nil
		}
		bridge := e.explainMapping(r)
		for _, f := range facts {
			e.add(f.What, f.OK, "%s", f.Text)
		}
		e.explainRouting(r, rows)
		patch := e.explainPatch(r, bridge)
		return e.explainFlows(ctx, r, bridge, patch)
	})
	return e, err
}

func (e *Explanation) add(what string, ok bool, format string, args ...any) {
	e.Lines = append(e.Lines, Line{what, ok, fmt.Sprintf(format, args...)})
}

func (e *Explanation) explainMapping(r *Role) (bridge string) {
	view, _ := r.observer.OVS.Latest()
	key, _ := view.Mappings()
	name := ovn.PhysicalNetwork(e.Uplink)
	if bridge = view.Mapped(name); bridge == "" {
		e.add("mapping", false, "external_ids:%s has no element for %s", key, name)
		return ""
	}
	e.add("mapping", true, "%s:%s in external_ids:%s, chassis %s", name, bridge, key, view.Chassis)
	return bridge
}

// explainRouting says in which VRF the Uplink's interface is for its networks, and which routes OVN has of it.
func (e *Explanation) explainRouting(r *Role, rows *ovn.View) {
	in, err := r.routing.attachments(e.Uplink)
	switch {
	case err != nil:
		e.add("VRF", false, "%v", err)
	case len(in) == 0:
		e.add("VRF", true, "the default one")
	case in[0].Leaving:
		e.add("VRF", false, "interface %s is out of %s, but not all that belongs to it could return yet", in[0].Interface, in[0].VRF.Name)
	default:
		e.add("VRF", true, "%s, with interface %s, for network %s", in[0].VRF.Name, in[0].Interface, in[0].VRF.Network)
	}
	var defaults []string
	routes := rows.Routes(e.Uplink)
	for _, route := range routes {
		if route.Prefix.Bits() == 0 {
			defaults = append(defaults, route.NextHop.String())
		}
	}
	e.add("routes", len(routes) > 0, "%d by the wire, default by %s", len(routes), cmp.Or(strings.Join(defaults, ", "), "none"))
}

func (e *Explanation) explainPatch(r *Role, bridge string) (ofport uint32) {
	view, _ := r.observer.OVS.Latest()
	ofport, why := view.PatchPort(bridge, ovn.PhysicalNetwork(e.Uplink), ovn.LocalnetPort(e.Uplink, e.Node))
	if ofport == 0 {
		e.add("patch port", false, "%s", why)
	} else {
		e.add("patch port", true, "OpenFlow port %d of bridge %s", ofport, bridge)
	}
	port := ovn.RouterPort(e.Uplink, e.Node, network.Prefix(e.CUDN))
	if view.CarriedOut(port) {
		e.add("ovn-controller", true, "has taken up router port %s", port)
	} else {
		e.add("ovn-controller", false, "has not taken up router port %s on chassis %s; are ovn-northd and ovn-controller running?", port, view.Chassis)
	}
	return ofport
}

func (e *Explanation) explainFlows(ctx context.Context, r *Role, bridge string, patch uint32) error {
	if bridge == "" {
		return nil
	}
	flows, err := r.flows.Dump(ctx, bridge)
	if err != nil {
		return err
	}
	var from, to int
	for _, f := range flows {
		if strings.Contains(f.Match+",", fmt.Sprintf("in_port=%d,", patch)) {
			from++
		}
		if strings.HasSuffix(f.Actions, fmt.Sprintf("output:%d", patch)) {
			to++
		}
	}
	switch {
	case len(flows) == 0:
		e.add("flows", false, "bridge %s has none of this agent's; is it running?", bridge)
	case patch == 0 || from == 0 || to == 0:
		e.add("flows", false, "bridge %s has %d of this agent's, but none that leads from and to OpenFlow port %d", bridge, len(flows), patch)
	default:
		e.add("flows", true, "bridge %s has %d of this agent's, from and to OpenFlow port %d", bridge, len(flows), patch)
	}
	return nil
}
