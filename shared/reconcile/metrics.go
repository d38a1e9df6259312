// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	passes = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "ovn_uplink_reconcile_total",
		Help: "Passes of a control loop, by outcome.",
	}, []string{"loop", "outcome"})
	seconds = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "ovn_uplink_reconcile_seconds_total",
		Help: "Time spent in passes of a control loop.",
	}, []string{"loop"})
)

func observe(loop string, err error, took time.Duration) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	passes.WithLabelValues(loop, outcome).Inc()
	seconds.WithLabelValues(loop).Add(took.Seconds())
}
