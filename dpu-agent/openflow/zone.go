// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// zones remembers which conntrack zone is whose.
type zones struct {
	choosing sync.Mutex // one allocation at a time

	mu    sync.Mutex
	known map[string]uint16 // by bridge
}

func (z *zones) use(bridge string, zone uint16) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.known[bridge] = zone
}

func (z *zones) forget(bridge string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	delete(z.known, bridge)
}

func (z *zones) of(bridge string) (uint16, bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	zone, found := z.known[bridge]
	return zone, found
}

// free returns the lowest zone that no bridge has, and takes it.
func (z *zones) free(bridge string, first, last uint16) (uint16, bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	taken := map[uint16]bool{}
	for _, zone := range z.known {
		taken[zone] = true
	}
	for zone := int(first); zone <= int(last); zone++ {
		if !taken[uint16(zone)] {
			z.known[bridge] = uint16(zone)
			return uint16(zone), true
		}
	}
	return 0, false
}

// Zone returns the conntrack zone of a bridge: the one that its flows have, also after a restart of the agent, else
// the lowest that no bridge with flows of the package's has. Without ovs-vswitchd it is an error.
func (p *Programmer) Zone(ctx context.Context, bridge string) (uint16, error) {
	p.zones.choosing.Lock()
	defer p.zones.choosing.Unlock()
	if zone, found := p.zones.of(bridge); found {
		return zone, nil
	}
	zone, err := p.zoneOn(ctx, bridge)
	if err != nil {
		return 0, fmt.Errorf("find the conntrack zone of bridge %s: %w", bridge, err)
	}
	if err := p.learnZones(ctx, bridge); err != nil {
		return 0, fmt.Errorf("find the conntrack zone of bridge %s: %w", bridge, err)
	}
	first, last := p.config.FirstZone, p.config.LastZone
	if zone >= first && zone <= last && !p.zones.taken(zone) {
		p.zones.use(bridge, zone)
		return zone, nil
	}
	zone, found := p.zones.free(bridge, first, last)
	if !found {
		return 0, fmt.Errorf("find a conntrack zone for bridge %s: all of %d to %d are in use", bridge, first, last)
	}
	return zone, nil
}

func (z *zones) taken(zone uint16) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, other := range z.known {
		if other == zone {
			return true
		}
	}
	return false
}

// learnZones reads the zones of all other bridges that are not known yet. One that cannot be read has no flows of
// the package's that this process could have made.
func (p *Programmer) learnZones(ctx context.Context, except string) error {
	sockets, err := filepath.Glob(p.ofctl.socket("*"))
	if err != nil {
		return err
	}
	for _, path := range sockets {
		bridge := strings.TrimSuffix(filepath.Base(path), ".mgmt")
		if _, known := p.zones.of(bridge); known || bridge == except {
			continue
		}
		zone, err := p.zoneOn(ctx, bridge)
		var refused *refusal
		switch {
		case errors.As(err, &refused):
			p.log.Warn("cannot tell which conntrack zone a bridge has", "bridge", bridge, "err", err)
		case err != nil:
			return err
		case zone != 0:
			p.zones.use(bridge, zone)
		}
	}
	return nil
}

// zoneOn reads a bridge's zone off the row to OVN, the only one in its table; 0 when it has none.
func (p *Programmer) zoneOn(ctx context.Context, bridge string) (uint16, error) {
	var found []uint16
	read := func(f Flow) { found = append(found, uint16(f.Cookie)) }
	if err := p.ofctl.dump(ctx, bridge, read, fmt.Sprintf("table=%d", tableOVN)); err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return 0, nil
	}
	return slices.Min(found), nil
}

// patchOf reads a bridge's patch port off the same row, 0 when it names none; present is false without that row.
func (p *Programmer) patchOf(ctx context.Context, bridge string) (patch uint32, present bool, err error) {
	read := func(f Flow) {
		present = true
		if _, err := fmt.Sscanf(f.Actions, "ct_clear,output:%d", &patch); err != nil {
			patch = 0 // "drop"
		}
	}
	err = p.ofctl.dump(ctx, bridge, read, fmt.Sprintf("table=%d", tableOVN))
	return patch, present, err
}
