// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apply "github.com/ovn-uplink/ovn-uplink/shared/api/applyconfiguration/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
)

// What the API server takes and refuses of an Uplink.
func TestUplinkValidation(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	all := func(n int) []v1alpha1.UplinkNodeConfig {
		var configs []v1alpha1.UplinkNodeConfig
		for range n {
			configs = append(configs, nodeConfig("e0", nil))
		}
		return configs
	}
	for name, tc := range map[string]struct {
		uplink  string
		configs []v1alpha1.UplinkNodeConfig
		refused string
	}{
		"plain":                  {"tenant-blue", all(1), ""},
		"63 characters":          {strings.Repeat("a", 63), all(1), ""},
		"64 characters":          {strings.Repeat("a", 64), all(1), "DNS-1123 label"},
		"dots in the name":       {"tenant.blue", all(1), "DNS-1123 label"},
		"no nodeConfigs":         {"n0", nil, "nodeConfigs"},
		"64 nodeConfigs":         {"n64", all(64), ""},
		"65 nodeConfigs":         {"n65", all(65), "64"},
		"name of 15 characters":  {"i15", []v1alpha1.UplinkNodeConfig{nodeConfig("enp65s0f0np0v12", nil)}, ""},
		"name of 16 characters":  {"i16", []v1alpha1.UplinkNodeConfig{nodeConfig("enp65s0f0np0v123", nil)}, "15"},
		"empty interface name":   {"i0", []v1alpha1.UplinkNodeConfig{nodeConfig("", nil)}, "hostInterfaceName"},
		"slash in the interface": {"is", []v1alpha1.UplinkNodeConfig{nodeConfig("a/b", nil)}, "hostInterfaceName"},
		"white space":            {"iw", []v1alpha1.UplinkNodeConfig{nodeConfig("a b", nil)}, "hostInterfaceName"},
		"dot":                    {"id", []v1alpha1.UplinkNodeConfig{nodeConfig(".", nil)}, "must not be"},
		"two dots":               {"idd", []v1alpha1.UplinkNodeConfig{nodeConfig("..", nil)}, "must not be"},
		"another type":           {"ty", []v1alpha1.UplinkNodeConfig{{Type: "LinuxBridge", HostInterfaceName: "e0"}}, "OVSBridge"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.client.K8sV1alpha1().Uplinks().Create(t.Context(), &v1alpha1.Uplink{
				ObjectMeta: metav1.ObjectMeta{Name: tc.uplink}, Spec: v1alpha1.UplinkSpec{NodeConfigs: tc.configs},
			}, metav1.CreateOptions{})
			switch {
			case tc.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.refused)):
				t.Errorf("got %v, want Invalid with %q", err, tc.refused)
			}
		})
	}
}

