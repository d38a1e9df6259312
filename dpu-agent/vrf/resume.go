// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Resume finishes what an earlier run left unfinished, wherever it ended, repairs what was changed meanwhile on
// interfaces that are attached, and removes VRF devices of this program that serve nobody. Call it at the start.
func (a *Attacher) Resume(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	names, err := a.journal.interfaces()
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if err := a.resume(ctx, name); err != nil {
			errs = append(errs, fmt.Errorf("finish the work on %s: %w", name, err))
		}
	}
	return errors.Join(append(errs, a.sweep())...)
}

func (a *Attacher) resume(ctx context.Context, iface string) error {
	w, err := a.begin(iface)
	if err != nil {
		return err
	}
	defer w.close()
	if w.rec == nil {
		return nil
	}
	return w.redo(ctx)
}

// redo does what is left to be done, either way.
func (w *work) redo(ctx context.Context) error {
	if w.rec.Phase == detaching || w.rec.Phase == returning {
		return w.release(ctx)
	}
	if err := w.admit(w.rec.VRF); err != nil {
		return err
	}
	return w.bring(ctx, w.rec.VRF)
}

// sweep removes VRF devices that this program made and that are nobody's any more.
func (a *Attacher) sweep() error {
	r, err := openRtnetlink()
	if err != nil {
		return err
	}
	defer r.close()
	v, err := r.observe()
	if err != nil {
		return err
	}
	names, err := a.journal.interfaces()
	if err != nil {
		return err
	}
	var wanted []string
	for _, name := range names {
		rec, err := a.journal.read(name)
		if err != nil {
			return err
		}
		if rec != nil {
			wanted = append(wanted, rec.VRF.Name)
		}
	}
	for _, l := range v.links {
		if l.vrf && strings.HasPrefix(l.alias, aliasPrefix) && !v.hasSlaves(l.index) && !slices.Contains(wanted, l.name) {
			a.cfg.at("remove VRF")
			if err := r.deleteDevice(v, l); err != nil {
				return err
			}
			a.cfg.Logger.Info("Removed VRF that nothing was in", "vrf", l.name)
		}
	}
	return nil
}
