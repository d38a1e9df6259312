// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

// primaryNetworkLabel is what a namespace has whose pods are to be in a
// primary network.
const primaryNetworkLabel = "k8s.ovn.org/primary-user-defined-network"

// namespaceNameLabel is set by the API server.
const namespaceNameLabel = "kubernetes.io/metadata.name"

var cudns = schema.GroupVersionResource{Group: "k8s.ovn.org", Version: "v1", Resource: "clusteruserdefinednetworks"}

// CreateNamespace makes a namespace, or gives it the labels.
func (l *Lab) CreateNamespace(ctx context.Context, name string, labels map[string]string) error {
	client, err := l.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandDeadline)
	defer cancel()
	ns := corev1ac.Namespace(name).WithLabels(labels)
	if _, err := client.CoreV1().Namespaces().Apply(ctx, ns, metav1.ApplyOptions{FieldManager: FieldManager, Force: true}); err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// CreateCUDN makes the object of a network that names an Uplink, none if that
// is empty, and the namespaces that it is for: the spec's if none are given.
// It makes nothing in OVN; see Network. The definitions of
// deploy/host/ovn-kubernetes-crds must have been applied.
func (l *Lab) CreateCUDN(ctx context.Context, network NetworkSpec, uplink string, namespaces ...string) error {
	network.fill()
	if len(namespaces) == 0 {
		namespaces = []string{network.Namespace}
	}
	var names []any
	for _, ns := range namespaces {
		if err := l.CreateNamespace(ctx, ns, map[string]string{primaryNetworkLabel: ""}); err != nil {
			return err
		}
		names = append(names, ns)
	}
	spec := map[string]any{
		"namespaceSelector": map[string]any{"matchExpressions": []any{map[string]any{
			"key": namespaceNameLabel, "operator": "In", "values": names,
		}}},
		"network": network.object(),
	}
	if uplink != "" {
		spec["uplinks"] = []any{uplink}
	}
	client, err := l.Dynamic()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandDeadline)
	defer cancel()
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": cudns.GroupVersion().String(),
		"kind":       "ClusterUserDefinedNetwork",
		"metadata":   map[string]any{"name": network.CUDN},
		"spec":       spec,
	}}
	if _, err := client.Resource(cudns).Apply(ctx, network.CUDN, o, metav1.ApplyOptions{FieldManager: FieldManager, Force: true}); err != nil {
		return fmt.Errorf("create CUDN %s: %w", network.CUDN, err)
	}
	return nil
}

// DeleteCUDN deletes a network's object. One that does not exist is no error.
func (l *Lab) DeleteCUDN(ctx context.Context, name string) error {
	client, err := l.Dynamic()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, commandDeadline)
	defer cancel()
	if err := client.Resource(cudns).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete CUDN %s: %w", name, err)
	}
	return nil
}

// object is the network in the form of a CUDN's spec.network.
func (s NetworkSpec) object() map[string]any {
	topology := map[string]any{"role": "Primary"}
	var subnets []any
	for _, p := range s.Subnets {
		if s.Topology == Layer2 {
			subnets = append(subnets, p.String())
		} else {
			subnets = append(subnets, map[string]any{"cidr": p.String(), "hostSubnet": int64(nodeBits(p.Addr()))})
		}
	}
	topology["subnets"] = subnets
	if s.JoinSubnets != nil {
		var join []any
		for _, p := range s.JoinSubnets {
			join = append(join, p.String())
		}
		topology["joinSubnets"] = join
	}
	return map[string]any{"topology": s.Topology, strings.ToLower(s.Topology): topology}
}

// nodeBits is the prefix length of a node's part of a Layer3 subnet.
func nodeBits(a netip.Addr) int {
	if a.Is4() {
		return 24
	}
	return 64
}
