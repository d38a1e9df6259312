// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/service"
	"github.com/ovn-uplink/ovn-uplink/shared/api/discovery"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const viewsNetwork = "cluster_udn_blue"

// The narrow views decode what a real API server has, as a DPU's identity may read it; and the rules for services
// hold over watches, not only lists.
func TestServiceViews(t *testing.T) {
	t.Parallel()
	c := newGuardedCluster(t)
	config, err := clientcmd.BuildConfigFromFlags("", c.dpuOf("worker-a"))
	c.must(err)
	config.Host = c.RESTConfig().Host
	client, err := c.Client()
	c.must(err)

	// Before the watches: they come as a list.
	blue := c.tenant(client, "shop", "blue")
	c.serviceObject(client, "shop", "web", corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30080}, {Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, NodePort: 30053}},
		ExternalIPs: []string{"192.0.2.80"}, SessionAffinity: corev1.ServiceAffinityClientIP,
		ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, HealthCheckNodePort: 31000,
		LoadBalancerSourceRanges: []string{"198.51.100.0/24"},
	}, corev1.LoadBalancerIngress{IP: "203.0.113.7"}, corev1.LoadBalancerIngress{IP: "203.0.113.8", IPMode: new(corev1.LoadBalancerIPModeProxy)})
	c.serviceObject(client, "shop", "inside", corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}})
	c.serviceObject(client, "default", "web", corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30081}}})
	c.mirror(client, "shop", "web", "web-x1", "10.200.1.5", "10.200.2.6")
	ordinary := c.slice("shop", "web-x2", map[string]string{discoveryv1.LabelServiceName: "web"}, nil, "10.244.1.5")
	_, err = client.DiscoveryV1().EndpointSlices("shop").Create(t.Context(), ordinary, metav1.CreateOptions{})
	c.must(err)

	index := c.fed(config)
	web := "shop/web TCP 0:30080 [10.200.1.5:8080] 3h0m0s\nshop/web UDP 0:30053 [] 3h0m0s\n" +
		"shop/web TCP 192.0.2.80:80 [10.200.1.5:8080] 3h0m0s\nshop/web UDP 192.0.2.80:53 [] 3h0m0s\n" +
		"shop/web TCP 203.0.113.7:80 [10.200.1.5:8080] 3h0m0s [198.51.100.0/24]\nshop/web UDP 203.0.113.7:53 [] 3h0m0s [198.51.100.0/24]"
	c.eventually(index, web)
	if all, _ := index.Services(blue); fmt.Sprint(all[0].Checks()) != "[{shop/web 31000 1}]" {
		t.Errorf("checks %v", all[0].Checks())
	}

	// Now as events: a rival for the address, younger or as old and later by name, endpoints that go, a tenant that goes.
	c.tenant(client, "zoo", "blue")
	c.serviceObject(client, "zoo", "aweb", corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}, ExternalIPs: []string{"192.0.2.80", "192.0.2.90"}})
	c.mirror(client, "zoo", "aweb", "aweb-x1", "10.200.1.7", "10.200.2.8")
	c.eventually(index, web+"\nzoo/aweb TCP 192.0.2.90:80 [10.200.1.7:8080 10.200.2.8:8080]")
	if _, conflicts := index.Services(blue); len(conflicts) != 1 || conflicts[0].Service != "zoo/aweb" || conflicts[0].Winner != "shop/web" {
		t.Errorf("conflicts %v", conflicts)
	}
	c.must(client.DiscoveryV1().EndpointSlices("shop").Delete(t.Context(), "web-x1", metav1.DeleteOptions{}))
	c.eventually(index, strings.ReplaceAll(web, "10.200.1.5:8080", "")+"\nzoo/aweb TCP 192.0.2.90:80 [10.200.1.7:8080 10.200.2.8:8080]")
	c.must(client.CoreV1().Services("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}))
	c.eventually(index, "zoo/aweb TCP 192.0.2.80:80 [10.200.1.7:8080 10.200.2.8:8080]\nzoo/aweb TCP 192.0.2.90:80 [10.200.1.7:8080 10.200.2.8:8080]")
}

// fed is an index that all kinds are fed to until the test ends.
func (c *cluster) fed(config *rest.Config) *service.Index {
	c.t.Helper()
	services, err := kube.Services(config)
	c.must(err)
	endpoints, err := kube.EndpointSlices(config, service.Mirrored.Selector())
	c.must(err)
	namespaces, err := kube.NewMetadata(config, "namespaces")
	c.must(err)
	index := service.NewIndex("worker-a", service.Mirrored, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context){
		kube.NewFeed(services, nil, index.ServiceSink()).Run,
		kube.NewFeed(endpoints, nil, kube.Sink[*discovery.EndpointSlice](lean{index.EndpointSliceSink(), c.t})).Run,
		kube.NewMetadataFeed(namespaces, index.NamespaceSink()).Run,
	} {
		running.Go(func() { run(ctx) })
	}
	c.t.Cleanup(func() { cancel(); running.Wait() })
	return index
}

// lean fails the test where more of slices is fed than is needed.
type lean struct {
	kube.Sink[*discovery.EndpointSlice]
	t *testing.T
}

func (l lean) Replace(all []*discovery.EndpointSlice) {
	for _, e := range all {
		l.judge(e)
	}
	l.Sink.Replace(all)
}

func (l lean) Put(e *discovery.EndpointSlice) {
	l.judge(e)
	l.Sink.Put(e)
}

func (l lean) judge(e *discovery.EndpointSlice) {
	if e.Labels[discovery.LabelMirroredServiceName] == "" {
		l.t.Errorf("EndpointSlice %s is fed, with labels %v", e.Name, e.Labels)
	}
}

// tenant is a namespace on a network, and that network.
func (c *cluster) tenant(client kubernetes.Interface, name, tenant string) service.Network {
	c.t.Helper()
	_, err := client.CoreV1().Namespaces().Create(c.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"k8s.ovn.org/primary-user-defined-network": "", "tenant": tenant},
	}}, metav1.CreateOptions{})
	c.must(err)
	return service.Network{Name: viewsNetwork, Namespaces: labels.SelectorFromSet(labels.Set{"tenant": tenant})}
}

