// SPDX-License-Identifier: Apache-2.0

package ovsdbtest

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// Vswitchd runs an ovs-vswitchd on the database, in a new network namespace that goes away with it. Bridges must
// have datapath_type=netdev. It needs root: without, the test is skipped.
func (s *Server) Vswitchd() *Vswitchd {
	s.t.Helper()
	if os.Getuid() != 0 {
		s.t.Skip("needs root, for a network namespace")
	}
	cmd := s.daemon("ovs-vswitchd", s.Endpoint(), "--unixctl="+s.file("vswitchd.ctl"),
		"--log-file="+s.file("vswitchd.log"), "--disable-system", "-vconsole:off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	s.start(cmd)
	s.t.Cleanup(func() { stop(cmd) })
	v := &Vswitchd{server: s, process: cmd}
	v.IP("link", "set", "lo", "up")
	return v
}

// Vswitchd is a running ovs-vswitchd.
type Vswitchd struct {
	server  *Server
	process *exec.Cmd
}

// IP runs ip(8) in the network namespace of the ovs-vswitchd.
func (v *Vswitchd) IP(args ...string) string {
	v.server.t.Helper()
	namespace := "--net=/proc/" + strconv.Itoa(v.process.Process.Pid) + "/ns/net"
	return Run(v.server.t, "nsenter", append([]string{namespace, "ip"}, args...)...)
}

// Vsctl runs ovs-vsctl and waits until the ovs-vswitchd has done what it says.
func (v *Vswitchd) Vsctl(args ...string) string {
	v.server.t.Helper()
	return Run(v.server.t, "ovs-vsctl", append([]string{"--db=" + v.server.Endpoint(), "--timeout=10"}, args...)...)
}
