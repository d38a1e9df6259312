// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Sink keeps of the objects of one kind what its reader needs. Its methods are called one at a time.
type Sink[T Object] interface {
	// Replace is told the whole list: first of all, and after a watch that could not be resumed.
	Replace(all []T)
	// Put is told an object that is new or changed.
	Put(object T)
	// Remove is told an object that is gone, as it last was.
	Remove(object T)
}

// Feed watches the objects of one kind and keeps none of them itself. Where a cluster has very many of a kind, a
// Sink that keeps only what is needed weighs a fraction of an Informer.
type Feed[T Object] struct {
	reflector *cache.Reflector
	probe     func(context.Context) error
	what      string
	synced    *atomic.Bool
	contact   *contact
	absence   *absence // nil for a kind that there must be
}

// NewFeed feeds the objects that the field selector lets through; nil selects all.
func NewFeed[T Object](r Resource[T], selector fields.Selector, sink Sink[T]) *Feed[T] {
	if selector == nil {
		selector = fields.Everything()
	}
	return feed(r.listWatch(selector), r.empty(), r.Probe, r.plural, sink, r.annotations...)
}

// NewMetadataFeed feeds all objects of a kind, less everything but their metadata. Of annotations it feeds those that
// are named. A kind outside of the core group may be missing.
func NewMetadataFeed(m Metadata, sink Sink[*metav1.PartialObjectMetadata], annotations ...string) *Feed[*metav1.PartialObjectMetadata] {
	all := fields.Everything()
	probe := func(ctx context.Context) error { return m.probe(ctx, all) }
	f := feed(m.listWatch(all), &metav1.PartialObjectMetadata{}, probe, m.plural, sink, annotations...)
	if m.optional {
		f.absence = &absence{}
	}
	return f
}

func feed[T Object](lw cache.ListerWatcher, example T, probe func(context.Context) error, what string, sink Sink[T], annotations ...string) *Feed[T] {
	synced := &atomic.Bool{}
	contact := &contact{what: what}
	return &Feed[T]{
		contact:   contact,
		reflector: cache.NewNamedReflector(what, contact.through(lw), example, &store[T]{sink, synced, annotations}, 0),
		probe:     probe,
		what:      what,
		synced:    synced,
	}
}

// Run watches until the context ends. It first waits until the kind can be listed at all.
func (f *Feed[T]) Run(ctx context.Context) {
	if waitFor(ctx, f.what, f.absence.unless(f.what, f.probe)) != nil {
		return
	}
	f.reflector.RunWithContext(klog.NewContext(ctx, logr.FromSlogHandler(slog.Default().Handler())))
}

// Ready is nil once the Sink was told the first complete list, while the API server is in sight.
func (f *Feed[T]) Ready() error {
	if f.absence.is() {
		return nil
	}
	if !f.synced.Load() {
		return errors.New("waiting for the list of " + f.what)
	}
	return f.contact.ready()
}

// store is what a reflector writes into; it passes everything on.
type store[T Object] struct {
	sink        Sink[T]
	synced      *atomic.Bool
	annotations []string // the only ones that are kept
}

var _ cache.TransformingStore = &store[*metav1.PartialObjectMetadata]{}

// Transformer has the reflector drop most of each object while a list is still coming in: which fields each manager
// owns is often the larger part of it.
func (s *store[T]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if o, ok := object.(metav1.Object); ok {
			managers := o.GetManagedFields()
			for i := range managers {
				managers[i].FieldsV1 = nil
			}
			o.SetAnnotations(only(o.GetAnnotations(), s.annotations))
		}
		return object, nil
	}
}

// only is what there is of some annotations; nil if nothing.
func only(annotations map[string]string, keys []string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		if value, ok := annotations[key]; ok {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

func (s *store[T]) Add(object any) error    { return pass(object, s.sink.Put) }
func (s *store[T]) Update(object any) error { return pass(object, s.sink.Put) }
func (s *store[T]) Delete(object any) error { return pass(object, s.sink.Remove) }
func (s *store[T]) Resync() error           { return nil }

func (s *store[T]) Replace(list []any, _ string) error {
	all := make([]T, 0, len(list))
	for _, object := range list {
		if o, ok := object.(T); ok {
			all = append(all, o)
		}
	}
	s.sink.Replace(all)
	s.synced.Store(true)
	return nil
}

func pass[T Object](object any, to func(T)) error {
	o, ok := object.(T)
	if !ok {
		return fmt.Errorf("unexpected %T", object)
	}
	to(o)
	return nil
}
