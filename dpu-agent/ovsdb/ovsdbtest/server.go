// SPDX-License-Identifier: Apache-2.0

// Package ovsdbtest runs a private ovsdb-server, and where wanted an ovs-vswitchd in a network namespace of its
// own, for the tests of packages that follow OVSDB. Nothing of the machine's Open vSwitch is touched.
package ovsdbtest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Schema is where Debian's openvswitch-switch puts the schema of the Open_vSwitch database.
const Schema = "/usr/share/openvswitch/vswitch.ovsschema"

// startTimeout is how long a daemon may take to be there.
const startTimeout = 10 * time.Second

// Server is an ovsdb-server that serves one database on a Unix socket.
type Server struct {
	// Dir has all files of the server; it is short, because the path of a Unix socket must be.
	Dir string
	// Args are further arguments of the server for its next start.
	Args []string

	t       testing.TB
	process *exec.Cmd
}

// Start runs a server with an Open_vSwitch database that is set up as ovs-vsctl init does. It ends with the test.
// Tests run with -short are skipped: they may be on a machine without Open vSwitch.
func Start(t testing.TB) *Server {
	t.Helper()
	s := StartEmpty(t, Schema)
	s.Vsctl("init")
	return s
}

// StartEmpty runs a server with a new database of the given schema and no row in it.
func StartEmpty(t testing.TB, schema string) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs ovsdb-server, which tests run with -short do without")
	}
	dir, err := os.MkdirTemp("", "ovsdb")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Dir: dir, t: t}
	t.Cleanup(func() {
		s.Kill()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	Run(t, "ovsdb-tool", "create", s.file("conf.db"), schema)
	s.Restart()
	return s
}

// Socket is the path that the server listens on.
func (s *Server) Socket() string { return s.file("db.sock") }

// Endpoint is the server's endpoint as in ovsdb(7).
func (s *Server) Endpoint() string { return "unix:" + s.Socket() }

// Restart starts the server with the content it had; it must not be running.
func (s *Server) Restart() {
	s.t.Helper()
	_ = os.Remove(s.Socket())
	s.process = s.daemon("ovsdb-server", append(s.Args, s.file("conf.db"), "--remote=punix:"+s.Socket(),
		"--unixctl="+s.file("server.ctl"), "--log-file="+s.file("server.log"), "-vconsole:off")...)
	s.start(s.process)
	s.waitFor("ovsdb-server to listen", func() bool {
		conn, err := net.Dial("unix", s.Socket())
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// Kill ends the server without a word, as a crash does.
func (s *Server) Kill() {
	stop(s.process)
	s.process = nil
}

// Signal sends the server a signal, for example SIGSTOP to make it hang.
func (s *Server) Signal(signal syscall.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
}

// Vsctl runs ovs-vsctl on the database, without waiting for an ovs-vswitchd, and returns what it prints.
func (s *Server) Vsctl(args ...string) string {
	s.t.Helper()
	return Run(s.t, "ovs-vsctl", append([]string{"--db=" + s.Endpoint(), "--no-wait", "--timeout=10"}, args...)...)
}

// Run runs a program to its end and returns what it prints, without the newline at the end.
func Run(t testing.TB, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput() //nolint:forbidigo // only tests call it
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *Server) file(name string) string { return filepath.Join(s.Dir, name) }

func (s *Server) daemon(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...) //nolint:forbidigo // a daemon that ends with its test
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+s.Dir, "OVS_DBDIR="+s.Dir, "OVS_LOGDIR="+s.Dir, "OVS_SYSCONFDIR="+s.Dir)
	return cmd
}

func (s *Server) start(cmd *exec.Cmd) {
	s.t.Helper()
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("start %s (Debian package openvswitch-switch): %v", cmd.Path, err)
	}
}

func (s *Server) waitFor(what string, done func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(startTimeout); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(s.file("server.log"))
			s.t.Fatalf("waited %s for %s\n%s", startTimeout, what, log)
		}
	}
}

// stop ends a process that was started here; it may be stopped or have ended already.
func stop(cmd *exec.Cmd) {
	if cmd == nil || cmd.Process == nil {
		return
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
