// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are called from the importer and must not block, nor call it.
type Metrics struct {
	// Read is called after each read of a table with what it took and its error.
	Read func(took time.Duration, err error)
	// Resubscribed is called when a subscription was lost or a read failed, with the cause.
	Resubscribed func(cause error)
	// Imported is called with the number of an Uplink's routes when something about them changed.
	Imported func(uplink string, routes int)
	// Emptied is called when all routes of an Uplink went at once.
	Emptied func(uplink string)
	// Forgotten is called when an Uplink is not wanted any more.
	Forgotten func(uplink string)
}

// fill makes all functions callable.
func (m *Metrics) fill() {
	if m.Read == nil {
		m.Read = func(time.Duration, error) {}
	}
	if m.Resubscribed == nil {
		m.Resubscribed = func(error) {}
	}
	if m.Imported == nil {
		m.Imported = func(string, int) {}
	}
	if m.Emptied == nil {
		m.Emptied = func(string) {}
	}
	if m.Forgotten == nil {
		m.Forgotten = func(string) {}
	}
}

var (
	imported = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "ovn_uplink_imported_routes",
		Help: "Routes of BGP, next hop by next hop, that are imported for an Uplink.",
	}, []string{"uplink"})
	emptied = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "ovn_uplink_imported_routes_emptied_total",
		Help: "How often all routes of an Uplink went from the kernel at once and were kept for the grace time.",
	}, []string{"uplink"})
	reads = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "ovn_uplink_route_table_reads_total",
		Help: "Reads of the routes of BGP in one routing table, by outcome.",
	}, []string{"outcome"})
	readSeconds = promauto.NewCounter(prometheus.CounterOpts{
		Name: "ovn_uplink_route_table_read_seconds_total",
		Help: "Time spent reading the routes of BGP.",
	})
	resubscribed = promauto.NewCounter(prometheus.CounterOpts{
		Name: "ovn_uplink_route_import_resubscribed_total",
		Help: "How often events of routes were lost, or a read failed, and everything was subscribed and read anew.",
	})
)

// Prometheus counts what an importer does in the default registry.
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
		Imported:     func(uplink string, routes int) { imported.WithLabelValues(uplink).Set(float64(routes)) },
		Emptied:      func(uplink string) { emptied.WithLabelValues(uplink).Inc() },
		Forgotten: func(uplink string) {
			imported.DeleteLabelValues(uplink)
			emptied.DeleteLabelValues(uplink)
		},
	}
}
