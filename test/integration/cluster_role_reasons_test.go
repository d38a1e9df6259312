// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/network"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	allResolved = "every selected node has resolved the Uplink"
	allCovered  = "every active node's gateway covers the network"
)

var blue = map[string]string{"uplink": "blue"}

// Every reason of an Uplink's Ready, with the exact message, as one Uplink comes to be, breaks and goes.
func TestUplinkReadyReasons(t *testing.T) {
	t.Parallel()
	c := newClusterWithNetworks(t)
	c.clusterRole("control", alone)
	for _, node := range []string{"worker-a", "worker-b", "worker-c", "worker-d", "worker-e"} {
		c.node(node, nil)
	}

	c.uplink("blue", nodeConfig("e0", blue))
	c.uplinkIs("blue", no("NoMatchingNodes", "no nodeConfig selects any node; label the nodes or correct the nodeSelectors"))

	c.must(c.SetNodeLabels(t.Context(), "worker-a", blue))
	c.uplinkIs("blue", no("MissingUplinkState", "1 of 1 selected nodes are not ready: MissingUplinkState 1 (worker-a)"))

	c.uplink("blue", nodeConfig("e0", nil))
	c.uplinkIs("blue", no("MissingUplinkState", "5 of 5 selected nodes are not ready: MissingUplinkState 5 (worker-a, worker-b, worker-c, …)"))

	c.publishHost("blue", "worker-a", "e0", nil)
	c.resolve("blue", "worker-c", "worker-d", "worker-e")
	c.uplinkIs("blue", no("MissingUplinkState", "2 of 5 selected nodes are not ready: ResolvedConditionMissing 1 (worker-a), MissingUplinkState 1 (worker-b)"))

	missing := uplinkstate.Problemf(uplinkstate.ReasonHostInterfaceNotFound, "interface e0 was not found")
	a := c.publishHost("blue", "worker-a", "e0", missing)
	c.publishDPU(a, missing)
	b := c.publishHost("blue", "worker-b", "e0", nil)
	c.publishDPU(b, uplinkstate.Problemf(uplinkstate.ReasonBridgeNotFound, "no bridge"))
	c.uplinkIs("blue", no("UplinkStateNotResolved", "2 of 5 selected nodes are not ready: HostInterfaceNotFound 1 (worker-a), BridgeNotFound 1 (worker-b)"))

	c.resolve("blue", "worker-a", "worker-b")
	c.uplinkIs("blue", yes("Ready", allResolved))

	// The spec moves on: nothing that was measured before counts, until it is measured again.
	c.uplink("blue", nodeConfig("e0", nil), nodeConfig("e1", map[string]string{"rack": "r1"}))
	c.uplinkIs("blue", no("UplinkStateNotResolved", "5 of 5 selected nodes are not ready: HostDataStale 5 (worker-a, worker-b, worker-c, …)"))
	c.resolve("blue", "worker-a", "worker-b", "worker-c", "worker-d", "worker-e")
	c.uplinkIs("blue", yes("Ready", allResolved))
	c.publishHost("blue", "worker-d", "other0", nil)
	c.uplinkIs("blue", no("UplinkStateNotResolved", "1 of 5 selected nodes are not ready: NodeConfigMismatch 1 (worker-d)"))

	c.must(c.SetNodeLabels(t.Context(), "worker-e", map[string]string{"rack": "r1"}))
	c.uplinkIs("blue", no("NodeSelectorOverlap", "2 of 5 selected nodes are not ready: NodeConfigMismatch 1 (worker-d), NodeSelectorOverlap 1 (worker-e)"))
	c.must(c.SetNodeLabels(t.Context(), "worker-e", nil))
	c.resolve("blue", "worker-d")
	c.uplinkIs("blue", yes("Ready", allResolved))

	// An object in the place of a state that is somebody else's.
	states := c.client.K8sV1alpha1().UplinkStates()
	c.must(states.Delete(t.Context(), "blue.worker-b", metav1.DeleteOptions{}))
	_, err := states.Create(t.Context(), &v1alpha1.UplinkState{
		ObjectMeta: metav1.ObjectMeta{Name: "blue.worker-b"}, Spec: v1alpha1.UplinkStateSpec{UplinkName: "blue", NodeName: "other"},
	}, metav1.CreateOptions{})
	c.must(err)
	c.uplinkIs("blue", no("UplinkStateIdentityError", "1 of 5 selected nodes are not ready: UplinkStateIdentityError 1 (worker-b)"))

	bad := nodeConfig("e0", nil)
	bad.NodeSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "rack", Operator: "Near"}}
	c.uplink("blue", nodeConfig("e0", blue), bad)
	c.uplinkIs("blue", no("InvalidSpec", `spec.nodeConfigs[1].nodeSelector is invalid: "Near" is not a valid label selector operator; correct the selector`))

	c.network("tenant", "blue")
	c.networkIs("tenant", no("UplinkNotResolvedForNode", `nobody can tell which nodes Uplink blue selects: spec.nodeConfigs[1].nodeSelector is invalid: "Near" is not a valid label selector operator; correct the selector`))
	c.must(c.client.K8sV1alpha1().Uplinks().Delete(t.Context(), "blue", metav1.DeleteOptions{}))
	c.uplinkIs("blue", no("UplinkTerminating", "the Uplink is being deleted; it stays until no ClusterUserDefinedNetwork names it: tenant"))
}

