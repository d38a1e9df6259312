// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is an API server with one Lease.
type shelf struct {
	mu      sync.Mutex
	lease   *Lease
	version int
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (s *shelf) put(l *Lease) *Lease {
	s.version++
	stored := *l
	stored.ResourceVersion = strconv.Itoa(s.version)
	s.lease = &stored
	answer := stored
	return &answer
}

func (s *shelf) get() (*Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return nil, apierrors.NewNotFound(leases, "x")
	}
	answer := *s.lease
	return &answer, nil
}

func (s *shelf) create(l *Lease) (*Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease != nil {
		return nil, apierrors.NewAlreadyExists(leases, "x")
	}
	return s.put(l), nil
}

func (s *shelf) update(l *Lease) (*Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return nil, apierrors.NewNotFound(leases, "x")
	}
	if s.lease.ResourceVersion != l.ResourceVersion {
		return nil, apierrors.NewConflict(leases, "x", errors.New("changed"))
	}
	return s.put(l), nil
}

// link is one candidate's way to the shelf; it can be cut, or hang.
type link struct {
	shelf *shelf
	cut   atomic.Bool
	hang  atomic.Bool
}

func (k *link) pass(ctx context.Context) error {
	if k.hang.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if k.cut.Load() {
		return errors.New("connection refused")
	}
	return ctx.Err()
}

func (k *link) get(ctx context.Context) (*Lease, error) {
	if err := k.pass(ctx); err != nil {
		return nil, err
	}
	return k.shelf.get()
}

func (k *link) create(ctx context.Context, l *Lease) (*Lease, error) {
	if err := k.pass(ctx); err != nil {
		return nil, err
	}
	return k.shelf.create(l)
}

func (k *link) update(ctx context.Context, l *Lease) (*Lease, error) {
	if err := k.pass(ctx); err != nil {
		return nil, err
	}
	return k.shelf.update(l)
}

// candidate is a process that takes part.
type candidate struct {
	*link
	elector *Elector
	stop    func()
	terms   atomic.Int32
}

// race watches that there are never two leaders.
type race struct {
	t       *testing.T
	shelf   shelf
	leading atomic.Int32
}

func (r *race) join(name string) *candidate {
	c := &candidate{link: &link{shelf: &r.shelf}}
	c.elector = newElector(c.link, Config{Namespace: "n", Name: "x", Identity: name,
		Duration: time.Second, RenewDeadline: 600 * time.Millisecond, Retry: 50 * time.Millisecond})
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.elector.Run(ctx, func(ctx context.Context) {
			if r.leading.Add(1) > 1 {
				r.t.Error("two leaders at once")
			}
			c.terms.Add(1)
			<-ctx.Done()
			r.leading.Add(-1)
		})
	}()
	c.stop = func() { cancel(); <-done }
	r.t.Cleanup(c.stop)
	return c
}

func (r *race) await(what string, d time.Duration, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("not within %s: %s", d, what)
		}
	}
}

func TestOneOfManyLeads(t *testing.T) {
	r := &race{t: t}
	var all []*candidate
	for i := range 5 {
		all = append(all, r.join(strconv.Itoa(i)))
	}
	r.await("a leader", 5*time.Second, func() bool { return r.leading.Load() == 1 })
	time.Sleep(2 * time.Second) // two durations: it is renewed, and nobody else comes
	var terms int32
	for _, c := range all {
		terms += c.terms.Load()
		if err := c.elector.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
	}
	if terms != 1 {
		t.Errorf("%d terms", terms)
	}
	// One after the other leaves, in an orderly way; another follows at once.
	for range len(all) - 1 {
		for _, c := range all {
			if c.elector.Leading() {
				c.stop()
				break
			}
		}
		r.await("the next leader", 900*time.Millisecond, func() bool { return r.leading.Load() == 1 })
	}
}

func TestSilentLeaderIsFollowed(t *testing.T) {
	for name, fail := range map[string]func(*candidate){
		"cut off":            func(c *candidate) { c.cut.Store(true) },
		"requests that hang": func(c *candidate) { c.hang.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			r := &race{t: t}
			a := r.join("a")
			r.await("a leads", 5*time.Second, a.elector.Leading)
			b := r.join("b")
			r.await("b looks", 5*time.Second, func() bool { return b.elector.Ready() == nil })
			fail(a)
			r.await("b leads", 5*time.Second, b.elector.Leading) // two at once is seen by the race
			if a.elector.Leading() {
				t.Error("a still believes to lead")
			}
			a.cut.Store(false)
			a.hang.Store(false)
			b.stop()
			r.await("a leads again", 5*time.Second, a.elector.Leading)
			if a.terms.Load() != 2 {
				t.Errorf("%d terms of a", a.terms.Load())
			}
		})
	}
}

func TestShortOutageIsSurvived(t *testing.T) {
	r := &race{t: t}
	a := r.join("a")
	r.await("a leads", 5*time.Second, a.elector.Leading)
	a.cut.Store(true)
	time.Sleep(300 * time.Millisecond)
	a.cut.Store(false)
	time.Sleep(time.Second)
	if a.terms.Load() != 1 || !a.elector.Leading() {
		t.Errorf("%d terms, leading %t", a.terms.Load(), a.elector.Leading())
	}
}

func TestStolenLeaseEndsTheTerm(t *testing.T) {
	r := &race{t: t}
	a := r.join("a")
	r.await("a leads", 5*time.Second, a.elector.Leading)
	r.shelf.mu.Lock()
	r.shelf.put(&Lease{Spec: Spec{HolderIdentity: "thief", LeaseDurationSeconds: 2}})
	r.shelf.mu.Unlock()
	r.await("a stops", time.Second, func() bool { return !a.elector.Leading() })
	r.await("a leads after the thief's time", 5*time.Second, a.elector.Leading)
}

func TestDeletedLeaseIsMadeAgain(t *testing.T) {
	r := &race{t: t}
	a := r.join("a")
	r.await("a leads", 5*time.Second, a.elector.Leading)
	r.shelf.mu.Lock()
	r.shelf.lease = nil
	r.shelf.mu.Unlock()
	r.await("the lease is back", time.Second, func() bool { l, err := r.shelf.get(); return err == nil && l.Spec.HolderIdentity == "a" })
	if a.terms.Load() != 1 {
		t.Errorf("%d terms", a.terms.Load())
	}
}

func TestReadySaysWhy(t *testing.T) {
	r := &race{t: t}
	a := r.join("a")
	r.await("a leads", 5*time.Second, a.elector.Leading)
	a.cut.Store(true)
	r.await("not ready", time.Second, func() bool { return a.elector.Ready() != nil })
	if got := a.elector.Ready().Error(); got != "waiting for the lease n/x: connection refused" {
		t.Errorf("says %q", got)
	}
}
