// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// identity names one process for ever. A pid alone does not: the kernel hands
// it out again after the process has ended.
type identity struct {
	Pid int `json:"pid"`
	// Start is the process's start time in clock ticks since boot, field
	// 22 of /proc/<pid>/stat (proc(5)).
	Start uint64 `json:"start"`
	// Boot is the kernel's boot id, because Start counts from boot.
	Boot string `json:"boot"`
}

var bootID = sync.OnceValues(func() (string, error) {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(raw)), err
})

// identify returns the identity of the process that has the pid now.
func identify(pid int) (identity, error) {
	boot, err := bootID()
	if err != nil {
		return identity{}, fmt.Errorf("identify pid %d: %w", pid, err)
	}
	start, _, err := readStat(pid)
	if err != nil {
		return identity{}, fmt.Errorf("identify pid %d: %w", pid, err)
	}
	return identity{Pid: pid, Start: start, Boot: boot}, nil
}

// alive says whether the very process still runs. A zombie does not.
func (id identity) alive() bool {
	boot, err := bootID()
	if err != nil || boot != id.Boot || id.Pid <= 0 {
		return false
	}
	start, state, err := readStat(id.Pid)
	return err == nil && start == id.Start && state != 'Z' && state != 'X'
}

// signal sends sig to the very process, or returns os.ErrProcessDone. It
// never reaches another process that was given the same pid.
func (id identity) signal(sig syscall.Signal) error {
	// FindProcess opens a pidfd: from here on the handle stays with one
	// process, and alive tells whether it is the right one.
	p, err := os.FindProcess(id.Pid)
	if err != nil {
		return fmt.Errorf("open pid %d: %w", id.Pid, err)
	}
	defer func() { _ = p.Release() }()
	if !id.alive() {
		return os.ErrProcessDone
	}
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to pid %d: %w", sig, id.Pid, err)
	}
	return nil
}

// readStat returns the start time and the state letter of a process.
func readStat(pid int) (start uint64, state byte, err error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	return parseStat(string(raw))
}

// parseStat reads a line of /proc/<pid>/stat. The second field is the
// command in parentheses and may itself hold spaces and parentheses.
func parseStat(line string) (start uint64, state byte, err error) {
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return 0, 0, fmt.Errorf("no command in stat line %q", line)
	}
	const stateField, startField = 3, 22
	fields := strings.Fields(line[end+1:])
	if len(fields) <= startField-stateField {
		return 0, 0, fmt.Errorf("stat line has %d fields after the command", len(fields))
	}
	start, err = strconv.ParseUint(fields[startField-stateField], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("start time in stat line: %w", err)
	}
	return start, fields[0][0], nil
}
