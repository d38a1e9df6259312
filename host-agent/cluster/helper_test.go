// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	ovnk "github.com/ovn-uplink/ovn-uplink/shared/api/ovnk/v1"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watched is a world that notes what it has looked at again.
type watched struct {
	*world
	again map[string]bool // as "uplink blue"
}

func newWatched(dynamic bool) *watched {
	w := &watched{again: map[string]bool{}}
	note := func(kind string) func(string) { return func(name string) { w.again[kind+" "+name] = true } }
	w.world = newWorld(true, dynamic, listeners{uplink: note("uplink"), network: note("network"), node: note("node")})
	w.live = true
	return w
}

// looked returns what was looked at again since the last call, sorted.
func (w *watched) looked() string {
	all := slices.Sorted(maps.Keys(w.again))
	clear(w.again)
	return strings.Join(all, ", ")
}

func (w *watched) node(name string, labels ...string) {
	nodes{w.world}.Put(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set(labels)}})
}

func (w *watched) state(s *v1alpha1.UplinkState) {
	states{w.world, &uplinkstate.Intruders{}}.Put(s)
}

func set(pairs []string) map[string]string {
	m := map[string]string{}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		m[key] = value
	}
	return m
}

// config selects by labels "key=value".
func config(iface string, labels ...string) v1alpha1.UplinkNodeConfig {
	return v1alpha1.UplinkNodeConfig{Type: v1alpha1.OVSBridge, HostInterfaceName: v1alpha1.InterfaceName(iface),
		NodeSelector: metav1.LabelSelector{MatchLabels: set(labels)}}
}

func uplinkObject(name string, generation int64, configs ...v1alpha1.UplinkNodeConfig) *v1alpha1.Uplink {
	return &v1alpha1.Uplink{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Generation: generation},
		Spec:       v1alpha1.UplinkSpec{NodeConfigs: configs},
	}
}

func terminating(u *v1alpha1.Uplink, at time.Time) *v1alpha1.Uplink {
	u.DeletionTimestamp = &metav1.Time{Time: at}
	return u
}

// stateOption changes a state that is resolved for generation 1 on e0.
type stateOption func(*v1alpha1.UplinkState)

func stateObject(uplink, node string, options ...stateOption) *v1alpha1.UplinkState {
	controller := true
	s := &v1alpha1.UplinkState{
		ObjectMeta: metav1.ObjectMeta{
			Name:            uplinkstate.Name(uplink, node),
			OwnerReferences: []metav1.OwnerReference{{Kind: "Uplink", Name: uplink, UID: types.UID("uid-of-" + uplink), Controller: &controller}},
		},
		Spec:   v1alpha1.UplinkStateSpec{UplinkName: uplink, NodeName: node},
		Status: v1alpha1.UplinkStateStatus{Type: v1alpha1.OVSBridge, HostInterfaceName: "e0"},
	}
	for _, option := range append([]stateOption{host("", 1), dpu("", 1)}, options...) {
		option(s)
	}
	return s
}

// host and dpu set one side's condition; an empty reason is True.
func host(reason string, generation int64) stateOption {
	return with(uplinkstate.HostDataReady, uplinkstate.ReasonHostDataDiscovered, reason, generation)
}

func dpu(reason string, generation int64) stateOption {
	return with(uplinkstate.Resolved, uplinkstate.ReasonResolved, reason, generation)
}

func with(kind, good, reason string, generation int64) stateOption {
	return func(s *v1alpha1.UplinkState) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: good, ObservedGeneration: generation}
		if reason != "" {
			c.Status, c.Reason = metav1.ConditionFalse, reason
		}
		without(kind)(s)
		s.Status.Conditions = append(s.Status.Conditions, c)
	}
}

func without(kind string) stateOption {
	return func(s *v1alpha1.UplinkState) {
		s.Status.Conditions = slices.DeleteFunc(s.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
	}
}

func covers(network string, phase v1alpha1.NetworkPhase, reason string) stateOption {
	return func(s *v1alpha1.UplinkState) {
		s.Status.Networks = append(s.Status.Networks, v1alpha1.NetworkStatus{Name: network, Phase: phase, Reason: reason})
	}
}

func networkObject(name string, uplinks ...string) *ovnk.ClusterUserDefinedNetwork {
	return &ovnk.ClusterUserDefinedNetwork{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec: ovnk.ClusterUserDefinedNetworkSpec{
			NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tenant": name}},
			Uplinks:           uplinks,
			Network:           ovnk.NetworkSpec{Topology: ovnk.Layer3, Layer3: &ovnk.Layer3Config{Role: ovnk.RolePrimary}},
		},
	}
}

// say is a condition as "True Reason: message".
func say(c uplinkstate.Condition) string {
	status := "False"
	if c.Status {
		status = "True"
	}
	return fmt.Sprintf("%s %s: %s", status, c.Reason, c.Message)
}

func expect(t *testing.T, c uplinkstate.Condition, exists bool, want string) {
	t.Helper()
	if got := say(c); !exists || got != want {
		t.Errorf("got  %s (exists: %t)\nwant %s", got, exists, want)
	}
}
