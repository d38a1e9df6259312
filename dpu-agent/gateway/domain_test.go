// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/network"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// What becomes of networks that share an Uplink: a name alone is served, "held" keeps what it has, "served on" has a
// problem and is served on if it has something.
func TestDecide(t *testing.T) {
	plain := network.Domain{}
	advertised := network.Domain{Advertised: true}
	inVRF := func(vrf string) network.Domain { return network.Domain{VRF: vrf, Advertised: true} }
	unclear := uplinkstate.Problemf(uplinkstate.ReasonUplinkConfigurationConflict, "two disagree")
	type net struct {
		name, subnet string
		domain       network.Domain
		problem      *uplinkstate.Problem
	}
	for _, test := range []struct {
		name     string
		networks []net
		current  string
		want     string
		vrf      string
		keep     bool
	}{
		{name: "none"},
		{name: "not advertised, equal subnets", networks: []net{{name: "a", subnet: "10.1.0.0/16"}, {name: "b", subnet: "10.1.0.0/16"}}, want: "a b"},
		{name: "one in a VRF", networks: []net{{"a", "10.1.0.0/16", inVRF("a"), nil}}, want: "a", vrf: "a"},
		{
			name:     "two in VRFs, the first has its own",
			networks: []net{{"a", "10.1.0.0/16", inVRF("a"), nil}, {"b", "10.2.0.0/16", inVRF("b"), nil}},
			current:  "a", want: "a:served-on b:held", keep: true,
		},
		{
			name:     "the second was there first",
			networks: []net{{"a", "10.1.0.0/16", inVRF("a"), nil}, {"b", "10.2.0.0/16", inVRF("b"), nil}},
			current:  "b", want: "a:held b:served-on", keep: true,
		},
		{
			name:     "a VRF beside the default domain, nothing attached",
			networks: []net{{"a", "10.1.0.0/16", inVRF("a"), nil}, {"b", "10.2.0.0/16", plain, nil}},
			want:     "a:held b:served-on", keep: true,
		},
		{
			name:     "advertised, disjoint",
			networks: []net{{"a", "10.1.0.0/16", advertised, nil}, {"b", "10.2.0.0/16", advertised, nil}}, want: "a b",
		},
		{
			name:     "advertised, one of them inside the other",
			networks: []net{{"a", "10.0.0.0/8", advertised, nil}, {"b", "10.2.0.0/16", advertised, nil}, {"c", "10.2.0.0/16", plain, nil}},
			want:     "a:held b:held c", keep: true,
		},
		{
			name:     "advertised, around the Uplink",
			networks: []net{{"a", "192.0.0.0/16", advertised, nil}}, want: "a:held", keep: true,
		},
		{
			name:     "one cannot be decided",
			networks: []net{{"a", "10.1.0.0/16", plain, unclear}, {"b", "10.2.0.0/16", plain, nil}}, want: "a:held b", keep: true,
		},
		{
			name:     "one cannot be decided beside one in a VRF",
			networks: []net{{"a", "10.1.0.0/16", plain, unclear}, {"b", "10.2.0.0/16", inVRF("b"), nil}},
			current:  "b", want: "a:held b:served-on", keep: true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var active []tenant
			by := map[string]net{}
			for _, n := range test.networks {
				by[n.name] = n
				active = append(active, tenant{cudn: n.name, subnets: []netip.Prefix{netip.MustParsePrefix(n.subnet)}})
			}
			decide(active, []netip.Prefix{netip.MustParsePrefix("192.0.2.10/24")}, test.current,
				func(t *tenant) (network.Domain, *uplinkstate.Problem) { return by[t.cudn].domain, by[t.cudn].problem })
			var got []string
			for _, t := range active {
				what := t.cudn
				switch {
				case t.problem != nil && t.held:
					what += ":held"
				case t.problem != nil:
					what += ":served-on"
				}
				got = append(got, what)
			}
			if s := strings.Join(got, " "); s != test.want {
				t.Errorf("%q, want %q", s, test.want)
			}
			vrf, _, keep := wantedVRF(active)
			if vrf != test.vrf || keep != test.keep {
				t.Errorf("VRF %q, keep %v, want %q, %v", vrf, keep, test.vrf, test.keep)
			}
		})
	}
}
