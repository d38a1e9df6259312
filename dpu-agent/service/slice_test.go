// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	"github.com/ovn-uplink/ovn-uplink/shared/api/discovery"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// What becomes of the EndpointSlices of a service.
func TestSliceRules(t *testing.T) {
	type object = discovery.EndpointSlice
	state := func(ready, serving, terminating *bool) discovery.EndpointConditions {
		return discovery.EndpointConditions{Ready: ready, Serving: serving, Terminating: terminating}
	}
	yes, no := new(true), new(false)
	conditions := func(first, second discovery.EndpointConditions) func(*object) {
		return func(e *object) { e.Endpoints[0].Conditions, e.Endpoints[1].Conditions = first, second }
	}
	one := func(address string) func(*object) {
		return func(e *object) { e.Endpoints = []discovery.Endpoint{{Addresses: []string{address}}} }
	}
	ordinary := func(e *object) {
		e.Labels, e.Annotations = map[string]string{discovery.LabelServiceName: "web"}, nil
	}
	second := func(change func(*object)) *object {
		e := mirroredSlice(func(e *object) { e.Name = "web-2" }, one("10.200.3.7"))
		change(e)
		return e
	}
	for name, tc := range map[string]struct {
		source Source
		slices []*object
		local  bool
		want   string
	}{
		"two endpoints": {slices: []*object{mirroredSlice()}, want: "10.200.1.5:8080 10.200.2.6:8080"},
		"no slice":      {want: ""},
		"two slices": {slices: []*object{second(func(*object) {}), mirroredSlice()},
			want: "10.200.1.5:8080 10.200.2.6:8080 10.200.3.7:8080"},
		"the same endpoint in two slices": {slices: []*object{mirroredSlice(), second(one("10.200.1.5"))},
			want: "10.200.1.5:8080 10.200.2.6:8080"},
		"a target port of each slice": {slices: []*object{mirroredSlice(), second(func(e *object) { e.Ports[0].Port = new(int32(9090)) })},
			want: "10.200.1.5:8080 10.200.2.6:8080 10.200.3.7:9090"},
		"another network": {slices: []*object{mirroredSlice(func(e *object) { e.Annotations[discovery.MirroredNetwork] = "cluster_udn_red" })}},
		"network as a label": {slices: []*object{mirroredSlice(func(e *object) {
			e.Annotations, e.Labels[discovery.MirroredNetwork] = nil, network
		})}, want: "10.200.1.5:8080 10.200.2.6:8080"},
		"no network":                      {slices: []*object{mirroredSlice(func(e *object) { e.Annotations = nil })}},
		"another service":                 {slices: []*object{mirroredSlice(func(e *object) { e.Labels[discovery.LabelMirroredServiceName] = "db" })}},
		"label that is no service name":   {slices: []*object{mirroredSlice(func(e *object) { e.Labels[discovery.LabelMirroredServiceName] = "a/b" })}},
		"another namespace":               {slices: []*object{mirroredSlice(func(e *object) { e.Namespace = "other" })}},
		"ordinary slice, mirrored source": {slices: []*object{mirroredSlice(ordinary)}},
		"ordinary slice, plain source":    {source: Plain, slices: []*object{mirroredSlice(ordinary)}, want: "10.200.1.5:8080 10.200.2.6:8080"},
		"mirrored slice, plain source":    {source: Plain, slices: []*object{mirroredSlice()}},
		"FQDN":                            {slices: []*object{mirroredSlice(func(e *object) { e.AddressType = "FQDN" })}},
		"IPv6 slice of an IPv4 service":   {slices: []*object{mirroredSlice(func(e *object) { e.AddressType = discovery.IPv6 }, one("2001:db8::5"))}},
		"address of another family":       {slices: []*object{mirroredSlice(one("2001:db8::5"))}},
		"address that is none":            {slices: []*object{mirroredSlice(one("10.200.1.5 10.0.0.1"))}},
		"no address":                      {slices: []*object{mirroredSlice(func(e *object) { e.Endpoints[0].Addresses = nil })}, want: "10.200.2.6:8080"},
		"addresses after the first": {slices: []*object{mirroredSlice(one("10.200.1.5"), func(e *object) {
			e.Endpoints[0].Addresses = append(e.Endpoints[0].Addresses, "10.200.9.9")
		})}, want: "10.200.1.5:8080"},

		"ready unknown is ready": {slices: []*object{mirroredSlice(conditions(state(nil, nil, nil), state(no, no, no)))}, want: "10.200.1.5:8080"},
		"not ready":              {slices: []*object{mirroredSlice(conditions(state(no, no, no), state(no, yes, no)))}},
		"terminating beside ready": {slices: []*object{mirroredSlice(conditions(state(yes, yes, no), state(no, yes, yes)))},
			want: "10.200.1.5:8080"},
		"terminating alone (KEP-1669)": {slices: []*object{mirroredSlice(conditions(state(no, yes, yes), state(no, no, yes)))},
			want: "10.200.1.5:8080"},
		"terminating, serving unknown is serving": {slices: []*object{mirroredSlice(conditions(state(no, nil, yes), state(no, no, no)))},
			want: "10.200.1.5:8080"},
		"ready of another slice beats terminating": {slices: []*object{mirroredSlice(conditions(state(no, yes, yes), state(no, yes, yes))),
			second(func(*object) {})}, want: "10.200.3.7:8080"},

		"local":                         {local: true, slices: []*object{mirroredSlice()}, want: "10.200.1.5:8080"},
		"local, nothing here":           {local: true, slices: []*object{second(func(*object) {})}},
		"local, node unknown":           {local: true, slices: []*object{mirroredSlice(func(e *object) { e.Endpoints[0].NodeName = nil })}},
		"local, terminating here alone": {local: true, slices: []*object{mirroredSlice(conditions(state(no, yes, yes), state(yes, yes, no)))}, want: "10.200.1.5:8080"},

		"port without a number":       {slices: []*object{mirroredSlice(func(e *object) { e.Ports[0].Port = nil })}},
		"port 0":                      {slices: []*object{mirroredSlice(func(e *object) { e.Ports[0].Port = new(int32(0)) })}},
		"port -1":                     {slices: []*object{mirroredSlice(func(e *object) { e.Ports[0].Port = new(int32(-1)) })}},
		"port 65536":                  {slices: []*object{mirroredSlice(func(e *object) { e.Ports[0].Port = new(int32(65536)) })}},
		"no protocol is TCP":          {slices: []*object{mirroredSlice(func(e *object) { e.Ports[0].Protocol = nil })}, want: "10.200.1.5:8080 10.200.2.6:8080"},
		"another protocol":            {slices: []*object{mirroredSlice(func(e *object) { e.Ports[0].Protocol = new("UDP") })}},
		"protocol that there is none": {slices: []*object{mirroredSlice(func(e *object) { e.Ports[0].Protocol = new("tcp") })}},
		"another port name":           {slices: []*object{mirroredSlice(func(e *object) { e.Ports[0].Name = new("https") })}},
		"no port name":                {slices: []*object{mirroredSlice(func(e *object) { e.Ports[0].Name = nil })}},
		"no ports":                    {slices: []*object{mirroredSlice(func(e *object) { e.Ports = nil })}},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{source: tc.source, namespaces: []*metav1.PartialObjectMetadata{namespaceOf("ns", "blue")}, slices: tc.slices}
			w.services = []*core.Service{nodePortService(func(s *core.Service) {
				if tc.local {
					s.Spec.ExternalTrafficPolicy = core.TrafficLocal
				}
			})}
			got := entriesOf(w.index(), blue)
			if len(got) != 1 {
				t.Fatalf("%d entries, want the node port", len(got))
			}
			if backends := strings.Trim(fmt.Sprint(got[0].Backends), "[]"); backends != tc.want {
				t.Errorf("got %q, want %q", backends, tc.want)
			}
		})
	}
}

