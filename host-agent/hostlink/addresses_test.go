// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
)

// addr reads "192.0.2.5/24 secondary deprecated"; without "dynamic" it is permanent.
func addr(text string) kernel.Addr {
	words := strings.Fields(text)
	has := func(word string) bool { return slices.Contains(words[1:], word) }
	a := kernel.Addr{
		LinkIndex: ens3, Prefix: netip.MustParsePrefix(words[0]), Permanent: !has("dynamic"),
		Deprecated: has("deprecated"), Tentative: has("tentative"), DADFailed: has("dadfailed"),
		Secondary: has("secondary"), Temporary: has("temporary"),
	}
	if has("link") {
		a.Scope = 253
	}
	return a
}

func addrs(texts ...string) []kernel.Addr {
	var all []kernel.Addr
	for _, text := range texts {
		all = append(all, addr(text))
	}
	return all
}

func TestAddresses(t *testing.T) {
	tests := map[string]struct {
		addrs []string
		want  []string
		why   map[string]string
	}{
		"Z4.1: both families": {
			addrs: []string{"2001:db8::5/64", "192.0.2.5/24", "fe80::5/64 link"},
			want:  []string{"192.0.2.5/24", "2001:db8::5/64"},
			why:   map[string]string{"fe80::5/64": "a link-local address"},
		},
		"Z4.2: only link-local": {
			addrs: []string{"fe80::5/64 link", "169.254.3.4/16"},
			why:   map[string]string{"fe80::5/64": "a link-local address", "169.254.3.4/16": "a link-local address"},
		},
		"Z4.3: a secondary does not win by its number": {
			addrs: []string{"192.0.2.9/24", "192.0.2.5/24 secondary"},
			want:  []string{"192.0.2.9/24"},
			why:   map[string]string{"192.0.2.5/24": "secondary or of a single host, 192.0.2.9/24 is preferred"},
		},
		"Z4.3: only a secondary": {addrs: []string{"192.0.2.5/24 secondary"}, want: []string{"192.0.2.5/24"}},
		"Z4.4: a virtual IP manager's address": {
			addrs: []string{"192.0.2.1/32 deprecated", "192.0.2.5/24"},
			want:  []string{"192.0.2.5/24"},
			why:   map[string]string{"192.0.2.1/32": "deprecated, and secondary or of a single host, 192.0.2.5/24 is preferred"},
		},
		"a parked address that is not deprecated": {addrs: []string{"192.0.2.1/32", "192.0.2.5/24 dynamic"}, want: []string{"192.0.2.5/24"}},
		"only a /32, as clouds give them":         {addrs: []string{"192.0.2.1/32 dynamic"}, want: []string{"192.0.2.1/32"}},
		"only a /128, as DHCPv6 gives them":       {addrs: []string{"2001:db8::7/128 dynamic"}, want: []string{"2001:db8::7/128"}},
		"Z4.5: tentative": {
			addrs: []string{"2001:db8::5/64 tentative"},
			why:   map[string]string{"2001:db8::5/64": "tentative: duplicate address detection is not done yet"},
		},
		"Z4.6: duplicate": {
			addrs: []string{"2001:db8::5/64 tentative dadfailed"},
			why:   map[string]string{"2001:db8::5/64": "duplicate: another station has it"},
		},
		"Z4.7: the privacy address of a managed one": {
			addrs: []string{"2001:db8::1/64 temporary dynamic", "2001:db8::5/64 dynamic"},
			want:  []string{"2001:db8::5/64"},
			why:   map[string]string{"2001:db8::1/64": "a temporary privacy address"},
		},
		"Z4.8: only deprecated":          {addrs: []string{"192.0.2.5/24 deprecated"}, want: []string{"192.0.2.5/24"}},
		"permanent before dynamic":       {addrs: []string{"192.0.2.5/24 dynamic", "198.51.100.5/24"}, want: []string{"198.51.100.5/24"}},
		"dynamic before deprecated":      {addrs: []string{"192.0.2.5/24 deprecated", "198.51.100.5/24 dynamic"}, want: []string{"198.51.100.5/24"}},
		"equals: the lower one":          {addrs: []string{"198.51.100.5/24", "192.0.2.5/24"}, want: []string{"192.0.2.5/24"}},
		"equals: by number, not as text": {addrs: []string{"192.0.2.10/24", "192.0.2.9/24"}, want: []string{"192.0.2.9/24"}},
		"C16: all at once": {
			addrs: []string{"192.0.2.5/24", "192.0.2.200/32 deprecated", "2001:db8::5/64 tentative", "2001:db8::6/64 dadfailed"},
			want:  []string{"192.0.2.5/24"},
		},
		"C18: one family":                   {addrs: []string{"192.0.2.5/24"}, want: []string{"192.0.2.5/24"}},
		"loopback, multicast, narrow scope": {addrs: []string{"127.0.0.1/8", "ff02::1/128", "192.0.2.5/24 link", "0.0.0.0/8"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			all := addrs(test.addrs...)
			verdicts := judgeAddresses(all)
			if got := textOf(chosenAddresses(verdicts)); !slices.Equal(got, test.want) {
				t.Errorf("chosen %q, want %q; verdicts %+v", got, test.want, verdicts)
			}
			for _, v := range verdicts {
				if v.Chosen == (v.Why != "") {
					t.Errorf("%s: chosen %t, why not %q", v.Address, v.Chosen, v.Why)
				}
				if want, ok := test.why[v.Address.String()]; ok && v.Why != want {
					t.Errorf("%s: %q, want %q", v.Address, v.Why, want)
				}
			}
			slices.Reverse(all)
			if !slices.Equal(judgeAddresses(all), verdicts) {
				t.Error("the order in which addresses are listed makes a difference")
			}
		})
	}
}
