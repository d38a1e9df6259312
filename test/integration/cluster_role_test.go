// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	ovnKubernetesCRDs = "../../deploy/host/ovn-kubernetes-crds"
	clusterHealth     = "127.0.0.1:9983"
)

// newClusterWithNetworks is newCluster with the CRDs of OVN-Kubernetes.
func newClusterWithNetworks(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	c.must(c.ApplyFile(t.Context(), ovnKubernetesCRDs))
	return c
}

// clusterRole starts a cluster role in a namespace of its own and waits until it is ready.
func (c *cluster) clusterRole(name string, args ...string) (*lab.Node, *lab.Process) {
	c.t.Helper()
	n, err := c.AddNode(c.t.Context(), name)
	c.must(err)
	p := c.startClusterRole(n, args...)
	c.ready(n, clusterHealth)
	return n, p
}

func (c *cluster) startClusterRole(n *lab.Node, args ...string) *lab.Process {
	c.t.Helper()
	kubeconfig, err := c.NodeKubeconfig(lab.AdminUser)
	c.must(err)
	argv := append([]string{filepath.Join(binaries, "host-agent"), "cluster", "--kubeconfig", kubeconfig, "--log-level", "debug"}, args...)
	p, err := n.Start(c.t.Context(), "cluster", argv, []string{"POD_NAME=" + n.Name})
	c.must(err)
	return p
}

const alone = "--leader-elect=false"

func (c *cluster) networks() dynamic.ResourceInterface {
	client, err := c.Dynamic()
	c.must(err)
	return client.Resource(ovnk.SchemeGroupVersion.WithResource("clusteruserdefinednetworks"))
}

// primary is the spec of a primary Layer3 network over the namespaces of a tenant.
func primary(tenant string, uplinks ...string) ovnk.ClusterUserDefinedNetworkSpec {
	return ovnk.ClusterUserDefinedNetworkSpec{
		NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tenant": tenant}},
		Uplinks:           uplinks,
		Network: ovnk.NetworkSpec{Topology: ovnk.Layer3, Layer3: &ovnk.Layer3Config{
			Role: ovnk.RolePrimary, Subnets: []ovnk.Layer3Subnet{{CIDR: "10.200.0.0/16", HostSubnet: 24}},
		}},
	}
}

func networkObject(name string, spec ovnk.ClusterUserDefinedNetworkSpec, annotations map[string]string) *unstructured.Unstructured {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&ovnk.ClusterUserDefinedNetwork{
		TypeMeta:   metav1.TypeMeta{APIVersion: "k8s.ovn.org/v1", Kind: "ClusterUserDefinedNetwork"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec:       spec,
	})
	if err != nil {
		panic(err)
	}
	delete(fields, "status")
	return &unstructured.Unstructured{Object: fields}
}

// network makes a primary network of the tenant of its name.
func (c *cluster) network(name string, uplinks ...string) {
	c.t.Helper()
	c.networkOf(name, primary(name, uplinks...), nil)
}

func (c *cluster) networkOf(name string, spec ovnk.ClusterUserDefinedNetworkSpec, annotations map[string]string) {
	c.t.Helper()
	_, err := c.networks().Create(c.t.Context(), networkObject(name, spec, annotations), metav1.CreateOptions{})
	c.must(err)
}

func (c *cluster) deleteNetwork(name string) {
	c.t.Helper()
	c.must(c.networks().Delete(c.t.Context(), name, metav1.DeleteOptions{}))
}

func conditionsOf(object *unstructured.Unstructured) []metav1.Condition {
	var n ovnk.ClusterUserDefinedNetwork
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &n); err != nil {
		panic(err)
	}
	return n.Status.Conditions
}

// expected is a condition of an aggregate, less what a test cannot know.
type expected struct {
	status          metav1.ConditionStatus
	reason, message string
}

func yes(reason, message string) expected { return expected{metav1.ConditionTrue, reason, message} }
func no(reason, message string) expected  { return expected{metav1.ConditionFalse, reason, message} }

func (e expected) check(kind string, conditions []metav1.Condition, generation int64) error {
	got := meta.FindStatusCondition(conditions, kind)
	if got == nil {
		return fmt.Errorf("no condition %s", kind)
	}
	if seen := (expected{got.Status, got.Reason, got.Message}); seen != e {
		return fmt.Errorf("%s is %+v, want %+v", kind, seen, e)
	}
	if got.ObservedGeneration != generation {
		return fmt.Errorf("%s is of generation %d, want %d", kind, got.ObservedGeneration, generation)
	}
	return nil
}

// aggregated is how long the role may take to show a change; half of it is for a busy test machine.
const aggregated = 3 * time.Second

