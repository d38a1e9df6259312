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
	"github.com/ovn-uplink/ovn-uplink/test/manifests"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

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
	slices := func(ctx context.Context, who caller) error {
		_, err := who.core.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{Limit: 1})
		return err
	}
	serviceCIDRs := func(ctx context.Context, who caller) error {
		_, err := who.core.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{Limit: 1})
		return err
	}
	outOfReach := []row{
		{"read Secrets", read("secrets"), byRBAC},
		{"read ConfigMaps", read("configmaps"), byRBAC},
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
		{"read pods", read("pods"), byRBAC},
		{"read services", read("services"), byRBAC},
		{"read EndpointSlices", slices, byRBAC},
		{"read ServiceCIDRs", serviceCIDRs, byRBAC},
		{"read namespaces", read("namespaces"), byRBAC},
		{"read networks", list("v1/clusteruserdefinednetworks"), byRBAC},
		{"read RouteAdvertisements", list("v1/routeadvertisements"), byRBAC},
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
		{"read pods", read("pods"), ""},
		{"read services", read("services"), ""},
		{"read EndpointSlices", slices, ""},
		{"read ServiceCIDRs", serviceCIDRs, ""},
		{"read namespaces", read("namespaces"), ""},
		{"read networks", list("v1/clusteruserdefinednetworks"), ""},
		{"read RouteAdvertisements", list("v1/routeadvertisements"), ""},
		{"write a service", func(ctx context.Context, who caller) error {
			_, err := who.core.CoreV1().Services("default").Patch(ctx, "kubernetes", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: dryRun})
			return err
		}, byRBAC},
		{"write a namespace", func(ctx context.Context, who caller) error {
			_, err := who.core.CoreV1().Namespaces().Patch(ctx, "default", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{DryRun: dryRun})
			return err
		}, byRBAC},
		{"write a network", write("v1/clusteruserdefinednetworks/net", `{}`), byRBAC},
	}
	onlyDPURows := []row{
		{"list Uplinks", list("v1alpha1/uplinks"), byRBAC},
		{"list Nodes", read("nodes"), ""},
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
		{"host", c.caller(c.podOf(manifests.HostAccount, "worker-a")), [][]row{hostRows, onlyHostRows, outOfReach}},
		{"node", c.caller(c.podOf(manifests.NodeAccount, "worker-a")), [][]row{hostRows, dpuRows, nodeRows, outOfReach}},
		{"dpu", c.caller(c.dpuOf("worker-a")), [][]row{dpuRows, onlyDPURows, outOfReach}},
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
	c.must(c.ApplyFile(t.Context(), "../../deploy/host/chart/manifests/dynamic-udn"))
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
