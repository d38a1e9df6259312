// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"github.com/vishvananda/netns"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long something may take that takes milliseconds on an idle machine.
const patience = 30 * time.Second

// watch runs an importer until the test ends.
type watch struct {
	*Importer
	t       testing.TB
	changed chan string
	reads   chan time.Duration
	causes  chan error
}

func start(t testing.TB, c Config, prepare ...func(*Importer)) *watch {
	t.Helper()
	w := &watch{t: t, changed: make(chan string, 10_000), reads: make(chan time.Duration, 100_000), causes: make(chan error, 10_000)}
	c.OnChange = func(uplink string) { w.changed <- uplink }
	c.Metrics.Read = func(took time.Duration, _ error) { w.reads <- took }
	c.Metrics.Resubscribed = func(cause error) { w.causes <- cause }
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	w.Importer = New(c)
	for _, p := range prepare {
		p(w.Importer)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return w
}

// await waits until what is known of Uplink "u" is as wanted, and returns how long that took.
func (w *watch) await(what string, cond func(View) bool) time.Duration {
	w.t.Helper()
	begin := time.Now()
	deadline := time.After(patience)
	for {
		v := w.Routes("u")
		if cond(v) {
			return time.Since(begin)
		}
		select {
		case <-w.changed:
		case <-deadline:
			w.t.Fatalf("not seen within %s: %s; known is %v", patience, what, shorten(v))
		}
	}
}

func shorten(v View) string {
	text := fmt.Sprintf("known=%t kept=%v absent=%q ignored=%+v %d routes", v.Known, v.Kept, v.Absent, v.Ignored, len(v.Routes))
	if len(v.Routes) < 20 {
		text += " " + strings.Join(texts(v.Routes), ", ")
	}
	return text
}

// awaitRoutes waits for exactly these routes, each "prefix nexthop".
func (w *watch) awaitRoutes(what string, want ...string) time.Duration {
	w.t.Helper()
	return w.await(fmt.Sprintf("%s: %q", what, want), func(v View) bool { return v.Known && slices.Equal(texts(v.Routes), want) })
}

// stays fails if what is known of Uplink "u" differs from these routes within a time.
func (w *watch) stays(what string, within time.Duration, want ...string) {
	w.t.Helper()
	for over := time.After(within); ; {
		if got := texts(w.Routes("u").Routes); !slices.Equal(got, want) {
			w.t.Fatalf("%s: %q, want %q to stay for %s", what, got, want, within)
		}
		select {
		case <-w.changed:
		case <-over:
			return
		}
	}
}

func texts(routes []Route) []string {
	var all []string
	for _, r := range routes {
		all = append(all, r.Prefix.String()+" "+r.NextHop.String())
	}
	return all
}

// newLink makes a namespace with the interface ext0, which has addresses and a carrier, and one more interface.
func newLink(t testing.TB) *kerneltest.Namespace {
	t.Helper()
	ns := kerneltest.NewNamespace(t)
	ns.IP("link add ext0 type veth peer name peer", "link set peer addrgenmode none", "link set peer up", "link set ext0 up",
		"link add other type veth peer name other-peer", "link set other-peer up", "link set other up",
		"addr add 192.0.2.5/24 dev ext0", "addr add 2001:db8::5/64 dev ext0 nodad", "addr add 198.18.0.5/24 dev other")
	awaitCarrier(t, ns)
	return ns
}

// awaitCarrier waits until routes through ext0 are not marked as being without a carrier.
func awaitCarrier(t testing.TB, ns *kerneltest.Namespace) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if ns.TryIP("link show dev ext0 up") == nil && ns.TryIP("route get 192.0.2.77 oif ext0") == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("ext0 has no carrier")
		}
	}
}

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func prefixes(all ...string) []netip.Prefix {
	var parsed []netip.Prefix
	for _, s := range all {
		parsed = append(parsed, prefix(s))
	}
	return parsed
}

// setSysctl sets a sysctl of a namespace.
func setSysctl(t testing.TB, ns *kerneltest.Namespace, name, value string) {
	t.Helper()
	inside(t, ns, func() error { return os.WriteFile("/proc/sys/"+name, []byte(value), 0) })
}

// inside runs f on a thread that is in a namespace and ends with f.
func inside(t testing.TB, ns *kerneltest.Namespace, f func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := netns.Set(ns.Handle)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
