// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// sweep kills what the records do not know: children that a killed process
// left behind, and a process whose starter was killed before it could write
// the record. Only a process that carries the lab's mark in its environment
// and lives in one of the lab's namespaces is touched; a person's shell in
// such a namespace is not.
func (d layout) sweep(ctx context.Context, spaces []namespace) error {
	var ours []os.FileInfo
	for _, ns := range spaces {
		if st, err := os.Stat(filepath.Join(netnsDir, ns.NetNS)); err == nil {
			ours = append(ours, st)
		}
	}
	return Eventually(ctx, stopGrace, func(context.Context) error {
		strays, err := d.strays(ours)
		if err != nil {
			return err
		}
		if len(strays) == 0 {
			return nil
		}
		if err := signalAll(strays, syscall.SIGKILL); err != nil {
			return err
		}
		return fmt.Errorf("%d stray processes, the first is pid %d", len(strays), strays[0].Pid)
	})
}

func (d layout) strays(spaces []os.FileInfo) ([]identity, error) {
	if len(spaces) == 0 {
		return nil, nil
	}
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for stray processes: %w", err)
	}
	var found []identity
	for _, e := range dirs {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// A process that ends while it is looked at is not a stray.
		id, err := identify(pid)
		if err != nil || !id.alive() {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !slices.Contains(strings.Split(string(env), "\x00"), labVariable+"="+d.dir) {
			continue
		}
		st, err := os.Stat(filepath.Join("/proc", e.Name(), "ns", "net"))
		if err != nil || !slices.ContainsFunc(spaces, func(s os.FileInfo) bool { return os.SameFile(s, st) }) {
			continue
		}
		found = append(found, id)
	}
	return found, nil
}
