// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/vrf"
)

// reattach is how long an attachment that failed is not tried again: every try takes the interface down and up.
const reattach = 30 * time.Second

// stand is where an interface is to be: in a VRF, or in none if that is zero.
type stand struct {
	iface string
	// index is the interface's, 0 while it is not there: another one of the same name is to be attached again.
	index int
	vrf   vrf.VRF
}

// routing keeps the interfaces of Uplinks in the routing domains of their networks.
type routing struct {
	vrfs *vrf.Attacher

	mu      sync.Mutex
	settled map[string]stand
	failed  map[string]failedStand
}

type failedStand struct {
	stand
	err   error
	until time.Time
}

func newRouting(config vrf.Config, drifted func(vrf.Drift)) *routing {
	r := &routing{settled: map[string]stand{}, failed: map[string]failedStand{}}
	config.OnDrift = func(d vrf.Drift) {
		r.unsettle(d)
		drifted(d)
	}
	r.vrfs = vrf.New(config)
	return r
}

// unsettle has the next pass look at an interface that could not be put right, or that is gone.
func (r *routing) unsettle(d vrf.Drift) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.settled[d.VRF.Uplink]; ok && s.iface == d.Interface && d.Err != nil {
		delete(r.settled, d.VRF.Uplink)
	}
}

// current is the VRF that an Uplink's interface is in, the zero VRF if in none of this program's.
func (r *routing) current(uplink string) (vrf.VRF, error) {
	r.mu.Lock()
	s, ok := r.settled[uplink]
	r.mu.Unlock()
	if ok {
		return s.vrf, nil
	}
	all, err := r.attachments(uplink)
	for _, a := range all {
		if !a.Leaving {
			return a.VRF, nil
		}
	}
	return vrf.VRF{}, err
}

// attachments are the interfaces that are in VRFs for an Uplink.
func (r *routing) attachments(uplink string) ([]vrf.Attachment, error) {
	all, err := r.vrfs.Attachments()
	if err != nil {
		return nil, fmt.Errorf("look what is in VRFs: %w", err)
	}
	var own []vrf.Attachment
	for _, a := range all {
		if a.VRF.Uplink == uplink {
			own = append(own, a)
		}
	}
	return own, nil
}

// uplinks are those with an interface in a VRF.
func (r *routing) uplinks() []string {
	all, _ := r.vrfs.Attachments() // what cannot be seen is seen later
	var uplinks []string
	for _, a := range all {
		if a.VRF.Uplink != "" { // it is, where the journal was lost
			uplinks = append(uplinks, a.VRF.Uplink)
		}
	}
	return uplinks
}

// settle puts the interface of an Uplink into a VRF, or with a zero VRF into none, and takes out what else was in one for
// it. It does nothing where that is so already: what others change is Watch's to repair. What fails is not tried again
// for a while, which is the duration.
func (r *routing) settle(ctx context.Context, uplink, iface string, to vrf.VRF) (time.Duration, error) {
	name, index, err := r.vrfs.Find(iface)
	if err != nil {
		return 0, err
	}
	want := stand{iface: name, index: index, vrf: to}
	r.mu.Lock()
	settled, ok := r.settled[uplink]
	failed, again := r.failed[uplink]
	r.mu.Unlock()
	if ok && settled == want {
		return 0, nil
	}
	if rest := time.Until(failed.until); again && failed.stand == want && rest > 0 {
		return rest, failed.err
	}
	err = r.move(ctx, uplink, want)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.settled, uplink)
	delete(r.failed, uplink)
	if err != nil {
		r.failed[uplink] = failedStand{want, err, time.Now().Add(reattach)}
		return reattach, err
	}
	r.settled[uplink] = want
	return 0, nil
}

func (r *routing) move(ctx context.Context, uplink string, want stand) error {
	former, err := r.attachments(uplink)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range former {
		if a.Interface != want.iface {
			errs = append(errs, r.vrfs.Detach(ctx, a.Interface))
		}
	}
	if want.vrf == (vrf.VRF{}) {
		errs = append(errs, r.vrfs.Detach(ctx, want.iface))
	} else {
		errs = append(errs, r.vrfs.Attach(ctx, want.iface, want.vrf))
	}
	return errors.Join(errs...)
}

// release takes everything of an Uplink out of VRFs.
func (r *routing) release(ctx context.Context, uplink string) error {
	all, err := r.attachments(uplink)
	if err != nil {
		return err
	}
	var errs []error
	for _, a := range all {
		errs = append(errs, r.vrfs.Detach(ctx, a.Interface))
	}
	r.mu.Lock()
	delete(r.settled, uplink)
	r.mu.Unlock()
	return errors.Join(errs...)
}

// drift is what is wrong with the interface of an Uplink that is in a VRF; ok is false if nothing is.
func (r *routing) drift(uplink string) (d vrf.Drift, ok bool) {
	r.mu.Lock()
	s := r.settled[uplink]
	r.mu.Unlock()
	return r.vrfs.Drifted(s.iface)
}

// forget drops what is remembered of an Uplink.
func (r *routing) forget(uplink string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failed, uplink)
}
