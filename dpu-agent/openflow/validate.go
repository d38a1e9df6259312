// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// maxPort is the highest number of an ordinary port, OFPP_MAX of OpenFlow 1.0, whose numbers OVS keeps to.
const maxPort = 0xff00

// validate finds what could not be rendered, or would be a flow that matches more than meant.
func (b *Bridge) validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if b.HostPort != Local && !ordinary(b.HostPort) {
		bad("host port %d is no port", b.HostPort)
	}
	if len(b.Uplinks) == 0 {
		bad("no port leads to the wire")
	}
	for i, p := range b.Uplinks {
		if !ordinary(p) || p == b.HostPort || p == b.Patch || slices.Contains(b.Uplinks[:i], p) {
			bad("port %d cannot lead to the wire", p)
		}
	}
	if b.Patch != 0 && (!ordinary(b.Patch) || b.Patch == b.HostPort) {
		bad("port %d cannot be the patch port", b.Patch)
	}
	if b.VLAN > 4094 {
		bad("VLAN %d is out of range", b.VLAN)
	}
	if len(b.MAC) != 6 || b.MAC[0]&1 != 0 {
		bad("%q is no MAC of an interface", b.MAC)
	}
	for i, a := range b.Addresses {
		other := slices.ContainsFunc(b.Addresses[:i], func(o netip.Addr) bool { return o.Is6() == a.Is6() })
		if !plain(a) || other {
			bad("address %s is not usable, or a second of its family", a)
		}
	}
	for _, a := range b.Gateways {
		if !plain(a) {
			bad("gateway %s is not usable", a)
		}
	}
	for _, p := range slices.Concat(b.Transit, b.Unroutable, b.Advertised) {
		if !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() {
			bad("range %s is not usable", p)
		}
	}
	if b.Zone == 0 {
		bad("no conntrack zone")
	}
	return errors.Join(errs...)
}

// items are the services in order, each once, with an item of port 0 for every address of their own in front of
// that address's.
func (b *Bridge) items() ([]Service, error) {
	sorted := b.Services
	if !slices.IsSortedFunc(sorted, Service.compare) {
		sorted = slices.Clone(sorted)
		slices.SortFunc(sorted, Service.compare)
	}
	items := make([]Service, 0, len(sorted)+8)
	for _, s := range sorted {
		if err := b.check(s); err != nil {
			return nil, fmt.Errorf("service %s: %w", s, err)
		}
		if n := len(items); n > 0 && items[n-1].compare(s) == 0 {
			if items[n-1] != s {
				return nil, fmt.Errorf("service %s has two targets, %s and %s", s, items[n-1].Target, s.Target)
			}
			continue
		}
		if n := len(items); !s.Target.IsValid() && (n == 0 || items[n-1].Address != s.Address) {
			items = append(items, Service{Address: s.Address})
		}
		items = append(items, s)
	}
	return items, nil
}

func (b *Bridge) check(s Service) error {
	switch {
	case s.Protocol != TCP && s.Protocol != UDP && s.Protocol != SCTP:
		return errors.New("neither tcp, udp nor sctp")
	case !plain(s.Address) || s.Port == 0:
		return errors.New("no address or no port")
	case slices.Contains(b.Addresses, s.Address) != s.Target.IsValid():
		return errors.New("a target is needed for the Uplink's own addresses, and for no other")
	case s.Target.IsValid() && (!plain(s.Target) || s.Target.Is6() != s.Address.Is6()):
		return fmt.Errorf("target %s is of the other family", s.Target)
	}
	return nil
}

func ordinary(port uint32) bool { return port > 0 && port < maxPort }

// plain is true for an address that is one host's and is printed without a zone.
func plain(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && !a.Is4In6() && a.Zone() == ""
}
