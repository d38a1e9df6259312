// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

func TestKernelRouting(t *testing.T) {
	kerneltest.NeedGuest(t)
	version := lab.OVNVersions(t)[0]
	t.Log("begin")
	c := newGatewayCluster(t, version)
	t.Log("cluster")
	s := c.regularSite("worker-a", lab.RegularSpec{})
	t.Log("site")
	s.agents()
	t.Log("agents")
}
