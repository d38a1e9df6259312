// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	reads = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "ovn_uplink_netlink_reads_total",
		Help: "Complete reads of links, addresses and default routes, by outcome.",
	}, []string{"outcome"})
	readSeconds = promauto.NewCounter(prometheus.CounterOpts{
		Name: "ovn_uplink_netlink_read_seconds_total",
		Help: "Time spent reading links, addresses and default routes.",
	})
	resubscribed = promauto.NewCounter(prometheus.CounterOpts{
		Name: "ovn_uplink_netlink_resubscribed_total",
		Help: "How often netlink events were lost, or a read failed, and everything was subscribed and read anew.",
	})
)

// Prometheus counts what monitors do in the default registry.
func Prometheus() Metrics {
	return Metrics{
		Read: func(took time.Duration, err error) {
			outcome := "ok"
			if err != nil {
				outcome = "error"
			}
			reads.WithLabelValues(outcome).Inc()
			readSeconds.Add(took.Seconds())
		},
		Resubscribed: func(error) { resubscribed.Inc() },
	}
}
