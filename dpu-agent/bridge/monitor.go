// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb"
)

// Config says which Open vSwitch to watch.
type Config struct {
	// Endpoint and TLS are those of ovsdb.Config.
	Endpoint string
	TLS      *tls.Config
	// Chassis is the name that ovn-controller(8) was started with (-n); empty if it was not given one.
	Chassis string
	// ChassisFile is the file by which ovn-controller is told another chassis name than external_ids:system-id. It
	// is read whenever the database changes, and need not exist; empty for none.
	ChassisFile string
	Logger      *slog.Logger
}

// Monitor keeps a View of one Open vSwitch.
type Monitor struct {
	db        *ovsdb.Client
	config    Config
	listeners []func()

	mu      sync.Mutex
	view    *View     // the last known
	known   bool      // view is how it is now
	doubted time.Time // since when the database has had no bridge where it had some; zero while it has
}

// NewMonitor makes a Monitor; an error is a mistake in the Config.
func NewMonitor(c Config) (*Monitor, error) {
	db, err := ovsdb.New(ovsdb.Config{
		Endpoint: c.Endpoint, TLS: c.TLS, Database: "Open_vSwitch", Root: rootTable, Tables: tables(), Logger: c.Logger,
	})
	if err != nil {
		return nil, err
	}
	m := &Monitor{db: db, config: c}
	db.OnChange(m.refresh)
	return m, nil
}

// OnChange adds a function to be called after the view changed, became known or unknown. It must not block, and
// is to be added before Run.
func (m *Monitor) OnChange(f func()) { m.listeners = append(m.listeners, f) }

// Run watches until the context ends.
func (m *Monitor) Run(ctx context.Context) error { return m.db.Run(ctx) }

// Latest gives the last known view, nil before the first. False means that it is not known how Open vSwitch is
// now: nothing may be concluded from what the view lacks, nor taken down.
func (m *Monitor) Latest() (*View, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view, m.known
}

// Ready is nil while the view is known, else it says why not.
func (m *Monitor) Ready() error {
	if _, known := m.Latest(); known {
		return nil
	}
	if _, err := m.db.Content(); err != nil {
		return err
	}
	return errors.New("reading what the database holds")
}

// Healthy is nil while the monitor makes progress, connected or not.
func (m *Monitor) Healthy(now time.Time) error { return m.db.Healthy(now) }

// Transact writes to the database that is watched; see ovsdb.Client.Transact.
func (m *Monitor) Transact(ctx context.Context, operations ...ovsdb.Operation) ([]ovsdb.Result, error) {
	return m.db.Transact(ctx, operations...)
}

func (m *Monitor) refresh() {
	m.mu.Lock()
	content, err := m.db.Content() // under the lock, so that what is newer stays
	known := err == nil
	view := m.view
	if known {
		next := newView(content, cmp.Or(m.config.Chassis, readChassis(m.config.ChassisFile)))
		if known = !m.doubt(next, time.Now()); known {
			view = next
		}
	}
	same := known == m.known && reflect.DeepEqual(view, m.view)
	m.view, m.known = view, known
	m.mu.Unlock()
	if same {
		return
	}
	for _, f := range m.listeners {
		f()
	}
}

// emptyGrace is how long a database without bridges is not believed where it had some. One that was made anew, or
// is filled again, looks like this for a moment, and nobody takes down all bridges to change an uplink.
const emptyGrace = 30 * time.Second

// doubt tells whether a view is not to be believed yet, and has it looked at again when it is.
func (m *Monitor) doubt(next *View, now time.Time) bool {
	if len(next.Bridges) > 0 || m.view == nil || len(m.view.Bridges) == 0 {
		m.doubted = time.Time{}
		return false
	}
	if m.doubted.IsZero() {
		m.doubted = now
		time.AfterFunc(emptyGrace, m.refresh)
	}
	return now.Sub(m.doubted) < emptyGrace
}

// readChassis reads the name in a system-id-override file, empty where there is none.
func readChassis(path string) string {
	if path == "" {
		return ""
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "" // as ovn-controller does
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}
