// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/ovn-uplink/ovn-uplink/test/manifests"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	blueA = "blue.worker-a"
	blueB = "blue.worker-b"
	bareA = "bare.worker-a"
)

var dryRun = []string{metav1.DryRunAll}

// attempt is something that somebody tries. No attempt changes anything: all writes are dry runs, which pass through
// the same checks.
type attempt func(context.Context, caller) error

// ssa is a server-side apply, as the agents send it.
func ssa(manager, name, fields string) attempt {
	body := fmt.Sprintf(`{"apiVersion":"k8s.ovn.org/v1alpha1","kind":"UplinkState","metadata":{"name":%q},%s}`, name, fields)
	return patch(types.ApplyPatchType, manager, name, body)
}

func merge(manager, name, body string) attempt {
	return patch(types.MergePatchType, manager, name, body)
}

func patch(kind types.PatchType, manager, name, body string) attempt {
	return func(ctx context.Context, who caller) error {
		options := metav1.PatchOptions{DryRun: dryRun, FieldManager: manager}
		if force := true; kind == types.ApplyPatchType {
			options.Force = &force
		}
		_, err := who.K8sV1alpha1().UplinkStates().Patch(ctx, name, kind, []byte(body), options)
		return err
	}
}

func remove(name string) attempt {
	return func(ctx context.Context, who caller) error {
		return who.K8sV1alpha1().UplinkStates().Delete(ctx, name, metav1.DeleteOptions{DryRun: dryRun})
	}
}

func removeAll(ctx context.Context, who caller) error {
	return who.K8sV1alpha1().UplinkStates().DeleteCollection(ctx, metav1.DeleteOptions{DryRun: dryRun}, metav1.ListOptions{})
}

