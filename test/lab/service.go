// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	discoveryv1ac "k8s.io/client-go/applyconfigurations/discovery/v1"
)

// What OVN-Kubernetes puts on the EndpointSlices that it makes for a network,
// besides those with the pods' addresses in the cluster's default network.
const (
	mirroredServiceLabel = "k8s.ovn.org/service-name"
	mirrorNetworkKey     = "k8s.ovn.org/endpointslice-network"
	mirrorManager        = "endpointslice-mirror-controller.k8s.ovn.org"
)

// ServiceSpec describes a Service. Empty fields get the value in their
// comment.
type ServiceSpec struct {
	Namespace, Name string
	// Type is NodePort.
	Type corev1.ServiceType
	// Ports are TCP 80.
	Ports []ServicePort
	// ExternalIPs are spec.externalIPs: none.
	ExternalIPs []netip.Addr
	// Ingress are the addresses of the status of a LoadBalancer: none.
	Ingress []netip.Addr
	// Local is externalTrafficPolicy Local: Cluster.
	Local bool
	// HealthCheckPort is healthCheckNodePort, for Local LoadBalancers: given
	// by the API server.
	HealthCheckPort int32
	// AffinitySeconds is the timeout of session affinity by client address:
	// none.
	AffinitySeconds int32
	// DualStack asks for addresses of both families: IPv4 alone.
	DualStack bool
}

// ServicePort is one port of a Service.
type ServicePort struct {
	// Protocol is TCP.
	Protocol corev1.Protocol
	Port     int32
	// NodePort is given by the API server if 0, for types that have one.
	NodePort int32
	// Target is the pods' port: Port.
	Target int32
}

func (s *ServiceSpec) fill() {
	if s.Type == "" {
		s.Type = corev1.ServiceTypeNodePort
	}
	if s.Ports == nil {
		s.Ports = []ServicePort{{Port: 80}}
	}
	s.Ports = append([]ServicePort(nil), s.Ports...)
	for i := range s.Ports {
		p := &s.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.Target == 0 {
			p.Target = p.Port
		}
	}
}

// name is unique among the ports of a service.
func (p ServicePort) name() string {
	return string(p.Protocol[0]|0x20) + strconv.Itoa(int(p.Port))
}

// CreateService makes a Service without selector, or changes it, and returns
// it as the API server completed it. Its endpoints come from MirrorEndpoints.
func (l *Lab) CreateService(ctx context.Context, spec ServiceSpec) (*corev1.Service, error) {
	spec.fill()
	client, err := l.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, commandDeadline)
	defer cancel()
	options := metav1.ApplyOptions{FieldManager: FieldManager, Force: true}
	services := client.CoreV1().Services(spec.Namespace)
	svc, err := services.Apply(ctx, corev1ac.Service(spec.Name, spec.Namespace).WithSpec(spec.object()), options)
	if err == nil && len(spec.Ingress) > 0 {
		status := corev1ac.LoadBalancerStatus()
		for _, a := range spec.Ingress {
			status.WithIngress(corev1ac.LoadBalancerIngress().WithIP(a.String()))
		}
		svc, err = services.ApplyStatus(ctx, corev1ac.Service(spec.Name, spec.Namespace).
			WithStatus(corev1ac.ServiceStatus().WithLoadBalancer(status)), options)
	}
	if err != nil {
		return nil, fmt.Errorf("create service %s/%s: %w", spec.Namespace, spec.Name, err)
	}
	return svc, nil
}

func (s ServiceSpec) object() *corev1ac.ServiceSpecApplyConfiguration {
	out := corev1ac.ServiceSpec().WithType(s.Type)
	for _, p := range s.Ports {
		port := corev1ac.ServicePort().WithName(p.name()).WithProtocol(p.Protocol).WithPort(p.Port).
			WithTargetPort(intstr.FromInt32(p.Target))
		if p.NodePort != 0 {
			port.WithNodePort(p.NodePort)
		}
		out.WithPorts(port)
	}
	if s.DualStack {
		out.WithIPFamilyPolicy(corev1.IPFamilyPolicyRequireDualStack)
	}
	out.WithExternalIPs(texts(s.ExternalIPs)...)
	if s.Local {
		out.WithExternalTrafficPolicy(corev1.ServiceExternalTrafficPolicyLocal)
	}
	if s.HealthCheckPort != 0 {
		out.WithHealthCheckNodePort(s.HealthCheckPort)
	}
	if s.AffinitySeconds != 0 {
		out.WithSessionAffinity(corev1.ServiceAffinityClientIP).WithSessionAffinityConfig(
			corev1ac.SessionAffinityConfig().WithClientIP(corev1ac.ClientIPConfig().WithTimeoutSeconds(s.AffinitySeconds)))
	}
	return out
}

// DeleteService deletes a Service. One that does not exist is no error.
func (l *Lab) DeleteService(ctx context.Context, namespace, name string) error {
	client, err := l.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandDeadline)
	defer cancel()
	if err := client.CoreV1().Services(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete service %s/%s: %w", namespace, name, err)
	}
	return nil
}

// MirrorEndpoints makes the pods the endpoints of a service, and the only
// ones: for each family of the network an EndpointSlice as OVN-Kubernetes
// mirrors them, without endpoints if there are no pods.
func (l *Lab) MirrorEndpoints(ctx context.Context, spec ServiceSpec, n *Network, pods ...*Pod) error {
	spec.fill()
	client, err := l.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandDeadline)
	defer cancel()
	for i, subnet := range n.Spec.Subnets {
		family := discoveryv1.AddressTypeIPv4
		if subnet.Addr().Is6() {
			family = discoveryv1.AddressTypeIPv6
		}
		name := fmt.Sprintf("%s-%s-%d", spec.Name, n.Spec.CUDN, i)
		slice := discoveryv1ac.EndpointSlice(name, spec.Namespace).WithAddressType(family).
			WithLabels(map[string]string{mirroredServiceLabel: spec.Name, discoveryv1.LabelManagedBy: mirrorManager}).
			WithAnnotations(map[string]string{mirrorNetworkKey: n.Name})
		for _, p := range pods {
			slice.WithEndpoints(discoveryv1ac.Endpoint().WithAddresses(p.Addresses[i].String()).WithNodeName(p.Zone.Name).
				WithConditions(discoveryv1ac.EndpointConditions().WithReady(true).WithServing(true).WithTerminating(false)))
		}
		for _, p := range spec.Ports {
			slice.WithPorts(discoveryv1ac.EndpointPort().WithName(p.name()).WithProtocol(p.Protocol).WithPort(p.Target))
		}
		_, err := client.DiscoveryV1().EndpointSlices(spec.Namespace).Apply(ctx, slice,
			metav1.ApplyOptions{FieldManager: FieldManager, Force: true})
		if err != nil {
			return fmt.Errorf("mirror endpoints of %s/%s: %w", spec.Namespace, spec.Name, err)
		}
	}
	return nil
}