// Every row of the table of UplinksReady, with the exact message.
func TestUplinksReadyReasons(t *testing.T) {
	t.Parallel()
	c := newClusterWithNetworks(t)
	c.clusterRole("control", alone)
	for _, node := range []string{"worker-a", "worker-b", "worker-c"} {
		c.node(node, blue)
	}

	c.network("plain")
	c.networkIs("plain", yes("UplinksReady", "the network names no Uplink; it uses the cluster's default gateway"))
	c.network("tenant", "blue")
	c.networkIs("tenant", no("UplinkNotFound", "Uplink blue does not exist; create it"))

	c.uplink("blue", nodeConfig("e0", map[string]string{"uplink": "none"}))
	c.networkIs("tenant", no("UplinkNotFoundForNode", "3 of 3 active nodes are not ready: UplinkNotFoundForNode 3 (worker-a, worker-b, worker-c)"))
	c.uplink("blue", nodeConfig("e0", blue))
	c.networkIs("tenant", no("UplinkNotResolvedForNode", "3 of 3 active nodes are not ready: UplinkNotResolvedForNode 3 (worker-a, worker-b, worker-c)"))
	c.resolve("blue", "worker-a", "worker-b", "worker-c")
	c.networkIs("tenant", no("GatewayConfigurationPending", "3 of 3 active nodes are not ready: GatewayConfigurationPending 3 (worker-a, worker-b, worker-c)"))
	for _, node := range []string{"worker-a", "worker-b", "worker-c"} {
		c.gateway("blue", node, covered("tenant"))
	}
	c.networkIs("tenant", yes("UplinksReady", allCovered))

	// One network's failure is not its neighbour's.
	c.network("other", "blue")
	for _, reason := range []string{"UplinkConfigurationConflict", "UplinkVRFAttachmentFailed", "UplinkBridgeMappingFailed", "UplinkGatewayProgrammingFailed"} {
		c.gateway("blue", "worker-a", covered("tenant"), failed("other", reason))
		c.gateway("blue", "worker-b", covered("tenant"), covered("other"))
		c.gateway("blue", "worker-c", covered("tenant"), covered("other"))
		c.networkIs("other", no(reason, "1 of 3 active nodes are not ready: "+reason+" 1 (worker-a)"))
		c.networkIs("tenant", yes("UplinksReady", allCovered))
	}
	// The reason is the most frequent one; of two as frequent ones, the one further down the table.
	c.must(c.SetNodeLabels(t.Context(), "worker-c", nil))
	c.networkIs("other", no("UplinkGatewayProgrammingFailed", "2 of 3 active nodes are not ready: UplinkGatewayProgrammingFailed 1 (worker-a), UplinkNotFoundForNode 1 (worker-c)"))
	c.must(c.SetNodeLabels(t.Context(), "worker-b", nil))
	c.networkIs("other", no("UplinkNotFoundForNode", "3 of 3 active nodes are not ready: UplinkNotFoundForNode 2 (worker-b, worker-c), UplinkGatewayProgrammingFailed 1 (worker-a)"))
	c.uplink("blue", nodeConfig("e0", nil), nodeConfig("e0", blue))
	c.networkIs("tenant", no("UplinkNotResolvedForNode", "3 of 3 active nodes are not ready: UplinkNotResolvedForNode 2 (worker-b, worker-c), UplinkOverlapOnNode 1 (worker-a)"))

	evpn := primary("evpn")
	evpn.Network.Transport = ovnk.TransportEVPN
	c.networkOf("evpn", evpn, map[string]string{network.UplinksAnnotation: "blue"})
	c.networkIs("evpn", no("UplinkUnsupportedTransport", "the network names Uplink blue, but its transport is EVPN; a network with an Uplink must use the overlay"))
	c.networkOf("localnet", ovnk.ClusterUserDefinedNetworkSpec{Network: ovnk.NetworkSpec{Topology: ovnk.Localnet}}, map[string]string{network.UplinksAnnotation: "blue"})
	c.networkIs("localnet", no("UplinkUnsupportedTopology", "the network names Uplink blue, but only a primary Layer2 or Layer3 network can have one"))
	c.networkOf("torn", primary("torn", "blue"), map[string]string{network.UplinksAnnotation: "green"})
	c.networkIs("torn", no("UplinkReferenceConflict", "spec.uplinks names blue, but the annotation uplink.k8s.ovn.org/uplinks names green; remove the annotation"))

	c.must(c.client.K8sV1alpha1().Uplinks().Delete(t.Context(), "blue", metav1.DeleteOptions{}))
	c.networkIs("tenant", no("UplinkTerminating", "Uplink blue is being deleted"))
}

