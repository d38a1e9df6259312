// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"golang.org/x/sys/unix"
)

// maxGateways is how many the API takes (UplinkState status.defaultGateways).
const maxGateways = 2

// Route protocols of the CNI: OVN (RTPROT_OVN of linux/rtnetlink.h) and OVN-Kubernetes, which writes gateways
// it learned from us back into the VRF.
const (
	protocolOVN           = 84
	protocolOVNKubernetes = 85
)

// foreignProtocols are those whose default routes are no gateways of the administrator's: routing daemons
// withdraw them at any time (they are imported, not published), and those of the CNI and our own were made from
// gateways that were published once. Numbers: linux/rtnetlink.h, "Values of protocol >= RTPROT_STATIC".
var foreignProtocols = map[int]string{
	unix.RTPROT_GATED:     "the routing daemon gated",
	unix.RTPROT_ZEBRA:     "the routing daemon zebra",
	unix.RTPROT_BIRD:      "the routing daemon bird",
	unix.RTPROT_XORP:      "the routing daemon xorp",
	unix.RTPROT_BABEL:     "a babel daemon",
	unix.RTPROT_OPENR:     "the routing daemon openr",
	unix.RTPROT_BGP:       "a BGP daemon",
	unix.RTPROT_ISIS:      "an IS-IS daemon",
	unix.RTPROT_OSPF:      "an OSPF daemon",
	unix.RTPROT_RIP:       "a RIP daemon",
	unix.RTPROT_EIGRP:     "an EIGRP daemon",
	protocolOVN:           "OVN",
	protocolOVNKubernetes: "OVN-Kubernetes",
	kernel.ProtocolOwn:    "ovn-uplink itself",
}

// GatewayVerdict is one next hop of a default route in the interface's table, and whether and why not it is
// published.
type GatewayVerdict struct {
	// Gateway is not valid for a route that names none.
	Gateway netip.Addr `json:"gateway,omitzero"`
	// Destination is 0.0.0.0/0 or ::/0.
	Destination netip.Prefix `json:"destination"`
	// Protocol is the number of who installed the route (rtm_protocol).
	Protocol int    `json:"protocol"`
	Metric   uint32 `json:"metric"`
	Weight   int    `json:"weight"`
	Chosen   bool   `json:"chosen"`
	// Why says what speaks against the gateway; empty for the chosen ones.
	Why string `json:"why,omitempty"`
}

// judgeGateways chooses the gateways to publish among the default routes of a link's table, and says of each
// other next hop why not. The verdicts are sorted by preference: family, metric, weight, address.
func judgeGateways(routes []kernel.Route, link int) []GatewayVerdict {
	var verdicts []GatewayVerdict
	for _, r := range routes {
		for _, hop := range r.NextHops {
			verdicts = append(verdicts, GatewayVerdict{
				Gateway: hop.Gateway, Destination: r.Dst, Protocol: r.Protocol, Metric: r.Metric, Weight: hop.Weight,
				Why: unusableGateway(r, hop, link),
			})
		}
	}
	slices.SortStableFunc(verdicts, preferGateway)
	best := map[netip.Prefix]GatewayVerdict{}
	named := map[netip.Addr]bool{}
	var fit []*GatewayVerdict
	for i := range verdicts {
		v := &verdicts[i]
		if v.Why != "" {
			continue
		}
		first, ok := best[v.Destination]
		if !ok {
			first, best[v.Destination] = *v, *v
		}
		switch {
		case v.Metric != first.Metric:
			v.Why = fmt.Sprintf("its metric is higher than the %d of %s", first.Metric, first.Gateway)
		case v.Weight != first.Weight:
			// Neither the API nor OVN's routes know weights: side by side, both would get one half.
			v.Why = fmt.Sprintf("its weight is lower than the %d of %s, and weights cannot be published", first.Weight, first.Gateway)
		case named[v.Gateway]:
			v.Why = "another default route names it too"
		default:
			named[v.Gateway] = true
			fit = append(fit, v)
		}
	}
	capGateways(fit)
	return verdicts
}

// WhyNoGateway says why none of the default routes that lead out of an interface gives a gateway, by the first of
// them in order of preference. It is empty if one does, and if there are none.
func WhyNoGateway(s *kernel.Snapshot, iface string) string {
	link, ok := s.LinkByName(iface)
	if !ok {
		return ""
	}
	routes := s.DefaultRoutes(s.TableOf(link))
	for i, r := range routes {
		routes[i].NextHops = slices.DeleteFunc(slices.Clone(r.NextHops), func(hop kernel.NextHop) bool {
			return !r.Forwards() || hop.LinkIndex != link.Index && !opaque(r, hop)
		})
	}
	verdicts := judgeGateways(routes, link.Index)
	if len(verdicts) == 0 || len(chosenGateways(verdicts)) > 0 {
		return ""
	}
	first := verdicts[0]
	if !first.Gateway.IsValid() {
		return fmt.Sprintf("default route %s gives no gateway: %s", first.Destination, first.Why)
	}
	return fmt.Sprintf("default gateway %s cannot be published: %s", first.Gateway, first.Why)
}

// opaque tells whether a next hop is one that the kernel does not spell out: it may be on any link.
func opaque(r kernel.Route, hop kernel.NextHop) bool {
	return r.NextHopObject != 0 && hop.LinkIndex == 0
}

// capGateways chooses as many as the API takes, the best of each family before the second of any.
func capGateways(fit []*GatewayVerdict) {
	left := maxGateways
	families := map[netip.Prefix]bool{}
	for _, v := range fit {
		if !families[v.Destination] {
			families[v.Destination], v.Chosen = true, true
			left--
		}
	}
	for _, v := range fit {
		switch {
		case v.Chosen:
		case left > 0:
			v.Chosen = true
			left--
		default:
			v.Why = fmt.Sprintf("only %d gateways can be published", maxGateways)
		}
	}
}

// unusableGateway says why a next hop is never published; empty if it may be.
func unusableGateway(r kernel.Route, hop kernel.NextHop, link int) string {
	installer, skipped := foreignProtocols[r.Protocol]
	ip := hop.Gateway
	switch {
	case !r.Forwards():
		return "the route drops packets"
	case skipped:
		return "the route is by " + installer
	case opaque(r, hop):
		return fmt.Sprintf("the kernel does not say what is in next-hop object %d (net.ipv4.nexthop_compat_mode is 0)", r.NextHopObject)
	case hop.LinkIndex != link:
		return "it is on another interface"
	case hop.Dead:
		return "the next hop is dead"
	case hop.LinkDown:
		return "the next hop's link is down"
	case !ip.IsValid():
		return "the route names no gateway"
	case ip.Is4() != r.Dst.Addr().Is4():
		return "a gateway of the other family cannot be published"
	case ip.IsUnspecified() || ip.IsLoopback() || ip.IsMulticast() || ip.Is4In6():
		return "not the address of a router"
	}
	return ""
}

// preferGateway orders by family, IPv4 first, then lowest metric, heaviest weight, address bytes.
func preferGateway(a, b GatewayVerdict) int {
	return cmp.Or(a.Destination.Addr().Compare(b.Destination.Addr()), cmp.Compare(a.Metric, b.Metric),
		cmp.Compare(b.Weight, a.Weight), a.Gateway.Compare(b.Gateway), cmp.Compare(a.Protocol, b.Protocol))
}

// chosenGateways lists what is published, in order of preference.
func chosenGateways(verdicts []GatewayVerdict) []netip.Addr {
	var chosen []netip.Addr
	for _, v := range verdicts {
		if v.Chosen {
			chosen = append(chosen, v.Gateway)
		}
	}
	return chosen
}
