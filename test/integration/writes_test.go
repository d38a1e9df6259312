// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// recorder counts every write to UplinkStates, from a watch: an API server turns no write into no event.
type recorder struct {
	mu       sync.Mutex
	versions []*v1alpha1.UplinkState
}

// record watches all UplinkStates until the test ends.
func (c *cluster) record() *recorder {
	c.t.Helper()
	list, err := c.client.K8sV1alpha1().UplinkStates().List(c.t.Context(), metav1.ListOptions{})
	c.must(err)
	w, err := c.client.K8sV1alpha1().UplinkStates().Watch(c.t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	c.must(err)
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range w.ResultChan() {
			if s, ok := e.Object.(*v1alpha1.UplinkState); ok && e.Type != watch.Bookmark {
				r.mu.Lock()
				r.versions = append(r.versions, s)
				r.mu.Unlock()
			}
		}
	}()
	c.t.Cleanup(func() {
		w.Stop()
		<-done
	})
	return r
}

// count is how many writes there were.
func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.versions)
}

// since lists the writes after the first n.
func (r *recorder) since(n int) []*v1alpha1.UplinkState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*v1alpha1.UplinkState(nil), r.versions[n:]...)
}

// quiet waits until nothing was written for d; it fails when that does not come about in time.
func (c *cluster) quiet(r *recorder, d time.Duration) {
	c.t.Helper()
	last, since := r.count(), time.Now()
	c.must(lab.Eventually(c.t.Context(), d+20*time.Second, func(context.Context) error {
		if n := r.count(); n != last {
			last, since = n, time.Now()
		}
		if still := time.Since(since); still < d {
			return fmt.Errorf("last write %s ago, number %d", still.Round(time.Millisecond), last)
		}
		return nil
	}))
}

// atRest asserts that nothing at all is written for ten seconds.
func (c *cluster) atRest(r *recorder) {
	c.t.Helper()
	before := r.count()
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.t.Context().Done():
	}
	if n := r.count() - before; n != 0 {
		for _, s := range r.since(before) {
			c.t.Logf("written at rest: %s %+v", s.Name, s.Status)
		}
		c.t.Errorf("%d writes in 10 s at rest", n)
	}
}

// exactly asserts how many writes a change of the world caused, once they have come to rest.
func (c *cluster) exactly(r *recorder, before, want int, what string) {
	c.t.Helper()
	c.quiet(r, 1500*time.Millisecond)
	if got := r.count() - before; got != want {
		for _, s := range r.since(before) {
			c.t.Logf("written: %s %+v", s.Name, s.Status)
		}
		c.t.Errorf("%s: %d writes, want %d", what, got, want)
	}
}
