// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
)

// StartNB starts the northbound database and waits until it answers.
func (z *Zone) StartNB(ctx context.Context) (err error) {
	z.nb, err = z.startDB(ctx, "ovnnb_db", z.NB())
	return err
}

// StartSB starts the southbound database and waits until it answers.
func (z *Zone) StartSB(ctx context.Context) (err error) {
	z.sb, err = z.startDB(ctx, "ovnsb_db", z.SB())
	return err
}

func (z *Zone) startDB(ctx context.Context, name, endpoint string) (*Process, error) {
	o := z.Node.OVS
	p, err := o.startAs(ctx, name, "ovsdb-server", z.file(name+".db"),
		"--remote=p"+endpoint, "--unixctl="+z.socket(name+".ctl"))
	if err != nil {
		return nil, err
	}
	return p, o.waitFor(ctx, p, func(ctx context.Context) error {
		_, err := o.command(ctx, "ovsdb-client", "list-dbs", endpoint)
		return err
	})
}

// StartNorthd starts ovn-northd and waits until it has written to the
// southbound database: an ovn-controller 23.03 that starts before that may
// crash. It is restarted when it crashes, as its service does: 26.03 aborts when
// it sees a router or switch come and another one go at once.
func (z *Zone) StartNorthd(ctx context.Context) (err error) {
	o := z.Node.OVS
	z.northd, err = o.startMonitored(ctx, "ovn-northd", "--ovnnb-db="+z.NB(), "--ovnsb-db="+z.SB())
	if err != nil {
		return err
	}
	return o.waitFor(ctx, z.northd, func(ctx context.Context) error {
		_, err := z.Sbctl(ctx, "get", "SB_Global", ".", "options:northd_internal_version")
		return err
	})
}

// StartController starts ovn-controller and waits until the node is a
// chassis and its integration bridge there.
func (z *Zone) StartController(ctx context.Context) (err error) {
	o := z.Node.OVS
	// Its service has it restarted after a crash too.
	z.controller, err = o.startMonitored(ctx, "ovn-controller", o.DB())
	if err != nil {
		return err
	}
	return o.waitFor(ctx, z.controller, func(ctx context.Context) error {
		if _, err := z.Sbctl(ctx, "get", "Chassis_Private", z.Chassis, "name"); err != nil {
			return err
		}
		if _, err := o.Vsctl(ctx, "get", "Interface", "br-int", "ofport"); err != nil {
			return fmt.Errorf("integration bridge: %w", err)
		}
		return nil
	})
}

// StopNB ends the northbound database.
func (z *Zone) StopNB(ctx context.Context) error { return stopIf(ctx, z.nb) }

// StopSB ends the southbound database.
func (z *Zone) StopSB(ctx context.Context) error { return stopIf(ctx, z.sb) }

// StopNorthd ends ovn-northd.
func (z *Zone) StopNorthd(ctx context.Context) error { return stopIf(ctx, z.northd) }

// StopController ends ovn-controller, which takes its chassis and its patch
// ports with it. Killing ControllerProcess leaves them, as a crash does.
func (z *Zone) StopController(ctx context.Context) error { return stopIf(ctx, z.controller) }

// NBProcess is the northbound database's process that was started last.
func (z *Zone) NBProcess() *Process { return z.nb }

// SBProcess is the southbound database's process that was started last.
func (z *Zone) SBProcess() *Process { return z.sb }

// NorthdProcess is the ovn-northd that was started last.
func (z *Zone) NorthdProcess() *Process { return z.northd }

// ControllerProcess is the ovn-controller that was started last.
func (z *Zone) ControllerProcess() *Process { return z.controller }