// put replaces a state by itself with a change.
func put(name string, change func(*v1alpha1.UplinkState)) attempt {
	return func(ctx context.Context, who caller) error {
		states := who.K8sV1alpha1().UplinkStates()
		state, err := states.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsForbidden(err) {
			state, err = &v1alpha1.UplinkState{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
		}
		if err != nil {
			return err
		}
		change(state)
		_, err = states.Update(ctx, state, metav1.UpdateOptions{DryRun: dryRun})
		return err
	}
}

// create makes a state by POST.
func create(manager, uplink, node string, change func(*v1alpha1.UplinkState)) attempt {
	return func(ctx context.Context, who caller) error {
		state := &v1alpha1.UplinkState{
			ObjectMeta: metav1.ObjectMeta{Name: uplinkstate.Name(uplink, node)},
			Spec:       v1alpha1.UplinkStateSpec{UplinkName: uplink, NodeName: node},
		}
		if change != nil {
			change(state)
		}
		_, err := who.K8sV1alpha1().UplinkStates().Create(ctx, state, metav1.CreateOptions{DryRun: dryRun, FieldManager: manager})
		return err
	}
}

func event(namespace string) attempt {
	return func(ctx context.Context, who caller) error {
		_, err := who.core.EventsV1().Events(namespace).Create(ctx, &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: namespace}, EventTime: metav1.NowMicro(), Type: "Normal", Reason: "X",
			Action: "X", ReportingController: "x", ReportingInstance: "x",
		}, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
}

// read lists a resource of the core API.
func read(resource string) attempt {
	return func(ctx context.Context, who caller) error {
		return who.core.CoreV1().RESTClient().Get().AbsPath("/api/v1/" + resource).Do(ctx).Error()
	}
}

// list lists a resource of k8s.ovn.org.
func list(path string) attempt {
	return func(ctx context.Context, who caller) error {
		return who.K8sV1alpha1().RESTClient().Get().AbsPath("/apis/k8s.ovn.org/" + path).Do(ctx).Error()
	}
}

// write patches an object of k8s.ovn.org.
func write(path, body string) attempt {
	return func(ctx context.Context, who caller) error {
		return who.K8sV1alpha1().RESTClient().Patch(types.MergePatchType).AbsPath("/apis/k8s.ovn.org/"+path).
			Param("dryRun", metav1.DryRunAll).Body([]byte(body)).Do(ctx).Error()
	}
}

// lease makes, reads and replaces a Lease.
func lease(namespace, name string) attempt {
	return func(ctx context.Context, who caller) error {
		leases := who.core.CoordinationV1().Leases(namespace)
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := leases.Create(ctx, lease, metav1.CreateOptions{DryRun: dryRun}); err != nil {
			return err
		}
		if _, err := leases.Get(ctx, name, metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{DryRun: dryRun}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}
}

func conditionOf(kind, reason string) string {
	return fmt.Sprintf(`{"type":%q,"status":"True","reason":%q,"message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`, kind, reason)
}

func conditions(list ...string) string { return `"conditions":[` + strings.Join(list, ",") + `]` }

var (
	hostCondition    = conditionOf("HostDataReady", "HostDataDiscovered")
	dpuCondition     = conditionOf("Resolved", "Resolved")
	gatewayCondition = conditionOf("GatewayReady", "GatewayConfigured")
	leavingCondition = strings.NewReplacer(`"True"`, `"False"`, "HostDataDiscovered", "NodeNotSelected").Replace(hostCondition)

	hostData    = `"type":"OVSBridge","hostInterfaceName":"e0","macAddress":"02:00:5e:00:53:01","hostFunction":{"pfID":0},"ipAddresses":["192.0.2.5/24"],"defaultGateways":["192.0.2.1"]`
	dpuData     = `"ovsBridge":{"name":"br-x","uplinkPort":"p0"}`
	gatewayData = `"networks":[{"name":"net","phase":"Ready"}]`
)

// half is the body of an apply of a manager's whole half: its data and its condition.
func half(parts ...string) string { return `"status":{` + strings.Join(parts, ",") + `}` }

// owner is an ownerReference.
func owner(name string, uid types.UID, more string) string {
	return fmt.Sprintf(`{"apiVersion":"k8s.ovn.org/v1alpha1","kind":"Uplink","name":%q,"uid":%q,"controller":true%s}`, name, uid, more)
}

// published makes complete states of blue on both nodes, each half by its manager, with a label and an annotation of
// somebody else; a state that has nothing but its identity; and a network.
func (c *cluster) published() types.UID {
	c.t.Helper()
	c.uplink("blue", nodeConfig("e0", nil))
	uplink, err := c.client.K8sV1alpha1().Uplinks().Get(c.t.Context(), "blue", metav1.GetOptions{})
	c.must(err)
	states := c.client.K8sV1alpha1().UplinkStates()
	force := true
	for _, node := range []string{"worker-a", "worker-b"} {
		name := uplinkstate.Name("blue", node)
		for _, by := range []struct{ manager, meta, fields string }{
			{uplinkstate.ManagerHost, `,"ownerReferences":[` + owner("blue", uplink.UID, "") + `]`,
				fmt.Sprintf(`"spec":{"uplinkName":"blue","nodeName":%q},%s`, node, half(hostData, conditions(hostCondition)))},
			{uplinkstate.ManagerDPU, "", half(dpuData, conditions(dpuCondition))},
			{uplinkstate.ManagerDPUGateway, "", half(gatewayData, conditions(gatewayCondition))},
			{"someone", `,"labels":{"cost":"42"},"annotations":{"tool":"x"}`, `"status":{}`},
		} {
			body := fmt.Sprintf(`{"apiVersion":"k8s.ovn.org/v1alpha1","kind":"UplinkState","metadata":{"name":%q%s},%s}`, name, by.meta, by.fields)
			_, err := states.Patch(c.t.Context(), name, types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: by.manager, Force: &force})
			c.must(err)
		}
	}
	_, err = states.Create(c.t.Context(), &v1alpha1.UplinkState{
		ObjectMeta: metav1.ObjectMeta{Name: bareA}, Spec: v1alpha1.UplinkStateSpec{UplinkName: "bare", NodeName: "worker-a"},
	}, metav1.CreateOptions{})
	c.must(err)
	c.must(c.Apply(c.t.Context(), network))
	client, err := c.Dynamic()
	c.must(err)
	_, err = client.Resource(schema.GroupVersionResource{Group: "k8s.ovn.org", Version: "v1", Resource: "clusteruserdefinednetworks"}).
		Patch(c.t.Context(), "net", types.MergePatchType, []byte(`{"status":{`+conditions(conditionOf("NetworkReady", "X"))+`}}`), metav1.PatchOptions{}, "status")
	c.must(err)
	return uplink.UID
}

// network is a CUDN, with as much of the CRD as is needed here.
const network = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusteruserdefinednetworks.k8s.ovn.org}
spec:
  group: k8s.ovn.org
  names: {kind: ClusterUserDefinedNetwork, listKind: ClusterUserDefinedNetworkList, plural: clusteruserdefinednetworks, singular: clusteruserdefinednetwork}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: k8s.ovn.org/v1
