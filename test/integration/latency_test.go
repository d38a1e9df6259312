// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A change is in the state within the settle time and 500 ms, of both sides. Not parallel: nothing else of this
// package runs meanwhile. The best of a few counts, since the machine may be busy with something else.
func TestFollowsInTime(t *testing.T) {
	const settle, slack, tries = time.Second, 500 * time.Millisecond, 5
	c := newCluster(t)
	p := c.pair("worker-b")
	c.uplink("blue", nodeConfig("ens1f0", nil))
	c.hostAgent(p.Host)
	c.cardAgent(p)
	c.within(settled, "blue", "worker-b", resolved)

	var host, card []time.Duration
	for i := range tries {
		address := fmt.Sprintf("2001:db8::%x/64", i+1)
		start := time.Now()
		c.ip(p.Host, "addr", "replace", address, "dev", "ens1f0", "nodad")
		if i > 0 {
			c.ip(p.Host, "addr", "del", fmt.Sprintf("2001:db8::%x/64", i), "dev", "ens1f0")
		}
		c.within(settled, "blue", "worker-b", addresses("172.28.0.3/16", address))
		host = append(host, time.Since(start))

		start = time.Now()
		c.vsctl(p.Card, "set", "Port", "pf0hpf", fmt.Sprintf("tag=%d", i+1))
		c.within(settled, "blue", "worker-b", onBridge("br-ext", "p0", int32(i+1)))
		card = append(card, time.Since(start))
	}
	t.Logf("address: %v; VLAN: %v", host, card)
	for what, took := range map[string][]time.Duration{"address": host, "VLAN": card} {
		if best := slices.Min(took); best > settle+slack {
			t.Errorf("a changed %s was published after %s at best, want %s", what, best, settle+slack)
		}
	}
}
