// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"golang.org/x/sys/unix"
)

// Detach takes an interface that was attached out of its VRF, with all of its addresses and routes, and removes the VRF
// device if this program made it and nothing else is in it. An interface that was not attached is left alone.
//
// A route that cannot return, because another interface has one of the same destination and metric by now, stays in
// the journal; the error is a *uplinkstate.Problem that names it, Watch tries again, and so does the next call.
func (a *Attacher) Detach(ctx context.Context, iface string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.detach(ctx, iface); err != nil {
		return fmt.Errorf("take %s out of its VRF: %w", iface, err)
	}
	return nil
}

func (a *Attacher) detach(ctx context.Context, iface string) error {
	w, err := a.begin(iface)
	if err != nil {
		return err
	}
	defer w.close()
	if w.rec == nil {
		if err := w.recover(); err != nil || w.rec == nil {
			return err
		}
	}
	delete(a.drifts, w.rec.Interface)
	return w.release(ctx)
}

// recover makes the record anew of an interface that is in a VRF of this program's: the journal was lost.
func (w *work) recover() error {
	master, ok := w.byIndex(w.link.master)
	if w.link.index == 0 || !ok || !master.vrf || !strings.HasPrefix(master.alias, aliasPrefix) {
		return nil
	}
	whole, err := w.gather(VRF{Name: master.name, Network: strings.TrimPrefix(master.alias, aliasPrefix)})
	if err != nil {
		return err
	}
	w.rec.hold(whole)
	return nil
}

// release does all that is left to be done for the interface to be in no VRF, and drops the record.
func (w *work) release(ctx context.Context) error {
	if err := w.look(); errors.Is(err, unix.ENODEV) {
		return w.forget()
	} else if err != nil {
		return err
	}
	whole, err := w.gather(w.rec.VRF)
	if err != nil {
		return err
	}
	again := w.rec.Phase == returning
	w.rec.hold(whole)
	if !again {
		if err := w.note(detaching); err != nil {
			return err
		}
	}
	if device, ok := w.byName(w.rec.VRF.Name); ok && device.vrf && w.link.master == device.index {
		if err := w.setMaster(0); err != nil {
			return err
		}
	}
	err = w.restore(ctx, whole.placed(w.link.index, 0))
	var left *missing
	if err != nil && !errors.As(err, &left) {
		return err
	}
	if err := w.readjust(); err != nil {
		return err
	}
	if left == nil {
		name := w.rec.VRF.Name
		if err := w.forget(); err != nil {
			return err
		}
		w.log.Info("Took interface out of VRF", "vrf", name, "routes", len(whole.routes))
		return nil
	}
	if err := w.removeDevice(); err != nil {
		return err
	}
	w.rec.hold(left.taken)
	if err := w.note(returning); err != nil {
		return err
	}
	return uplinkstate.Problemf(uplinkstate.ReasonUplinkVRFAttachmentFailed,
		"network interface %s is out of VRF %s, but not all that belongs to it could return, and is tried again: %v; "+
			"remove what is in the way", w.link.name, w.rec.VRF.Name, left)
}
