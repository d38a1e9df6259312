// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

const (
	// batch is how long events are gathered before they cause one look.
	batch = 200 * time.Millisecond
	// resync is how often there is a look without an event.
	resync = 5 * time.Minute
	// retry is how often what could not be finished is tried again.
	retry = 30 * time.Second
)

// Drift is what others changed on an interface that is attached.
type Drift struct {
	Interface string
	VRF       VRF
	// What was changed, such as "VRF blue is gone".
	What string
	// Err is why it could not be put right; nil if it could.
	Err error
	// Fighting is set when it was put right again and again, so that somebody else must be undoing it. Repairs are
	// further apart then.
	Fighting bool
}

// Drifted tells what is wrong with an interface: what could not be put right, or is undone again and again. ok is
// false if nothing is.
func (a *Attacher) Drifted(iface string) (d Drift, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := a.drifts[iface]
	if state == nil || state.shown.Err == nil && !state.shown.Fighting {
		return Drift{}, false
	}
	return state.shown, true
}

// Watch puts right what others change on interfaces that are attached, and tries again what could not be finished,
// until ctx ends.
func (a *Attacher) Watch(ctx context.Context) error {
	for {
		err := a.session(ctx)
		if ctx.Err() != nil {
			return nil
		}
		a.cfg.Logger.Warn("Lost sight of the kernel's links and routes, subscribing again", "error", err)
		if pause(ctx) != nil {
			return nil
		}
	}
}

// session is the life of one subscription. It returns the error that ended it.
func (a *Attacher) session(ctx context.Context) error {
	s, err := subscribe()
	if err != nil {
		return err
	}
	defer s.Close()
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.Lost:
			return fmt.Errorf("receive netlink events: %w", err)
		case <-s.Events:
			select {
			case <-time.After(batch):
			case <-ctx.Done():
				return ctx.Err()
			}
			select { // those of the meantime
			case <-s.Events:
			default:
			}
		case <-look.C:
		}
		next, err := a.checkAll(ctx)
		if err != nil {
			return err
		}
		look.Reset(next)
	}
}

// checkAll looks after every interface of the journal and returns when to look again.
func (a *Attacher) checkAll(ctx context.Context) (next time.Duration, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	names, err := a.journal.interfaces()
	if err != nil {
		return 0, err
	}
	next = resync
	for _, name := range names {
		wait, err := a.check(ctx, name)
		if err != nil {
			return 0, fmt.Errorf("look after %s: %w", name, err)
		}
		next = min(next, wait)
	}
	return next, nil
}

// check puts right what is wrong with an interface, if it is time to.
func (a *Attacher) check(ctx context.Context, name string) (next time.Duration, err error) {
	before, err := a.journal.read(name)
	if err != nil || before == nil {
		return resync, err
	}
	w, err := a.begin(name)
	if err != nil {
		return 0, err
	}
	defer w.close()
	if w.rec == nil {
		delete(a.drifts, name)
		a.tell(name, Drift{VRF: before.VRF, What: "the interface is gone"})
		return resync, nil
	}
	what, whole, err := w.drifted()
	if err != nil {
		return 0, err
	}
	d := a.drifts[name]
	if what == "" {
		next = resync
		if d != nil {
			next = calm
			if time.Since(d.last) > calm {
				delete(a.drifts, name)
			}
		}
		return next, w.keep(whole)
	}
	if d == nil {
		d = &drift{}
		a.drifts[name] = d
	}
	if wait := d.wait(time.Now()); wait > 0 {
		return wait, nil
	}
	shown := Drift{VRF: w.rec.VRF, What: what}
	shown.Err = w.redo(ctx)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	next = calm
	var problem *uplinkstate.Problem
	if errors.As(shown.Err, &problem) && problem.Reason == uplinkstate.ReasonUplinkConfigurationConflict {
		d.refused(time.Now()) // nothing was done
	} else {
		d.repaired(time.Now())
	}
	if shown.Err != nil {
		next = max(retry, d.wait(time.Now()))
	}
	shown.Fighting = d.fighting()
	a.tell(name, shown)
	if w.rec == nil {
		delete(a.drifts, name)
	}
	return next, nil
}

// drifted says what is wrong with an interface of the journal, and what goes with it.
func (w *work) drifted() (what string, whole taken, err error) {
	if w.rec.Phase != attached {
		return "work is unfinished: " + string(w.rec.Phase), taken{}, nil
	}
	if whole, err = w.gather(w.rec.VRF); err != nil {
		return "", taken{}, err
	}
	lacking := w.lacking(whole.placed(w.link.index, w.rec.Table))
	switch device, ok := w.byName(w.rec.VRF.Name); {
	case !ok:
		return fmt.Sprintf("VRF %s is gone", w.rec.VRF.Name), whole, nil
	case w.link.master != device.index:
		return fmt.Sprintf("the interface was taken out of VRF %s", device.name), whole, nil
	case !device.up:
		return fmt.Sprintf("VRF %s was set down", device.name), whole, nil
	case !w.inPlace():
		return fmt.Sprintf("VRF %s was replaced", device.name), whole, nil
	case !lacking.empty():
		return "gone: " + lacking.String(), whole, nil
	}
	return "", whole, nil
}

// tell passes on what was changed, but the same failure only once.
func (a *Attacher) tell(iface string, d Drift) {
	d.Interface = iface
	if state := a.drifts[iface]; state != nil {
		same := state.shown.What == d.What && state.shown.Fighting == d.Fighting && d.Err != nil && state.shown.Err != nil && state.shown.Err.Error() == d.Err.Error()
		state.shown = d
		if same {
			return
		}
	}
	var problem *uplinkstate.Problem
	if d.Err != nil && !errors.As(d.Err, &problem) {
		a.cfg.Logger.Warn("Cannot put right what others changed", "interface", iface, "what", d.What, "error", d.Err)
	} else {
		a.cfg.Logger.Info("Others changed an interface that is attached", "interface", iface, "what", d.What, "fighting", d.Fighting)
	}
	a.cfg.OnDrift(d)
}
