// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// Config says which Lease is campaigned for and how. The zero durations mean the defaults, which are those of
// Kubernetes' own controllers.
type Config struct {
	Namespace, Name string
	// Identity is unique to the process, also over its restarts.
	Identity string
	// Duration is how long others respect a Lease that is not renewed; whole seconds.
	Duration time.Duration
	// RenewDeadline is how long the leader goes on while it cannot renew; shorter than Duration, so that it has
	// stopped before another may begin.
	RenewDeadline time.Duration
	// Retry is how long to wait between two looks at the Lease.
	Retry time.Duration
}

func (c *Config) complete() {
	if c.Duration == 0 {
		c.Duration, c.RenewDeadline, c.Retry = 15*time.Second, 10*time.Second, 2*time.Second
	}
}

// Elector campaigns for a Lease again and again.
type Elector struct {
	config Config
	store  store

	mu      sync.Mutex
	seen    sighting
	leading bool
	renewed time.Time // when the last request was begun that took or renewed the Lease
	problem error     // why the Lease could not be looked at the last time
}

// New makes an Elector; Run starts it.
func New(config *rest.Config, c Config) (*Elector, error) {
	remote, err := newRemote(config, c.Namespace, c.Name)
	if err != nil {
		return nil, err
	}
	return newElector(remote, c), nil
}

func newElector(s store, c Config) *Elector {
	c.complete()
	return &Elector{config: c, store: s}
}

// Run calls lead for each term in which the process holds the Lease, one after the other, until the context ends.
// The context of lead ends when the Lease is lost or not certain any more; lead then has Duration less
// RenewDeadline to return. When the context of Run ends, the Lease is given back, after lead has returned.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context)) {
	for e.acquire(ctx) {
		e.term(ctx, lead)
	}
}

// Leading tells whether the process holds the Lease.
func (e *Elector) Leading() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leading
}

// Ready is nil while the Lease can be looked at, held or not.
func (e *Elector) Ready() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.problem != nil:
		return fmt.Errorf("waiting for the lease %s/%s: %w", e.config.Namespace, e.config.Name, e.problem)
	case e.seen.since.IsZero():
		return fmt.Errorf("waiting for the lease %s/%s", e.config.Namespace, e.config.Name)
	}
	return nil
}

// acquire waits until the Lease is held; false means that the context ended.
func (e *Elector) acquire(ctx context.Context) bool {
	var said string
	for {
		holder, err := e.try(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil && said != err.Error():
			said = err.Error()
			slog.Warn("waiting for the lease", "lease", e.config.Namespace+"/"+e.config.Name, "error", err)
		case err == nil && holder == e.config.Identity:
			return true
		case err == nil && said != holder:
			said = holder
			slog.Info("standing by", "leader", holder)
		}
		// Spread, so that candidates do not come at once. One that lost a race waits too.
		if !sleep(ctx, e.config.Retry+rand.N(e.config.Retry)) {
			return false
		}
	}
}

func (e *Elector) term(ctx context.Context, lead func(context.Context)) {
	slog.Info("leading", "identity", e.config.Identity)
	e.setLeading(true)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		lead(ctx)
	}()
	lost := e.renew(ctx, done)
	cancel()
	<-done
	e.setLeading(false)
	if lost != nil {
		slog.Warn("no longer leading", "cause", lost)
		return
	}
	e.release(ctx)
}

// renew keeps the Lease until the context or the work ends, or returns why it is lost.
func (e *Elector) renew(ctx context.Context, done <-chan struct{}) (lost error) {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-done:
			return nil
		case <-time.After(e.config.Retry):
		}
		deadline := e.deadline()
		limited, cancel := context.WithDeadline(ctx, deadline)
		holder, err := e.try(limited)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && holder == e.config.Identity:
		case err == nil:
			return fmt.Errorf("%s holds the lease now", holder)
		case !time.Now().Before(deadline):
			return fmt.Errorf("not renewed for %s: %w", e.config.RenewDeadline, err)
		default:
			slog.Debug("lease not renewed, will be tried again", "error", err)
		}
	}
}

// try looks at the Lease, takes or renews it where that is allowed, and returns who holds it then.
func (e *Elector) try(ctx context.Context) (holder string, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.config.RenewDeadline/2)
	defer cancel()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.problem = err
	}()
	begin := time.Now()
	current, err := e.store.get(ctx)
	if apierrors.IsNotFound(err) {
		wish, _ := sighting{}.claim(e.config.Identity, e.config.Duration, begin)
		return e.wrote(begin)(e.store.create(ctx, &Lease{Spec: wish}))
	}
	if err != nil {
		return "", err
	}
	seen := e.see(current)
	wish, ok := seen.claim(e.config.Identity, e.config.Duration, time.Now())
	if !ok {
		return current.Spec.HolderIdentity, nil
	}
	current.Spec = wish // with the version that was read: a conflict means that somebody was faster
	return e.wrote(begin)(e.store.update(ctx, current))
}

// wrote notes a write, from when it was begun: for others the time runs from when the API server had it.
func (e *Elector) wrote(begin time.Time) func(*Lease, error) (string, error) {
	return func(l *Lease, err error) (string, error) {
		if err != nil {
			return "", err
		}
		e.see(l)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.renewed = begin
		return l.Spec.HolderIdentity, nil
	}
}

func (e *Elector) deadline() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.renewed.Add(e.config.RenewDeadline)
}

func (e *Elector) see(l *Lease) sighting {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = e.seen.see(l, time.Now())
	return e.seen
}

// release gives the Lease back, so that another need not wait for it to run out.
func (e *Elector) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.RenewDeadline/2)
	defer cancel()
	current, err := e.store.get(ctx)
	if err != nil || current.Spec.HolderIdentity != e.config.Identity {
		return
	}
	current.Spec = released(current.Spec, time.Now())
	if _, err := e.store.update(ctx, current); err != nil {
		slog.Debug("lease not given back; it runs out", "error", err)
		return
	}
	slog.Info("lease given back")
}

func (e *Elector) setLeading(leading bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leading = leading
	setLeading(leading)
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
