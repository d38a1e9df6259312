// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb"
)

// attempts is how often a plan is made anew because somebody else wrote in between.
const attempts = 5

// DB is the northbound database as one node sees it. Its methods may be called from any goroutine.
type DB struct {
	db     *ovsdb.Client
	node   string
	ranges Ranges

	// writing is held by who plans and writes: two plans must not take the same addresses.
	writing sync.Mutex

	mu      sync.Mutex
	content *ovsdb.Content // what view was made from
	view    *View
}

// New makes a DB; Run makes it work. An error is a mistake in the Config.
func New(c Config) (*DB, error) {
	if c.Node == "" {
		return nil, errors.New("follow the OVN northbound database: no node name")
	}
	if err := c.Ranges.Validate(); err != nil {
		return nil, fmt.Errorf("addresses for gateways: %w", err)
	}
	client, err := ovsdb.New(ovsdb.Config{
		Endpoint: c.Endpoint, TLS: c.TLS, Database: "OVN_Northbound", Root: globalTable, Tables: tables(), Where: where(),
		Logger: c.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &DB{db: client, node: c.Node, ranges: c.Ranges.withDefaults()}, nil
}

// OnChange adds a function to be called after rows changed, or the database became known or unknown. It must not
// block, and is to be added before Run.
func (d *DB) OnChange(f func()) { d.db.OnChange(f) }

// Run follows the database until the context ends.
func (d *DB) Run(ctx context.Context) error { return d.db.Run(ctx) }

// Ready is nil while it is known what the database holds, else it says why not.
func (d *DB) Ready() error {
	_, err := d.db.Content()
	return err
}

// Healthy is nil while Run makes progress, connected or not.
func (d *DB) Healthy(now time.Time) error { return d.db.Healthy(now) }

// View gives what the database holds; an error while that is not known.
func (d *DB) View() (*View, error) {
	content, err := d.db.Content()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.content != content {
		d.content, d.view = content, newView(read(content), d.node, d.ranges)
	}
	return d.view, nil
}

// Uplinks are the Uplinks that have rows on this node, sorted.
func (d *DB) Uplinks() ([]string, error) {
	view, err := d.View()
	if err != nil {
		return nil, err
	}
	return view.Uplinks(), nil
}

// Apply makes the database have the rows of a Gateway, in one transaction, and tells whether it had to write. See
// Plan for the Outcome; while the database is not known, or does not take the rows, there is an error instead.
func (d *DB) Apply(ctx context.Context, g Gateway) (Outcome, bool, error) {
	var outcome Outcome
	changed, err := d.write(ctx, func(v *View) (operations []ovsdb.Operation, err error) {
		operations, outcome, err = Plan(v, g)
		return operations, err
	})
	if err != nil {
		return Outcome{}, false, fmt.Errorf("write the gateway of Uplink %s to OVN: %w", g.Uplink, err)
	}
	return outcome, changed, nil
}

// Remove makes the database have no rows of an Uplink on this node, and tells whether it had to write.
func (d *DB) Remove(ctx context.Context, uplink string) (bool, error) {
	changed, err := d.write(ctx, func(v *View) ([]ovsdb.Operation, error) { return PlanRemoval(v, uplink), nil })
	if err != nil {
		return false, fmt.Errorf("remove the gateway of Uplink %s from OVN: %w", uplink, err)
	}
	return changed, nil
}

// write plans on what the database holds and writes, again if somebody else wrote in between.
func (d *DB) write(ctx context.Context, plan func(*View) ([]ovsdb.Operation, error)) (bool, error) {
	d.writing.Lock()
	defer d.writing.Unlock()
	for attempt := 1; ; attempt++ {
		view, err := d.View()
		if err != nil {
			return false, err
		}
		operations, err := plan(view)
		if err != nil || len(operations) == 0 {
			return false, err
		}
		if _, err = d.db.Transact(ctx, operations...); err == nil {
			return true, nil
		}
		if !errors.Is(err, ovsdb.ErrChanged) || attempt == attempts {
			return false, err
		}
	}
}
