// SPDX-License-Identifier: Apache-2.0

// Package frrtest runs routers of FRR in network namespaces, for tests. It needs root and Debian's package frr
// (test/setup.sh installs it), not a lab.
package frrtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"
)

// The daemons of a router.
const (
	Zebra = "zebra"
	BGP   = "bgpd"
)

const (
	programs = "/usr/lib/frr"
	// owner is the user and the group as which Debian's FRR runs; its programs refuse any other for want of rights on
	// the terminals' group.
	owner = "frr"
	// startTime is how long a daemon may take until it answers, stopTime until it ends; commandTime is for commands.
	startTime, stopTime, commandTime = 30 * time.Second, 10 * time.Second, 10 * time.Second
)

// Router is one FRR: zebra, which brings routes to the kernel, and bgpd.
type Router struct {
	t       testing.TB
	ns      netns.NsHandle
	dir     string
	running map[string]*daemon
}

// daemon is a running program.
type daemon struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start runs a router with a configuration (frr.conf) in a network namespace until the test ends. A router in a VRF is
// one whose configuration says so, "router bgp 65001 vrf blue", where the namespace has that VRF.
func Start(t testing.TB, ns netns.NsHandle, configuration string) *Router {
	t.Helper()
	if testing.Short() {
		t.Skip("needs FRR, skipped by -short")
	}
	if _, err := os.Stat(filepath.Join(programs, BGP)); err != nil {
		t.Fatalf("FRR is not installed, test/setup.sh does that: %v", err)
	}
	// Not a directory of the test's, which FRR's user cannot enter; a short name, as sockets are in it.
	dir, err := os.MkdirTemp("", "frr")
	if err != nil {
		t.Fatal(err)
	}
	r := &Router{t: t, ns: ns, dir: dir, running: map[string]*daemon{}}
	t.Cleanup(r.end)
	if err := r.own(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "frr.conf")
	if err := os.WriteFile(path, []byte("log file "+filepath.Join(dir, "log")+"\n"+configuration), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := r.own(path, 0o640); err != nil {
		t.Fatal(err)
	}
	r.Run(Zebra)
	r.Run(BGP)
	return r
}

// own gives a file to FRR's user.
func (r *Router) own(path string, mode os.FileMode) error {
	u, err := user.Lookup(owner)
	if err != nil {
		return fmt.Errorf("the user of FRR, who comes with its package: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	if err := os.Chown(path, uid, gid); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

// Run starts a daemon that does not run, with more arguments if need be ("-K", "60" for graceful restart of zebra), and
// waits until it answers.
func (r *Router) Run(name string, args ...string) {
	r.t.Helper()
	if r.running[name] != nil {
		r.t.Fatalf("%s runs already", name)
	}
	argv := append([]string{"-f", filepath.Join(r.dir, "frr.conf"), "-i", filepath.Join(r.dir, name+".pid"),
		"-z", filepath.Join(r.dir, "zserv.api"), "--vty_socket", r.dir, "-u", owner, "-g", owner}, args...)
	cmd := exec.Command(filepath.Join(programs, name), argv...)
	said := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := r.inside(cmd.Start); err != nil {
		r.t.Fatalf("start %s: %v", name, err)
	}
	d := &daemon{cmd: cmd, ended: make(chan struct{})}
	r.running[name] = d
	go func() {
		_ = cmd.Wait()
		close(d.ended)
	}()
	for deadline := time.Now().Add(startTime); ; time.Sleep(20 * time.Millisecond) {
		_, err := r.tell(name)
		if err == nil {
			return
		}
		select {
		case <-d.ended:
			r.t.Fatalf("%s ended: %v: %s", name, cmd.ProcessState, said)
		default:
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s does not answer: %v", name, err)
		}
	}
}

// Pid is the process id of a daemon that runs.
func (r *Router) Pid(name string) int {
	r.t.Helper()
	if r.running[name] == nil {
		r.t.Fatalf("%s does not run", name)
	}
	return r.running[name].cmd.Process.Pid
}

// Stop asks a daemon to end and waits until it has.
func (r *Router) Stop(name string) {
	r.t.Helper()
	r.signal(name, syscall.SIGTERM)
}

// Kill ends a daemon without letting it know.
func (r *Router) Kill(name string) {
	r.t.Helper()
	r.signal(name, syscall.SIGKILL)
}

func (r *Router) signal(name string, sig syscall.Signal) {
	r.t.Helper()
	d := r.running[name]
	if d == nil {
		r.t.Fatalf("%s does not run", name)
	}
	_ = d.cmd.Process.Signal(sig)
	select {
	case <-d.ended:
	case <-time.After(stopTime):
		_ = d.cmd.Process.Kill()
		<-d.ended
		if sig != syscall.SIGKILL {
			r.t.Errorf("%s did not end on %s", name, sig)
		}
	}
	delete(r.running, name)
}

// Log is what the daemons logged.
func (r *Router) Log() string {
	text, err := os.ReadFile(filepath.Join(r.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// end ends what runs and removes what is left.
func (r *Router) end() {
	for _, name := range []string{BGP, Zebra} {
		if r.running[name] != nil {
			r.Kill(name)
		}
	}
	if r.t.Failed() {
		r.t.Logf("the log of FRR:\n%s", r.Log())
	}
	_ = os.RemoveAll(r.dir)
}

// inside runs f on a thread that is in the router's namespace, and that ends with f.
func (r *Router) inside(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := netns.Set(r.ns)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}