kind: ClusterUserDefinedNetwork
metadata: {name: net}
spec: {uplinks: [blue]}
`

// Who may do what, and why not. Every identity also does what it may, so that denying everything does not pass.
func TestWhoMayWhat(t *testing.T) {
	t.Parallel()
	c := newGuardedCluster(t)
	uid := c.published()
	const (
		host, dpu, gateway = uplinkstate.ManagerHost, uplinkstate.ManagerDPU, uplinkstate.ManagerDPUGateway

		ofNodeB     = "it is of node worker-b"
		ofTheHost   = "the host writes that"
		ofTheDPU    = "the dpu writes that"
		ofNobody    = "no agent writes that"
		byTheHost   = "states are made and deleted by the host"
		noNode      = "its credentials name no node"
		noManager   = "as field manager"
		noOwning    = "may not own fields of the other half"
		noTaking    = "may not change what"
		noFinalizer = "may not change the finalizers"
		noLabels    = "they are of others"
		noOwner     = "may not write these ownerReferences"
		noName      = "the name for its spec is blue.worker-a"
		noStranger  = "it is no agent of ovn-uplink"
		byRBAC      = `User "` // how RBAC begins to say no
	)
	// Together too long for a name.
	longUplink, longNode := strings.Repeat("u", 63), strings.Repeat("n", 200)
	spec := func(uplink, node string) string {
		return fmt.Sprintf(`"spec":{"uplinkName":%q,"nodeName":%q}`, uplink, node)
	}
	owned := func(name, references string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q,"ownerReferences":[%s]}}`, name, references)
	}
	// asHost is an apply as the host's manager, which always sends the spec.
	asHost := func(node string, status ...string) attempt {
		return ssa(host, uplinkstate.Name("blue", node), spec("blue", node)+","+half(status...))
	}
	const netStatus = "v1/clusteruserdefinednetworks/net/status"
	finalizer := `{"metadata":{"finalizers":["example.com/hold"]}}`
	label := func(key, value string) string { return fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, value) }
	mac := func(s *v1alpha1.UplinkState) { s.Status.MACAddress = "02:00:5e:00:53:66" }

	type row struct {
		what   string
		do     attempt
		denied string // "" is allowed
	}
	secrets := []row{
		{"read Secrets", read("secrets"), byRBAC},
		{"read ConfigMaps", read("configmaps"), byRBAC},
		{"read pods", read("pods"), byRBAC},
		{"read networks", list("v1/clusteruserdefinednetworks"), byRBAC},
		{"write an Uplink", write("v1alpha1/uplinks/blue", `{}`), byRBAC},
		{"write an Uplink's status", write("v1alpha1/uplinks/blue/status", `{}`), byRBAC},
		{"write a Node", func(ctx context.Context, who caller) error {
			_, err := who.core.CoreV1().Nodes().Patch(ctx, "worker-a", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: dryRun})
			return err
		}, byRBAC},
		{"write an Event elsewhere", event(manifests.Namespace), byRBAC},
		{"list Events", read("namespaces/default/events"), byRBAC},
		{"replace a state", put(blueA, mac), byRBAC},
		{"delete all states", removeAll, byRBAC},
		{"get a token", func(ctx context.Context, who caller) error {
			return who.core.CoreV1().RESTClient().Post().Namespace(manifests.Namespace).Resource("serviceaccounts").Name(manifests.HostAccount).
				SubResource("token").Body([]byte(`{}`)).Do(ctx).Error()
		}, byRBAC},
	}
	hostRows := []row{
		{"list Uplinks", list("v1alpha1/uplinks"), ""},
		{"list states", list("v1alpha1/uplinkstates"), ""},
		{"list Nodes", read("nodes"), ""},
		{"create a state", ssa(host, "green.worker-a", spec("green", "worker-a")+","+half(hostData, conditions(hostCondition))), ""},
		{"create a state by POST", create(host, "green", "worker-a", nil), ""},
		{"write into a bare state", ssa(host, bareA, spec("bare", "worker-a")+","+half(hostData, conditions(hostCondition))), ""},
		{"write its half", asHost("worker-a", hostData, conditions(hostCondition)), ""},
		{"write another MAC", merge(host, blueA, `{"status":{"macAddress":"02:00:5e:00:53:66"}}`), ""},
		{"mark a state as leaving", asHost("worker-a", hostData, conditions(leavingCondition)), ""},
		{"clear what it measured", asHost("worker-a", `"type":"OVSBridge"`, conditions(hostCondition)), ""},
		{"own a state by its Uplink made anew", merge(host, blueA, owned(blueA, owner("blue", "other", ""))), ""},
		{"delete a state", remove(blueA), ""},
		{"add a label", merge(host, blueA, label("more", `"1"`)), ""},

		{"create a state of another node", ssa(host, "green.worker-b", spec("green", "worker-b")), ofNodeB},
		{"create it by POST", create(host, "green", "worker-b", nil), ofNodeB},
		{"write a state of another node", asHost("worker-b", hostData), ofNodeB},
		{"write nothing into a state of another node", merge(host, blueB, `{}`), ofNodeB},
		{"delete a state of another node", remove(blueB), ofNodeB},
		{"move a state to another node", merge(host, blueA, `{"spec":{"nodeName":"worker-b"}}`), "nodeName is immutable"},
		{"create a state under another name", create(host, "blue", "worker-a", func(s *v1alpha1.UplinkState) { s.Name = "blue.worker-c" }), noName},
		{"create a state under a generated name", create(host, "blue", "worker-a", func(s *v1alpha1.UplinkState) { s.Name, s.GenerateName = "", "blue.worker-a" }), noName},
		{"create a state under a name with a digest", create(host, "blue", "worker-a", func(s *v1alpha1.UplinkState) { s.Name = "blue.worker-a-0123456789" }), noName},
		{"write a condition that nobody knows", asHost("worker-a", hostData, conditions(hostCondition, conditionOf("Ready", "X"))), ofNobody},
		{"own a state by another Uplink", merge(host, blueA, owned(blueA, owner("green", uid, ""))), noOwner},
		{"own a state by two Uplinks", merge(host, blueA, owned(blueA, owner("blue", uid, "")+","+strings.Replace(owner("green", "other", ""), "true", "false", 1))), noOwner},
		{"let the state hold up its Uplink", merge(host, blueA, owned(blueA, owner("blue", uid, `,"blockOwnerDeletion":true`))), noOwner},
		{"own a state by a Node", merge(host, blueA, owned(blueA, `{"apiVersion":"v1","kind":"Node","name":"blue","uid":"other"}`)), noOwner},
		{"add a finalizer", merge(host, blueA, finalizer), noFinalizer},
		{"create a state with a finalizer", create(host, "green", "worker-a", func(s *v1alpha1.UplinkState) { s.Finalizers = []string{"example.com/hold"} }), noFinalizer},
		{"change a label", merge(host, blueA, label("cost", `"1"`)), noLabels},
		{"remove a label", merge(host, blueA, label("cost", `null`)), noLabels},
		{"remove an annotation", merge(host, blueA, `{"metadata":{"annotations":null}}`), noLabels},
	}
	onlyHostRows := []row{
		{"write ovsBridge", asHost("worker-a", `"ovsBridge":{"name":"br-y"}`), ofTheDPU},
		{"remove ovsBridge", merge(host, blueA, `{"status":{"ovsBridge":null}}`), ofTheDPU},
		{"write networks", asHost("worker-a", `"networks":[{"name":"net","phase":"Failed"}]`), ofTheDPU},
		{"add a network", asHost("worker-a", `"networks":[{"name":"other","phase":"Ready"}]`), ofTheDPU},
		{"remove networks", merge(host, blueA, `{"status":{"networks":null}}`), ofTheDPU},
		{"write Resolved", asHost("worker-a", conditions(strings.Replace(dpuCondition, "True", "False", 1))), "conditions[Resolved]"},
		{"write GatewayReady", asHost("worker-a", conditions(strings.Replace(gatewayCondition, "True", "False", 1))), "conditions[GatewayReady]"},
		{"remove Resolved and GatewayReady", merge(host, blueA, `{"status":{`+conditions(hostCondition)+`}}`), "conditions[Resolved], conditions[GatewayReady]"},
		{"create a state with a bridge", ssa(host, "green.worker-a", spec("green", "worker-a")+","+half(hostData, dpuData)), "may not write ovsBridge"},
		{"remove the status", merge(host, blueA, `{"status":null}`), ofTheDPU},
		{"write as the dpu", merge(dpu, blueA, `{"status":{"macAddress":"02:00:5e:00:53:66"}}`), noManager},
		{"write as nobody", merge("", blueA, `{"status":{"macAddress":"02:00:5e:00:53:66"}}`), noManager},
		{"own the bridge", asHost("worker-a", hostData, dpuData), noOwning},
		{"own Resolved", asHost("worker-a", hostData, conditions(hostCondition, dpuCondition)), noOwning},
		{"take the ownership from the dpu", merge(host, blueA, `{"metadata":{"managedFields":[{}]}}`), noTaking},
		{"write an Event", event(metav1.NamespaceDefault), byRBAC},
	}
	dpuRows := []row{
		{"get a state", func(ctx context.Context, who caller) error {
			_, err := who.K8sV1alpha1().UplinkStates().Get(ctx, blueA, metav1.GetOptions{})
			return err
		}, ""},
		{"write ovsBridge", ssa(dpu, blueA, half(`"ovsBridge":{"name":"br-y"}`, conditions(dpuCondition))), ""},
		{"write Resolved", ssa(dpu, blueA, half(conditions(strings.Replace(dpuCondition, "True", "False", 1)))), ""},
		{"write GatewayReady and networks", ssa(gateway, blueA, half(`"networks":[{"name":"net","phase":"Failed"}]`, conditions(strings.Replace(gatewayCondition, "True", "False", 1)))), ""},
		{"release its half", ssa(dpu, blueA, `"status":{}`), ""},
		{"write an Event", event(metav1.NamespaceDefault), ""},
		{"write a state of another node", ssa(dpu, blueB, half(dpuData)), ofNodeB},
	}
	onlyDPURows := []row{
		{"list Uplinks", list("v1alpha1/uplinks"), byRBAC},
		{"list Nodes", read("nodes"), byRBAC},
		{"create a state", ssa(dpu, "green.worker-a", spec("green", "worker-a")), byRBAC},
		{"delete a state", remove(blueA), byRBAC},
		{"write type", merge(dpu, blueA, `{"status":{"type":null}}`), ofTheHost},
		{"write hostInterfaceName", ssa(dpu, blueA, half(`"hostInterfaceName":"e1"`)), ofTheHost},
		{"write macAddress", ssa(dpu, blueA, half(`"macAddress":"02:00:5e:00:53:66"`)), ofTheHost},
		{"write hostFunction", ssa(dpu, blueA, half(`"hostFunction":{"pfID":1}`)), ofTheHost},
		{"write ipAddresses", ssa(dpu, blueA, half(`"ipAddresses":["192.0.2.6/24"]`)), ofTheHost},
		{"write defaultGateways", ssa(dpu, blueA, half(`"defaultGateways":["192.0.2.2"]`)), ofTheHost},
		{"write HostDataReady", ssa(dpu, blueA, half(conditions(leavingCondition))), ofTheHost},
		{"remove HostDataReady", merge(dpu, blueA, `{"status":{`+conditions(dpuCondition, gatewayCondition)+`}}`), "conditions[HostDataReady]"},
		{"write a condition that nobody knows", ssa(dpu, blueA, half(conditions(dpuCondition, conditionOf("Ready", "X")))), ofNobody},
		{"remove the status", merge(dpu, blueA, `{"status":null}`), ofTheHost},
		{"own a state by its Uplink made anew", merge(dpu, blueA, owned(blueA, owner("blue", "other", ""))), "the host writes them"},
		{"disown a state", merge(dpu, blueA, `{"metadata":{"ownerReferences":null}}`), "the host writes them"},
		{"add a finalizer", merge(dpu, blueA, finalizer), noFinalizer},
		{"change a label", merge(dpu, blueA, label("cost", `"1"`)), noLabels},
		{"write as the host", asHost("worker-a", conditions(dpuCondition)), ofTheHost},
		{"write its own as the host", merge(host, blueA, `{"status":{"ovsBridge":{"name":"br-y"}}}`), noManager},
		{"own the MAC", ssa(dpu, blueA, half(dpuData, `"macAddress":"02:00:5e:00:53:01"`, conditions(dpuCondition))), noOwning},
		{"own the ownerReferences", patch(types.ApplyPatchType, dpu, blueA, strings.Replace(owned(blueA, owner("blue", uid, "")), "{",
			`{"apiVersion":"k8s.ovn.org/v1alpha1","kind":"UplinkState",`+half(dpuData, conditions(dpuCondition))+",", 1)), noOwning},
		{"write into a bare state", ssa(dpu, bareA, half(dpuData, conditions(dpuCondition))), ""},
		{"take the ownership from the host", merge(dpu, blueA, `{"metadata":{"managedFields":[{}]}}`), noTaking},
	}
	// Where RBAC is wider than it should be, the policies still hold.
	wideDPURows := []row{
		{"create a state", create(dpu, "green", "worker-a", nil), byTheHost},
		{"delete a state", remove(blueA), byTheHost},
		{"delete all states", removeAll, byTheHost},
		{"replace a state", put(blueA, mac), ofTheHost},
	}
	nodeRows := []row{
		{"write the dpu's half as the host", asHost("worker-a", hostData, dpuData, conditions(hostCondition)), ""},
	}
	longRows := []row{
		{"create a state", create(host, longUplink, longNode, nil), ""},
		{"create a state whose name has no digest", create(host, longUplink, longNode, func(s *v1alpha1.UplinkState) { s.Name = s.Name[:240] }), "cut, with a digest"},
		{"create a state under a short name", create(host, longUplink, longNode, func(s *v1alpha1.UplinkState) { s.Name = blueA + "-0123456789" }), "cut, with a digest"},
		{"create a state under another long name", create(host, longUplink, longNode, func(s *v1alpha1.UplinkState) { s.Name = "x" + s.Name[1:] }), "cut, with a digest"},
	}
	namelessRows := []row{
		{"write a state", asHost("worker-a", hostData), noNode},
		{"create a state", create(host, "green", "worker-a", nil), noNode},
		{"delete a state", remove(blueA), noNode},
	}
	adminRows := []row{
		{"create a state", create("", "green", "worker-a", mac), ""},
		{"write both halves", merge("", blueA, `{"status":null}`), ""},
		{"add a finalizer", merge("", blueA, finalizer), ""},
		{"delete a state", remove(blueA), ""},
		{"delete all states", removeAll, ""},
	}
	strangerRows := []row{
		{"read states", list("v1alpha1/uplinkstates"), ""},
		{"set a label", merge("", blueA, label("cost", `"1"`)), ""},
		{"set a label by replacing", put(blueA, func(s *v1alpha1.UplinkState) { s.Labels = nil }), ""},
		{"create a state", create("", "green", "worker-a", nil), noStranger},
		{"write a MAC", merge("", blueA, `{"status":{"macAddress":"02:00:5e:00:53:66"}}`), noStranger},
		{"write a MAC as the host", asHost("worker-a", hostData), noStranger},
		{"remove the status", merge("", blueA, `{"status":null}`), noStranger},
		{"add a finalizer", merge("", blueA, finalizer), noStranger},
		{"disown a state", merge("", blueA, `{"metadata":{"ownerReferences":null}}`), noStranger},
		{"delete a state", remove(blueA), noStranger},
		{"delete all states", removeAll, noStranger},
	}
	clusterRows := []row{
		{"list Uplinks", list("v1alpha1/uplinks"), ""},
		{"list states", list("v1alpha1/uplinkstates"), ""},
		{"list Nodes", read("nodes"), ""},
		{"list networks", list("v1/clusteruserdefinednetworks"), ""},
		{"delete a state", remove(blueA), ""},
		{"delete all states", removeAll, ""},
		{"write an Event", event(metav1.NamespaceDefault), ""},
		{"hold its Lease", lease(manifests.Namespace, "ovn-uplink-cluster"), ""},
		{"protect an Uplink", write("v1alpha1/uplinks/blue", `{"metadata":{"finalizers":["k8s.ovn.org/uplink-protection"]}}`), ""},
		{"set Ready", write("v1alpha1/uplinks/blue/status", `{"status":{`+conditions(conditionOf("Ready", "Ready"))+`}}`), ""},
		{"set UplinksReady", write(netStatus, `{"status":{`+conditions(conditionOf("NetworkReady", "X"), conditionOf("UplinksReady", "X"))+`}}`), ""},

		{"set another finalizer", write("v1alpha1/uplinks/blue", finalizer), "change finalizers"},
		{"change an Uplink", write("v1alpha1/uplinks/blue", `{"spec":{"nodeConfigs":[{"type":"OVSBridge","nodeSelector":{},"hostInterfaceName":"e1"}]}}`), "change spec"},
		{"label an Uplink", write("v1alpha1/uplinks/blue", label("a", `"1"`)), "change spec, labels"},
		{"set another condition of a network", write(netStatus, `{"status":{`+conditions(conditionOf("NetworkReady", "Y"))+`}}`), "but for the condition UplinksReady"},
		{"remove another condition of a network", write(netStatus, `{"status":{`+conditions(conditionOf("UplinksReady", "X"))+`}}`), "but for the condition UplinksReady"},
		{"write another status field of a network", write(netStatus, `{"status":{"x":1}}`), "but for the condition UplinksReady"},
		{"change a network", write("v1/clusteruserdefinednetworks/net", `{"spec":{}}`), byRBAC},
		{"delete an Uplink", func(ctx context.Context, who caller) error {
			return who.K8sV1alpha1().Uplinks().Delete(ctx, "blue", metav1.DeleteOptions{DryRun: dryRun})
		}, byRBAC},
		{"read RouteAdvertisements", list("v1/routeadvertisements"), byRBAC},
		{"hold another Lease", lease(manifests.Namespace, "other"), byRBAC},
		{"hold a Lease elsewhere", lease("kube-system", "ovn-uplink-cluster"), byRBAC},
		{"write a state", ssa(uplinkstate.ManagerCluster, blueA, half(hostData)), byRBAC},
		{"create a state", create(uplinkstate.ManagerCluster, "green", "worker-a", nil), byRBAC},
		{"read Secrets", read("secrets"), byRBAC},
		{"read pods", read("pods"), byRBAC},
	}
	collectorRows := []row{
		{"delete a state", remove(blueA), ""},
		{"disown a state", merge("", blueA, `{"metadata":{"ownerReferences":null}}`), ""},
	}

	certificate := func(user string, groups ...string) caller {
		path, err := c.CertificateKubeconfig(user, groups...)
		c.must(err)
		return c.caller(path)
	}
	c.must(c.Apply(t.Context(), `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lab-admins}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "lab:admins"}]
