// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
)

// ErrUnlike is returned when a bridge shows other flows than it was sent, at once and again: this Open vSwitch prints
// them in another form, or somebody else changes them all the time. They are not sent over and over.
var ErrUnlike = errors.New("the bridge shows other flows than it was sent")

// program is Program with the turn.
func (p *Programmer) program(ctx context.Context, s *state, frame Bridge, items []Service) (Change, error) {
	before, sure, unlike := s.frame, s.sureNow(), s.unlike
	todo, read, err := p.prepare(ctx, s, sure, frame, items)
	if err != nil {
		return Change{}, err
	}
	s.doubt() // until all of it is done
	var floodErr error
	if frame.Patch != 0 && (!sure || before.Patch != frame.Patch) {
		floodErr = p.quiet(ctx, s.name, frame.Patch)
	}
	if read && unlike != nil && todo.equal(*unlike) {
		return Change{}, errors.Join(unlikeError(s.name, todo), floodErr)
	}
	change := Change{Added: len(todo.add), Deleted: len(todo.del)}
	if !todo.empty() {
		p.countFlowMods(change.Added + change.Deleted)
		s.sends(todo.add)
		if err := p.ofctl.send(ctx, s.name, todo); err != nil {
			return Change{}, errors.Join(err, floodErr)
		}
		p.log.Debug("programmed a bridge", "bridge", s.name, "added", change.Added, "deleted", change.Deleted)
	}
	if read && !todo.empty() {
		again, err := p.difference(ctx, s)
		if err != nil {
			return change, errors.Join(err, floodErr)
		}
		if !again.empty() {
			s.believe(&again)
			return change, errors.Join(unlikeError(s.name, again), floodErr)
		}
	}
	if floodErr == nil {
		s.believe(nil)
	}
	return change, floodErr
}

// prepare finds out what is to be sent, and sets the state to what will be. read says that it was found by reading
// the bridge, and not from what is known.
func (p *Programmer) prepare(ctx context.Context, s *state, sure bool, frame Bridge, items []Service) (plan, bool, error) {
	if sure && reflect.DeepEqual(s.frame, frame) && !frame.overlaps() {
		s.mu.Lock()
		defer s.mu.Unlock()
		todo := betweenItems(&frame, s.want, s.items, items)
		s.items = items
		return todo, false, nil
	}
	have := s.want
	want := collect(frame.flows(items), len(have))
	s.set(frame, items, want)
	if sure {
		return between(have, want), false, nil
	}
	todo, err := p.difference(ctx, s)
	return todo, true, err
}

// overlaps is true where a service's address could have the same row as a range.
func (b *Bridge) overlaps() bool {
	return slices.ContainsFunc(slices.Concat(b.Transit, b.Advertised), netip.Prefix.IsSingleIP)
}

// difference reads a bridge and returns what is missing from, or too much of, what it should have. The caller has
// the turn.
func (p *Programmer) difference(ctx context.Context, s *state) (plan, error) {
	r := newRepair(s.want)
	if err := p.ofctl.dump(ctx, s.name, r.has); err != nil {
		return plan{}, err
	}
	return r.plan(), nil
}

func (p *Programmer) quiet(ctx context.Context, bridge string, patch uint32) error {
	changed, err := p.ofctl.quiet(ctx, bridge, patch)
	if changed {
		p.countPortMods()
	}
	return err
}

func unlikeError(bridge string, difference plan) error {
	var examples string
	for _, sent := range difference.add {
		if odd := difference.odd; odd == nil || odd.place() == sent.place() {
			examples = fmt.Sprintf("; sent was %q", clip(sent.String()))
			break
		}
	}
	if difference.odd != nil {
		examples += fmt.Sprintf("; shown is %q", clip(difference.odd.String()))
	}
	if len(difference.del) > 0 {
		examples += fmt.Sprintf("; too many is %q", clip(difference.del[0].String()))
	}
	return fmt.Errorf("bridge %s: %w: %d are missing or other, %d too many%s",
		bridge, ErrUnlike, len(difference.add), len(difference.del), examples)
}
