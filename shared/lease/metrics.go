// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Registered with the first term: a process that takes part in no election has no such metric.
var (
	leaderOnce sync.Once
	leader     = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ovn_uplink_leader",
		Help: "1 while this process holds the lease, else 0.",
	})
)

func setLeading(leading bool) {
	leaderOnce.Do(func() { prometheus.MustRegister(leader) })
	if leading {
		leader.Set(1)
		return
	}
	leader.Set(0)
}
