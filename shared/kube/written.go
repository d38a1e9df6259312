// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// CatchUp is how long an own write is preferred to a watch that has not brought it. After it the watch is
// believed alone: the object may have been deleted in between, unseen. Whoever writes looks again after it.
const CatchUp = 5 * time.Second

// written remembers own writes until the watch has caught up.
type written[T Object] struct {
	mu      sync.Mutex
	objects map[string]ownWrite[T]
}

type ownWrite[T Object] struct {
	object T
	at     time.Time
}

func (w *written[T]) put(object T) {
	w.mu.Lock()
	defer w.mu.Unlock()
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

// forget drops an own write that is older than the deletion the watch reports with that version.
func (w *written[T]) forget(name, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own, ok := w.objects[name]
	if !ok {
		return
	}
	if order, err := resourceversion.CompareResourceVersion(own.object.GetResourceVersion(), version); err != nil || order <= 0 {
		delete(w.objects, name)
	}
}

// newer tells whether a is a later version than b. Versions that cannot be compared count as not newer.
func newer[T Object](a, b T) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
