// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
)

// Config says which northbound database to write to, and for which node.
type Config struct {
	// Endpoint and TLS are those of ovsdb.Config.
	Endpoint string
	TLS      *tls.Config
	// Node is this node's name in the cluster.
	Node   string
	Ranges Ranges
	Logger *slog.Logger
}

// Ranges are addresses for the gateways' own use. Transit, Link and ServiceSNAT have at most one prefix of each
// family; without any of a family its default is used.
type Ranges struct {
	// Transit is where the networks' links to the edge routers are taken from, a /30 or /126 for each. These addresses
	// never leave the node. Default 100.91.0.0/16 and fd91::/64.
	Transit []netip.Prefix
	// Link is the link of every network between the CNI's router and the network's gateway; they never meet. Default
	// 100.92.0.0/30 and fd92::/126.
	Link []netip.Prefix
	// ServiceSNAT has one address per node, that clients of services have towards pods, and in its upper half one per
	// node for the port by which Layer2 networks reach that node. It must be the same on all nodes. Default
	// 100.93.0.0/16 and fd93::/64.
	ServiceSNAT []netip.Prefix
	// ServiceCIDRs are the addresses of the cluster's services.
	ServiceCIDRs []netip.Prefix
	// Bypass are further destinations that pods reach by the CNI's own gateway.
	Bypass []netip.Prefix
}

// withDefaults fills in the defaults and cuts prefixes to their base.
func (r Ranges) withDefaults() Ranges {
	return Ranges{
		Transit:      familyDefaults(r.Transit, "100.91.0.0/16", "fd91::/64"),
		Link:         familyDefaults(r.Link, "100.92.0.0/30", "fd92::/126"),
		ServiceSNAT:  familyDefaults(r.ServiceSNAT, "100.93.0.0/16", "fd93::/64"),
		ServiceCIDRs: normalised(r.ServiceCIDRs), Bypass: normalised(r.Bypass),
	}
}

func familyDefaults(given []netip.Prefix, v4, v6 string) []netip.Prefix {
	prefixes := normalised(given)
	for _, p := range []netip.Prefix{netip.MustParsePrefix(v4), netip.MustParsePrefix(v6)} {
		if !ofFamily(prefixes, p.Addr().Is6()).IsValid() {
			prefixes = append(prefixes, p)
		}
	}
	return normalised(prefixes)
}

// Validate finds mistakes in ranges: what is no use for its purpose, and what overlaps.
func (r Ranges) Validate() error {
	r = r.withDefaults()
	var errs []error
	named := r.named()
	for i, a := range named {
		for _, is6 := range []bool{false, true} {
			if n := len(family(a.prefixes, is6)); n > 1 {
				errs = append(errs, fmt.Errorf("%s range: %d prefixes of one family, want one", a.name, n))
			}
		}
		for _, p := range a.prefixes {
			if p.Addr().BitLen()-p.Bits() < 2 {
				errs = append(errs, fmt.Errorf("%s range %s: too small, need at least a /30 or /126", a.name, p))
			}
		}
		for _, b := range append(named[i+1:], namedPrefixes{"service CIDR", r.ServiceCIDRs}) {
			if p, q, overlap := overlapping(a.prefixes, b.prefixes); overlap {
				errs = append(errs, fmt.Errorf("%s range %s overlaps %s range %s", a.name, p, b.name, q))
			}
		}
	}
	return errors.Join(errs...)
}

type namedPrefixes struct {
	name     string
	prefixes []netip.Prefix
}

func (r Ranges) named() []namedPrefixes {
	return []namedPrefixes{{"transit", r.Transit}, {"link", r.Link}, {"service SNAT", r.ServiceSNAT}}
}
