// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a process may take to end after SIGTERM.
const stopGrace = 5 * time.Second

// ErrKilled is returned by Stop when SIGTERM was not enough.
var ErrKilled = errors.New("did not end on SIGTERM, killed")

// Process is a process of the lab. Its output goes to a log file; it survives
// the process that started it and is recorded so that any later one can end
// it.
type Process struct {
	// Name is unique in the lab: the node's name, a dot, and the name
	// given to Start.
	Name string
	Pid  int
	// LogPath is where its standard output and error go. A process
	// started again under the same name continues the file.
	LogPath string

	record string
	group  bool // signals are for its process group
	cmd    *exec.Cmd
	ended  chan struct{} // closed once the process was waited for
	err    error         // how it ended, valid once ended is closed
}

// processRecord is what another process needs in order to end this one.
type processRecord struct {
	Name string   `json:"name"`
	ID   identity `json:"id"`
	Argv []string `json:"argv"`
	Log  string   `json:"log"`
	// Infra processes hold nothing worth an orderly shutdown when the lab
	// ends.
	Infra bool `json:"infra,omitempty"`
}

// processSpec is what start needs.
type processSpec struct {
	name  string
	netns string
	argv  []string
	env   []string
	files []*os.File // inherited as descriptor 3 and up
	infra bool
	// monitor is set for a daemon that restarts itself after a crash (ovs(8), --monitor): signals are for both of its
	// processes.
	monitor bool
}

// labVariable marks every process of a lab in its environment.
const labVariable = "OVN_UPLINK_LAB"

// start runs a process in a namespace of the lab and records it. The lab's
// wait group owns the goroutine that waits for it.
func (l *Lab) start(ctx context.Context, s processSpec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	// The command is looked up here: ip-netns would only say so in the log.
	path, err := lookPath(s.argv[0], s.env)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	p := &Process{
		Name:    s.name,
		LogPath: l.state.log(s.name),
		record:  filepath.Join(l.state.processes(), s.name+".json"),
		ended:   make(chan struct{}),
		group:   s.monitor,
	}
	var old processRecord
	if readJSON(p.record, &old) == nil && old.ID.alive() {
		return nil, fmt.Errorf("start %s: it already runs as pid %d", s.name, old.ID.Pid)
	}
	if err := os.MkdirAll(filepath.Dir(p.LogPath), 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	log, err := os.OpenFile(p.LogPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	defer func() { _ = log.Close() }()

	argv := append([]string{path}, s.argv[1:]...)
	// ip-netns replaces itself with the command, so the pid stays the same.
	// It also mounts a /sys that shows the namespace's own interfaces. There
	// is no context: the process outlives the call on purpose.
	p.cmd = exec.Command("ip", append([]string{"netns", "exec", s.netns}, argv...)...)
	p.cmd.Env = append(append([]string{}, s.env...), labVariable+"="+l.state.dir)
	p.cmd.Dir = l.state.dir
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.ExtraFiles = s.files
	// A session of its own: an interrupt at the terminal is for the lab.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	p.Pid = p.cmd.Process.Pid

	id, err := identify(p.Pid)
	if err == nil {
		err = writeJSON(p.record, processRecord{Name: s.name, ID: id, Argv: argv, Log: p.LogPath, Infra: s.infra})
	}
	l.waiters.Go(func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("record %s: %w", s.name, err), p.Kill(ctx))
	}
	l.mu.Lock()
	l.processes = append(l.processes, p)
	l.mu.Unlock()
	return p, nil
}

// Stop sends SIGTERM and waits. A process that is still there after five
// seconds, or when ctx ends, is killed and Stop returns ErrKilled. Stopping a
// process that has ended is no error.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	select {
	case <-p.ended:
		return p.forget()
	case <-wait.Done():
	}
	if err := p.Kill(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	return fmt.Errorf("stop %s: %w", p.Name, ErrKilled)
}

// Kill sends SIGKILL and waits until the process is gone.
func (p *Process) Kill(ctx context.Context) error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return p.forget()
	case <-ctx.Done():
		return fmt.Errorf("wait for killed %s: %w", p.Name, ctx.Err())
	}
}

// Signal sends sig. It is no error when the process has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	if p.group && p.Running() {
		if err := syscall.Kill(-p.Pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %s to %s: %w", sig, p.Name, err)
		}
		return nil
	}
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", sig, p.Name, err)
	}
	return nil
}

// Wait waits until the process has ended by itself or by a signal, and
// returns how: nil for exit code 0, otherwise an *exec.ExitError. When ctx ends
// first, it returns ctx's error and the process goes on.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.ended:
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w", p.Name, ctx.Err())
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w", p.Name, p.err)
	}
	return nil
}

// Running says whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// RSS is the process's resident memory in bytes.
func (p *Process) RSS() (int64, error) {
	if !p.Running() {
		return 0, fmt.Errorf("memory of %s: %w", p.Name, os.ErrProcessDone)
	}
	return residentBytes(p.Pid)
}

// residentBytes reads VmRSS of /proc/<pid>/status, which is in kibibytes.
func residentBytes(pid int) (int64, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("memory of pid %d: %w", pid, err)
	}
	for line := range strings.Lines(string(raw)) {
		value, ok := strings.CutPrefix(line, "VmRSS:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("memory of pid %d: %w", pid, err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("memory of pid %d: no VmRSS: %w", pid, os.ErrProcessDone)
}

// Log returns at most the last n bytes of the process's output, from the
// start of a line.
func (p *Process) Log(n int) string { return logTail(p.LogPath, n) }

func logTail(path string, n int) string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return tail(string(raw), n)
}

// forget removes the record of a process that was ended on purpose. One that
// ended by itself stays recorded, so that status shows it as dead.
func (p *Process) forget() error {
	if err := os.Remove(p.record); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget %s: %w", p.Name, err)
	}
	return nil
}
