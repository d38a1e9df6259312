// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var (
	modsSent = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "ovn_uplink_openflow_mods_total",
		Help: "Changes sent to the Uplinks' bridges, by kind: flow or port. At rest there are none.",
	}, []string{"kind"})
	drifts = promauto.NewCounter(prometheus.CounterOpts{
		Name: "ovn_uplink_openflow_drifts_total",
		Help: "Times that a bridge's flows were found to be other than programmed: changed by others, or lost.",
	})
)

// countFlowMods counts what was sent, refused or not.
func (p *Programmer) countFlowMods(n int) {
	p.flowMods.Add(uint64(n))
	modsSent.WithLabelValues("flow").Add(float64(n))
}

func (p *Programmer) countPortMods() {
	p.portMods.Add(1)
	modsSent.WithLabelValues("port").Inc()
}

// Mods returns how many flow mods and port mods were sent since the Programmer was made, refused ones included.
func (p *Programmer) Mods() (flows, ports uint64) { return p.flowMods.Load(), p.portMods.Load() }
