// SPDX-License-Identifier: Apache-2.0

package uplinkstate

import (
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIntruders(t *testing.T) {
	state := func(name string, managers ...string) *v1alpha1.UplinkState {
		s := &v1alpha1.UplinkState{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, m := range managers {
			s.ManagedFields = append(s.ManagedFields, metav1.ManagedFieldsEntry{Manager: m})
		}
		return s
	}
	for manager, foreign := range map[string]bool{
		ManagerHost: false, ManagerDPU: false, ManagerDPUGateway: false, ManagerCluster: false, "kubectl-label": false,
		"ovnkube-node-uplink-controller": true, "ovnkube-node-uplink-controller-dpu": true, "ovnkube-node-uplink-controller-dpu-host": true,
		"ovnkube-node-uplink-gateway-controller": true, "ovnkube-node-uplink-host-gateway-controller": true,
	} {
		if got := ForeignManager(state("s", ManagerHost, manager)); (got != "") != foreign {
			t.Errorf("%s: foreign is %q", manager, got)
		}
	}

	var i Intruders
	i.See(state("a", ManagerHost))
	if err := i.Ready(); err != nil {
		t.Error(err)
	}
	i.See(state("c", "ovnkube-node-uplink-controller"))
	i.See(state("b", ManagerHost, "ovnkube-node-uplink-controller-dpu"))
	want := "another implementation of this API writes UplinkStates (b: field manager ovnkube-node-uplink-controller-dpu, 2 in all): " +
		"disable one of the two (OVN-Kubernetes: --enable-uplink=false) and delete its UplinkStates"
	if err := i.Ready(); err == nil || err.Error() != want {
		t.Errorf("says %v", err)
	}
	i.See(state("b", ManagerHost))
	i.Forget("c")
	if err := i.Ready(); err != nil {
		t.Error(err)
	}
}
