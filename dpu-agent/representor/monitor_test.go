// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
)

// lab is a card made of files, and a list of links that tests change.
type lab struct {
	t   *testing.T
	dir string
	cfg Config

	mu    sync.Mutex
	links []Link
	err   error
	block chan struct{} // listing the links waits for it to be closed
	reads atomic.Int32
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, dir: t.TempDir(), links: []Link{{Name: "p0"}, {Name: "pf0vf3"}}}
	l.cfg = Config{
		Sysfs: l.dir, DevlinkPorts: l.path("ports.json"), Map: l.path("map.yaml"), Logger: slog.New(slog.DiscardHandler),
		Links: func() ([]Link, error) {
			l.reads.Add(1)
			l.mu.Lock()
			links, err, block := append([]Link(nil), l.links...), l.err, l.block
			l.mu.Unlock()
			if block != nil {
				<-block
			}
			return links, err
		},
	}
	l.write("ports.json", `{"port":{"pci/0000:03:00.0/1":{"netdev":"p0","flavour":"physical"}}}`)
	l.write("map.yaml", "[]")
	if err := os.MkdirAll(l.path("class/net"), 0o700); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

// write replaces a file in one step, as editors and configuration tools do.
func (l *lab) write(name, text string) {
	l.t.Helper()
	path := l.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *lab) watch(onChange func()) *Monitor {
	l.t.Helper()
	m, err := NewMonitor(l.cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	m.poll, m.deadline = 20*time.Millisecond, 200*time.Millisecond
	if onChange != nil {
		m.OnChange(onChange)
	}
	ctx, cancel := context.WithCancel(l.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := m.Run(ctx); err != nil {
			l.t.Errorf("Run: %v", err)
		}
	})
	l.t.Cleanup(func() { cancel(); running.Wait() })
	return m
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: ", what)
		}
	}
}

// during checks that something stays as it is for a while.
func during(t *testing.T, d time.Duration, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if !holds() {
			t.Fatal("did not hold: ", what)
		}
	}
}

// is tells whether the monitor now has an index in which an interface is of a class.
func is(m *Monitor, netdev string, class Class) func() bool {
	return func() bool {
		x, err := m.Latest()
		return err == nil && x.Classify(netdev) == class
	}
}

func TestMonitorFollowsFiles(t *testing.T) {
	l := newLab(t)
	var told atomic.Int32
	m := l.watch(func() { told.Add(1) })
	eventually(t, "the first index", is(m, "p0", Physical))
	if err := m.Ready(); err != nil || told.Load() != 1 {
		t.Errorf("ready %v, told %d times", err, told.Load())
	}
	l.write("ports.json", `{"port":{"pci/0000:03:00.0/2":{"netdev":"pf0vf3","flavour":"pcivf","vfnum":3,"external":true}}}`)
	eventually(t, "the new port", is(m, "pf0vf3", HostFacing))

	// The same content again, and links that did not change, are no change.
	at, reads := told.Load(), l.reads.Load()
	l.write("ports.json", `{"port": {"pci/0000:03:00.0/2":{"netdev":"pf0vf3","flavour":"pcivf","vfnum":3,"external":true}}}`)
	eventually(t, "a read", func() bool { return l.reads.Load() == reads+1 })
	m.Trigger()
	eventually(t, "another read", func() bool { return l.reads.Load() == reads+2 })
	if told.Load() != at {
		t.Errorf("told of %d changes where there was none", told.Load()-at)
	}
}

func TestMonitorIsTriggered(t *testing.T) {
	l := newLab(t)
	m := l.watch(nil)
	eventually(t, "the first index", is(m, "new", Absent))
	l.set(func() { l.links = append(l.links, Link{Name: "new"}) })
	l.write("class/net/new/phys_port_name", "c1pf0vf9\n")
	l.write("class/net/new/phys_switch_id", "deadbeef\n")
	m.Trigger()
	eventually(t, "the new link", is(m, "new", HostFacing))
	x, _ := m.Latest()
	if r := x.Representors()[0]; r.Device != "switch/deadbeef" || r.Side != Host || *r.VF != 9 || r.Source != "phys_port_name" {
		t.Errorf("representor %+v", r)
	}
}

