// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/rtevents"
	"golang.org/x/sys/unix"
)

// fake is a kernel whose events the test makes. It runs in a synctest bubble.
type fake struct {
	sync.Mutex
	events        chan struct{}
	lost          chan error
	subscriptions int
	reads         int
	changes       int
	// mtu is in the snapshot that reads return; readErr is returned instead, subscribeErr refuses subscriptions.
	mtu                   int
	readErr, subscribeErr error
	// monitor is for what is called by it.
	monitor *Monitor
}

// start runs a monitor on a fake kernel until the test ends it.
func start(t *testing.T, f *fake, o Options, onChange ...func()) (m *Monitor, stop func()) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	m = NewMonitor(o)
	m.subscribe = func() (*rtevents.Subscription, error) {
		f.Lock()
		defer f.Unlock()
		f.subscriptions++
		if f.subscribeErr != nil {
			return nil, f.subscribeErr
		}
		f.events, f.lost = make(chan struct{}, 1), make(chan error, 1)
		return &rtevents.Subscription{Events: f.events, Lost: f.lost, Close: func() {}}, nil
	}
	m.read = func(context.Context) (*Snapshot, error) {
		f.Lock()
		defer f.Unlock()
		f.reads++
		return &Snapshot{Links: []Link{{Index: 1, MTU: f.mtu}}}, f.readErr
	}
	m.OnChange(func() { f.changes++ })
	for _, f := range onChange {
		m.OnChange(f)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- m.Run(ctx) }()
	synctest.Wait()
	return m, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// set changes what the kernel answers.
func (f *fake) set(change func()) {
	f.Lock()
	defer f.Unlock()
	change()
}

// signal makes an event, as the receiving goroutine does.
func (f *fake) signal() {
	select {
	case f.events <- struct{}{}:
	default:
	}
	synctest.Wait()
}

func TestMonitorStormIsFewReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		_, stop := start(t, f, Options{})
		defer stop()
		for range 10_000 { // one second
			f.signal()
			time.Sleep(100 * time.Microsecond)
		}
		time.Sleep(defaultBatch)
		synctest.Wait()
		if f.reads < 5 || f.reads > 12 {
			t.Errorf("%d reads for a second of events in batches of %s", f.reads, defaultBatch)
		}
		if f.changes != 1 {
			t.Errorf("%d changes told, want only the first snapshot: nothing differed", f.changes)
		}
	})
}

func TestMonitorFollowsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{mtu: 1500}
		m, stop := start(t, f, Options{Batch: 50 * time.Millisecond})
		defer stop()
		f.set(func() { f.mtu = 9000 })
		f.signal()
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		if s, ok := m.Latest(); !ok || s.Links[0].MTU != 9000 || f.changes != 2 {
			t.Errorf("after the batch: %+v, %d changes told", s, f.changes)
		}
	})
}

func TestMonitorResubscribes(t *testing.T) {
	tests := map[string]func(f *fake){
		"D1: the buffer overflowed": func(f *fake) { f.lost <- unix.ENOBUFS },
		"the socket was closed":     func(f *fake) { f.lost <- errors.New("use of closed file") },
		"a read failed":             func(f *fake) { f.set(func() { f.readErr = unix.ENOBUFS }); f.signal(); time.Sleep(defaultBatch) },
	}
	for name, breaks := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{mtu: 1500}
				var causes []error
				m, stop := start(t, f, Options{Metrics: Metrics{Resubscribed: func(err error) { causes = append(causes, err) }}})
				defer stop()
				f.set(func() { f.mtu = 9000 })
				breaks(f)
				synctest.Wait()
				if s, ok := m.Latest(); !ok || s.Links[0].MTU != 1500 {
					t.Errorf("the last good snapshot was not kept: %+v", s)
				}
				f.set(func() { f.readErr = nil })
				time.Sleep(minBackoff)
				synctest.Wait()
				if s, _ := m.Latest(); f.subscriptions != 2 || s.Links[0].MTU != 9000 || len(causes) != 1 {
					t.Errorf("%d subscriptions, latest %+v, causes %v; want a second one and all read again", f.subscriptions, s, causes)
				}
			})
		})
	}
}

func TestMonitorBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{subscribeErr: unix.EMFILE}
		m, stop := start(t, f, Options{})
		defer stop()
		if _, ok := m.Latest(); ok {
			t.Error("a snapshot, though nothing was read yet")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if f.subscriptions < 10 || f.subscriptions > 20 {
			t.Errorf("%d attempts in a minute, want one in %s at last", f.subscriptions, maxBackoff)
		}
		f.set(func() { f.subscribeErr = nil })
		time.Sleep(maxBackoff)
		synctest.Wait()
		if _, ok := m.Latest(); !ok {
			t.Error("no snapshot after the kernel let us in")
		}
	})
}

func TestMonitorResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		_, stop := start(t, f, Options{})
		defer stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		if f.reads < 11 || f.reads > 14 || f.subscriptions != 1 {
			t.Errorf("%d reads and %d subscriptions in a quiet hour", f.reads, f.subscriptions)
		}
	})
}

func TestMonitorHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, block := &fake{}, make(chan struct{})
		m := NewMonitor(Options{})
		if m.Healthy(time.Now()) == nil {
			t.Error("healthy before it runs")
		}
		m, stop := start(t, f, Options{}, func() {
			if f.changes > 1 {
				<-block
			}
		})
		defer stop()
		time.Sleep(time.Hour)
		if err := m.Healthy(time.Now()); err != nil {
			t.Errorf("after a quiet hour: %v", err)
		}
		f.set(func() { f.mtu++ })
		f.signal()
		time.Sleep(2 * stalled)
		if m.Healthy(time.Now()) == nil {
			t.Error("healthy while the loop stands still")
		}
		close(block)
		synctest.Wait()
		if err := m.Healthy(time.Now()); err != nil {
			t.Errorf("after the loop went on: %v", err)
		}
		f.set(func() { f.readErr = unix.EMFILE })
		f.signal()
		time.Sleep(4 * defaultResync)
		if m.Healthy(time.Now()) == nil {
			t.Error("healthy though nothing could be read for four resyncs")
		}
	})
}

// TestMonitorHealthyAfterClockStep: setting the wall clock says nothing about the loop. Times in a synctest bubble
// have no monotonic reading.
func TestMonitorHealthyAfterClockStep(t *testing.T) {
	m := NewMonitor(Options{Logger: slog.New(slog.DiscardHandler)})
	m.read = func(context.Context) (*Snapshot, error) { return &Snapshot{}, nil }
	m.turn()
	if err := m.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	// The seconds of the wall clock begin at bit 30 of the first word of a time that has a monotonic reading.
	*(*uint64)(unsafe.Pointer(&now)) += 3600 << 30
	if step := now.Round(0).Sub(time.Now().Round(0)).Round(time.Minute); step != time.Hour {
		t.Fatalf("the test sets the clock by %s", step)
	}
	if err := m.Healthy(now); err != nil {
		t.Errorf("after the clock was set an hour forward: %v", err)
	}
}

func TestMonitorReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, log := &fake{subscribeErr: unix.EMFILE}, &bytes.Buffer{}
		fresh := NewMonitor(Options{})
		if err := fresh.Ready(); err == nil {
			t.Error("ready before it runs")
		}
		m, stop := start(t, f, Options{Logger: slog.New(slog.NewTextHandler(log, nil))}, func() {
			if err := f.monitor.Ready(); err != nil {
				t.Errorf("told of a snapshot that is not current: %v", err)
			}
		})
		f.monitor = m
		defer stop()
		lost := func(when string, cause error, losses int) {
			t.Helper()
			synctest.Wait()
			if err := m.Ready(); !errors.Is(err, cause) {
				t.Errorf("%s: ready is %v, want %v", when, err, cause)
			}
			if n := strings.Count(log.String(), "level=WARN"); n != losses {
				t.Errorf("%s: %d warnings, want %d:\n%s", when, n, losses, log)
			}
		}
		regained := func(when string, losses int) {
			t.Helper()
			f.set(func() { f.readErr, f.subscribeErr = nil, nil })
			time.Sleep(maxBackoff)
			lost(when, nil, losses)
		}
		time.Sleep(time.Minute)
		lost("before the first read", unix.EMFILE, 1)
		regained("after the first read", 1)
		f.set(func() { f.readErr = unix.EBUSY })
		f.signal()
		time.Sleep(defaultBatch)
		lost("after a failed read", unix.EBUSY, 2)
		since := m.Ready().Error()
		f.set(func() { f.readErr, f.subscribeErr = nil, unix.EBUSY })
		time.Sleep(time.Minute)
		lost("a minute later", unix.EBUSY, 2)
		if again := m.Ready().Error(); again != since {
			t.Errorf("a loss that lasts became another: %q, %q", since, again)
		}
		regained("after another read of the same", 2)
		f.lost <- unix.ENOBUFS
		lost("after an overflow", unix.ENOBUFS, 3)
		regained("after all", 3)
	})
}
