// SPDX-License-Identifier: Apache-2.0

package vrf

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Values of rp_filter (Documentation/networking/ip-sysctl.rst). The larger of an interface's own and of "all"'s counts.
const strict, loose = "1", "2"

// adjust sets what the interface needs in the VRF, and notes what there was. keep_addr_on_down lets IPv6 addresses
// outlast the change of the master. Answers to service addresses fail the strict source check: where that is on, it is
// made loose. The kernel looks at the interface that a packet came in by for it, not at its VRF device (seen on 6.1).
func (w *work) adjust() error {
	wanted := map[string]string{filepath.Join("ipv6/conf", w.link.name, "keep_addr_on_down"): "1"}
	all, err := w.cfg.readSysctl("ipv4/conf/all/rp_filter")
	if err != nil {
		return err
	}
	check := filepath.Join("ipv4/conf", w.link.name, "rp_filter")
	own, err := w.cfg.readSysctl(check)
	if err != nil {
		return err
	}
	if max(all, own) == strict {
		wanted[check] = loose
	}
	changes := map[string]setting{}
	for name, now := range wanted {
		before, err := w.cfg.readSysctl(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6 here
		}
		if err != nil {
			return err
		}
		if before != now {
			changes[name] = setting{before, now}
		}
	}
	if len(changes) == 0 {
		return nil
	}
	if w.rec.Sysctls == nil {
		w.rec.Sysctls = map[string]setting{}
	}
	for name, change := range changes {
		if earlier, ok := w.rec.Sysctls[name]; ok {
			change.Before = earlier.Before
		}
		w.rec.Sysctls[name] = change
	}
	if err := w.note(w.rec.Phase); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		w.cfg.at("set " + strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(w.cfg.sysctl(name), []byte(changes[name].Now), 0); err != nil {
			return fmt.Errorf("set sysctl: %w", err)
		}
	}
	return nil
}

// readjust returns sysctls to what they were, unless somebody else changed them.
func (w *work) readjust() error {
	for _, name := range slices.Sorted(maps.Keys(w.rec.Sysctls)) {
		change := w.rec.Sysctls[name]
		now, err := w.cfg.readSysctl(name)
		if errors.Is(err, os.ErrNotExist) || err == nil && now != change.Now {
			continue
		}
		if err != nil {
			return err
		}
		w.cfg.at("return sysctl")
		if err := os.WriteFile(w.cfg.sysctl(name), []byte(change.Before), 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("return sysctl: %w", err)
		}
	}
	w.rec.Sysctls = nil
	return nil
}

// sysctl is the file of a setting below net, such as ipv4/conf/all/rp_filter.
func (c Config) sysctl(name string) string { return filepath.Join(c.Sysctls, name) }

func (c Config) readSysctl(name string) (string, error) {
	text, err := os.ReadFile(c.sysctl(name))
	if err != nil {
		return "", fmt.Errorf("read sysctl: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