func (c *cluster) serviceObject(client kubernetes.Interface, namespace, name string, spec corev1.ServiceSpec, ingress ...corev1.LoadBalancerIngress) {
	c.t.Helper()
	made, err := client.CoreV1().Services(namespace).Create(c.t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	c.must(err)
	if len(ingress) > 0 {
		made.Status.LoadBalancer.Ingress = ingress
		_, err = client.CoreV1().Services(namespace).UpdateStatus(c.t.Context(), made, metav1.UpdateOptions{})
		c.must(err)
	}
}

// mirror makes a slice as OVN-Kubernetes does: the first pod is on worker-a.
func (c *cluster) mirror(client kubernetes.Interface, namespace, of, name string, addresses ...string) {
	c.t.Helper()
	made := c.slice(namespace, name, map[string]string{"k8s.ovn.org/service-name": of},
		map[string]string{"k8s.ovn.org/endpointslice-network": viewsNetwork, "example.com/large": strings.Repeat("x", 1000)}, addresses...)
	_, err := client.DiscoveryV1().EndpointSlices(namespace).Create(c.t.Context(), made, metav1.CreateOptions{})
	c.must(err)
}

func (c *cluster) slice(namespace, name string, labels, annotations map[string]string, addresses ...string) *discoveryv1.EndpointSlice {
	made := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Annotations: annotations},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}},
	}
	for i, a := range addresses {
		made.Endpoints = append(made.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, NodeName: new([]string{"worker-a", "worker-b"}[i])})
	}
	return made
}

// eventually waits until the entries of the network are these, one a line.
func (c *cluster) eventually(index *service.Index, want string) {
	c.t.Helper()
	blue := service.Network{Name: viewsNetwork, Namespaces: labels.SelectorFromSet(labels.Set{"tenant": "blue"})}
	c.must(lab.Eventually(c.t.Context(), settled, func(context.Context) error {
		all, _ := index.Services(blue)
		var got []string
		for _, e := range all[0].Entries() {
			at := fmt.Sprintf("0:%d", e.Port)
			if e.Address.IsValid() {
				at = fmt.Sprintf("%s:%d", e.Address, e.Port)
			}
			line := fmt.Sprint(e.Service, " ", e.Protocol, " ", at, " ", e.Backends)
			if e.Affinity > 0 {
				line += " " + e.Affinity.String()
			}
			if len(e.Sources) > 0 {
				line += fmt.Sprint(" ", e.Sources)
			}
			got = append(got, line)
		}
		if text := strings.Join(got, "\n"); text != want {
			return fmt.Errorf("got\n%s\nwant\n%s", text, want)
		}
		return nil
	}))
}
