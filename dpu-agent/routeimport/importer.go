// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/rtevents"
	"github.com/vishvananda/netns"
)

const (
	defaultGrace    = 10 * time.Second
	defaultDebounce = 200 * time.Millisecond
	defaultResync   = 5 * time.Minute
	// share bounds what reading costs while routes change all the time: the pause between two reads is this many times
	// what a read takes, up to maxPause.
	share    = 10
	maxPause = 5 * time.Second
	// stalled is how long the loop may stand still, which turns every heartbeat at least.
	stalled = time.Minute
)

// Config of an Importer. The zero value is ready for use.
type Config struct {
	// Grace is how long routes stay that all went at once. Default 10 s.
	Grace time.Duration
	// Debounce is how long events are gathered, and for how long a table must be quiet for what is not in it to be gone.
	// Default 200 ms.
	Debounce time.Duration
	// Resync is how often everything is read without any event, give or take a tenth. Default 5 min.
	Resync time.Duration
	// OnChange is called with the name of an Uplink after what Routes says of it changed, the first read included, from
	// the importer's loop: it must not block.
	OnChange func(uplink string)
	// Namespace is the network namespace to watch, nil for the process's own.
	Namespace *netns.NsHandle
	// Logger is for what happens. Default slog.Default.
	Logger *slog.Logger
	// Metrics are told what happens; any may be nil.
	Metrics Metrics
}

// Importer keeps what is known of the routes of each wanted domain.
type Importer struct {
	config Config
	// subscribe and open are the kernel, or a test.
	subscribe func(*journal) (*rtevents.Subscription, error)
	open      func() (reader, error)
	journal   journal
	// kick wakes the loop when what is wanted changed.
	kick chan struct{}

	mu      sync.Mutex
	domains map[string]*domain
	// turned and readAt are the times of the loop's last turn and last good read.
	turned, readAt time.Time
	// lost is why what is known may be old, since lostAt; nil while there was no loss, or a good read after it.
	lost   error
	lostAt time.Time
	// pause is how long events are gathered now.
	pause time.Duration
}

// domain is one that is wanted.
type domain struct {
	Domain
	// version is another one whenever what was found before says nothing about the domain any more.
	version int
	state   state
	view    View
	// due is when it is to be looked at next, zero for not before something happens.
	due time.Time
	// place is where it was when it was looked at last.
	place
}

// New makes an importer; Run starts it.
func New(c Config) *Importer {
	c.Grace = cmp.Or(c.Grace, defaultGrace)
	c.Debounce = cmp.Or(c.Debounce, defaultDebounce)
	c.Resync = cmp.Or(c.Resync, defaultResync)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.OnChange == nil {
		c.OnChange = func(string) {}
	}
	i := &Importer{config: c, kick: make(chan struct{}, 1), domains: map[string]*domain{}, pause: c.Debounce}
	i.config.Metrics.fill()
	i.subscribe = func(j *journal) (*rtevents.Subscription, error) { return subscribe(c.Namespace, receiveBuffer, j) }
	i.open = func() (reader, error) { return openRtnetlink(c.Namespace) }
	return i
}

// Want says where the routes of an Uplink are to be looked for from now on. To say the same again costs nothing. A
// domain whose VRF or Interface is another one has nothing to do with the one before: its routes are gone at once. An
// Uplink whose interface is not known for a moment should go on to be wanted as it was.
func (i *Importer) Want(uplink string, wanted Domain) {
	wanted = wanted.normal()
	i.mu.Lock()
	defer i.mu.Unlock()
	d, ok := i.domains[uplink]
	switch {
	case !ok:
		d = &domain{Domain: wanted, state: stateOf(wanted.Previous).without(&wanted)}
		i.domains[uplink] = d
	case !d.sameSource(&wanted):
		i.config.Logger.Info("Routes are imported from elsewhere now", "uplink", uplink, "vrf", wanted.VRF, "interface", wanted.Interface)
		d.state = state{known: true}
		d.place = place{}
	case !d.sameRules(&wanted):
		d.state = d.state.without(&wanted)
	default:
		return
	}
	d.Domain = wanted
	d.version++
	d.view = View{Known: d.state.known, Routes: d.state.flat()}
	i.config.Metrics.Imported(uplink, len(d.view.Routes))
	d.due = time.Now()
	i.wake()
}

// Forget ends the import for an Uplink.
func (i *Importer) Forget(uplink string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, ok := i.domains[uplink]; !ok {
		return
	}
	delete(i.domains, uplink)
	i.config.Metrics.Forgotten(uplink)
	i.wake()
}

func (i *Importer) wake() {
	select {
	case i.kick <- struct{}{}:
	default:
	}
}

// Routes is what is known of an Uplink's routes now. For an Uplink that is not wanted nothing is known.
func (i *Importer) Routes(uplink string) View {
	i.mu.Lock()
	defer i.mu.Unlock()
	d, ok := i.domains[uplink]
	if !ok || !d.view.Known {
		return View{}
	}
	return d.view
}

// Ready is nil while what is known is believed current. It is an error, with the cause, from a lost subscription or
// failed read until the next good read.
func (i *Importer) Ready() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lost != nil {
		return fmt.Errorf("no sight of the kernel's routes since %s: %w", i.lostAt.UTC().Format(time.RFC3339), i.lost)
	}
	return nil
}

// Healthy is for a liveness probe: an error means that the loop stands still, or that reads have failed for so long
// that several resyncs were missed.
func (i *Importer) Healthy(now time.Time) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.turned.IsZero() {
		return errors.New("route import: not started")
	}
	if idle := now.Sub(i.turned); idle > stalled {
		return fmt.Errorf("route import: the loop has not turned for %s", idle.Round(time.Second))
	}
	if age := now.Sub(i.readAt); i.lost != nil && age > 3*i.config.Resync {
		return fmt.Errorf("route import: nothing was read for %s", age.Round(time.Second))
	}
	return nil
}
