// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// The one path through everything: a pod of each network leaves with the Uplink's address.
func TestGatewayEgress(t *testing.T) {
	t.Parallel()
	for _, version := range lab.OVNVersions(t) {
		t.Run(version.Name, func(t *testing.T) {
			c := newGatewayCluster(t, version)
			s := c.regularSite("worker-a", lab.RegularSpec{})
			c.uplink("tenant-blue", nodeConfig(s.iface, nil))
			s.agents()
			blue := c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: "blue"}, s)
			red := c.tenantNetwork("tenant-blue", lab.NetworkSpec{CUDN: "red"}, s)
			c.within(programmed, "tenant-blue", s.node, covers("blue", "red"))
			for _, n := range []*lab.Network{blue, red} {
				pod, err := n.Pod(t.Context(), s.zone, "a")
				c.must(err)
				c.pings(pod.Node, lab.InternetAddress)
			}
		})
	}
}
