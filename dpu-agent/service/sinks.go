// SPDX-License-Identifier: Apache-2.0

package service

import (
	"github.com/ovn-uplink/ovn-uplink/shared/api/core"
	"github.com/ovn-uplink/ovn-uplink/shared/api/discovery"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// primaryNetwork is the label, of any value, of a namespace whose pods have a network of their own as the primary one.
const primaryNetwork = "k8s.ovn.org/primary-user-defined-network"

// ServiceSink is for a feed of Services.
func (x *Index) ServiceSink() kube.Sink[*core.Service] {
	return sink[*core.Service]{
		index: x,
		put:   func(s *core.Service, t touched) { x.setService(key(s), parseService(s), t) },
		drop:  func(name string, t touched) { x.setService(name, nil, t) },
		known: func(yield func(string)) {
			for name, r := range x.services {
				if r.spec != nil {
					yield(name)
				}
			}
		},
	}
}

// EndpointSliceSink is for a feed of EndpointSlices that the selector of the Index's source lets through.
func (x *Index) EndpointSliceSink() kube.Sink[*discovery.EndpointSlice] {
	return sink[*discovery.EndpointSlice]{
		index: x,
		put:   func(s *discovery.EndpointSlice, t touched) { x.setSlice(key(s), parseSlice(s, x.source, x.node), t) },
		drop:  func(name string, t touched) { x.setSlice(name, nil, t) },
		known: func(yield func(string)) {
			for name := range x.slices {
				yield(name)
			}
		},
	}
}

// NamespaceSink is for a feed of the metadata of Namespaces.
func (x *Index) NamespaceSink() kube.Sink[*metav1.PartialObjectMetadata] {
	return sink[*metav1.PartialObjectMetadata]{
		index: x,
		put: func(ns *metav1.PartialObjectMetadata, t touched) {
			var set labels.Set
			if _, primary := ns.Labels[primaryNetwork]; primary {
				set = ns.Labels
			}
			x.setLabels(ns.Name, set, t)
		},
		drop: func(name string, t touched) { x.setLabels(name, nil, t) },
		known: func(yield func(string)) {
			for name, ns := range x.namespaces {
				if ns.labels != nil {
					yield(name)
				}
			}
		},
	}
}

// sink passes the objects of one kind to the index.
type sink[T kube.Object] struct {
	index *Index
	put   func(object T, touched touched)
	drop  func(name string, touched touched)
	known func(yield func(name string)) // the names of those that the index has something of
}

func (s sink[T]) Put(object T) { s.index.change(func(t touched) { s.put(object, t) }) }

func (s sink[T]) Remove(object T) { s.index.change(func(t touched) { s.drop(key(object), t) }) }

// Replace also forgets what is not there any more.
func (s sink[T]) Replace(all []T) {
	s.index.change(func(t touched) {
		there := make(map[string]struct{}, len(all))
		for _, object := range all {
			there[key(object)] = struct{}{}
		}
		var gone []string
		s.known(func(name string) {
			if _, ok := there[name]; !ok {
				gone = append(gone, name)
			}
		})
		for _, name := range gone {
			s.drop(name, t)
		}
		for _, object := range all {
			s.put(object, t)
		}
	})
}

// key is namespace/name, or the name of what is in no namespace.
func key(object metav1.Object) string {
	if ns := object.GetNamespace(); ns != "" {
		return ns + "/" + object.GetName()
	}
	return object.GetName()
}
