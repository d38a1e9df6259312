// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/rtevents"
	"golang.org/x/sys/unix"
)

// fake is a kernel whose content and events the test makes. It runs in a synctest bubble.
type fake struct {
	sync.Mutex
	i       *Importer
	events  chan struct{}
	lost    chan error
	content contentOf
	noLink  bool
	// readErr is returned by reads; takes is how long a read takes.
	readErr              error
	takes                time.Duration
	reads, subscriptions atomic.Int64
	changes              atomic.Int64
	log                  bytes.Buffer
}

func (f *fake) link(string) (link, bool, error) { return link{index: here}, !f.noLink, nil }
func (f *fake) close()                          {}

func (f *fake) read(context.Context, uint32) (*content, error) {
	time.Sleep(f.takes)
	f.Lock()
	defer f.Unlock()
	f.reads.Add(1)
	if f.readErr != nil {
		return nil, f.readErr
	}
	c := f.content.content
	return &c, nil
}

// run runs an importer on the fake, with Uplink "u" in table main.
func (f *fake) run(t *testing.T, c Config) (stop func()) {
	c.OnChange = func(string) { f.changes.Add(1) }
	c.Logger = slog.New(slog.NewTextHandler(&f.log, nil))
	f.i = New(c)
	f.i.open = func() (reader, error) { return f, nil }
	f.i.subscribe = func(*journal) (*rtevents.Subscription, error) {
		f.subscriptions.Add(1)
		f.events, f.lost = make(chan struct{}, 1), make(chan error, 1)
		return &rtevents.Subscription{Events: f.events, Lost: f.lost, Pending: func() bool { return false }, Close: func() {}}, nil
	}
	f.i.Want("u", Domain{Interface: "ext0"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.i.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// has sets what the kernel has: prefixes, all by the same router.
func (f *fake) has(all ...string) {
	f.Lock()
	defer f.Unlock()
	f.content = contentOf{}
	for _, p := range all {
		f.content.add(p, 20, nil, via("192.0.2.1"))
	}
}

// fail has reads end with an error, or not.
func (f *fake) fail(err error) {
	f.Lock()
	defer f.Unlock()
	f.readErr = err
}

// signal makes an event of table main, as the receiving goroutine does.
func (f *fake) signal() {
	if f.i.journal.note(event{table: unix.RT_TABLE_MAIN}, time.Now()) {
		select {
		case f.events <- struct{}{}:
		default:
		}
	}
	synctest.Wait()
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (f *fake) want(t *testing.T, what string, all ...string) {
	t.Helper()
	var got []string
	for _, r := range f.i.Routes("u").Routes {
		got = append(got, r.Prefix.String())
	}
	if !slices.Equal(got, all) {
		t.Errorf("%s: %q, want %q", what, got, all)
	}
}

const a, b = "203.0.113.0/24", "203.0.114.0/24"

// TestReadErrorsChangeNothing is D4: what cannot be read is unknown, for however long.
func TestReadErrorsChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{readErr: unix.EBUSY}
		f.has(a)
		stop := f.run(t, Config{})
		defer stop()
		pass(time.Minute)
		if v := f.i.Routes("u"); v.Known || f.changes.Load() > 0 || !errors.Is(f.i.Ready(), unix.EBUSY) {
			t.Errorf("before the first read: %s, ready is %v", shorten(v), f.i.Ready())
		}
		if f.subscriptions.Load() < 10 || f.subscriptions.Load() > 20 {
			t.Errorf("%d attempts in a minute, want one in %s at last", f.subscriptions.Load(), maxBackoff)
		}
		f.fail(nil)
		pass(maxBackoff)
		f.want(t, "after it", a)
		if err := f.i.Ready(); err != nil {
			t.Errorf("ready is %v", err)
		}
		f.has()
		f.fail(unix.EIO)
		f.signal()
		pass(10 * defaultResync)
		f.want(t, "while nothing can be read", a)
		if err := f.i.Healthy(time.Now()); err == nil {
			t.Error("healthy though nothing was read for ten resyncs")
		}
		f.fail(nil)
		pass(maxBackoff)
		f.want(t, "in the grace time, which begins now", a)
		pass(defaultGrace)
		f.want(t, "after it")
		if n := strings.Count(f.log.String(), "level=WARN"); n != 2 {
			t.Errorf("%d warnings for two losses:\n%s", n, &f.log)
		}
	})
}

// TestLostEvents is D1: after a loss all is read, and nothing is taken back that was not quiet for a while.
func TestLostEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.has(a, b)
		stop := f.run(t, Config{})
		defer stop()
		f.want(t, "at first", a, b)
		f.has(b, "203.0.115.0/24")
		f.lost <- unix.ENOBUFS
		pass(minBackoff)
		f.want(t, "at once", a, b, "203.0.115.0/24")
		pass(defaultDebounce)
		f.want(t, "in the quiet", b, "203.0.115.0/24")
		if f.subscriptions.Load() != 2 {
			t.Errorf("%d subscriptions, want 2", f.subscriptions.Load())
		}
	})
}

