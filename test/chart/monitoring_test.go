// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The lab has no Prometheus operator, so what its objects have to have is checked here.
func TestMonitoring(t *testing.T) {
	h := newHelm(t, nil)
	for _, kind := range []string{"Service ", "ServiceMonitor ", "PrometheusRule ", "ConfigMap "} {
		for _, k := range h.render().keys() {
			if strings.HasPrefix(k, kind) {
				t.Errorf("%s is there unasked", k)
			}
		}
	}
	all := h.render(append(everything, "--set", "metrics.serviceMonitor.labels.release=prom,metrics.prometheusRule.labels.release=prom")...)
	monitor := all.find(t, "ServiceMonitor ovn-uplink/ovn-uplink")
	rule := all.find(t, "PrometheusRule ovn-uplink/ovn-uplink")
	for _, o := range []*unstructured.Unstructured{monitor, rule} {
		if o.GetLabels()["release"] != "prom" {
			t.Errorf("%s has labels %v", key(o), o.GetLabels())
		}
	}

	selector, _, _ := unstructured.NestedStringMap(monitor.Object, "spec", "selector", "matchLabels")
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	port := endpoints[0].(map[string]any)["port"]
	var services []string
	for _, o := range all {
		if o.GetKind() != "Service" {
			continue
		}
		services = append(services, o.GetName())
		ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
		if ports[0].(map[string]any)["name"] != port {
			t.Errorf("%s has no port %v: %v", key(o), port, ports)
		}
		for label, value := range selector {
			if o.GetLabels()[label] != value {
				t.Errorf("the ServiceMonitor selects %v, not %s", selector, key(o))
			}
		}
	}
	if want := []string{"ovn-uplink-cluster", "ovn-uplink-host", "ovn-uplink-node"}; !slices.Equal(slices.Sorted(slices.Values(services)), want) {
		t.Errorf("Services %v, want %v", services, want)
	}

	groups, _, err := unstructured.NestedSlice(rule.Object, "spec", "groups")
	if err != nil || len(groups) != 1 {
		t.Fatalf("groups %v: %v", groups, err)
	}
	names := map[string]bool{}
	for _, r := range groups[0].(map[string]any)["rules"].([]any) {
		alert, _, _ := unstructured.NestedString(r.(map[string]any), "alert")
		expr, _, _ := unstructured.NestedString(r.(map[string]any), "expr")
		severity, _, _ := unstructured.NestedString(r.(map[string]any), "labels", "severity")
		notes, _, _ := unstructured.NestedStringMap(r.(map[string]any), "annotations")
		if names[alert] || expr == "" || notes["summary"] == "" || notes["description"] == "" || !slices.Contains([]string{"info", "warning", "critical"}, severity) {
			t.Errorf("alert %q is double, or lacks something: %v", alert, r)
		}
		names[alert] = true
	}
}
