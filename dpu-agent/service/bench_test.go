// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	"github.com/ovn-uplink/ovn-uplink/shared/api/discovery"
	"k8s.io/apimachinery/pkg/labels"
)

// crowd is services of 20 a namespace, with a node port, an external IP and a slice of ten endpoints each.
func crowd(n int) world {
	var w world
	for i := range n {
		ns, name := fmt.Sprintf("ns%04d", i/20), fmt.Sprintf("s%02d", i%20)
		if i%20 == 0 {
			w.namespaces = append(w.namespaces, namespaceOf(ns, "blue"))
		}
		w.services = append(w.services, nodePortService(func(s *core.Service) {
			s.Namespace, s.Name = ns, name
			s.Spec.Ports[0].NodePort = int32(30000 + i)
			s.Spec.ExternalIPs = []string{fmt.Sprintf("192.%d.%d.1", i/250, i%250)}
		}))
		w.slices = append(w.slices, mirroredSlice(func(e *discovery.EndpointSlice) {
			e.Namespace, e.Name, e.Labels[discovery.LabelMirroredServiceName] = ns, name+"-1", name
			e.Endpoints = nil
			for j := range 10 {
				e.Endpoints = append(e.Endpoints, discovery.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.%d", i/250, i%250, j+1)}, NodeName: new(here)})
			}
		}))
	}
	return w
}

var everything = Network{Name: network, Namespaces: labels.Everything()}

func BenchmarkBuild20000(b *testing.B) {
	w := crowd(20000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var x *Index
	for b.Loop() {
		x = w.index()
		if all, _ := x.Services(everything); len(all[0].Entries()) != 40000 {
			b.Fatal("entries are missing")
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB-kept")
	runtime.KeepAlive(x)
	runtime.KeepAlive(w)
}

// One slice changes, and the result is looked at by part: what did not change is known by its pointer.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{200, 2000, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := crowd(n)
			x := w.index()
			x.Services(everything)
			e := w.slices[n/2]
			sink := x.EndpointSliceSink()
			for b.Loop() {
				e.Endpoints[0], e.Endpoints[1] = e.Endpoints[1], e.Endpoints[0]
				e.Endpoints[0].Conditions.Ready = new(!deref(e.Endpoints[0].Conditions.Ready, true))
				sink.Put(e)
				x.Services(everything)
			}
		})
	}
}