func TestStormIsFewReads(t *testing.T) {
	tests := map[string]struct {
		takes    time.Duration
		from, to int64
	}{
		"cheap ones": {0, 4, 7}, "dear ones": {100 * time.Millisecond, 0, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{takes: test.takes}
				f.has(a, b)
				stop := f.run(t, Config{})
				defer stop()
				pass(time.Second)
				before, changes := f.reads.Load(), f.changes.Load()
				f.has(b)
				for range 1000 { // one second
					f.signal()
					pass(time.Millisecond)
				}
				if n := f.reads.Load() - before; n < test.from || n > test.to {
					t.Errorf("%d reads for a second of events", n)
				}
				f.want(t, "in the storm", a, b)
				pass(3 * time.Second)
				f.want(t, "after it", b)
				if n := f.changes.Load() - changes; n != 1 {
					t.Errorf("%d changes told, want one", n)
				}
				quiet := f.reads.Load()
				pass(time.Minute)
				if f.reads.Load() != quiet {
					t.Errorf("%d reads in a quiet minute", f.reads.Load()-quiet)
				}
			})
		})
	}
}

func TestResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		stop := f.run(t, Config{})
		defer stop()
		pass(time.Hour)
		if f.reads.Load() < 11 || f.reads.Load() > 15 || f.subscriptions.Load() != 1 || f.changes.Load() != 1 {
			t.Errorf("%d reads, %d subscriptions and %d changes in a quiet hour", f.reads.Load(), f.subscriptions.Load(), f.changes.Load())
		}
		if err := f.i.Healthy(time.Now()); err != nil {
			t.Error(err)
		}
	})
}

// TestWantAgain: to say the same again costs nothing, another VRF drops all, another rule drops what it forbids.
func TestWantAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.has(a, b)
		stop := f.run(t, Config{})
		defer stop()
		f.i.Want("u", Domain{Interface: "ext0", Skip: prefixes("10.1.0.0/16", "10.2.0.0/16")})
		pass(time.Second)
		reads := f.reads.Load()
		for range 100 {
			f.i.Want("u", Domain{Interface: "ext0", Skip: prefixes("10.2.0.0/16", "10.1.0.0/16")})
		}
		pass(time.Second)
		if f.reads.Load() != reads || f.changes.Load() != 1 {
			t.Errorf("%d reads and %d changes more for the same", f.reads.Load()-reads, f.changes.Load()-1)
		}
		f.fail(unix.EBUSY)
		f.i.Want("u", Domain{Interface: "ext0", Skip: prefixes(a)})
		f.want(t, "at once without what is skipped", b)
		pass(time.Second)
		f.i.Want("u", Domain{Interface: "ext0", VRF: "blue"})
		if v := f.i.Routes("u"); !v.Known || len(v.Routes) > 0 {
			t.Errorf("of another VRF that cannot be read: %s", shorten(v))
		}
		f.i.Forget("u")
		f.i.Forget("u")
		pass(time.Minute)
		if v := f.i.Routes("u"); v.Known {
			t.Errorf("of what is forgotten: %s", shorten(v))
		}
	})
}

// TestLookOvertakenByWant: what a read found of the former domain is not taken for the new one's.
func TestLookOvertakenByWant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: time.Second}
		f.has(a)
		stop := f.run(t, Config{})
		defer stop()
		pass(500 * time.Millisecond)
		f.i.Want("u", Domain{Interface: "ext1", Skip: prefixes("203.0.0.0/8")})
		pass(750 * time.Millisecond)
		f.want(t, "after the first read")
		pass(time.Second)
		if v := f.i.Routes("u"); !v.Known || v.Ignored.Skipped != 1 || len(v.Routes) > 0 {
			t.Errorf("after the second read: %s", shorten(v))
		}
	})
}
