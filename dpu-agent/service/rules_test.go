// SPDX-License-Identifier: Apache-2.0

package service

import (
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// What becomes of a Service, with the same two backends behind it.
func TestServiceRules(t *testing.T) {
	const both = "10.200.1.5:8080 10.200.2.6:8080"
	ingress := func(ips ...string) func(*core.Service) {
		return func(s *core.Service) {
			s.Spec.Type = core.ServiceLoadBalancer
			for _, ip := range ips {
				s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, core.LoadBalancerIngress{IP: ip})
			}
		}
	}
	many := func(n int) func(*core.Service) {
		return func(s *core.Service) {
			s.Spec.Ports = nil
			for i := range n {
				s.Spec.Ports = append(s.Spec.Ports, core.ServicePort{Name: "http", Port: int32(1 + i), NodePort: int32(1 + i)})
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(*core.Service)
		want   string
	}{
		"node port": {func(*core.Service) {}, "ns/web TCP node4:30080 -> " + both},
		"ClusterIP": {func(s *core.Service) { s.Spec.Type = "ClusterIP" }, ""},
		"no type":   {func(s *core.Service) { s.Spec.Type = "" }, ""},
		"external IPs of a ClusterIP": {func(s *core.Service) {
			s.Spec.Type, s.Spec.ExternalIPs = "ClusterIP", []string{"192.0.2.81", "192.0.2.80"}
		}, lines("ns/web TCP 192.0.2.80#80 -> "+both, "ns/web TCP 192.0.2.81#80 -> "+both)},
		"external IP of a node port": {func(s *core.Service) { s.Spec.ExternalIPs = []string{"192.0.2.80"} },
			lines("ns/web TCP node4:30080 -> "+both, "ns/web TCP 192.0.2.80#80 -> "+both)},
		"load balancer": {ingress("203.0.113.7"),
			lines("ns/web TCP node4:30080 -> "+both, "ns/web TCP 203.0.113.7#80 -> "+both)},
		"load balancer without node ports": {func(s *core.Service) { ingress("203.0.113.7")(s); s.Spec.Ports[0].NodePort = 0 },
			"ns/web TCP 203.0.113.7#80 -> " + both},
		"load balancer of mode VIP": {func(s *core.Service) {
			ingress("203.0.113.7")(s)
			s.Status.LoadBalancer.Ingress[0].IPMode = new("VIP")
		}, lines("ns/web TCP node4:30080 -> "+both, "ns/web TCP 203.0.113.7#80 -> "+both)},
		"load balancer of mode Proxy": {func(s *core.Service) {
			ingress("203.0.113.7")(s)
			s.Status.LoadBalancer.Ingress[0].IPMode = new("Proxy")
		}, "ns/web TCP node4:30080 -> " + both},
		"load balancer with a host name": {ingress(""), "ns/web TCP node4:30080 -> " + both},
		"status of a node port service": {func(s *core.Service) { ingress("203.0.113.7")(s); s.Spec.Type = core.ServiceNodePort },
			"ns/web TCP node4:30080 -> " + both},
		"node port of a ClusterIP that was one": {func(s *core.Service) {
			s.Spec.Type, s.Spec.ExternalIPs = "ClusterIP", []string{"192.0.2.80"}
		}, "ns/web TCP 192.0.2.80#80 -> " + both},
		"address twice": {func(s *core.Service) {
			ingress("192.0.2.80", "192.0.2.80")(s)
			s.Spec.ExternalIPs = []string{"192.0.2.80"}
			s.Spec.Ports[0].NodePort = 0
		}, "ns/web TCP 192.0.2.80#80 -> " + both},
		"headless": {func(s *core.Service) { s.Spec.ClusterIP, s.Spec.ExternalIPs = "None", []string{"192.0.2.80"} }, ""},
		"ExternalName": {func(s *core.Service) {
			s.Spec.Type, s.Spec.ExternalIPs = core.ServiceExternalName, []string{"192.0.2.80"}
		}, ""},
		"another proxy's":      {func(s *core.Service) { s.Labels = map[string]string{core.LabelServiceProxyName: "mesh"} }, ""},
		"name that is no name": {func(s *core.Service) { s.Name = "we b" }, ""},
		"affinity": {func(s *core.Service) { s.Spec.SessionAffinity = "ClientIP" },
			"ns/web TCP node4:30080 -> " + both + " affinity 3h0m0s"},
		"affinity with a timeout": {func(s *core.Service) {
			s.Spec.SessionAffinity = "ClientIP"
			s.Spec.SessionAffinityConfig = &core.SessionAffinityConfig{ClientIP: &core.ClientIPConfig{TimeoutSeconds: new(int32(60))}}
		}, "ns/web TCP node4:30080 -> " + both + " affinity 1m0s"},
		"affinity with a timeout out of range": {func(s *core.Service) {
			s.Spec.SessionAffinity = "ClientIP"
			s.Spec.SessionAffinityConfig = &core.SessionAffinityConfig{ClientIP: &core.ClientIPConfig{TimeoutSeconds: new(int32(-1))}}
		}, "ns/web TCP node4:30080 -> " + both + " affinity 3h0m0s"},
		"policy Local": {func(s *core.Service) { s.Spec.ExternalTrafficPolicy = "Local" },
			"ns/web TCP node4:30080 -> 10.200.1.5:8080 local"},
		"policy Cluster": {func(s *core.Service) { s.Spec.ExternalTrafficPolicy = "Cluster" },
			"ns/web TCP node4:30080 -> " + both},
		"UDP, of which the slice has nothing":  {func(s *core.Service) { s.Spec.Ports[0].Protocol = "UDP" }, "ns/web UDP node4:30080 ->"},
		"SCTP, of which the slice has nothing": {func(s *core.Service) { s.Spec.Ports[0].Protocol = "SCTP" }, "ns/web SCTP node4:30080 ->"},
		"no protocol":                          {func(s *core.Service) { s.Spec.Ports[0].Protocol = "" }, "ns/web TCP node4:30080 -> " + both},
		"protocol that does not exist":         {func(s *core.Service) { s.Spec.Ports[0].Protocol = "TCP,actions=drop" }, ""},
		"port name that the slice lacks":       {func(s *core.Service) { s.Spec.Ports[0].Name = "other" }, "ns/web TCP node4:30080 ->"},
		"port name that is no name":            {func(s *core.Service) { s.Spec.Ports[0].Name = "a b" }, ""},
		"port 0":                               {func(s *core.Service) { s.Spec.Ports[0].Port = 0 }, ""},
		"node port 65536":                      {func(s *core.Service) { s.Spec.Ports[0].NodePort = 65536 }, ""},
		"port twice": {func(s *core.Service) { s.Spec.Ports = append(s.Spec.Ports, s.Spec.Ports[0]) },
			"ns/web TCP node4:30080 -> " + both},
		"node port of two ports": {func(s *core.Service) {
			s.Spec.Ports = append(s.Spec.Ports, core.ServicePort{Name: "http", Port: 81, NodePort: 30080})
		}, "ns/web TCP node4:30080 -> " + both},
		"node port of two protocols": {func(s *core.Service) {
			s.Spec.Ports = append(s.Spec.Ports, core.ServicePort{Name: "http", Protocol: "UDP", Port: 80, NodePort: 30080})
		}, lines("ns/web TCP node4:30080 -> "+both, "ns/web UDP node4:30080 ->")},
		"addresses that are none": {func(s *core.Service) {
			s.Spec.ExternalIPs = []string{"", "x", "192.0.2.1/24", "192.0.2.080", "fe80::1%eth0", "::ffff:192.0.2.1", "127.0.0.1",
				"0.0.0.0", "224.0.0.1", "169.254.0.1", "255.255.255.255", "192.0.2.1,actions=drop", strings.Repeat("1", 100000)}
		}, "ns/web TCP node4:30080 -> " + both},
		"address of a family that it lacks": {func(s *core.Service) { s.Spec.ExternalIPs = []string{"2001:db8::80"} },
			"ns/web TCP node4:30080 -> " + both},
		"dual stack": {func(s *core.Service) {
			s.Spec.IPFamilies, s.Spec.ExternalIPs = []string{"IPv6", "IPv4"}, []string{"2001:db8::80", "192.0.2.80"}
		}, lines("ns/web TCP node4:30080 -> "+both, "ns/web TCP node6:30080 ->",
			"ns/web TCP 192.0.2.80#80 -> "+both, "ns/web TCP 2001:db8::80#80 ->")},
		"IPv6 only": {func(s *core.Service) { s.Spec.IPFamilies, s.Spec.ClusterIP = []string{"IPv6"}, "fd00::1" },
			"ns/web TCP node6:30080 ->"},
		"families by the cluster address": {func(s *core.Service) { s.Spec.IPFamilies, s.Spec.ClusterIP = nil, "fd00::1" },
			"ns/web TCP node6:30080 ->"},
		"source ranges": {func(s *core.Service) {
			ingress("203.0.113.7")(s)
			s.Spec.ExternalIPs = []string{"192.0.2.80"}
			s.Spec.LoadBalancerSourceRanges = []string{" 198.51.100.7/24 ", "10.0.0.0/8", "198.51.100.0/24", "rubbish"}
		}, lines("ns/web TCP node4:30080 -> "+both, "ns/web TCP 192.0.2.80#80 -> "+both,
			"ns/web TCP 203.0.113.7#80 -> "+both+" from [10.0.0.0/8 198.51.100.0/24]")},
		"source ranges that let nobody in": {func(s *core.Service) {
			ingress("203.0.113.7")(s)
			s.Spec.LoadBalancerSourceRanges = []string{"rubbish", "2001:db8::/32"}
		}, "ns/web TCP node4:30080 -> " + both},
		"source ranges are not lifted by an external IP": {func(s *core.Service) {
			ingress("203.0.113.7")(s)
			s.Spec.ExternalIPs = []string{"203.0.113.7"}
			s.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"}
		}, lines("ns/web TCP node4:30080 -> "+both, "ns/web TCP 203.0.113.7#80 -> "+both+" from [10.0.0.0/8]")},
		"too many ports": {many(maxPorts + 7), "1000 entries"},
		"too many entries": {func(s *core.Service) { many(900)(s); s.Spec.ExternalIPs = []string{"192.0.2.80", "192.0.2.81"} },
			"2000 entries"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{namespaces: []*metav1.PartialObjectMetadata{namespaceOf("ns", "blue")}, services: []*core.Service{nodePortService(tc.change)}}
			w.slices = append(w.slices, mirroredSlice())
			got := entriesOf(w.index(), blue)
			if n, counted := strings.CutSuffix(tc.want, " entries"); counted {
				if want := map[string]int{"1000": 1000, "2000": 2000}[n]; len(got) != want {
					t.Errorf("%d entries, want %d", len(got), want)
				}
				return
			}
			if text(got) != tc.want {
				t.Errorf("got\n%s\nwant\n%s", text(got), tc.want)
			}
		})
	}
}

// Whose services a network's are.
func TestNamespaceRules(t *testing.T) {
	all := Network{Name: network, Namespaces: labels.Everything()}
	for name, tc := range map[string]struct {
		labels map[string]string
		in     Network
		want   bool
	}{
		"selected":                          {map[string]string{primaryNetwork: "", "tenant": "blue"}, blue, true},
		"label with a value":                {map[string]string{primaryNetwork: "x", "tenant": "blue"}, blue, true},
		"without the primary network label": {map[string]string{"tenant": "blue"}, blue, false},
		"not selected":                      {map[string]string{primaryNetwork: "", "tenant": "red"}, blue, false},
		"everything":                        {map[string]string{primaryNetwork: ""}, all, true},
		"everything, without the label":     {nil, all, false},
		"no selector":                       {map[string]string{primaryNetwork: ""}, Network{Name: network}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{services: []*core.Service{nodePortService()}}
			w.namespaces = []*metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: tc.labels}}}
			if got := len(entriesOf(w.index(), tc.in)) > 0; got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
