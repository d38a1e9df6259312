// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/netip"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// flat: a Layer2 network's service whose only endpoint is on another node, where the CNI has transit routers.
func (s *shop) flat(f *field) {
	green := f.network(lab.NetworkSpec{CUDN: "green", Topology: lab.Layer2})
	pods := map[*post]*lab.Pod{}
	for _, p := range f.posts {
		pods[p] = f.pod(green, p, "l2-"+p.node)
		f.serve(pods[p].Node, pods[p].Addresses)
	}
	f.covered("blue", "green", "red")
	spec := twoPorts("green", "flat", 30880, 30890)
	for _, p := range f.posts {
		for _, other := range f.posts {
			f.service(spec, green, pods[other])
			for _, a := range p.addresses {
				f.answers(netip.AddrPortFrom(a, 30880), pods[other].Name)
				f.echo(f.client, netip.AddrPortFrom(a, 30890), 1000)
			}
		}
	}
}
