// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The host agent shares the host with tenants' workloads: it has to be small, and stay so with many Uplinks.
func TestHostAgentFootprint(t *testing.T) {
	t.Parallel()
	const maxBinary, maxRSS = 25 << 20, 20 << 20
	c := newCluster(t)
	n := c.host("worker-a", nil)
	for i := range 50 {
		c.uplink(fmt.Sprintf("tenant-%d", i), nodeConfig("e0", nil))
	}
	p := c.start(n, shipped, "--node-name", n.Name)
	c.ready(n, hostHealth)
	c.within(20*time.Second, "tenant-49", n.Name, hostReady)
	pause(t, time.Minute)
	rss, err := p.RSS()
	c.must(err)
	info, err := os.Stat(filepath.Join(binaries, shipped))
	c.must(err)
	t.Logf("with 50 Uplinks: binary %.1f MiB, resident %.1f MiB", float64(info.Size())/(1<<20), float64(rss)/(1<<20))
	if info.Size() > maxBinary {
		t.Errorf("the binary has %d bytes, more than %d", info.Size(), maxBinary)
	}
	if rss > maxRSS {
		t.Errorf("%d bytes resident after a minute, more than %d", rss, maxRSS)
	}
}
