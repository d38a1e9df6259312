// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSettle(t *testing.T) {
	start := time.Unix(1000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	s := NewSettle(time.Second, func(a, b string) bool { return a == b })
	if wait := s.Wait("k", "down", at(0)); wait != time.Second {
		t.Errorf("a first change waits %s", wait)
	}
	if wait := s.Wait("k", "down", at(400)); wait != 600*time.Millisecond {
		t.Errorf("the same wish later waits %s", wait)
	}
	if wait := s.Wait("k", "gone", at(900)); wait != time.Second {
		t.Errorf("another wish waits %s from its beginning", wait)
	}
	if wait := s.Wait("k", "gone", at(1900)); wait > 0 {
		t.Errorf("a wish that stayed waits %s more", wait)
	}
	s.Done("k")
	if wait := s.Wait("k", "gone", at(2000)); wait != time.Second {
		t.Errorf("after Done a wish waits %s", wait)
	}
}

// Something that never rests is believed in the end, or the state would show the past for ever.
func TestSettleIsBounded(t *testing.T) {
	start := time.Unix(1000, 0)
	s := NewSettle(time.Second, func(a, b int) bool { return a == b })
	for i := range 1000 {
		now := start.Add(time.Duration(i) * 200 * time.Millisecond)
		if s.Wait("k", i, now) <= 0 {
			if got := now.Sub(start); got != maxSettle*time.Second {
				t.Errorf("believed after %s", got)
			}
			return
		}
	}
	t.Error("never believed")
}

// What takes something away has to rest, however long that takes.
func TestSettleWaitRest(t *testing.T) {
	start := time.Unix(1000, 0)
	s := NewSettle(time.Second, func(a, b int) bool { return a == b })
	for i := range 1000 {
		if s.WaitRest("k", i, start.Add(time.Duration(i)*500*time.Millisecond)) <= 0 {
			t.Fatalf("due after %d changes", i)
		}
	}
	if s.WaitRest("k", 999, start.Add(501*time.Second)) > 0 {
		t.Error("not due although it rests")
	}
}

func TestLoopRetriesFailuresAndPanics(t *testing.T) {
	var calls atomic.Int32
	done := make(chan struct{})
	l := New("test", 0, nil, func(context.Context, string) (Result, error) {
		switch calls.Add(1) {
		case 1:
			return Result{}, errors.New("not yet")
		case 2:
			panic("a bug")
		case 3:
			return Result{After: time.Millisecond}, nil
		case 4:
			close(done)
		}
		return Result{}, nil
	})
	run(t, l)
	l.Add("k")
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatalf("only %d passes", calls.Load())
	}
}

func TestLoopResyncs(t *testing.T) {
	seen := make(chan string, 16)
	l := New("test", 10*time.Millisecond, func() []string { return []string{"k"} }, func(_ context.Context, key string) (Result, error) {
		select {
		case seen <- key:
		default:
		}
		return Result{}, nil
	})
	run(t, l)
	for range 2 {
		select {
		case <-seen:
		case <-time.After(5 * time.Second):
			t.Fatal("no resync")
		}
	}
}

// Liveness is the progress of the loop: one that is stuck says so, one that is idle does not.
func TestLoopHealth(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	l := New("test", 0, nil, func(context.Context, string) (Result, error) {
		close(entered)
		<-release
		return Result{}, nil
	})
	run(t, l)
	later := time.Now().Add(time.Hour)
	if err := l.Healthy(later); err != nil {
		t.Errorf("idle for an hour: %v", err)
	}
	l.Add("k")
	<-entered
	if err := l.Healthy(time.Now()); err != nil {
		t.Errorf("just begun: %v", err)
	}
	if err := l.Healthy(later); err == nil {
		t.Error("stuck for an hour, and healthy")
	}
	close(release)
}

func run(t *testing.T, l *Loop) {
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		l.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-stopped
	})
}
