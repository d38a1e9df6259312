// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var conditionGauge = promauto.NewGaugeVec(prometheus.GaugeOpts{
	Name: "ovn_uplink_condition",
	Help: "The condition that this agent published last: 1 with its status and reason, no other series for the same state and condition.",
}, []string{"uplinkstate", "condition", "status", "reason"})

// Publish shows a condition of a state, given by name, as a metric; call it once the API server has it.
func Publish(state, kind string, c Condition) {
	Retract(state, kind)
	conditionGauge.WithLabelValues(state, kind, string(c.status()), c.Reason).Set(1)
}

// Retract drops the metric of a condition that is no longer published.
func Retract(state, kind string) {
	conditionGauge.DeletePartialMatch(prometheus.Labels{"uplinkstate": state, "condition": kind})
}
