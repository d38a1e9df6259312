// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// phase is how far the work on an interface has come.
type phase string

const (
	// attaching: the interface is to be in the VRF, and may be anywhere on the way.
	attaching phase = "attaching"
	// attached: it is, with all that goes with it.
	attached phase = "attached"
	// detaching: it is to be in no VRF, and may be anywhere on the way.
	detaching phase = "detaching"
	// returning: it is in none, but some of its routes could not return yet.
	returning phase = "returning"
)

// record is what the journal has of one interface. It is on the disk before the kernel is touched.
type record struct {
	Phase     phase  `json:"phase"`
	Interface string `json:"interface"`
	// Index is the interface's, which another one of that name does not have.
	Index int `json:"index"`
	// Boot is the kernel's boot_id: after a boot there is nothing left to finish.
	Boot string `json:"boot"`
	VRF  VRF    `json:"vrf"`
	// Table is the VRF's. Making is set while the device may be made but not yet marked as this program's.
	Table  uint32 `json:"table"`
	Making bool   `json:"making,omitempty"`
	// Sysctls are the values to return to.
	Sysctls map[string]setting `json:"sysctls,omitempty"`
	// Taken is when lifetimes were read, by the clock that goes on while the machine sleeps.
	Taken time.Duration `json:"taken"`
	// Addresses and Routes are messages of rtnetlink, the routes as they are while the interface is in no VRF.
	Addresses [][]byte `json:"addresses,omitempty"`
	Routes    [][]byte `json:"routes,omitempty"`
}

// setting is a sysctl that was changed.
type setting struct{ Before, Now string }

// hold puts what goes with the interface into the record.
func (r *record) hold(t taken) {
	r.Taken, r.Addresses, r.Routes = sinceBoot(), nil, nil
	for _, a := range t.addresses {
		r.Addresses = append(r.Addresses, a.bytes())
	}
	for _, route := range t.routes {
		r.Routes = append(r.Routes, route.bytes())
	}
}

// held is what hold was given, less the addresses whose time is over.
func (r *record) held() (taken, error) {
	var t taken
	passed := sinceBoot() - r.Taken
	for _, raw := range r.Addresses {
		a, err := parseAddress(raw)
		if err != nil {
			return taken{}, fmt.Errorf("journal of %s: %w", r.Interface, err)
		}
		if a, ok := a.after(passed); ok {
			t.addresses = append(t.addresses, a)
		}
	}
	for _, raw := range r.Routes {
		route, err := parseRoute(raw)
		if err != nil {
			return taken{}, fmt.Errorf("journal of %s: %w", r.Interface, err)
		}
		t.routes = append(t.routes, route)
	}
	return t, nil
}

// sinceBoot is the time of CLOCK_BOOTTIME.
func sinceBoot() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // Linux has it since 2.6.39
	return time.Duration(now.Nano())
}

// bootID tells one boot of the machine from another.
func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// journal is a directory with one file for each interface.
type journal struct{ dir string }

const prefix, suffix = "vrf-", ".json"

func (j journal) path(iface string) string { return filepath.Join(j.dir, prefix+iface+suffix) }

// read gives the record of an interface, nil if there is none, or only one of an earlier boot.
func (j journal) read(iface string) (*record, error) {
	text, err := os.ReadFile(j.path(iface))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	r := &record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("read journal %s: %w", j.path(iface), err)
	}
	boot, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	if r.Boot != boot {
		return nil, j.drop(iface)
	}
	return r, nil
}

// interfaces lists those with a record, sorted.
func (j journal) interfaces() ([]string, error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list journal: %w", err)
	}
	var names []string
	for _, e := range entries {
		name, isOurs := strings.CutPrefix(e.Name(), prefix)
		name, isWhole := strings.CutSuffix(name, suffix)
		if isOurs && isWhole {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// write replaces a record and returns when it is on the disk.
func (j journal) write(r *record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	path := j.path(r.Interface)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return j.sync()
}

// drop removes a record.
func (j journal) drop(iface string) error {
	if err := os.Remove(j.path(iface)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("drop journal: %w", err)
	}
	return j.sync()
}

// sync makes names of files outlast a crash.
func (j journal) sync() error {
	dir, err := os.Open(j.dir)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}
