// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	"github.com/ovn-uplink/ovn-uplink/shared/api/discovery"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// red is another network.
var red = Network{Name: "cluster_udn_red", Namespaces: labels.SelectorFromSet(labels.Set{"tenant": "red"})}

func vip(namespace, name string, created int64, addresses ...string) *core.Service {
	return nodePortService(func(s *core.Service) {
		s.Namespace, s.Name, s.CreationTimestamp = namespace, name, metav1.Unix(created, 0)
		s.Spec.Type, s.Spec.ExternalIPs, s.Spec.Ports[0].NodePort = "ClusterIP", addresses, 0
	})
}

// Who gets an address and port that several services want.
func TestConflicts(t *testing.T) {
	const a = "192.0.2.80"
	for name, tc := range map[string]struct {
		services  []*core.Service
		networks  []Network
		want      []string // network: service
		conflicts []string
	}{
		"older": {[]*core.Service{vip("b1", "x", 7, a), vip("b1", "y", 5, a)}, []Network{blue},
			[]string{"blue: b1/y"}, []string{"service b1/x does not get 192.0.2.80:80/TCP: service b1/y has it"}},
		"as old, by name": {[]*core.Service{vip("b1", "y", 5, a), vip("b1", "x", 5, a)}, []Network{blue},
			[]string{"blue: b1/x"}, []string{"service b1/y does not get 192.0.2.80:80/TCP: service b1/x has it"}},
		"over namespaces and networks of an Uplink": {[]*core.Service{vip("b1", "x", 7, a), vip("r1", "y", 5, a), vip("b2", "z", 9, a)}, []Network{blue, red},
			[]string{"red: r1/y"}, []string{"service b1/x does not get 192.0.2.80:80/TCP: service r1/y has it", "service b2/z does not get 192.0.2.80:80/TCP: service r1/y has it"}},
		"not over Uplinks": {[]*core.Service{vip("b1", "x", 7, a), vip("r1", "y", 5, a)}, []Network{blue},
			[]string{"blue: b1/x"}, nil},
		"not with a namespace without a network": {[]*core.Service{vip("b1", "x", 7, a), vip("default", "y", 5, a)}, []Network{blue, red},
			[]string{"blue: b1/x"}, nil},
		"another port": {[]*core.Service{vip("b1", "x", 7, a), vip("b1", "y", 5, a)}, []Network{blue},
			[]string{"blue: b1/x", "blue: b1/y"}, nil},
		"the rest stays": {[]*core.Service{vip("b1", "x", 7, a, "192.0.2.81"), vip("b1", "y", 5, a)}, []Network{blue},
			[]string{"blue: b1/x", "blue: b1/y"}, []string{"service b1/x does not get 192.0.2.80:80/TCP: service b1/y has it"}},
		"node port": {[]*core.Service{nodePortService(func(s *core.Service) { s.Namespace = "b1" }), nodePortService(func(s *core.Service) { s.Namespace = "b2" })}, []Network{blue},
			[]string{"blue: b1/web"}, []string{"service b2/web does not get node port 30080/TCP: service b1/web has it"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another port" {
				tc.services[1].Spec.Ports[0].Port = 81
			}
			w := world{services: tc.services, namespaces: []*metav1.PartialObjectMetadata{
				namespaceOf("b1", "blue"), namespaceOf("b2", "blue"), namespaceOf("r1", "red"),
				{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"tenant": "blue"}}},
			}}
			all, conflicts := w.index().Services(tc.networks...)
			var got, lost []string
			for i, s := range all {
				for _, e := range s.Entries() {
					got = append(got, strings.TrimPrefix(tc.networks[i].Name, "cluster_udn_")+": "+e.Service)
				}
			}
			for _, c := range conflicts {
				lost = append(lost, c.String())
			}
			if !slices.Equal(got, tc.want) || !slices.Equal(lost, tc.conflicts) {
				t.Errorf("got %q %q", got, lost)
			}
		})
	}
}

// A namespace that two networks select is of the one whose endpoints it has.
func TestNamespaceOfTwoNetworks(t *testing.T) {
	too := Network{Name: red.Name, Namespaces: blue.Namespaces}
	w := world{namespaces: []*metav1.PartialObjectMetadata{namespaceOf("ns", "blue")}, services: []*core.Service{nodePortService()}}
	if all, conflicts := w.index().Services(too, blue); len(all[0]) != 1 || len(all[1]) != 0 || conflicts != nil {
		t.Errorf("without endpoints: %v %v", all, conflicts)
	}
	w.slices = []*discovery.EndpointSlice{mirroredSlice()}
	x := w.index()
	if all, conflicts := x.Services(too, blue); len(all[0]) != 0 || len(all[1]) != 1 || conflicts != nil {
		t.Errorf("with endpoints: %v %v", all, conflicts)
	}
	x.EndpointSliceSink().Remove(w.slices[0])
	if all, conflicts := x.Services(too, blue); len(all[0]) != 1 || len(all[1]) != 0 || conflicts != nil {
		t.Errorf("after the endpoints are gone: %v %v", all, conflicts)
	}
}