// In local gateway mode no network can have an Uplink.
func TestLocalGatewayMode(t *testing.T) {
	t.Parallel()
	c := newClusterWithNetworks(t)
	c.clusterRole("control", alone, "--gateway-mode", "local")
	c.uplink("blue", nodeConfig("e0", nil))
	c.network("plain")
	c.network("tenant", "blue")
	c.networkIs("tenant", no("UplinkUnsupportedGatewayMode", "the network names Uplink blue, but the cluster is in local gateway mode; Uplinks need shared gateway mode"))
	c.networkIs("plain", yes("UplinksReady", "the network names no Uplink; it uses the cluster's default gateway"))
}

// The annotation does what the field does, also where the installed CRD has no such field; conditions and finalizers
// of others stay as they are.
func TestAnnotationAndOtherWriters(t *testing.T) {
	t.Parallel()
	c := newClusterWithNetworks(t)
	c.clusterRole("control", alone)
	c.node("worker-a", nil)
	c.uplink("blue", nodeConfig("e0", nil))
	c.networkOf("tenant", primary("tenant"), map[string]string{network.UplinksAnnotation: "blue"})
	c.resolve("blue", "worker-a")
	c.networkIs("tenant", no("GatewayConfigurationPending", "1 of 1 active nodes are not ready: GatewayConfigurationPending 1 (worker-a)"))

	force := true
	_, err := c.networks().Patch(t.Context(), "tenant", types.ApplyPatchType,
		[]byte(`{"apiVersion":"k8s.ovn.org/v1","kind":"ClusterUserDefinedNetwork","metadata":{"name":"tenant"},"status":{"conditions":[{"type":"NetworkCreated","status":"True","reason":"NetworkAttachmentDefinitionCreated","message":"made","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`),
		metav1.PatchOptions{FieldManager: "user-defined-network-controller", Force: &force}, "status")
	c.must(err)
	c.gateway("blue", "worker-a", covered("tenant"))
	c.networkIs("tenant", yes("UplinksReady", allCovered))
	n, err := c.networks().Get(t.Context(), "tenant", metav1.GetOptions{})
	c.must(err)
	c.must(yes("NetworkAttachmentDefinitionCreated", "made").check("NetworkCreated", conditionsOf(n), 0))
	for _, entry := range n.GetManagedFields() {
		if entry.Manager == uplinkstate.ManagerCluster && entry.Subresource != "status" {
			t.Errorf("the role owns fields outside the status: %s", entry.FieldsV1)
		}
	}

	_, err = c.networks().Patch(t.Context(), "tenant", types.MergePatchType, []byte(`{"metadata":{"annotations":{"uplink.k8s.ovn.org/uplinks":"blue, green"}}}`), metav1.PatchOptions{})
	c.must(err)
	c.networkIs("tenant", no("UplinkReferenceConflict", "2 Uplinks are named (blue, green), but a network can have one only; name one"))
}
