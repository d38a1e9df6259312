// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// aliasPrefix marks the VRF devices that this program made, in their ifalias, before the network's name.
const aliasPrefix = "ovn-uplink:"

// VRF is what an interface is attached to.
type VRF struct {
	// Name is the device's, at most 15 bytes.
	Name string `json:"name"`
	// Network is the network that the VRF belongs to.
	Network string `json:"network"`
	// Uplink is the Uplink whose interface is in it.
	Uplink string `json:"uplink,omitempty"`
}

// device is what of a VRF makes two of them different devices.
func (v VRF) device() VRF { return VRF{Name: v.Name, Network: v.Network} }

// Attachment is an interface that is in a VRF, or on its way into one or out of it.
type Attachment struct {
	Interface string
	VRF       VRF
	// Leaving is set on the way out, and until all that belongs to the interface could return.
	Leaving bool
}

// Attachments lists what the journal has, sorted by interface. It waits for nobody.
func (a *Attacher) Attachments() ([]Attachment, error) {
	names, err := a.journal.interfaces()
	if err != nil {
		return nil, err
	}
	var all []Attachment
	for _, name := range names {
		rec, err := a.journal.read(name)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			all = append(all, Attachment{Interface: name, VRF: rec.VRF, Leaving: rec.Phase == detaching || rec.Phase == returning})
		}
	}
	return all, nil
}

func (v VRF) alias() string { return aliasPrefix + v.Network }

// TableRange are the routing tables, both included, that VRF devices may be given which this program makes.
type TableRange struct{ First, Last uint32 }

// Config of an Attacher. The zero value is ready for use.
type Config struct {
	// Journal is the directory of the journal; default /var/lib/ovn-uplink.
	Journal string
	// Sysctls is the directory of net's settings, by family and then interface; default /proc/sys/net, which is read-only in
	// containers.
	Sysctls string
	// Tables default to 500-899. OVN-Kubernetes deletes VRF devices that it does not know with tables from 1000 on.
	Tables TableRange
	// Patience is how long routes and addresses may take to return; default 10 s.
	Patience time.Duration
	// OnDrift is told, from Watch, of what others changed on an interface that is attached, and what came of it. It
	// must not block. It may be nil.
	OnDrift func(Drift)
	// Logger defaults to slog.Default.
	Logger *slog.Logger

	// at is called before each step, by its name.
	at func(step string)
}

// Attacher attaches interfaces of the process's own network namespace to VRFs. Its methods may be called at any time;
// they wait for each other.
type Attacher struct {
	cfg     Config
	journal journal

	mu     sync.Mutex
	drifts map[string]*drift
}

// New makes an Attacher. Call Resume before anything else of it.
func New(c Config) *Attacher {
	if c.Journal == "" {
		c.Journal = "/var/lib/ovn-uplink"
	}
	if c.Sysctls == "" {
		c.Sysctls = "/proc/sys/net"
	}
	if c.Tables == (TableRange{}) {
		c.Tables = TableRange{500, 899}
	}
	if c.Patience <= 0 {
		c.Patience = 10 * time.Second
	}
	if c.OnDrift == nil {
		c.OnDrift = func(Drift) {}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.at == nil {
		c.at = func(string) {}
	}
	return &Attacher{cfg: c, journal: journal{c.Journal}, drifts: map[string]*drift{}}
}

// Find gives the name and the index of an interface by its name or an alternative one. The index is 0 if there is none.
func (a *Attacher) Find(iface string) (name string, index int, err error) {
	r, err := openRtnetlink()
	if err != nil {
		return "", 0, err
	}
	defer r.close()
	l, err := r.linkByName(iface)
	if errors.Is(err, unix.ENODEV) {
		return iface, 0, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("find network interface %s: %w", iface, err)
	}
	return l.name, l.index, nil
}

// work is one piece of work on one interface: the kernel, what it had when it was last observed, and the journal's
// record.
type work struct {
	*Attacher
	*rtnetlink
	log *slog.Logger
	*view
	link link
	rec  *record
}

// begin opens the kernel for work on an interface and reads it and its record.
func (a *Attacher) begin(iface string) (w *work, err error) {
	r, err := openRtnetlink()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	w = &work{Attacher: a, rtnetlink: r}
	if w.view, err = r.observe(); err != nil {
		return nil, err
	}
	if l, ok := w.byName(iface); ok {
		w.link, iface = l, l.name
	}
	w.log = a.cfg.Logger.With("interface", iface)
	if w.rec, err = a.journal.read(iface); err != nil {
		return nil, err
	}
	if w.rec != nil && w.rec.Index != w.link.index {
		// The interface went, and all that was taken of it: whoever makes it anew configures it.
		if err := w.forget(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// look reads the kernel again.
func (w *work) look() (err error) {
	if w.view, err = w.observe(); err != nil {
		return err
	}
	l, ok := w.byIndex(w.link.index)
	if !ok {
		return fmt.Errorf("interface %s: %w", w.link.name, unix.ENODEV)
	}
	w.link = l
	return nil
}

// note writes the record, in a phase, to the journal.
func (w *work) note(p phase) error {
	w.rec.Phase = p
	w.cfg.at("write journal: " + string(p))
	return w.journal.write(w.rec)
}

// forget drops the record, and the VRF device if it was made for it and serves nobody else.
func (w *work) forget() error {
	if err := w.removeDevice(); err != nil {
		return err
	}
	w.cfg.at("drop journal")
	if err := w.journal.drop(w.rec.Interface); err != nil {
		return err
	}
	w.rec = nil
	return nil
}

// pause waits a moment, unless ctx ends first.
func pause(ctx context.Context) error {
	t := time.NewTimer(50 * time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
