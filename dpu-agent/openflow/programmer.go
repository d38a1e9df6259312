// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config says where Open vSwitch is.
type Config struct {
	// RunDir is where ovs-vswitchd has its sockets: /var/run/openvswitch.
	RunDir string
	// Program is ovs-ofctl, found in PATH when empty.
	Program string
	// Zones are the first and the last conntrack zone to be given to bridges: 64200 and 64299.
	FirstZone, LastZone uint16
	// Timeout bounds every call of ovs-ofctl: 20 s.
	Timeout time.Duration
	Logger  *slog.Logger
}

// Programmer programs bridges. Its methods may be called from several goroutines; a bridge that does not answer
// holds up nobody but callers for the same bridge.
type Programmer struct {
	config    Config
	ofctl     ofctl
	log       *slog.Logger
	zones     zones
	listeners []func(string)
	flowMods  atomic.Uint64
	portMods  atomic.Uint64

	mu       sync.Mutex
	bridges  map[string]*state
	running  context.Context // that of Run, nil before and after
	watchers sync.WaitGroup
}

// Change is what a call of Program sent. A flow that replaced another is an added one.
type Change struct {
	Added   int
	Deleted int
}

// New makes a Programmer.
func New(c Config) *Programmer {
	c.Program = cmp.Or(c.Program, "ovs-ofctl")
	c.FirstZone, c.LastZone = cmp.Or(c.FirstZone, 64200), cmp.Or(c.LastZone, 64299)
	c.Timeout = cmp.Or(c.Timeout, 20*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Programmer{
		config: c, ofctl: ofctl{program: c.Program, runDir: c.RunDir, timeout: c.Timeout}, log: c.Logger,
		zones: zones{known: map[string]uint16{}}, bridges: map[string]*state{},
	}
}

// OnDrift adds a function to be called with the name of a bridge whose flows or patch port are no longer as
// programmed; Program repairs it. It must not block, and is to be added before Run.
func (p *Programmer) OnDrift(f func(bridge string)) { p.listeners = append(p.listeners, f) }

// Program makes a bridge's flows those of b, and keeps floods from its patch port. It sends the difference to what
// it knows to be there; at first, and whenever that is in doubt, it reads what is there.
func (p *Programmer) Program(ctx context.Context, b Bridge) (Change, error) {
	if err := b.validate(); err != nil {
		return Change{}, fmt.Errorf("flows of bridge %s: %w", b.Name, err)
	}
	items, err := b.items()
	if err != nil {
		return Change{}, fmt.Errorf("flows of bridge %s: %w", b.Name, err)
	}
	s := p.state(b.Name, true)
	if err := s.lock(ctx); err != nil {
		return Change{}, fmt.Errorf("wait for bridge %s: %w", b.Name, err)
	}
	defer s.unlock()
	p.zones.use(b.Name, b.Zone)
	return p.program(ctx, s, b.frame(), items)
}

// Dump returns the package's flows that are on a bridge now, sorted by table, falling priority and match.
func (p *Programmer) Dump(ctx context.Context, bridge string) ([]Flow, error) {
	var flows []Flow
	if err := p.ofctl.dump(ctx, bridge, func(f Flow) { flows = append(flows, f) }); err != nil {
		return nil, err
	}
	slices.SortFunc(flows, Flow.compare)
	return flows, nil
}

// Remove deletes all of the package's flows from a bridge, lets floods reach the patch port again if it is still
// there, and forgets the bridge.
//
// It is for a bridge whose patch port is gone: as long as OVN sends frames with the Uplink's MAC, the bridge would
// learn the MAC at the patch port, and the host would be lost. Until then, program the bridge without services,
// subnets and patch port, which leaves what protects the host.
func (p *Programmer) Remove(ctx context.Context, bridge string) error {
	s := p.state(bridge, false)
	if err := s.lock(ctx); err != nil {
		return fmt.Errorf("wait for bridge %s: %w", bridge, err)
	}
	defer s.unlock()
	patch, present, err := p.patchOf(ctx, bridge)
	if err != nil {
		return err
	}
	s.doubt()
	s.set(Bridge{}, nil, nil)
	if present {
		p.countFlowMods(1)
		if err := p.ofctl.deleteOwn(ctx, bridge); err != nil {
			return err
		}
	}
	if patch != 0 {
		if err := p.restoreFlood(ctx, bridge, patch); err != nil {
			return err
		}
	}
	p.Forget(bridge)
	return nil
}

func (p *Programmer) restoreFlood(ctx context.Context, bridge string, patch uint32) error {
	floods, exists, err := p.ofctl.floods(ctx, bridge, patch)
	if err != nil || floods || !exists {
		return err
	}
	p.countPortMods()
	return p.ofctl.setFlood(ctx, bridge, patch, true)
}

// Forget drops what is known about a bridge and ends its monitor; nothing on the bridge changes.
func (p *Programmer) Forget(bridge string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.bridges[bridge]; s != nil {
		delete(p.bridges, bridge)
		s.stop()
	}
	p.zones.forget(bridge)
}

// state returns what is known about a bridge. One that is programmed is watched while Run runs; one that flows are only
// removed from is not.
func (p *Programmer) state(bridge string, programmed bool) *state {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.bridges[bridge]
	if s == nil {
		s = newState(bridge)
		p.bridges[bridge] = s
	}
	if programmed && !s.programmed {
		s.programmed = true
		p.watch(s)
	}
	return s
}

// Run watches the bridges that are or will be programmed until the context ends.
func (p *Programmer) Run(ctx context.Context) error {
	p.mu.Lock()
	p.running = ctx
	for _, s := range p.bridges {
		p.watch(s)
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.running = nil
	p.mu.Unlock()
	p.watchers.Wait()
	return nil
}

// watch starts to watch a bridge that is programmed, while Run runs. p.mu is held.
func (p *Programmer) watch(s *state) {
	if p.running == nil || !s.programmed {
		return
	}
	ctx, cancel := context.WithCancel(p.running)
	s.stop = cancel
	p.watchers.Go(func() {
		defer cancel()
		p.follow(ctx, s)
	})
}

func (p *Programmer) notify(bridge string) {
	drifts.Inc()
	for _, f := range p.listeners {
		f(bridge)
	}
}