// Counts are bounded, and which of them are used does not depend on the order of events.
func TestSliceBounds(t *testing.T) {
	w := world{namespaces: []*metav1.PartialObjectMetadata{namespaceOf("ns", "blue")}, services: []*core.Service{nodePortService()}}
	for i := range maxSlices + 10 {
		w.slices = append(w.slices, mirroredSlice(func(e *discovery.EndpointSlice) {
			e.Name = fmt.Sprintf("web-%03d", maxSlices+10-i)
			e.Endpoints = nil
			for j := range 20 {
				e.Endpoints = append(e.Endpoints, discovery.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.1", i, j)}})
			}
		}))
	}
	got := entriesOf(w.index(), blue)
	if len(got) != 1 || len(got[0].Backends) != maxBackends {
		t.Fatalf("%d entries, want one with %d backends", len(got), maxBackends)
	}
	if first := got[0].Backends[0].String(); first != "10.10.0.1:8080" {
		t.Errorf("the first backend is %s, want that of the first slices by name", first)
	}
}

func TestSelector(t *testing.T) {
	headless := map[string]string{discovery.LabelServiceName: "web", discovery.LabelHeadless: ""}
	for name, tc := range map[string]struct {
		source Source
		labels map[string]string
		want   bool
	}{
		"mirrored":           {Mirrored, map[string]string{discovery.LabelMirroredServiceName: "web"}, true},
		"mirrored, ordinary": {Mirrored, map[string]string{discovery.LabelServiceName: "web"}, false},
		"plain":              {Plain, map[string]string{discovery.LabelServiceName: "web"}, true},
		"plain, mirrored":    {Plain, map[string]string{discovery.LabelMirroredServiceName: "web"}, false},
		"headless":           {Plain, headless, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.source.Selector().Matches(labels.Set(tc.labels)); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// Whatever a slice says, what comes out is addresses of the family, ports and nothing else.
func FuzzSlice(f *testing.F) {
	for _, e := range []*discovery.EndpointSlice{mirroredSlice(), mirroredSlice(func(e *discovery.EndpointSlice) {
		e.AddressType, e.Endpoints = discovery.IPv6, []discovery.Endpoint{{Addresses: []string{"fe80::1%eth0"}}, {Addresses: []string{"2001:db8::1"}}}
	}), mirroredSlice(func(e *discovery.EndpointSlice) { e.Namespace = "" })} {
		text, err := json.Marshal(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var e discovery.EndpointSlice
		if json.Unmarshal(text, &e) != nil {
			t.Skip()
		}
		dual := func(s *core.Service) { s.Spec.IPFamilies = []string{"IPv4", "IPv6"} }
		w := world{namespaces: []*metav1.PartialObjectMetadata{namespaceOf("ns", "blue")}, services: []*core.Service{nodePortService(dual)}}
		w.slices = []*discovery.EndpointSlice{&e}
		x := w.index()
		for _, entry := range entriesOf(x, blue) {
			for i, b := range entry.Backends {
				if b.Port() == 0 || !b.Addr().IsGlobalUnicast() || b.Addr().Zone() != "" || b.Addr().Is6() != entry.IPv6 {
					t.Errorf("backend %s", b)
				}
				if i > 0 && b.Compare(entry.Backends[i-1]) <= 0 {
					t.Errorf("backend %s after %s", b, entry.Backends[i-1])
				}
			}
		}
		x.EndpointSliceSink().Remove(&e)
		if len(x.slices) > 0 {
			t.Errorf("left: %v", x.slices)
		}
	})
}