// A14: a failed read keeps what is known, and is tried again without being asked to.
func TestA14MonitorKeepsTheLastIndex(t *testing.T) {
	l := newLab(t)
	m := l.watch(nil)
	if _, err := m.Latest(); err == nil && m.Ready() == nil {
		t.Log("the first read is over already")
	}
	eventually(t, "the first index", is(m, "p0", Physical))
	for _, err := range []error{syscall.EBUSY, syscall.ENODEV} {
		l.set(func() { l.err = err })
		m.Trigger()
		eventually(t, "the error", func() bool { _, got := m.Latest(); return errors.Is(got, err) && errors.Is(got, ErrUnknown) })
		x, _ := m.Latest()
		if x.Classify("p0") != Physical || x.Classify("new") != Unclassified || m.Ready() == nil {
			t.Errorf("the last index was not kept, or not marked")
		}
		l.set(func() { l.err = nil })
		eventually(t, "the recovery", is(m, "new", Absent))
	}
	l.write("ports.json", "{")
	eventually(t, "the broken file", func() bool { return m.Ready() != nil && strings.Contains(m.Ready().Error(), "ports.json") })
	l.write("ports.json", `{"port":{}}`)
	eventually(t, "the repaired file", is(m, "p0", Plain))
}

// A14: one interface that cannot be read is tried again too, and is no reason to forget the others.
func TestA14OneUnreadableInterface(t *testing.T) {
	l := newLab(t)
	broken := l.path("class/net/pf0vf3/phys_port_name")
	if err := os.MkdirAll(broken, 0o700); err != nil {
		t.Fatal(err)
	}
	m := l.watch(nil)
	eventually(t, "the first index", is(m, "p0", Physical))
	if !is(m, "pf0vf3", Unclassified)() {
		t.Error("an interface that cannot be read was classified")
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	l.write("class/net/pf0vf3/phys_port_name", "c1pf0vf3\n")
	eventually(t, "the interface", is(m, "pf0vf3", HostFacing))
}

// A17: a read that never returns is given up; no second one is begun beside it.
func TestA17ReadThatHangs(t *testing.T) {
	l := newLab(t)
	m := l.watch(nil)
	eventually(t, "the first index", is(m, "p0", Physical))
	block := make(chan struct{})
	l.set(func() { l.block = block })
	before := l.reads.Load()
	m.Trigger()
	eventually(t, "the deadline", func() bool { return m.Ready() != nil && strings.Contains(m.Ready().Error(), "a driver may hang") })
	during(t, 500*time.Millisecond, "one read hangs", func() bool {
		m.Trigger()
		return l.reads.Load() == before+1
	})
	if err := m.Healthy(time.Now()); err != nil {
		t.Errorf("a hanging driver is no reason to restart: %v", err)
	}
	l.set(func() { l.block = nil })
	close(block)
	eventually(t, "the recovery", func() bool { return m.Ready() == nil })
}

func TestMonitorKeepsTheLastMap(t *testing.T) {
	l := newLab(t)
	m := l.watch(nil)
	l.write("map.yaml", "- {representor: pf0vf3, mac: '02:00:00:00:00:07'}")
	eventually(t, "the map", is(m, "pf0vf3", HostFacing))
	warned := func(parts ...string) func() bool {
		return func() bool {
			x, _ := m.Latest()
			text := strings.Join(x.Warnings(), "\n")
			for _, part := range parts {
				if !strings.Contains(text, part) {
					return false
				}
			}
			return len(parts) > 0 == (text != "")
		}
	}
	for text, parts := range map[string][]string{
		"- {representor: p0, mac: x}": {"entry 1 (p0)", "the last good one is used"},
		"":                            {"it is empty", "the last good one is used"},
	} {
		l.write("map.yaml", text)
		eventually(t, "the warning", warned(parts...))
		if !is(m, "pf0vf3", HostFacing)() || !is(m, "p0", Physical)() {
			t.Errorf("%q: the last good map was not kept", text)
		}
	}
	if err := os.Remove(l.path("map.yaml")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the warning about the absent file", warned("no such file"))
	l.write("map.yaml", "[]")
	eventually(t, "the empty map", func() bool { return warned()() && is(m, "pf0vf3", Plain)() })
}

func TestNewMonitorRefusesBadFiles(t *testing.T) {
	for _, file := range []string{"map.yaml", "ports.json"} {
		l := newLab(t)
		l.write(file, "{")
		if _, err := NewMonitor(l.cfg); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// A map that is a FIFO would block whoever opens it.
func TestMapIsNoRegularFile(t *testing.T) {
	l := newLab(t)
	m := l.watch(nil)
	eventually(t, "the first index", is(m, "p0", Physical))
	fifo := func() {
		if err := errors.Join(syscall.Mkfifo(l.path("fifo"), 0o600), os.Rename(l.path("fifo"), l.path("map.yaml"))); err != nil {
			t.Fatal(err)
		}
	}
	fifo()
	eventually(t, "the warning", func() bool {
		x, err := m.Latest()
		return err == nil && strings.Contains(strings.Join(x.Warnings(), " "), "no regular file")
	})
	refused := make(chan error, 1)
	go func() { _, err := NewMonitor(l.cfg); refused <- err }()
	select {
	case err := <-refused:
		if err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("got %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it was opened")
	}
}

func TestMonitorResync(t *testing.T) {
	l := newLab(t)
	l.cfg.Resync = 20 * time.Millisecond
	l.watch(nil)
	eventually(t, "reads without an event", func() bool { return l.reads.Load() > 3 })
	for _, none := range []time.Duration{0, -1} {
		l.cfg.Resync = none
		if m, err := NewMonitor(l.cfg); err != nil || m.resync != resync {
			t.Errorf("for %s: %v, %v", none, m.resync, err)
		}
	}
}

// One attribute that hangs costs its interface, not the others, and one thread.
func TestA17AttributeThatHangs(t *testing.T) {
	l := newLab(t)
	l.write("class/net/p0/phys_port_name", "p0\n")
	l.write("class/net/pf0vf3/phys_port_name", "")
	port := l.path("class/net/pf0vf3/phys_port_name")
	if err := errors.Join(os.Remove(port), syscall.Mkfifo(port, 0o600)); err != nil {
		t.Fatal(err)
	}
	m, err := NewMonitor(l.cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.source.sysfs.Timeout = 20 * time.Millisecond
	for range 5 {
		if err := m.refresh(); !errors.Is(err, kernel.ErrTimeout) {
			t.Errorf("got %v", err)
		}
		if !is(m, "p0", Physical)() || !is(m, "pf0vf3", Unclassified)() {
			t.Error("an interface that hangs was classified, or another was not")
		}
	}
	w, err := os.OpenFile(port, os.O_WRONLY|syscall.O_NONBLOCK, 0) // lets the reader go
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
}

func TestHealthy(t *testing.T) {
	l := newLab(t)
	m, err := NewMonitor(l.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Healthy(time.Now()); err != nil {
		t.Errorf("before Run: %v", err)
	}
	m.alive()
	if m.Healthy(time.Now().Add(time.Hour)) == nil {
		t.Error("a loop that has not moved for an hour counts as healthy")
	}
}

// Without files, the kernel is asked. Whether it has devlink or not, the answer is known.
func TestMonitorAsksTheKernel(t *testing.T) {
	var told atomic.Int32
	l := &lab{t: t, cfg: Config{Logger: slog.New(slog.DiscardHandler)}}
	m := l.watch(func() { told.Add(1) })
	eventually(t, "an index with lo", is(m, "lo", Plain))
}
