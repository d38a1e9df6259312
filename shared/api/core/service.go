// SPDX-License-Identifier: Apache-2.0

package core

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Types of a service that are told apart.
const (
	ServiceNodePort     = "NodePort"
	ServiceLoadBalancer = "LoadBalancer"
	ServiceExternalName = "ExternalName"
)

// Values of a service's fields that are told apart.
const (
	// ClusterIPNone is the cluster address of a headless service.
	ClusterIPNone = "None"
	// AffinityClientIP keeps a client at the backend that it had.
	AffinityClientIP = "ClientIP"
	// TrafficLocal keeps traffic from outside on the node that it enters.
	TrafficLocal = "Local"
	// IngressVIP is the mode of an ingress address that nodes receive packets for. Absent means the same.
	IngressVIP = "VIP"
	// LabelServiceProxyName is on a service that a proxy of another name looks after.
	LabelServiceProxyName = "service.kubernetes.io/service-proxy-name"
)

// Service is how pods are reached from outside.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Service struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ServiceSpec   `json:"spec,omitempty"`
	Status ServiceStatus `json:"status,omitempty"`
}

// ServiceSpec is the part of a service's spec that is used.
type ServiceSpec struct {
	// Type is empty for ClusterIP.
	Type      string        `json:"type,omitempty"`
	ClusterIP string        `json:"clusterIP,omitempty"`
	Ports     []ServicePort `json:"ports,omitempty"`
	// IPFamilies is a list of "IPv4" and "IPv6".
	IPFamilies  []string `json:"ipFamilies,omitempty"`
	ExternalIPs []string `json:"externalIPs,omitempty"`
	// SessionAffinity is empty for None.
	SessionAffinity       string                 `json:"sessionAffinity,omitempty"`
	SessionAffinityConfig *SessionAffinityConfig `json:"sessionAffinityConfig,omitempty"`
	// ExternalTrafficPolicy is empty for Cluster.
	ExternalTrafficPolicy string `json:"externalTrafficPolicy,omitempty"`
	HealthCheckNodePort   int32  `json:"healthCheckNodePort,omitempty"`
	// LoadBalancerSourceRanges are the clients that may use the addresses in the status; none names all.
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`
}

// ServicePort is one port of a service.
type ServicePort struct {
	Name string `json:"name,omitempty"`
	// Protocol is empty for TCP.
	Protocol string `json:"protocol,omitempty"`
	Port     int32  `json:"port"`
	NodePort int32  `json:"nodePort,omitempty"`
}

// SessionAffinityConfig says for how long a client stays where it is.
type SessionAffinityConfig struct {
	ClientIP *ClientIPConfig `json:"clientIP,omitempty"`
}

// ClientIPConfig is for AffinityClientIP.
type ClientIPConfig struct {
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// ServiceStatus is the part of a service's status that is used.
type ServiceStatus struct {
	LoadBalancer LoadBalancerStatus `json:"loadBalancer,omitempty"`
}

// LoadBalancerStatus is where a load balancer outside takes the service's traffic.
type LoadBalancerStatus struct {
	Ingress []LoadBalancerIngress `json:"ingress,omitempty"`
}

// LoadBalancerIngress is one such place; those with a host name only have no IP.
type LoadBalancerIngress struct {
	IP     string  `json:"ip,omitempty"`
	IPMode *string `json:"ipMode,omitempty"`
}

// ServiceList is a list of services.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type ServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Service `json:"items"`
}
