// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// missing is what could not be put back, and why.
type missing struct {
	taken
	why []string
}

func (m *missing) Error() string { return strings.Join(m.why, "; ") }

// restore puts back what the kernel does not have of what is to be there, until a look at the kernel shows all of it.
// Routes may need others, or addresses that the kernel still checks for duplicates, so they are tried again for a
// while. The error is a *missing if something did not return.
func (w *work) restore(ctx context.Context, want taken) error {
	begin := time.Now()
	deadline, late := begin.Add(w.cfg.Patience), begin.Add(w.cfg.Patience/2)
	for round := 0; ; round++ {
		if err := w.look(); err != nil {
			return err
		}
		lacking := w.lacking(want)
		if lacking.empty() {
			return nil
		}
		failed, hopeless := w.tryAll(lacking, time.Now().After(late))
		if len(failed.why) > 0 && (hopeless || time.Now().After(deadline)) {
			return failed
		}
		if len(failed.why) == 0 && time.Now().After(deadline) {
			return &missing{lacking, []string{"somebody removes what is put back: " + lacking.String()}}
		}
		if len(failed.why) == 0 && round == 0 {
			continue // to see that it is so
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// lacking is what of it the kernel does not have.
func (w *work) lacking(want taken) taken {
	lacking := want.lacking(w.view)
	if !w.link.up {
		lacking.routes = nil // a link that is down has none
	}
	return lacking
}

// tryAll makes addresses and routes, in order. It is hopeless if all that failed did so for a reason that time does not
// change. When it is late, routes count as stranded that the kernel does not make.
func (w *work) tryAll(lacking taken, late bool) (failed *missing, hopeless bool) {
	failed, hopeless = &missing{}, true
	for _, a := range lacking.addresses {
		w.cfg.at("return address")
		err := w.change(unix.RTM_NEWADDR, unix.NLM_F_CREATE|unix.NLM_F_EXCL, a.bytes())
		if err != nil && !errors.Is(err, unix.EEXIST) {
			failed.addresses = append(failed.addresses, a)
			failed.why = append(failed.why, fmt.Sprintf("address %s: %v", a, err))
			hopeless = false
		}
	}
	for _, r := range lacking.routes {
		if err := w.place(r, late && !r.direct()); err != nil {
			failed.routes = append(failed.routes, r)
			failed.why = append(failed.why, fmt.Sprintf("route %s: %v", r, err))
			hopeless = hopeless && errors.Is(err, errTaken)
		}
	}
	return failed, hopeless
}

// errTaken is why a route cannot return: the kernel has one of the same destination and metric that leaves elsewhere.
var errTaken = errors.New("another interface has a route of the same destination and metric")

// place makes one route. A stranded one is made without the kernel's looking for a route to its router: when the address
// is removed that a router was reached by, the kernel keeps its routes, but would not make them.
func (w *work) place(r route, stranded bool) error {
	flags := unix.NLM_F_CREATE | unix.NLM_F_EXCL
	switch r.manner(w.view, w.link.index) {
	case notHere:
		return errTaken
	case beside:
		flags = unix.NLM_F_CREATE | unix.NLM_F_APPEND
	case alone:
	}
	w.cfg.at("return route")
	err := w.change(unix.RTM_NEWROUTE, flags, r.bytes())
	if err != nil && !errors.Is(err, unix.EEXIST) && stranded {
		err = w.change(unix.RTM_NEWROUTE, flags, r.onLink().bytes())
	}
	switch {
	case errors.Is(err, unix.EEXIST):
		// Made meanwhile, by the kernel or by somebody else: the next look tells.
		return nil
	case err != nil:
		return err
	}
	// The next one of the same place is put beside it.
	w.routes = append(slices.Clone(w.routes), r)
	return nil
}

// setMaster makes a link the slave of another, or of none.
func (w *work) setMaster(master int) error {
	w.cfg.at("set master")
	if err := w.setLink(w.link.index, nl.NewRtAttr(unix.IFLA_MASTER, bytesOf(uint32(master)))); err != nil {
		return fmt.Errorf("set the master of %s: %w", w.link.name, err)
	}
	w.cfg.at("look after master")
	return nil
}