// uplinkIs waits until an Uplink's Ready is as expected.
func (c *cluster) uplinkIs(name string, want expected) {
	c.t.Helper()
	c.must(lab.Eventually(c.t.Context(), aggregated, func(ctx context.Context) error {
		u, err := c.client.K8sV1alpha1().Uplinks().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return want.check(uplinkstate.Ready, u.Status.Conditions, u.Generation)
	}))
}

// networkIs waits until a network's UplinksReady is as expected.
func (c *cluster) networkIs(name string, want expected) {
	c.t.Helper()
	c.must(lab.Eventually(c.t.Context(), aggregated, func(ctx context.Context) error {
		n, err := c.networks().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return want.check(uplinkstate.UplinksReady, conditionsOf(n), n.GetGeneration())
	}))
}

// publishHost plays a host agent that measured an interface for the Uplink as it is now, or found a problem.
func (c *cluster) publishHost(uplink, node, iface string, problem *uplinkstate.Problem) *v1alpha1.UplinkState {
	c.t.Helper()
	u, err := c.client.K8sV1alpha1().Uplinks().Get(c.t.Context(), uplink, metav1.GetOptions{})
	c.must(err)
	half := uplinkstate.HostHalf{
		Data:  uplinkstate.HostData{Type: v1alpha1.OVSBridge, Interface: iface},
		Ready: uplinkstate.True(uplinkstate.ReasonHostDataDiscovered, "measured", u.Generation),
	}
	if problem != nil {
		half.Ready = uplinkstate.False(problem, u.Generation)
	}
	return c.patch(uplinkstate.ManagerHost, uplinkstate.ApplyHost(u, node, half, nil, time.Now()))
}

// publishDPU plays a dpu agent that found the bridge, or a problem.
func (c *cluster) publishDPU(s *v1alpha1.UplinkState, problem *uplinkstate.Problem) {
	c.t.Helper()
	host, _ := uplinkstate.HostHalfOf(s)
	half := uplinkstate.DPUHalf{
		Bridge:   &v1alpha1.OVSBridgeStatus{Name: "br-x", UplinkPort: "p0"},
		Resolved: uplinkstate.True(uplinkstate.ReasonResolved, "found", host.Ready.Generation),
	}
	if problem != nil {
		half = uplinkstate.DPUHalf{Resolved: uplinkstate.False(problem, host.Ready.Generation)}
	}
	c.patch(uplinkstate.ManagerDPU, uplinkstate.ApplyDPU(s, half, time.Now()))
}

// resolve plays both agents of nodes on which all is well.
func (c *cluster) resolve(uplink string, nodes ...string) {
	c.t.Helper()
	for _, node := range nodes {
		c.publishDPU(c.publishHost(uplink, node, "e0", nil), nil)
	}
}

func covered(network string) v1alpha1.NetworkStatus {
	return v1alpha1.NetworkStatus{Name: network, Phase: v1alpha1.NetworkReady}
}

func failed(network, reason string) v1alpha1.NetworkStatus {
	return v1alpha1.NetworkStatus{Name: network, Phase: v1alpha1.NetworkFailed, Reason: reason, Message: "because"}
}

// gateway plays the gateway of a node, with the networks that it covers and those that failed.
func (c *cluster) gateway(uplink, node string, networks ...v1alpha1.NetworkStatus) {
	c.t.Helper()
	status := metav1.Condition{Type: uplinkstate.GatewayReady, Status: metav1.ConditionTrue, Reason: uplinkstate.ReasonGatewayConfigured, LastTransitionTime: metav1.Now()}
	if slices.ContainsFunc(networks, func(n v1alpha1.NetworkStatus) bool { return n.Phase != v1alpha1.NetworkReady }) {
		status.Status, status.Reason = metav1.ConditionFalse, uplinkstate.ReasonGatewayConfigurationPending
	}
	body, err := json.Marshal(uplinkstate.Patch{
		TypeMeta: metav1.TypeMeta{APIVersion: "k8s.ovn.org/v1alpha1", Kind: "UplinkState"},
		Metadata: uplinkstate.PatchMetadata{Name: uplinkstate.Name(uplink, node)},
		Status:   &v1alpha1.UplinkStateStatus{Networks: networks, Conditions: []metav1.Condition{status}},
	})
	c.must(err)
	force := true
	_, err = c.client.K8sV1alpha1().UplinkStates().Patch(c.t.Context(), uplinkstate.Name(uplink, node), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: uplinkstate.ManagerDPUGateway, Force: &force})
	c.must(err)
}

// gone waits until an Uplink is gone.
func (c *cluster) gone(uplink string, d time.Duration) {
	c.t.Helper()
	c.must(lab.Eventually(c.t.Context(), d, func(ctx context.Context) error {
		u, err := c.client.K8sV1alpha1().Uplinks().Get(ctx, uplink, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return fmt.Errorf("still there, with finalizers %v", u.Finalizers)
	}))
}
