// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A change touches what depends on it, and nothing else.
func TestChangesTouchOnlyWhatDepends(t *testing.T) {
	w := newWatched(false)
	for _, name := range []string{"a", "b"} {
		w.node(name)
	}
	w.setUplink("blue", uplinkObject("blue", 1, config("e0", "uplink=blue")))
	w.setUplink("green", uplinkObject("green", 1, config("e0", "uplink=green")))
	w.setNetwork("red", networkObject("red", "blue"))
	w.setNetwork("white", networkObject("white", "green"))
	w.setNetwork("plain", networkObject("plain"))
	w.looked()
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"a label that selects nothing", func() { w.node("a", "rack=r1") }, ""},
		{"the same again", func() { w.node("a", "rack=r1") }, ""},
		{"a label that selects", func() { w.node("a", "uplink=blue") }, "network red, uplink blue"},
		{"from one Uplink to the other", func() { w.node("a", "uplink=green") }, "network red, network white, uplink blue, uplink green"},
		{"a new node", func() { w.node("c") }, "network red, network white"},
		{"a new node that is selected", func() { w.node("d", "uplink=blue") }, "network red, network white, uplink blue"},
		{"a state", func() { w.state(stateObject("green", "a")) }, "network white, uplink green"},
		{"the same state", func() { w.state(stateObject("green", "a")) }, ""},
		{"its gateway", func() {
			w.state(stateObject("green", "a", covers("white", v1alpha1.NetworkReady, ""), covers("gone", v1alpha1.NetworkReady, "")))
		}, "network white"},
		{"its gateway, of others", func() {
			w.state(stateObject("green", "a", covers("white", v1alpha1.NetworkReady, ""), covers("red", v1alpha1.NetworkReady, "")))
		}, ""},
		{"a state of an unknown node", func() { w.state(stateObject("green", "z")) }, "network white, node z, uplink green"},
		{"a state of an unknown Uplink", func() { w.state(stateObject("black", "a")) }, "uplink black"},
		{"an Uplink's status", func() { w.setUplink("green", uplinkObject("green", 1, config("e0", "uplink=green"))) }, "uplink green"},
		{"an Uplink's spec", func() { w.setUplink("green", uplinkObject("green", 2, config("e1", "uplink=green"))) }, "network white, uplink green"},
		{"an Uplink goes", func() { w.setUplink("green", nil) }, "network white, uplink green"},
		{"a node goes", func() { nodes{w.world}.Remove(metaOf("d", nil)) }, "network red, network white, node d, uplink blue"},
		{"a network goes", func() { w.setNetwork("red", nil) }, "network red, uplink blue"},
	} {
		step.do()
		if got := w.looked(); got != step.want {
			t.Errorf("%s: looked at %q, want %q", step.what, got, step.want)
		}
	}
}

// A watch that has to begin anew brings the whole list: what is missing in it is gone.
func TestReplacedLists(t *testing.T) {
	w := newWatched(true)
	w.node("a")
	w.node("b")
	w.setUplink("blue", uplinkObject("blue", 1, config("e0")))
	w.setNetwork("tenant", networkObject("tenant", "blue"))
	s := states{w.world, &uplinkstate.Intruders{}}
	misnamed := stateObject("blue", "b")
	misnamed.Name = "blue.a"
	s.Put(stateObject("blue", "b"))
	s.Put(misnamed)
	w.looked()
	s.Replace([]*v1alpha1.UplinkState{stateObject("blue", "a")})
	if got := w.looked(); got != "network tenant, uplink blue" || len(w.strangers) != 0 || w.uplinks["blue"].states["b"] != nil {
		t.Errorf("looked at %q, strangers %v", got, w.strangers)
	}
	nodes{w.world}.Replace([]*metav1.PartialObjectMetadata{metaOf("a", nil)})
	if got := w.looked(); got != "network tenant, node b, uplink blue" {
		t.Errorf("looked at %q", got)
	}
	namespaces{w.world}.Replace([]*metav1.PartialObjectMetadata{metaOf("ns", map[string]string{"tenant": "tenant"})})
	pods{w.world}.Replace([]*core.Pod{pod("ns", "p", "a", "Running"), pod("ns", "q", "gone", "Running")})
	w.looked()
	pods{w.world}.Replace([]*core.Pod{pod("ns", "p", "a", "Running")})
	got, exists := w.networkReady("tenant")
	expect(t, got, exists, "False GatewayConfigurationPending: 1 of 1 active nodes are not ready: GatewayConfigurationPending 1 (a)")
	pods{w.world}.Replace(nil)
	got, exists = w.networkReady("tenant")
	expect(t, got, exists, "True UplinksReady: the network is active on no node")
}

func TestActivity(t *testing.T) {
	w := newWatched(true)
	w.node("a")
	w.node("b")
	w.setUplink("blue", uplinkObject("blue", 1, config("e0")))
	w.setNetwork("red", networkObject("red", "blue"))
	w.setNetwork("green", networkObject("green", "blue"))
	p, n := pods{w.world}, namespaces{w.world}
	n.Put(metaOf("red", map[string]string{"tenant": "red"}))
	w.looked()
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"not scheduled", func() { p.Put(pod("red", "p", "", "Pending")) }, ""},
		{"scheduled", func() { p.Put(pod("red", "p", "a", "Pending")) }, "network red"},
		{"runs", func() { p.Put(pod("red", "p", "a", "Running")) }, ""},
		{"a second one beside it", func() { p.Put(pod("red", "q", "a", "Running")) }, ""},
		{"the first ends", func() { p.Put(pod("red", "p", "a", "Succeeded")) }, ""},
		{"the second is deleted", func() { p.Remove(pod("red", "q", "a", "Running")) }, "network red"},
		{"in a namespace of nobody", func() { p.Put(pod("other", "p", "a", "Running")) }, ""},
		{"the namespace gets a tenant", func() { n.Put(metaOf("other", map[string]string{"tenant": "green"})) }, "network green, network red"},
		{"the namespace again", func() { n.Put(metaOf("other", map[string]string{"tenant": "green"})) }, ""},
		{"a pod of the same name elsewhere", func() { p.Put(pod("other", "p", "b", "Running")) }, "network green"},
	} {
		step.do()
		if got := w.looked(); got != step.want {
			t.Errorf("%s: looked at %q, want %q", step.what, got, step.want)
		}
	}
	got, exists := w.networkReady("green")
	expect(t, got, exists, "False UplinkNotResolvedForNode: 1 of 1 active nodes are not ready: UplinkNotResolvedForNode 1 (b)")
}

func metaOf(name string, labels map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func pod(namespace, name, node, phase string) *core.Pod {
	return &core.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       core.PodSpec{NodeName: node},
		Status:     core.PodStatus{Phase: phase},
	}
}
