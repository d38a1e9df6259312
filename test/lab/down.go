// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// downGrace is how long the processes under test may take to end after
// SIGTERM when the lab ends.
const downGrace = 2 * time.Second

// Down ends whatever lab is recorded in dir (the default directory when
// empty), no matter which process made it and how that ended: its processes,
// its namespaces, its files. A directory that does not exist or is empty is no
// error; one that holds something else is ErrNotALab and stays untouched.
func Down(ctx context.Context, dir string) error {
	state, err := absDir(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(state.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lk, err := lockDir(ctx, state.dir)
	if err != nil {
		return err
	}
	defer lk.release()
	return state.clean(ctx)
}

// clean does the work of Down. The caller holds the directory's lock.
func (d layout) clean(ctx context.Context) error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("clean lab: %w", err)
	}
	if len(entries) == 0 {
		return os.Remove(d.dir)
	}
	if _, err := d.readMarker(); err != nil {
		return fmt.Errorf("clean %s: %w (%w)", d.dir, ErrNotALab, err)
	}
	if err := d.endProcesses(ctx); err != nil {
		return err
	}
	spaces, err := d.listNamespaces()
	if err != nil {
		return err
	}
	if err := d.sweep(ctx, spaces); err != nil {
		return err
	}
	for _, ns := range spaces {
		if err := ns.remove(ctx); err != nil {
			return err
		}
	}
	// The marker goes last: until then the directory is known as a lab's.
	for _, e := range entries {
		if path := filepath.Join(d.dir, e.Name()); path != d.marker() {
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("clean lab: %w", err)
			}
		}
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return fmt.Errorf("clean lab: %w", err)
	}
	return nil
}

// listProcesses returns what is recorded, sorted by name.
func (d layout) listProcesses() ([]processRecord, error) {
	files, err := filepath.Glob(filepath.Join(d.processes(), "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	all := make([]processRecord, 0, len(files))
	for _, f := range files {
		var r processRecord
		if err := readJSON(f, &r); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue // stopped just now
			}
			return nil, err
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b processRecord) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// endProcesses stops the recorded processes: those under test in an orderly
// way, then the infrastructure at once.
func (d layout) endProcesses(ctx context.Context) error {
	records, err := d.listProcesses()
	if err != nil {
		return err
	}
	var tested, infra []identity
	for _, r := range records {
		if r.Infra {
			infra = append(infra, r.ID)
		} else {
			tested = append(tested, r.ID)
		}
	}
	if err := signalAll(tested, syscall.SIGTERM); err != nil {
		return err
	}
	// Whether all ended in time does not matter: the rest is killed.
	_ = allEnded(ctx, downGrace, tested)
	all := append(tested, infra...)
	if err := signalAll(all, syscall.SIGKILL); err != nil {
		return err
	}
	return allEnded(ctx, stopGrace, all)
}

func signalAll(ids []identity, sig syscall.Signal) error {
	var errs []error
	for _, id := range ids {
		if err := id.signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func allEnded(ctx context.Context, d time.Duration, ids []identity) error {
	return Eventually(ctx, d, func(context.Context) error {
		for _, id := range ids {
			if id.alive() {
				return fmt.Errorf("pid %d still runs", id.Pid)
			}
		}
		return nil
	})
}
