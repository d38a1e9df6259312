// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// bucket is a Sink that keeps versions by name.
type bucket struct {
	mu   sync.Mutex
	kept map[string]string
}

func (b *bucket) Replace(all []*v1alpha1.UplinkState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = map[string]string{}
	for _, s := range all {
		b.kept[s.Name] = s.ResourceVersion
	}
}

func (b *bucket) Put(s *v1alpha1.UplinkState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept[s.Name] = s.ResourceVersion
}

func (b *bucket) Remove(s *v1alpha1.UplinkState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.kept, s.Name)
}

func (b *bucket) content() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(b.kept)) {
		all = append(all, name+":"+b.kept[name])
	}
	return strings.Join(all, " ")
}

func TestFeed(t *testing.T) {
	named := func(name, version string) *v1alpha1.UplinkState {
		return &v1alpha1.UplinkState{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	events := watch.NewFake()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &v1alpha1.UplinkStateList{ListMeta: metav1.ListMeta{ResourceVersion: "2"}, Items: []v1alpha1.UplinkState{*named("a", "1"), *named("b", "2")}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, errors.New("an API server that cannot stream lists")
			}
			return events, nil
		},
	}
	sink := &bucket{}
	f := feed(lw, &v1alpha1.UplinkState{}, func(context.Context) error { return nil }, "uplinkstates", sink)
	if f.Ready() == nil {
		t.Error("ready before the list")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Run(ctx)
	}()
	defer func() { cancel(); <-done }()
	await := func(want string) {
		t.Helper()
		for end := time.Now().Add(5 * time.Second); sink.content() != want || f.Ready() != nil; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("keeps %q, want %q; %v", sink.content(), want, f.Ready())
			}
		}
	}
	await("a:1 b:2")
	events.Add(named("c", "3"))
	events.Modify(named("a", "4"))
	events.Delete(named("b", "5"))
	await("a:4 c:3")
}

// What says who wrote an object is needed, which fields they wrote is not; of annotations, those that the kind's
// readers named.
func TestFeedTransformer(t *testing.T) {
	s := state("1")
	s.Annotations = map[string]string{"a": "b", "needed": "c"}
	s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: &metav1.FieldsV1{}}}
	out, err := (&store[*v1alpha1.UplinkState]{annotations: []string{"needed", "absent"}}).Transformer()(s)
	if err != nil || out != any(s) || s.ManagedFields[0].Manager != "m" || s.ManagedFields[0].FieldsV1 != nil {
		t.Errorf("%+v %v", out, err)
	}
	if !maps.Equal(s.Annotations, map[string]string{"needed": "c"}) {
		t.Errorf("annotations %v", s.Annotations)
	}
	if out, err := (&store[*v1alpha1.UplinkState]{}).Transformer()(s); err != nil || out != any(s) || s.Annotations != nil {
		t.Errorf("annotations %v of which none is needed, %v", s.Annotations, err)
	}
}
