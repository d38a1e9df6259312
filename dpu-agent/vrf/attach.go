// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// Attach puts an interface, by its name or an alternative one, into a VRF, which is adopted if a device of its name is
// there and made if not. All addresses and routes of the interface go with it. It does nothing if all is as it should
// be, and moves an interface from a VRF that it was attached to before.
//
// The error is a *uplinkstate.Problem if the world does not allow it: UplinkConfigurationConflict if the interface
// belongs to a master that somebody else gave it, else UplinkVRFAttachmentFailed; then the interface and its routes
// are as they were. Any other error, and the end of ctx, leaves the work in the journal, to be finished by Resume or
// by the next call.
func (a *Attacher) Attach(ctx context.Context, iface string, to VRF) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.attach(ctx, iface, to); err != nil {
		return fmt.Errorf("attach %s to VRF %s: %w", iface, to.Name, err)
	}
	return nil
}

func (a *Attacher) attach(ctx context.Context, iface string, to VRF) error {
	w, err := a.begin(iface)
	if err != nil {
		return err
	}
	defer w.close()
	if w.link.index == 0 {
		return uplinkstate.Problemf(uplinkstate.ReasonUplinkVRFAttachmentFailed,
			"network interface %s, which is to be in VRF %s, does not exist", iface, to.Name)
	}
	if w.rec == nil {
		if err := w.recover(); err != nil {
			return err
		}
	}
	if w.rec != nil && (w.rec.VRF.device() != to.device() || w.rec.Phase == detaching) {
		if err := w.leave(ctx, to); err != nil {
			return err
		}
	}
	if w.rec != nil && w.rec.VRF != to {
		w.rec.VRF = to
		if err := w.note(w.rec.Phase); err != nil {
			return err
		}
	}
	if err := w.admit(to); err != nil {
		return err
	}
	return w.bring(ctx, to)
}

// leave finishes with another VRF. What could not return from it goes to the next.
func (w *work) leave(ctx context.Context, next VRF) error {
	if w.rec.Phase != returning {
		if err := w.release(ctx); err != nil && (w.rec == nil || w.rec.Phase != returning) {
			return err
		}
		if err := w.look(); err != nil {
			return err
		}
	}
	if w.rec != nil {
		w.rec.VRF = next
	}
	return nil
}

// admit refuses an interface with a master that is not the VRF.
func (w *work) admit(to VRF) error {
	device, ok, err := w.suitable(to)
	if err != nil {
		return err
	}
	if w.link.master == 0 || ok && w.link.master == device.index {
		return nil
	}
	master, _ := w.byIndex(w.link.master)
	return uplinkstate.Problemf(uplinkstate.ReasonUplinkConfigurationConflict,
		"network interface %s is to be in VRF %s of network %s, but it belongs to %s (%s); take it out of that, or name another interface in the Uplink",
		w.link.name, to.Name, to.Network, master.name, master.kind)
}

// bring does all that is left to be done for the interface to be in the VRF.
func (w *work) bring(ctx context.Context, to VRF) error {
	whole, err := w.gather(to)
	if err != nil {
		return err
	}
	if w.rec.Phase == attached {
		if w.inPlace() && w.lacking(whole.placed(w.link.index, w.rec.Table)).empty() {
			return w.keep(whole)
		}
	}
	repair := w.rec.Phase == attached && w.inPlace()
	if err := w.choose(); err != nil {
		return err
	}
	w.rec.hold(whole)
	if err := w.note(attaching); err != nil {
		return err
	}
	err = w.move(ctx, whole)
	switch {
	case err == nil:
		w.rec.Making = false
		w.rec.hold(whole)
		if err := w.note(attached); err != nil {
			return err
		}
		w.log.Info("Attached interface to VRF", "vrf", w.rec.VRF.Name, "table", w.rec.Table, "routes", len(whole.routes))
		return nil
	case ctx.Err() != nil:
		return err
	case repair:
		// What works goes on working.
		return cmp.Or(w.note(attached), error(uplinkstate.Problemf(uplinkstate.ReasonUplinkVRFAttachmentFailed,
			"network interface %s is in VRF %s, but what was removed there cannot be put back, and is tried again: %v", w.link.name, to.Name, err)))
	}
	back := w.release(ctx)
	if ctx.Err() != nil {
		return err
	}
	outcome := "it is as it was before"
	if back != nil {
		outcome = "taking it out again failed as well: " + back.Error()
	}
	var problem *uplinkstate.Problem
	if errors.As(err, &problem) {
		return problem
	}
	return uplinkstate.Problemf(uplinkstate.ReasonUplinkVRFAttachmentFailed,
		"network interface %s could not be attached to VRF %s: %v; %s", w.link.name, to.Name, err, outcome)
}

// gather makes or completes the record, and finds all that goes with the interface.
func (w *work) gather(to VRF) (taken, error) {
	table := uint32(0)
	if master, ok := w.byIndex(w.link.master); ok && master.vrf {
		table = master.table
	}
	whole := take(w.view, w.link.index, table)
	if w.rec == nil {
		boot, err := bootID()
		if err != nil {
			return taken{}, err
		}
		w.rec = &record{Interface: w.link.name, Index: w.link.index, Boot: boot, VRF: to, Table: table}
		return whole, nil
	}
	held, err := w.rec.held()
	if err != nil {
		return taken{}, err
	}
	if w.rec.Phase != attached {
		return whole.with(held), nil
	}
	// Addresses are the administrator's to change; routes that went with them stay away.
	if w.inPlace() {
		return whole.withFree(taken{routes: held.due(whole.addresses)}), nil
	}
	// Out of the VRF by somebody's hand, so that IPv6 addresses may have been lost on the way.
	return whole.withFree(held), nil
}

// inPlace tells whether the interface is in its VRF, and the VRF works.
func (w *work) inPlace() bool {
	device, ok := w.byName(w.rec.VRF.Name)
	return ok && device.vrf && device.up && device.table == w.rec.Table && w.link.master == device.index
}

// keep follows what changed on an interface that is attached.
func (w *work) keep(whole taken) error {
	held, err := w.rec.held()
	if err != nil {
		return err
	}
	if held.equal(whole) {
		return nil
	}
	w.rec.hold(whole)
	return w.note(attached)
}

// move takes the interface into the VRF with all that goes with it.
func (w *work) move(ctx context.Context, whole taken) error {
	device, err := w.device()
	if err != nil {
		return err
	}
	if err := w.adjust(); err != nil {
		return err
	}
	if w.link.master != device.index {
		if err := w.setMaster(device.index); err != nil {
			return err
		}
	}
	return w.restore(ctx, whole.placed(w.link.index, device.table))
}
