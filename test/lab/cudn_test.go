// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"net/netip"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

func TestKubernetesObjects(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	ctx := t.Context()
	if err := l.ApplyFile(ctx, filepath.Join("..", "..", "deploy", "host", "ovn-kubernetes-crds")); err != nil {
		t.Fatal(err)
	}
	t.Run("CUDN", func(t *testing.T) { testCUDN(t, l) })
	t.Run("service", func(t *testing.T) { testService(t, l) })
}

func testCUDN(t *testing.T, l *lab.Lab) {
	ctx := t.Context()
	client, err := l.Dynamic()
	if err != nil {
		t.Fatal(err)
	}
	cudns := client.Resource(schema.GroupVersionResource{Group: "k8s.ovn.org", Version: "v1", Resource: "clusteruserdefinednetworks"})
	for _, spec := range []lab.NetworkSpec{
		{CUDN: "blue", Subnets: dual},
		{CUDN: "green", Topology: lab.Layer2, JoinSubnets: []netip.Prefix{netip.MustParsePrefix("10.77.9.0/26")}},
	} {
		if err := l.CreateCUDN(ctx, spec, "uplink-a"); err != nil {
			t.Fatal(err)
		}
		o, err := cudns.Get(ctx, spec.CUDN, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if uplinks, _, err := unstructured.NestedStringSlice(o.Object, "spec", "uplinks"); err != nil || len(uplinks) != 1 || uplinks[0] != "uplink-a" {
			t.Errorf("%s names Uplinks %v, %v", spec.CUDN, uplinks, err)
		}
	}
	k8s, err := l.Client()
	if err != nil {
		t.Fatal(err)
	}
	ns, err := k8s.CoreV1().Namespaces().Get(ctx, "green", metav1.GetOptions{})
	if _, ok := ns.Labels["k8s.ovn.org/primary-user-defined-network"]; err != nil || !ok {
		t.Errorf("namespace: %v, labels %v", err, ns.Labels)
	}
	for range 2 {
		if err := l.DeleteCUDN(ctx, "blue"); err != nil {
			t.Error(err)
		}
	}
	if _, err := cudns.Get(ctx, "blue", metav1.GetOptions{}); err == nil {
		t.Error("the deleted one is there")
	}
}

func testService(t *testing.T, l *lab.Lab) {
	ctx := t.Context()
	z := startZones(t, l, "worker-a")[0]
	n := addNetwork(t, l, lab.NetworkSpec{CUDN: "red", Subnets: dual}, z)
	pod := addPod(t, n, z, "a")
	if err := l.CreateNamespace(ctx, "red", nil); err != nil {
		t.Fatal(err)
	}
	vip := netip.MustParseAddr("172.28.0.200")
	spec := lab.ServiceSpec{
		Namespace: "red", Name: "web", Type: corev1.ServiceTypeLoadBalancer, Ingress: []netip.Addr{vip},
		ExternalIPs: []netip.Addr{netip.MustParseAddr("172.28.0.201")}, Local: true, AffinitySeconds: 60,
		Ports: []lab.ServicePort{{Port: 80, NodePort: 30080, Target: 8080}, {Protocol: corev1.ProtocolUDP, Port: 80}},
	}
	svc, err := l.CreateService(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if svc.Spec.Ports[0].NodePort != 30080 || svc.Spec.Ports[1].NodePort == 0 || svc.Spec.HealthCheckNodePort == 0 ||
		len(svc.Status.LoadBalancer.Ingress) != 1 || svc.Status.LoadBalancer.Ingress[0].IP != vip.String() {
		t.Errorf("service is %+v, %+v", svc.Spec, svc.Status)
	}
	client, err := l.Client()
	if err != nil {
		t.Fatal(err)
	}
	slices := func() []discoveryv1.EndpointSlice {
		list, err := client.DiscoveryV1().EndpointSlices("red").List(ctx, metav1.ListOptions{LabelSelector: "k8s.ovn.org/service-name=web"})
		if err != nil || len(list.Items) != 2 {
			t.Fatalf("%d slices, want one of each family; %v", len(list.Items), err)
		}
		return list.Items
	}
	if err := l.MirrorEndpoints(ctx, spec, n, pod); err != nil {
		t.Fatal(err)
	}
	for _, s := range slices() {
		if s.Annotations["k8s.ovn.org/endpointslice-network"] != "cluster_udn_red" || len(s.Endpoints) != 1 ||
			*s.Endpoints[0].NodeName != "worker-a" || len(s.Ports) != 2 || *s.Ports[0].Port != 8080 || *s.Ports[0].Name != svc.Spec.Ports[0].Name {
			t.Errorf("slice is %+v", s)
		}
	}
	if err := l.MirrorEndpoints(ctx, spec, n); err != nil {
		t.Fatal(err)
	}
	for _, s := range slices() {
		if len(s.Endpoints) != 0 {
			t.Errorf("endpoints left: %+v", s.Endpoints)
		}
	}
	if err := l.DeleteService(ctx, "red", "web"); err != nil {
		t.Error(err)
	}
}
