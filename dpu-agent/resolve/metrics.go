// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var warnings = promauto.NewGaugeVec(prometheus.GaugeOpts{
	Name: "ovn_uplink_warnings",
	Help: "Findings about an uplink's bridge that do not fail it, for example an MTU that differs along the path.",
}, []string{"uplinkstate"})

func setWarnings(state string, count int) {
	if count == 0 {
		warnings.DeleteLabelValues(state)
		return
	}
	warnings.WithLabelValues(state).Set(float64(count))
}
