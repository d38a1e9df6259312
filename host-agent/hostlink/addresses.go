// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
)

// AddressVerdict is one address of the interface, and whether and why not it is published.
type AddressVerdict struct {
	Address netip.Prefix `json:"address"`
	Chosen  bool         `json:"chosen"`
	// Why says what speaks against the address; empty for the chosen ones.
	Why string `json:"why,omitempty"`
}

// judgeAddresses chooses one address per family, and says of each other one why not. The verdicts are sorted
// by address, IPv4 first.
func judgeAddresses(addrs []kernel.Addr) []AddressVerdict {
	addrs = slices.Clone(addrs)
	slices.SortStableFunc(addrs, func(a, b kernel.Addr) int {
		return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()))
	})
	verdicts := make([]AddressVerdict, len(addrs))
	best4, best6 := -1, -1
	for i, a := range addrs {
		verdicts[i] = AddressVerdict{Address: a.Prefix, Why: unusableAddress(a)}
		if verdicts[i].Why != "" {
			continue
		}
		best := &best4
		if a.Prefix.Addr().Is6() {
			best = &best6
		}
		// The order of addresses breaks ties, so that the choice does not depend on which came first.
		if *best < 0 || rankAddress(a) < rankAddress(addrs[*best]) {
			*best = i
		}
	}
	for i, a := range addrs {
		best := best4
		if a.Prefix.Addr().Is6() {
			best = best6
		}
		switch {
		case i == best:
			verdicts[i].Chosen = true
		case verdicts[i].Why == "":
			verdicts[i].Why = fmt.Sprintf("%s, %s is preferred", rankAddress(a), addrs[best].Prefix)
		}
	}
	return verdicts
}

// unusableAddress says why an address is not published; empty if it may be. What cannot change comes first, so
// that the answer does not either.
func unusableAddress(a kernel.Addr) string {
	ip := a.Prefix.Addr()
	switch {
	case ip.IsLoopback():
		return "a loopback address"
	case ip.IsLinkLocalUnicast():
		return "a link-local address"
	case a.Scope != 0 || !a.Prefix.IsValid() || !ip.IsGlobalUnicast() || ip.Is4In6():
		return "not of global scope"
	case a.Temporary:
		return "a temporary privacy address"
	case a.DADFailed:
		return "duplicate: another station has it"
	case a.Tentative:
		return "tentative: duplicate address detection is not done yet"
	}
	return ""
}

// addressRank orders usable addresses, best first.
type addressRank int

const (
	permanent addressRank = iota
	dynamic
	deprecated
	// reserve is for addresses that are often only parked on the interface, as those of virtual IP managers
	// are, and may move to another node.
	reserve
	deprecatedReserve
)

func rankAddress(a kernel.Addr) addressRank {
	parked := a.Secondary || a.Prefix.IsSingleIP()
	switch {
	case parked && a.Deprecated:
		return deprecatedReserve
	case parked:
		return reserve
	case a.Deprecated:
		// A deprecated address may be permanent: a preferred lifetime of 0, a valid one without end.
		return deprecated
	case !a.Permanent:
		return dynamic
	}
	return permanent
}

// String is the rank as a property of the address.
func (r addressRank) String() string {
	switch r {
	case permanent:
		return "permanent"
	case dynamic:
		return "dynamic"
	case deprecated:
		return "deprecated"
	case reserve:
		return "secondary or of a single host"
	case deprecatedReserve:
	}
	return "deprecated, and secondary or of a single host"
}

// chosenAddresses lists what is published, IPv4 first.
func chosenAddresses(verdicts []AddressVerdict) []netip.Prefix {
	var chosen []netip.Prefix
	for _, v := range verdicts {
		if v.Chosen {
			chosen = append(chosen, v.Address)
		}
	}
	return chosen
}
