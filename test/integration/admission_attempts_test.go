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
	c.must(c.ApplyFile(c.t.Context(), ovnKubernetesCRDs))
	c.network("net", "blue")
	client, err := c.Dynamic()
	c.must(err)
	_, err = client.Resource(schema.GroupVersionResource{Group: "k8s.ovn.org", Version: "v1", Resource: "clusteruserdefinednetworks"}).
		Patch(c.t.Context(), "net", types.MergePatchType, []byte(`{"status":{`+conditions(conditionOf("NetworkReady", "X"))+`}}`), metav1.PatchOptions{}, "status")
	c.must(err)
	return uplink.UID
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
