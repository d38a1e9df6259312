// SPDX-License-Identifier: Apache-2.0

package integration

import "testing"

func TestProbe(t *testing.T) {
	c := newGuardedCluster(t)
	c.uplink("blue", nodeConfig("e0", nil))
	for name, k := range map[string]string{"host": c.podOf("ovn-uplink-host", "worker-a"), "dpu": c.dpuOf("worker-a")} {
		_ = name
		_ = c.caller(k)
	}
}
