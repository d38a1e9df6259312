// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/rtevents"
	"golang.org/x/sys/unix"
)

// reader is the kernel, or a test.
type reader interface {
	// link finds a network interface by name.
	link(name string) (found link, ok bool, err error)
	// read lists what there is in a table.
	read(ctx context.Context, table uint32) (*content, error)
	close()
}

// look is one look at one domain.
type look struct {
	uplink  string
	domain  Domain
	version int
	place
	// absent says what is missing of the place.
	absent string
}

// place is what the names of a domain stand for; the zero place is nowhere.
type place struct {
	link, vrf int
	table     uint32
}

// refresh looks at the domains that are due and tells of those that changed.
func (i *Importer) refresh(ctx context.Context, kernel reader, events *rtevents.Subscription) error {
	looks := i.due(time.Now())
	if len(looks) == 0 {
		return nil
	}
	for n := range looks {
		if err := looks[n].find(kernel); err != nil {
			return err
		}
	}
	i.follow(looks)
	slices.SortStableFunc(looks, func(a, b look) int { return cmp.Compare(a.table, b.table) })
	for len(looks) > 0 {
		n := 1
		for n < len(looks) && looks[n].table == looks[0].table {
			n++
		}
		c, settled, err := i.read(ctx, kernel, events, looks[0].table)
		if err != nil {
			return err
		}
		for _, l := range looks[:n] {
			if i.conclude(l, c, settled, time.Now()) {
				i.config.OnChange(l.uplink)
			}
		}
		looks = looks[n:]
	}
	i.regainSight()
	return nil
}

// due lists the domains that are to be looked at now, and has their names followed.
func (i *Importer) due(now time.Time) []look {
	i.mu.Lock()
	defer i.mu.Unlock()
	var looks []look
	for uplink, d := range i.domains {
		if d.due.IsZero() || d.due.After(now) {
			continue
		}
		d.due = time.Time{}
		looks = append(looks, look{uplink: uplink, domain: d.Domain, version: d.version})
	}
	slices.SortFunc(looks, func(a, b look) int { return cmp.Compare(a.uplink, b.uplink) })
	i.followAll()
	return looks
}

// find finds out what the names of a domain stand for.
func (l *look) find(kernel reader) error {
	device, ok, err := kernel.link(l.domain.Interface)
	if err != nil {
		return err
	}
	if !ok {
		l.absent = fmt.Sprintf("there is no network interface %s", l.domain.Interface)
		return nil
	}
	found := place{link: device.index, table: unix.RT_TABLE_MAIN}
	if l.domain.VRF != "" {
		vrf, ok, err := kernel.link(l.domain.VRF)
		if err != nil {
			return err
		}
		if !ok || vrf.table == 0 {
			l.absent = fmt.Sprintf("there is no VRF %s", l.domain.VRF)
			return nil
		}
		found.vrf, found.table = vrf.index, vrf.table
	}
	l.place = found
	return nil
}

// follow has events of the places that were found written down, before they are read.
func (i *Importer) follow(looks []look) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, l := range looks {
		if d, ok := i.domains[l.uplink]; ok && d.version == l.version {
			d.place = l.place
		}
	}
	i.followAll()
}

// followAll has events of all domains written down. The caller holds mu.
func (i *Importer) followAll() {
	names, links, tables := map[string]bool{}, map[int]bool{}, map[uint32]bool{}
	for _, d := range i.domains {
		names[d.Interface], names[d.VRF] = true, true
		links[d.link], links[d.vrf] = true, true
		tables[d.table] = true
	}
	delete(names, "")
	delete(links, 0)
	delete(tables, 0)
	i.journal.follow(names, links, tables)
}

// read reads a table, unless that is nowhere, and tells whether nothing changed while it did and for a moment before.
func (i *Importer) read(ctx context.Context, kernel reader, events *rtevents.Subscription, table uint32) (c *content, settled bool, err error) {
	if table == 0 {
		return &content{}, true, nil
	}
	started := time.Now()
	c, err = kernel.read(ctx, table)
	took := time.Since(started)
	i.config.Metrics.Read(took, err)
	if err != nil {
		return nil, false, err
	}
	i.set(func() { i.pause = min(max(i.config.Debounce, share*took), maxPause) })
	settled = !c.torn && !events.Pending() && started.Sub(i.journal.last(table)) >= i.config.Debounce
	return c, settled, nil
}

// conclude decides what is believed of a domain after a look at it, and tells whether that is to be told.
func (i *Importer) conclude(l look, c *content, settled bool, now time.Time) (changed bool) {
	var o observation
	v := View{Known: true, Absent: l.absent}
	o.seen, v.Ignored = c.choose(&l.domain, l.link)
	o.settled = settled
	i.mu.Lock()
	defer i.mu.Unlock()
	d, ok := i.domains[l.uplink]
	if !ok || d.version != l.version {
		return false
	}
	before := d.state
	d.state = before.next(o, now, i.config.Grace)
	again, last := d.state.over(i.config.Grace)
	if !again.IsZero() && !settled {
		if soon := now.Add(i.pause); soon.Before(again) {
			again = soon
		}
	}
	if !again.IsZero() && (d.due.IsZero() || again.Before(d.due)) {
		d.due = again
	}
	if !d.state.emptied.IsZero() {
		v.Kept = last
	}
	v.Routes = d.state.flat()
	changed = v.differs(&d.view)
	if !changed {
		return false
	}
	i.log(l.uplink, &d.view, &v, before, d.state)
	d.view = v
	i.config.Metrics.Imported(l.uplink, len(v.Routes))
	return true
}

// log tells of what is no everyday change. The caller holds mu.
func (i *Importer) log(uplink string, old, v *View, before, after state) {
	log := i.config.Logger.With("uplink", uplink, "routes", len(v.Routes))
	switch {
	case !before.known:
		log.Info("Routes of an Uplink are imported", "note", v.Note())
	case !after.emptied.IsZero() && !before.emptied.Equal(after.emptied):
		i.config.Metrics.Emptied(uplink)
		log.Info("All routes of an Uplink have gone, they are kept for a while", "until", v.Kept, "cause", v.Absent)
	case !before.emptied.IsZero() && after.emptied.IsZero():
		log.Info("The routes of an Uplink are those of the kernel again", "before", len(old.Routes))
	default:
		log.Debug("Routes of an Uplink changed", "before", len(old.Routes), "note", v.Note())
	}
}