`))
	for _, id := range []struct {
		name string
		who  caller
		rows [][]row
	}{
		{"host", c.caller(c.podOf(manifests.HostAccount, "worker-a")), [][]row{hostRows, onlyHostRows, secrets}},
		{"node", c.caller(c.podOf(manifests.NodeAccount, "worker-a")), [][]row{hostRows, dpuRows, nodeRows, secrets}},
		{"dpu", c.caller(c.dpuOf("worker-a")), [][]row{dpuRows, onlyDPURows, secrets}},
		{"dpu with too many rights", certificate(manifests.DPUUser+"worker-a", manifests.Strangers), [][]row{dpuRows[:5], onlyDPURows[4:], wideDPURows}},
		{"host with a long name", c.caller(c.podOf(manifests.HostAccount, longNode)), [][]row{longRows}},
		{"host without node", c.caller(c.unbound(manifests.HostAccount)), [][]row{namelessRows}},
		{"node without node", c.caller(c.unbound(manifests.NodeAccount)), [][]row{namelessRows}},
		{"dpu without node", certificate("someone", manifests.DPUGroup, manifests.Strangers), [][]row{namelessRows}},
		{"dpu with an empty node", certificate(manifests.DPUUser, manifests.DPUGroup, manifests.Strangers), [][]row{namelessRows}},
		{"dpu of another node", c.caller(c.dpuOf("worker-c")), [][]row{{
			{"get a state", dpuRows[0].do, ""},
			{"write a state", dpuRows[1].do, "it is of node worker-a"},
		}}},
		{"stranger", certificate("stranger", manifests.Strangers), [][]row{strangerRows}},
		{"another ServiceAccount", c.impersonated("system:serviceaccount:ovn-kubernetes:ovnkube-node", manifests.Strangers), [][]row{strangerRows}},
		{"cluster role", c.caller(c.podOf(manifests.ClusterAccount, "worker-a")), [][]row{clusterRows}},
		{"administrator", c.callerOf(c.RESTConfig()), [][]row{adminRows}},
		{"administrator by RBAC", certificate("alice", "lab:admins"), [][]row{adminRows}},
		{"garbage collector", c.impersonated("system:serviceaccount:kube-system:generic-garbage-collector"), [][]row{collectorRows}},
	} {
		t.Run(id.name, func(t *testing.T) {
			for _, rows := range id.rows {
				for _, r := range rows {
					judge(t, id.who, r.what, r.do, r.denied)
				}
			}
		})
	}

	// With dynamic networks the cluster role looks at pods, and only then.
	c.must(c.ApplyFile(t.Context(), "../../deploy/host/manifests/dynamic-udn"))
	who := c.caller(c.podOf(manifests.ClusterAccount, "worker-a"))
	judge(t, who, "read pods", read("pods"), "")
	judge(t, who, "read namespaces", read("namespaces"), "")
	judge(t, who, "read Secrets", read("secrets"), byRBAC)
}

// The largest state there can be is within what the API server lets a policy cost.
func TestLargestState(t *testing.T) {
	t.Parallel()
	c := newGuardedCluster(t)
	c.published()
	networks := func(phase v1alpha1.NetworkPhase) []byte {
		var all []string
		for i := range 1024 {
			all = append(all, fmt.Sprintf(`{"name":"net-%04d","phase":%q,"message":%q}`, i, phase, strings.Repeat("x", 500)))
		}
		return fmt.Appendf(nil, `{"apiVersion":"k8s.ovn.org/v1alpha1","kind":"UplinkState","metadata":{"name":%q},%s}`, blueA,
			half(`"networks":[`+strings.Join(all, ",")+`]`, conditions(gatewayCondition)))
	}
	host, dpu := c.caller(c.podOf(manifests.HostAccount, "worker-a")), c.caller(c.dpuOf("worker-a"))
	force := true
	for _, phase := range []v1alpha1.NetworkPhase{v1alpha1.NetworkPending, v1alpha1.NetworkReady} {
		_, err := dpu.K8sV1alpha1().UplinkStates().Patch(t.Context(), blueA, types.ApplyPatchType, networks(phase),
			metav1.PatchOptions{FieldManager: uplinkstate.ManagerDPUGateway, Force: &force})
		c.must(err)
	}
	for _, name := range []string{blueA, bareA} {
		for who, client := range map[string]caller{"host": host, "administrator": c.callerOf(c.RESTConfig())} {
			begin := time.Now()
			const times = 20
			for i := range times {
				c.must(merge(uplinkstate.ManagerHost, name, fmt.Sprintf(`{"status":{"macAddress":"02:00:5e:00:53:%02x"}}`, i))(t.Context(), client))
			}
			t.Logf("%s by the %s: %s per write", name, who, (time.Since(begin) / times).Round(100*time.Microsecond))
		}
	}
}

// judge lets somebody try something. Roles may be known to the API server a moment later than policies.
func judge(t *testing.T, who caller, what string, do attempt, denied string) {
	t.Helper()
	err := lab.Eventually(t.Context(), 3*time.Second, func(ctx context.Context) error {
		err := do(ctx, who)
		switch {
		case denied == "" && err != nil:
			return fmt.Errorf("refused: %w", err)
		case denied != "" && err == nil:
			return fmt.Errorf("allowed, want %q", denied)
		case denied != "" && (!apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), denied)):
			return fmt.Errorf("refused for another reason than %q: %w", denied, err)
		}
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
