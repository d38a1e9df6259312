// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Domain is where an Uplink's routes are looked for.
type Domain struct {
	// VRF is the name of the VRF whose table has them; empty stands for table main.
	VRF string
	// Interface is the name, or an alternative name, of the interface that they leave through. Another Interface or VRF
	// is another domain, whose routes have nothing to do with those before.
	Interface string
	// Skip are prefixes that are not imported, nor what is inside them: the pod subnets of the networks. Prefixes and
	// addresses of the node's own links are left out without being named.
	Skip []netip.Prefix
	// IPv4ViaIPv6 is true if IPv4 routes with IPv6 next hops (RFC 8950) can be used.
	IPv4ViaIPv6 bool
	// Previous are the routes that an earlier process imported and that are still in use. They count when the Uplink is
	// wanted for the first time only: those that the first read does not show stay for the grace time.
	Previous []Route
}

// Route is one next hop of one prefix. Several routes of one prefix share the load.
type Route struct {
	// Prefix has no host bits.
	Prefix netip.Prefix
	// NextHop has no zone. An IPv6 link-local one is meant on the Interface.
	NextHop netip.Addr
}

// View is what is known of a domain.
type View struct {
	// Routes are sorted by prefix and next hop, each there once. They are shared: do not change them.
	Routes []Route
	// Known is false until the kernel was read completely for the first time. Then nothing is known, not even that there
	// are no routes.
	Known bool
	// Kept is set while routes are among Routes that the kernel does not show any more, because all went at once and may
	// be about to come back: until when, at the latest.
	Kept time.Time
	// Absent says why there is nothing to read, such as "there is no network interface br-blue"; empty if there is.
	Absent string
	// Ignored are the routes of the domain that are not among Routes.
	Ignored Ignored
}

// Ignored counts what leaves through the interface and cannot be imported.
type Ignored struct {
	// ViaIPv6 are IPv4 routes with an IPv6 next hop.
	ViaIPv6 int
	// NoGateway are routes without a next hop: their destinations are said to be on the link.
	NoGateway int
	// Skipped are routes to prefixes of the networks' own or of the node's, and to link-local or multicast addresses.
	Skipped int
}

// Note tells a reader of conditions what is not as he may expect; empty if there is nothing to tell.
func (v View) Note() string {
	var parts []string
	if v.Absent != "" {
		parts = append(parts, v.Absent)
	}
	if !v.Kept.IsZero() {
		parts = append(parts, "routes that the kernel has lost are kept until "+v.Kept.UTC().Format(time.RFC3339))
	}
	if n := v.Ignored.ViaIPv6; n > 0 {
		parts = append(parts, fmt.Sprintf("%s not imported: the northbound schema of this OVN knows no such routes",
			number(n, "IPv4 route with an IPv6 next hop is", "IPv4 routes with IPv6 next hops are")))
	}
	if n := v.Ignored.NoGateway; n > 0 {
		parts = append(parts, number(n, "route without a next hop is", "routes without a next hop are")+" not imported")
	}
	return strings.Join(parts, "; ")
}

func number(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

// normal is the domain with Skip in one order, and its own.
func (d Domain) normal() Domain {
	d.Skip = slices.Clone(d.Skip)
	slices.SortFunc(d.Skip, comparePrefixes)
	d.Skip = slices.Compact(d.Skip)
	return d
}

// sameSource tells whether two domains are read from the same place.
func (d *Domain) sameSource(o *Domain) bool { return d.VRF == o.VRF && d.Interface == o.Interface }

// sameRules tells whether the same of it is imported.
func (d *Domain) sameRules(o *Domain) bool {
	return d.IPv4ViaIPv6 == o.IPv4ViaIPv6 && slices.Equal(d.Skip, o.Skip)
}

// skips tells whether a prefix is not to be imported whatever the kernel says.
func (d *Domain) skips(p netip.Prefix) bool {
	a := p.Addr()
	if a.IsMulticast() || a.IsLinkLocalUnicast() || a.IsLoopback() {
		return true
	}
	return slices.ContainsFunc(d.Skip, func(s netip.Prefix) bool { return s.Bits() <= p.Bits() && s.Contains(a) })
}

// differs tells whether a view has something else to tell than another one.
func (v *View) differs(o *View) bool {
	return v.Known != o.Known || !v.Kept.Equal(o.Kept) || v.Absent != o.Absent || v.Ignored != o.Ignored ||
		!slices.Equal(v.Routes, o.Routes)
}
