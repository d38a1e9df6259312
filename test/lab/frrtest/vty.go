// SPDX-License-Identifier: Apache-2.0

package frrtest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"
)

// Tell has a daemon carry out commands of vtysh(1), one after the other, and returns what it answers. A command that is
// refused fails the test.
//
// It talks to the daemon as vtysh does, which itself wants a working PAM and takes seconds to start in a virtual machine.
func (r *Router) Tell(daemon string, commands ...string) string {
	r.t.Helper()
	said, err := r.tell(daemon, commands...)
	if err != nil {
		r.t.Fatal(err)
	}
	return said
}

func (r *Router) tell(daemon string, commands ...string) (said string, err error) {
	conn, err := net.DialTimeout("unix", filepath.Join(r.dir, daemon+".vty"), commandTime)
	if err != nil {
		return "", fmt.Errorf("talk to %s: %w", daemon, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := conn.SetDeadline(time.Now().Add(commandTime)); err != nil {
		return "", err
	}
	for _, c := range append([]string{"enable"}, commands...) {
		answer, err := ask(conn, c)
		said += answer
		if err != nil {
			return said, fmt.Errorf("tell %s %q: %w", daemon, c, err)
		}
	}
	return said, nil
}

// The ends of a command that went well, CMD_SUCCESS and CMD_SUCCESS_DAEMON of lib/command.h.
const success, successDaemon = 0, 10

// ask sends one command, which ends with a zero byte. The answer ends with three of them and a status (vtysh_client_run
// in vtysh/vtysh.c).
func ask(conn net.Conn, command string) (string, error) {
	if _, err := conn.Write(append([]byte(command), 0)); err != nil {
		return "", err
	}
	var said []byte
	for part := make([]byte, 4096); ; {
		n, err := conn.Read(part)
		said = append(said, part[:n]...)
		if end := len(said) - 4; end >= 0 && bytes.Equal(said[end:end+3], []byte{0, 0, 0}) {
			answer := string(said[:end])
			if status := said[end+3]; status != success && status != successDaemon {
				return answer, fmt.Errorf("status %d: %s", status, answer)
			}
			return answer, nil
		}
		if err != nil {
			return string(said), err
		}
	}
}