// One that is deleted and made again comes after those that waited, also where its deletion was never seen.
func TestConflictMadeAnew(t *testing.T) {
	const a = "192.0.2.80"
	w := world{services: []*core.Service{vip("b1", "x", 5, a), vip("b1", "y", 7, a)}, namespaces: []*metav1.PartialObjectMetadata{namespaceOf("b1", "blue")}}
	x := w.index()
	if got := entriesOf(x, blue); len(got) != 1 || got[0].Service != "b1/x" {
		t.Errorf("at first %s", text(got))
	}
	x.ServiceSink().Replace([]*core.Service{vip("b1", "x", 9, a), vip("b1", "y", 7, a)})
	if got := entriesOf(x, blue); len(got) != 1 || got[0].Service != "b1/y" {
		t.Errorf("then %s", text(got))
	}
}

// Who is told what, step by step.
func TestChanges(t *testing.T) {
	var told []string
	x := NewIndex(here, Mirrored, func(namespaces []string) { told = append(told, strings.Join(namespaces, "+")) })
	services, endpoints, namespaces := x.ServiceSink(), x.EndpointSliceSink(), x.NamespaceSink()
	step := func(what string, do func(), want ...string) {
		t.Helper()
		told = nil
		do()
		if !slices.Equal(told, want) {
			t.Errorf("%s: told %q, want %q", what, told, want)
		}
	}
	step("service of a namespace that is not known", func() { services.Put(nodePortService()) })
	step("its endpoints", func() { endpoints.Put(mirroredSlice()) })
	step("namespace without a network", func() {
		namespaces.Put(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	})
	step("namespace", func() { namespaces.Put(namespaceOf("ns", "blue")) }, "ns")
	before, _ := x.Services(blue)
	step("the same again", func() {
		namespaces.Put(namespaceOf("ns", "blue"))
		services.Replace([]*core.Service{nodePortService(func(s *core.Service) { s.ResourceVersion = "7" })})
		endpoints.Put(mirroredSlice())
	})
	step("endpoints of no service", func() {
		endpoints.Put(mirroredSlice(func(e *discovery.EndpointSlice) { e.Name, e.Labels[discovery.LabelMirroredServiceName] = "db-1", "db" }))
	})
	if after, _ := x.Services(blue); len(before[0]) != 1 || len(after[0]) != 1 || before[0][0] != after[0][0] {
		t.Error("made anew though nothing changed")
	}
	step("endpoints change", func() {
		endpoints.Put(mirroredSlice(func(e *discovery.EndpointSlice) { e.Endpoints = e.Endpoints[:1] }))
	}, "ns")
	if after, _ := x.Services(blue); before[0][0] == after[0][0] || len(after[0].Entries()[0].Backends) != 1 || len(before[0].Entries()[0].Backends) != 2 {
		t.Error("not made anew, or what was handed out changed")
	}
	step("endpoints move to another service", func() {
		endpoints.Put(mirroredSlice(func(e *discovery.EndpointSlice) { e.Labels[discovery.LabelMirroredServiceName] = "db" }))
	}, "ns")
	step("a rival in another namespace", func() {
		namespaces.Put(namespaceOf("other", "red"))
		services.Put(nodePortService(func(s *core.Service) { s.Namespace = "other" }))
	}, "other", "ns+other")
	step("the rival goes", func() { services.Replace([]*core.Service{nodePortService()}) }, "ns+other")
	step("service that is of no interest any more", func() { services.Put(nodePortService(func(s *core.Service) { s.Spec.Type = "" })) }, "ns")
	step("all goes", func() {
		services.Remove(nodePortService())
		endpoints.Replace(nil)
		namespaces.Remove(namespaceOf("ns", "blue"))
		namespaces.Remove(namespaceOf("other", "red"))
	}, "ns", "other")
	if n := len(x.namespaces) + len(x.services) + len(x.slices) + len(x.claims.sole) + len(x.claims.contested); n > 0 {
		t.Errorf("left: %+v", x)
	}
}

// randomWorld has few names and addresses, so that much of it meets.
func randomWorld(r *rand.Rand) world {
	var w world
	for i := range 4 {
		if r.IntN(4) > 0 {
			w.namespaces = append(w.namespaces, randomNamespace(r, i))
		}
		for j := range 4 {
			if r.IntN(3) > 0 {
				w.services = append(w.services, randomService(r, i, j))
			}
			for k := range 3 {
				if r.IntN(3) > 0 {
					w.slices = append(w.slices, randomSlice(r, i, j, k))
				}
			}
		}
	}
	return w
}

func randomNamespace(r *rand.Rand, i int) *metav1.PartialObjectMetadata {
	ns := namespaceOf(fmt.Sprintf("ns%d", i), []string{"blue", "red"}[r.IntN(2)])
	if r.IntN(5) == 0 {
		delete(ns.Labels, primaryNetwork)
	}
	return ns
}

func randomService(r *rand.Rand, i, j int) *core.Service {
	s := vip(fmt.Sprintf("ns%d", i), fmt.Sprintf("s%d", j), int64(r.IntN(3)))
	for range r.IntN(3) {
		s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, fmt.Sprintf("192.0.2.%d", 1+r.IntN(4)))
	}
	if r.IntN(2) == 0 {
		s.Spec.Type, s.Spec.Ports[0].NodePort = core.ServiceLoadBalancer, int32(30000+r.IntN(10))
		s.Spec.HealthCheckNodePort = int32(r.IntN(2) * 31000)
	}
	if r.IntN(3) == 0 {
		s.Spec.ExternalTrafficPolicy = core.TrafficLocal
	}
	return s
}

