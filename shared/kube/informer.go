// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Informer keeps the objects of one kind, less what no reader uses, and tells when one changes.
type Informer[T Object] struct {
	shared  cache.SharedIndexInformer
	probe   func(context.Context) error
	what    string
	contact *contact
	guard   Guard[T]
	absence *absence // nil for a kind that there must be
	told    []cache.ResourceEventHandlerRegistration // what OnChange registered

	written written[T]
}

// Guard looks at objects whole, before what no reader uses is dropped.
type Guard[T Object] interface {
	// See is told an object that is new or changed, and must not keep it.
	See(object T)
	// Forget is told the name of an object that is gone.
	Forget(name string)
}

// NewInformer watches the objects that the field selector lets through; nil selects all.
func NewInformer[T Object](r Resource[T], selector fields.Selector) *Informer[T] {
	if selector == nil {
		selector = fields.Everything()
	}
	return informer(r.listWatch(selector), r.empty(), r.Probe, r.plural)
}

// NewNodeInformer watches the metadata of one Node: its labels are all that the agents read of it.
func NewNodeInformer(config *rest.Config, node string) (*Informer[*metav1.PartialObjectMetadata], error) {
	nodes, err := NewMetadata(config, "nodes")
	if err != nil {
		return nil, err
	}
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, node)
	probe := func(ctx context.Context) error { return nodes.probe(ctx, only) }
	return informer(nodes.listWatch(only), &metav1.PartialObjectMetadata{}, probe, nodes.plural), nil
}

func informer[T Object](lw cache.ListerWatcher, example T, probe func(context.Context) error, what string) *Informer[T] {
	contact := &contact{what: what}
	i := &Informer[T]{
		shared:  cache.NewSharedIndexInformer(contact.through(lw), example, 0, cache.Indexers{}),
		probe:   probe,
		what:    what,
		contact: contact,
	}
	// Both can only fail on an informer that was started.
	_ = i.shared.SetTransform(i.slim)
	_ = i.shared.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		slog.Debug("watch interrupted", "resource", what, "error", err)
	})
	return i
}

// slim drops what no reader of this project looks at.
func (i *Informer[T]) slim(object any) (any, error) {
	if o, ok := object.(T); ok {
		if i.guard != nil {
			i.guard.See(o)
		}
		o.SetManagedFields(nil)
	}
	return object, nil
}

// SetGuard has a Guard look at every object. Call it before OnChange and Run.
func (i *Informer[T]) SetGuard(g Guard[T]) { i.guard = g }

// SetOptional has a kind whose CRD is not installed count as one without objects. It is looked for all the same. Call it
// before Run.
func (i *Informer[T]) SetOptional() { i.absence = &absence{} }

// OnChange calls f with every object that is added, changed or removed (then as it last was). Register before
// Run.
func (i *Informer[T]) OnChange(f func(object T)) {
	call := func(object any) {
		if o, ok := object.(T); ok {
			f(o)
		}
	}
	// It can only fail on an informer that was stopped.
	registration, err := i.shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    call,
		UpdateFunc: func(_, object any) { call(object) },
		DeleteFunc: func(object any) {
			if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = gone.Obj
			}
			if o, ok := object.(T); ok {
				i.written.forget(o.GetName(), o.GetResourceVersion())
				if i.guard != nil {
					i.guard.Forget(o.GetName())
				}
				f(o)
			}
		},
	})
	if err == nil {
		i.told = append(i.told, registration)
	}
}

// Run watches until the context ends. It first waits until the kind can be listed at all.
func (i *Informer[T]) Run(ctx context.Context) {
	if waitFor(ctx, i.what, i.absence.unless(i.what, i.probe)) != nil {
		return
	}
	i.shared.RunWithContext(ctx)
}

// Ready is nil once the first complete list is in the cache and everybody was told of all of it, while the API
// server is in sight.
func (i *Informer[T]) Ready() error {
	if i.absence.is() {
		return nil
	}
	behind := func(r cache.ResourceEventHandlerRegistration) bool { return !r.HasSynced() }
	if !i.shared.HasSynced() || slices.ContainsFunc(i.told, behind) {
		return errors.New("waiting for the list of " + i.what)
	}
	return i.contact.ready()
}

// Get returns the newest of what the watch brought and what Wrote was told; the caller must not change it.
func (i *Informer[T]) Get(name string) (object T, ok bool) {
	found, exists, err := i.shared.GetStore().GetByKey(name)
	if err == nil && exists {
		object, ok = found.(T)
	}
	if own, known := i.written.get(name); known && (!ok || newer(own, object)) {
		return own, true
	}
	return object, ok
}

// Wrote tells the cache of an object that the API server returned for a write of the caller's, so that the
// next Get sees it before the watch brings it and nothing is written twice.
func (i *Informer[T]) Wrote(object T) { i.written.put(object) }

// List returns all cached objects in no order; the caller must not change them.
func (i *Informer[T]) List() []T {
	items := i.shared.GetStore().List()
	objects := make([]T, 0, len(items))
	for _, item := range items {
		if object, ok := item.(T); ok {
			objects = append(objects, object)
		}
	}
	return objects
}
