// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/ovn-uplink/ovn-uplink/test/lab/frrtest"
	"github.com/vishvananda/netns"
)

// speaker is one instance of BGP: what it announces, to whom, in which VRF.
type speaker struct {
	number, peerNumber int
	vrf                string
	peers              []netip.Addr
	networks           []netip.Prefix
	// nextHops are announced instead of the speaker's own addresses, one per family; none for its own.
	nextHops []netip.Addr
}

func (s speaker) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	in := ""
	if s.vrf != "" {
		in = " vrf " + s.vrf
	}
	for i, hop := range s.nextHops {
		line("route-map hop%d permit 10", i)
		if hop.Is6() {
			line(" set ipv6 next-hop global %s", hop)
		} else {
			line(" set ip next-hop %s", hop)
		}
		line("exit")
	}
	line("router bgp %d%s", s.number, in)
	line(" bgp router-id 192.0.2.%d", s.number%100+100)
	line(" no bgp ebgp-requires-policy")
	line(" no bgp network import-check")
	line(" timers bgp 1 3")
	for _, peer := range s.peers {
		line(" neighbor %s remote-as %d", peer, s.peerNumber)
		line(" neighbor %s timers connect 1", peer)
		line(" neighbor %s advertisement-interval 0", peer)
	}
	for i, family := range []string{"ipv4", "ipv6"} {
		line(" address-family %s unicast", family)
		for _, peer := range s.peers {
			switch {
			case peer.Is6() != (i == 1):
				line("  no neighbor %s activate", peer)
			default:
				line("  neighbor %s activate", peer)
				if len(s.nextHops) > i {
					line("  neighbor %s route-map hop%d out", peer, i)
				}
			}
		}
		for _, n := range s.networks {
			if n.Addr().Is6() == (i == 1) {
				line("  network %s", n)
			}
		}
		line(" exit-address-family")
	}
	line("exit")
	return b.String()
}

// frr runs FRR on a machine.
func (c *cluster) frr(n *lab.Node, speakers ...speaker) *frrtest.Router {
	c.t.Helper()
	var ns netns.NsHandle
	c.must(n.Do(func() (err error) {
		ns, err = netns.Get()
		return err
	}))
	c.t.Cleanup(func() { _ = ns.Close() })
	configuration := "frr defaults datacenter\n"
	for _, s := range speakers {
		configuration += s.String()
	}
	return frrtest.Start(c.t, ns, configuration)
}