func randomSlice(r *rand.Rand, i, j, k int) *discovery.EndpointSlice {
	return mirroredSlice(func(e *discovery.EndpointSlice) {
		e.Namespace, e.Name = fmt.Sprintf("ns%d", i), fmt.Sprintf("s%d-%d", j, k)
		e.Labels[discovery.LabelMirroredServiceName] = fmt.Sprintf("s%d", (j+r.IntN(5)/4)%4)
		e.Annotations[discovery.MirroredNetwork] = []string{blue.Name, red.Name}[r.IntN(2)]
		e.Endpoints[0].Addresses[0] = fmt.Sprintf("10.200.1.%d", 1+r.IntN(3))
		e.Endpoints[1].Conditions.Ready = new(r.IntN(2) == 0)
	})
}

// look is all that there is to see, by several groups of networks.
func look(x *Index) any {
	type seen struct {
		Services  []Services
		Conflicts []Conflict
	}
	var all []seen
	for _, networks := range [][]Network{{blue, red}, {blue}, {red}, {{Name: red.Name, Namespaces: labels.Everything()}, blue}} {
		s, c := x.Services(networks...)
		all = append(all, seen{s, c})
	}
	return all
}

// Whatever happens in whatever order, the result is that of starting with what there is in the end.
func TestIncrementalIsFromScratch(t *testing.T) {
	compare := cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{}), cmpopts.EquateEmpty()}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		end := randomWorld(r)
		x := NewIndex(here, Mirrored, nil)
		for range r.IntN(30) {
			i, j, k := r.IntN(4), r.IntN(4), r.IntN(3)
			switch r.IntN(8) {
			case 0:
				x.NamespaceSink().Put(randomNamespace(r, i))
			case 1:
				x.NamespaceSink().Remove(randomNamespace(r, i))
			case 2, 3:
				x.ServiceSink().Put(randomService(r, i, j))
			case 4:
				x.ServiceSink().Remove(randomService(r, i, j))
			case 5:
				x.EndpointSliceSink().Put(randomSlice(r, i, j, k))
			case 6:
				x.EndpointSliceSink().Remove(randomSlice(r, i, j, k))
			case 7:
				look(x)
			}
		}
		steps := converge(x, end)
		r.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		for _, step := range steps {
			step()
			if r.IntN(4) == 0 {
				look(x)
			}
		}
		if diff := cmp.Diff(look(end.index()), look(x), compare); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

// converge is what leads to a world from whatever there is: one list anew, or one object after the other.
func converge(x *Index, w world) []func() {
	steps := []func(){func() { x.NamespaceSink().Replace(w.namespaces) }}
	return append(append(steps, oneByOne(x.ServiceSink(), w.services)...), oneByOne(x.EndpointSliceSink(), w.slices)...)
}

// oneByOne replaces by the first half and puts the second.
func oneByOne[T kube.Object](sink kube.Sink[T], all []T) []func() {
	return []func(){func() {
		sink.Replace(all[:len(all)/2])
		for _, object := range all[len(all)/2:] {
			sink.Put(object)
		}
	}}
}

// Three that feed and two that read at the same time, for the race detector; then it is still as from scratch.
func TestRace(t *testing.T) {
	var running sync.WaitGroup
	x := NewIndex(here, Mirrored, func([]string) {})
	for seed := range uint64(3) {
		running.Go(func() {
			r := rand.New(rand.NewPCG(seed, 5))
			for range 60 {
				w := randomWorld(r)
				x.NamespaceSink().Replace(w.namespaces)
				x.ServiceSink().Replace(w.services)
				for _, e := range w.slices {
					x.EndpointSliceSink().Put(e)
				}
			}
		})
	}
	for range 2 {
		running.Go(func() {
			for range 60 {
				all, conflicts := x.Services(blue, red)
				for _, s := range all {
					_ = text(s.Entries())
				}
				_ = fmt.Sprint(conflicts)
			}
		})
	}
	running.Wait()
	w := world{namespaces: []*metav1.PartialObjectMetadata{namespaceOf("ns", "blue")}, services: []*core.Service{nodePortService()}}
	x.NamespaceSink().Replace(w.namespaces)
	x.ServiceSink().Replace(w.services)
	x.EndpointSliceSink().Replace(nil)
	if got, want := text(entriesOf(x, blue)), text(entriesOf(w.index(), blue)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