// What the API server takes and refuses of an UplinkState's status.
func TestUplinkStateValidation(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for name, tc := range map[string]struct {
		status  string
		refused bool
	}{
		"empty":                 {`{}`, false},
		"MAC":                   {`{"macAddress":"02:42:ac:1c:00:02"}`, false},
		"not a MAC":             {`{"macAddress":"02-42-ac-1c-00-02"}`, true},
		"two addresses":         {`{"ipAddresses":["172.28.0.2/16","2001:db8::2/64"]}`, false},
		"three addresses":       {`{"ipAddresses":["172.28.0.2/16","2001:db8::2/64","172.28.0.3/16"]}`, true},
		"address without mask":  {`{"ipAddresses":["172.28.0.2"]}`, true},
		"link-local gateway":    {`{"defaultGateways":["fe80::1"]}`, false},
		"gateway with zone":     {`{"defaultGateways":["fe80::1%eth0"]}`, true},
		"VLAN 4095":             {`{"ovsBridge":{"name":"br-x","vlan":4095}}`, true},
		"function without pfID": {`{"hostFunction":{"vfID":3}}`, true},
		"VF":                    {`{"hostFunction":{"pfID":0,"vfID":3,"pfMAC":"02:42:ac:1c:00:02"}}`, false},
		"unknown phase":         {`{"networks":[{"name":"blue","phase":"Maybe"}]}`, true},
		"network twice":         {`{"networks":[{"name":"blue","phase":"Ready"},{"name":"blue","phase":"Ready"}]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			state := fmt.Sprintf(`{"apiVersion":"k8s.ovn.org/v1alpha1","kind":"UplinkState","metadata":{"name":"s.n"},"spec":{"uplinkName":"s","nodeName":"n"},"status":%s}`, tc.status)
			object := &unstructured.Unstructured{}
			c.must(object.UnmarshalJSON([]byte(state)))
			dynamic, err := c.Dynamic()
			c.must(err)
			_, err = dynamic.Resource(v1alpha1.SchemeGroupVersion.WithResource("uplinkstates")).
				Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if refused := err != nil; refused != tc.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Each manager owns its half: one that applies less loses what it dropped, and nothing of the others' (F4). Only a
// real API server shows it.
func TestOwnershipOfHalves(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.uplink("blue", nodeConfig("e0", nil))
	uplink, err := c.client.K8sV1alpha1().Uplinks().Get(t.Context(), "blue", metav1.GetOptions{})
	c.must(err)
	host := uplinkstate.HostHalf{
		Data:  uplinkstate.HostData{Type: v1alpha1.OVSBridge, Interface: "e0", MAC: []byte{2, 0, 0, 0, 0, 1}},
		Ready: uplinkstate.True(uplinkstate.ReasonHostDataDiscovered, "measured", 1),
	}
	now := time.Now()
	state := c.patch(uplinkstate.ManagerHost, uplinkstate.ApplyHost(uplink, "w", host, nil, now))
	dpu := uplinkstate.DPUHalf{Bridge: &v1alpha1.OVSBridgeStatus{Name: "br-x", UplinkPort: "p0"}, Resolved: uplinkstate.True(uplinkstate.ReasonResolved, "ok", 1)}
	state = c.patch(uplinkstate.ManagerDPU, uplinkstate.ApplyDPU(state, dpu, now))

	host.Data.MAC = nil
	host.Ready = uplinkstate.False(uplinkstate.Problemf(uplinkstate.ReasonHostInterfaceNotFound, "gone"), 1)
	state = c.patch(uplinkstate.ManagerHost, uplinkstate.ApplyHost(uplink, "w", host, state, now))
	if state.Status.MACAddress != "" || state.Status.HostInterfaceName != "e0" {
		t.Errorf("the host's failing apply kept the MAC or lost the interface: %+v", state.Status)
	}
	if got, _ := uplinkstate.DPUHalfOf(state); !got.Equal(dpu) {
		t.Errorf("the host's apply changed the dpu's half: %+v", got)
	}
	state = c.patch(uplinkstate.ManagerDPU, uplinkstate.ApplyNothing(state))
	if !uplinkstate.Left(state) {
		t.Errorf("something of the dpu's is left: %+v", state.Status)
	}
	if got, ok := uplinkstate.HostHalfOf(state); !ok || !got.Equal(host) {
		t.Errorf("the dpu's answer changed the host's half: %+v", got)
	}
	if version := state.ResourceVersion; c.patch(uplinkstate.ManagerDPU, uplinkstate.ApplyNothing(state)).ResourceVersion != version {
		t.Error("applying the same again was a write")
	}

	// The dpu only patches: it makes no object, and writes into no successor of the one it means.
	c.must(c.client.K8sV1alpha1().UplinkStates().Delete(t.Context(), state.Name, metav1.DeleteOptions{}))
	if err := c.tryPatch(uplinkstate.ManagerDPU, uplinkstate.ApplyDPU(state, dpu, now)); !kube.IsGone(err) {
		t.Errorf("the dpu's apply on a deleted state: %v", err)
	}
	c.patch(uplinkstate.ManagerHost, uplinkstate.ApplyHost(uplink, "w", host, nil, now))
	if err := c.tryPatch(uplinkstate.ManagerDPU, uplinkstate.ApplyDPU(state, dpu, now)); !kube.IsGone(err) {
		t.Errorf("the dpu's apply on a successor: %v", err)
	}

	if kube.IsGone(c.tryPatch(uplinkstate.ManagerHost, uplinkstate.Patch{Metadata: uplinkstate.PatchMetadata{Name: state.Name}})) {
		t.Error("an apply without kind is taken for one that came too late")
	}

	// An object of that name that is somebody else's is not taken over.
	foreign := uplinkstate.ApplyHost(uplink, "w", host, nil, now)
	foreign.Spec.NodeName = "other"
	if err := c.tryPatch(uplinkstate.ManagerHost, foreign); !apierrors.IsInvalid(err) {
		t.Errorf("changing the identity: %v", err)
	}
}

// The applyconfigurations that are shipped for users of the Go API say the same as the types.
func TestApplyConfigurations(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	dynamic, err := c.Dynamic()
	c.must(err)
	wish := apply.Uplink("blue").WithSpec(apply.UplinkSpec().WithNodeConfigs(
		apply.UplinkNodeConfig().WithType(v1alpha1.OVSBridge).WithNodeSelector(applymeta.LabelSelector()).WithHostInterfaceName("ovsbr1")))
	wish.WithAPIVersion("k8s.ovn.org/v1alpha1").WithKind("Uplink")
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wish)
	c.must(err)
	_, err = dynamic.Resource(v1alpha1.SchemeGroupVersion.WithResource("uplinks")).
		Apply(t.Context(), "blue", &unstructured.Unstructured{Object: object}, metav1.ApplyOptions{FieldManager: "gitops"})
	c.must(err)
}

func (c *cluster) patch(manager string, patch uplinkstate.Patch) *v1alpha1.UplinkState {
	c.t.Helper()
	c.must(c.tryPatch(manager, patch))
	state, err := c.client.K8sV1alpha1().UplinkStates().Get(c.t.Context(), patch.Metadata.Name, metav1.GetOptions{})
	c.must(err)
	return state
}

func (c *cluster) tryPatch(manager string, patch uplinkstate.Patch) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	force := true
	_, err = c.client.K8sV1alpha1().UplinkStates().Patch(c.t.Context(), patch.Metadata.Name, types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: manager, Force: &force})
	return err
}
