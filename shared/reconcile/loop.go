// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the one loop that every controller runs in: keys go into a queue, a function makes the
// world fit the key, failures are tried again with backoff for ever, and the loop can tell whether it is
// still moving.
package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	// backoffMin and backoffMax bound the pause before a failed key is tried again.
	backoffMin = 5 * time.Millisecond
	backoffMax = 30 * time.Second
	// passTimeout is how long one pass may take before its context ends.
	passTimeout = time.Minute
	// stuckAfter is how long a pass may take before the loop counts as stuck. A pass that heeds its context
	// ends well before.
	stuckAfter = 2 * passTimeout
	// DefaultResync is how often every key is looked at although nothing was heard of it: the safety net
	// under the events.
	DefaultResync = 5 * time.Minute
)

// Result says when to look at the key again although nothing failed; zero means at the next event.
type Result struct {
	After time.Duration
}

// Func makes the world fit one key. It is called with one key at a time, never twice at once for the same.
type Func func(ctx context.Context, key string) (Result, error)

// Loop calls a Func for the keys that are added to it.
type Loop struct {
	name   string
	pass   Func
	keys   func() []string
	resync time.Duration
	queue  workqueue.TypedRateLimitingInterface[string]

	mu    sync.Mutex
	since time.Time // when the pass at hand began; zero between passes
	key   string
}

// New makes a loop. keys lists everything there is to reconcile, for the resync; it may be nil.
func New(name string, resync time.Duration, keys func() []string, pass Func) *Loop {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](backoffMin, backoffMax)
	return &Loop{
		name:   name,
		pass:   pass,
		keys:   keys,
		resync: resync,
		queue:  workqueue.NewTypedRateLimitingQueue(limiter),
	}
}

// Add asks for a pass over the key, soon.
func (l *Loop) Add(key string) { l.queue.Add(key) }

// AddAll asks for a pass over every key that there is.
func (l *Loop) AddAll() {
	if l.keys == nil {
		return
	}
	for _, key := range l.keys() {
		l.queue.Add(key)
	}
}

// Run works the queue until the context ends, and returns when the last pass is done.
func (l *Loop) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() {
		<-ctx.Done()
		l.queue.ShutDown()
	})
	running.Go(func() { l.runResync(ctx) })
	for {
		key, shutdown := l.queue.Get()
		if shutdown {
			break
		}
		l.work(ctx, key)
	}
	running.Wait()
}

// Healthy says whether the loop is moving: an error names the key on which it has been stuck.
func (l *Loop) Healthy(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.since.IsZero() && now.Sub(l.since) > stuckAfter {
		return fmt.Errorf("%s: stuck on %q for %s", l.name, l.key, now.Sub(l.since).Round(time.Second))
	}
	return nil
}

func (l *Loop) runResync(ctx context.Context) {
	if l.keys == nil || l.resync <= 0 {
		return
	}
	for {
		// Spread, so that the agents of a whole cluster do not come at once.
		pause := l.resync + time.Duration(rand.Int64N(int64(l.resync)/5+1))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			l.AddAll()
		}
	}
}

func (l *Loop) work(ctx context.Context, key string) {
	defer l.queue.Done(key)
	l.mark(key, time.Now())
	defer l.mark("", time.Time{})

	start := time.Now()
	result, err := l.guard(ctx, key)
	observe(l.name, err, time.Since(start))
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		// The first failures are noise of racing events; one that stays is worth a line.
		level := slog.LevelDebug
		if l.queue.NumRequeues(key) >= 3 {
			level = slog.LevelWarn
		}
		slog.Log(ctx, level, "reconcile failed, will be tried again", "loop", l.name, "key", key, "error", err)
		l.queue.AddRateLimited(key)
		return
	}
	l.queue.Forget(key)
	if result.After > 0 {
		l.queue.AddAfter(key, result.After)
	}
}

// guard turns a panic into an error, so that one object that nobody thought of does not take down the agent
// for all others.
func (l *Loop) guard(ctx context.Context, key string) (result Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
			slog.Error("panic in reconcile", "loop", l.name, "key", key, "cause", cause, "stack", string(debug.Stack()))
		}
	}()
	return l.pass(ctx, key)
}

func (l *Loop) mark(key string, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.key, l.since = key, since
}
