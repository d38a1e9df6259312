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

// sysctls is where net.* is, by family and then interface.
const sysctls = "/proc/sys/net"

// Values of rp_filter (Documentation/networking/ip-sysctl.rst). The larger of an interface's own and of "all"'s counts.
const strict, loose = "1", "2"

// adjust sets what the interface needs in the VRF, and notes what there was. keep_addr_on_down lets IPv6 addresses
// outlast the change of the master. Answers to service addresses fail the strict source check: where that is on, it is
// made loose. The kernel looks at the interface that a packet came in by for it, not at its VRF device (seen on 6.1).
func (w *work) adjust() error {
	wanted := map[string]string{filepath.Join(sysctls, "ipv6/conf", w.link.name, "keep_addr_on_down"): "1"}
	all, err := readSysctl(filepath.Join(sysctls, "ipv4/conf/all/rp_filter"))
	if err != nil {
		return err
	}
	check := filepath.Join(sysctls, "ipv4/conf", w.link.name, "rp_filter")
	own, err := readSysctl(check)
	if err != nil {
		return err
	}
	if max(all, own) == strict {
		wanted[check] = loose
	}
	changes := map[string]setting{}
	for path, now := range wanted {
		before, err := readSysctl(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6 here
		}
		if err != nil {
			return err
		}
		if before != now {
			changes[path] = setting{before, now}
		}
	}
	if len(changes) == 0 {
		return nil
	}
	if w.rec.Sysctls == nil {
		w.rec.Sysctls = map[string]setting{}
	}
	for path, change := range changes {
		if earlier, ok := w.rec.Sysctls[path]; ok {
			change.Before = earlier.Before
		}
		w.rec.Sysctls[path] = change
	}
	if err := w.note(w.rec.Phase); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		w.cfg.at("set " + strings.ReplaceAll(strings.TrimPrefix(path, sysctls+"/"), "/", "."))
		if err := os.WriteFile(path, []byte(changes[path].Now), 0); err != nil {
			return fmt.Errorf("set sysctl: %w", err)
		}
	}
	return nil
}

// readjust returns sysctls to what they were, unless somebody else changed them.
func (w *work) readjust() error {
	for _, path := range slices.Sorted(maps.Keys(w.rec.Sysctls)) {
		change := w.rec.Sysctls[path]
		now, err := readSysctl(path)
		if errors.Is(err, os.ErrNotExist) || err == nil && now != change.Now {
			continue
		}
		if err != nil {
			return err
		}
		w.cfg.at("return sysctl")
		if err := os.WriteFile(path, []byte(change.Before), 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("return sysctl: %w", err)
		}
	}
	w.rec.Sysctls = nil
	return nil
}

func readSysctl(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read sysctl: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
