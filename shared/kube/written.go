// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// CatchUp is how long an own write is preferred to a watch that has not brought it, and a deletion is remembered that
// the watch may have brought before the answer to the write. After it the watch is believed alone: the object may have
// been deleted in between, unseen. Whoever writes looks again after it.
const CatchUp = 5 * time.Second

// written remembers own writes until the watch has caught up.
type written[T Object] struct {
	mu      sync.Mutex
	objects map[string]ownWrite[T]
	gone    map[string]deletion
}

// deletion is the version at which an object was deleted, and when the watch said so.
type deletion struct {
	version string
	at      time.Time
}

type ownWrite[T Object] struct {
	object T
	at     time.Time
}

func (w *written[T]) put(object T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d, known := w.gone[object.GetName()]; known && time.Since(d.at) <= CatchUp && !after(object.GetResourceVersion(), d.version) {
		return // the watch was faster than the answer
	}
	if w.objects == nil {
		w.objects = map[string]ownWrite[T]{}
	}
	w.objects[object.GetName()] = ownWrite[T]{object, time.Now()}
}

func (w *written[T]) get(name string) (object T, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own, ok := w.objects[name]
	if ok && time.Since(own.at) > CatchUp {
		delete(w.objects, name)
		return object, false
	}
	return own.object, ok
}

// forget drops an own write that is older than the deletion the watch reports with that version, also one whose answer
// has yet to come.
func (w *written[T]) forget(name, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone == nil {
		w.gone = map[string]deletion{}
	}
	for other, d := range w.gone {
		if time.Since(d.at) > CatchUp {
			delete(w.gone, other)
		}
	}
	w.gone[name] = deletion{version, time.Now()}
	if own, ok := w.objects[name]; ok && !after(own.object.GetResourceVersion(), version) {
		delete(w.objects, name)
	}
}

// newer tells whether a is a later version than b.
func newer[T Object](a, b T) bool { return after(a.GetResourceVersion(), b.GetResourceVersion()) }

// after tells whether a is a later version than b. Versions that cannot be compared count as not later.
func after(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
