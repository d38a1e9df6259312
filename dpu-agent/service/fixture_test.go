// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	"github.com/ovn-uplink/ovn-uplink/shared/api/discovery"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	here    = "node-a"
	network = "cluster_udn_blue"
)

// blue is the network of the tests.
var blue = Network{Name: network, Namespaces: labels.SelectorFromSet(labels.Set{"tenant": "blue"})}

func namespaceOf(name, tenant string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"tenant": tenant, primaryNetwork: ""},
	}}
}

// nodePortService is a service "ns/web" with port 80 at node port 30080, less what a test changes.
func nodePortService(changes ...func(*core.Service)) *core.Service {
	s := &core.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", CreationTimestamp: metav1.Unix(1000, 0)},
		Spec: core.ServiceSpec{
			Type: core.ServiceNodePort, ClusterIP: "10.96.0.10", IPFamilies: []string{"IPv4"},
			Ports: []core.ServicePort{{Name: "http", Protocol: "TCP", Port: 80, NodePort: 30080}},
		},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

// mirroredSlice is a slice of ns/web with two ready pods, the first of them on this node.
func mirroredSlice(changes ...func(*discovery.EndpointSlice)) *discovery.EndpointSlice {
	e := &discovery.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web-1",
			Labels:      map[string]string{discovery.LabelMirroredServiceName: "web"},
			Annotations: map[string]string{discovery.MirroredNetwork: network},
		},
		AddressType: discovery.IPv4,
		Ports:       []discovery.EndpointPort{{Name: new("http"), Protocol: new("TCP"), Port: new(int32(8080))}},
		Endpoints: []discovery.Endpoint{
			{Addresses: []string{"10.200.1.5"}, NodeName: new(here)},
			{Addresses: []string{"10.200.2.6"}, NodeName: new("node-b")},
		},
	}
	for _, change := range changes {
		change(e)
	}
	return e
}

// text is entries in a form to compare: one line each.
func text(entries []Entry) string {
	var out []string
	for _, e := range entries {
		at := fmt.Sprintf("node4:%d", e.Port)
		switch {
		case e.Address.IsValid():
			at = fmt.Sprintf("%s#%d", e.Address, e.Port)
		case e.IPv6:
			at = fmt.Sprintf("node6:%d", e.Port)
		}
		line := fmt.Sprintf("%s %s %s ->", e.Service, e.Protocol, at)
		for _, b := range e.Backends {
			line += " " + b.String()
		}
		if e.Affinity > 0 {
			line += " affinity " + e.Affinity.String()
		}
		if e.Local {
			line += " local"
		}
		if e.Sources != nil {
			line += fmt.Sprintf(" from %v", e.Sources)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// world is objects that an index is made of.
type world struct {
	source     Source
	namespaces []*metav1.PartialObjectMetadata
	services   []*core.Service
	slices     []*discovery.EndpointSlice
}

func (w world) index() *Index {
	x := NewIndex(here, w.source, nil)
	x.ServiceSink().Replace(w.services)
	x.EndpointSliceSink().Replace(w.slices)
	x.NamespaceSink().Replace(w.namespaces)
	return x
}

// entriesOf is what one network has.
func entriesOf(x *Index, n Network) []Entry {
	all, _ := x.Services(n)
	return all[0].Entries()
}

func lines(all ...string) string { return strings.Join(all, "\n") }

func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 5 s: %s", what)
		}
	}
}
