// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// asCommand makes the test binary the lab command.
const asCommand = "OVN_UPLINK_LAB_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// cli is the lab command with one state directory.
type cli struct{ dir string }

func newCLI(t *testing.T) cli {
	t.Helper()
	lab.NeedRoot(t)
	// Always the same, so that a run that was killed is cleaned up by the
	// next; t.TempDir is too long for sockets besides.
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("ovn-uplink-lab-cli-%08x", crc32.ChecksumIEEE([]byte(wd))))
	if err := lab.Down(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := lab.Down(ctx, dir); err != nil {
			t.Error(err)
		}
	})
	// Not part of the time limits below.
	if _, err := lab.APIServerBinary(t.Context(), t.Logf); err != nil {
		t.Fatal(err)
	}
	return cli{dir}
}

func (c cli) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], append([]string{args[0], "--dir", c.dir}, args[1:]...)...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// run returns the standard output and fails the test unless the exit code is
// as wanted.
func (c cli) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := c.command(ctx, args...)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	_ = cmd.Run() // the exit code says it
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("lab %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, &out, &errOut)
	}
	return out.String()
}

func TestCommand(t *testing.T) {
	c := newCLI(t)
	begin := time.Now()
	out := c.run(t, 0, "up")
	t.Logf("up took %s", time.Since(begin))
	if !strings.Contains(out, "export KUBECONFIG="+c.dir+"/kubeconfig") {
		t.Errorf("up does not print the kubeconfig:\n%s", out)
	}
	first := readStatus(t, c)
	if again := c.run(t, 0, "up"); !strings.Contains(again, "is up already") {
		t.Errorf("second up:\n%s", again)
	}
	if second := readStatus(t, c); second.Processes[0] != first.Processes[0] {
		t.Errorf("the second up made a new lab: %+v, before %+v", second.Processes[0], first.Processes[0])
	}
	c.run(t, 0, "exec", "worker-b", "--", "ping", "-c1", "-W2", lab.InternetAddress.String())
	if got := c.run(t, 0, "exec", "worker-b-dpu", "--", "ovs-vsctl", "port-to-br", "pf0hpf"); got != "br-ext\n" {
		t.Errorf("the DPU's Open vSwitch has the representor on %q", got)
	}
	c.run(t, 7, "exec", "worker-a", "--", "sh", "-c", "exit 7")
	c.run(t, 1, "exec", "nobody", "--", "true")

	// A lab that is only half there is made anew.
	for _, p := range first.Processes {
		if p.Name == "worker-a.ovs-vswitchd" {
			if err := syscall.Kill(p.Pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := lab.Eventually(t.Context(), 5*time.Second, func(context.Context) error {
		if s, err := lab.ReadStatus(c.dir); err != nil || s.Healthy() != nil {
			return nil
		}
		return errors.New("the killed process counts as alive")
	})
	if err != nil {
		t.Fatal(err)
	}
	if table := c.run(t, 1, "status"); !strings.Contains(table, "dead") {
		t.Errorf("status of a lab with a dead process:\n%s", table)
	}
	if out := c.run(t, 0, "up"); strings.Contains(out, "is up already") {
		t.Errorf("up after a process died:\n%s", out)
	}
	c.run(t, 0, "status")
	c.run(t, 0, "down")
	c.run(t, 0, "down")
	c.run(t, 1, "status")
}

func readStatus(t *testing.T, c cli) lab.Status {
	t.Helper()
	var s lab.Status
	if err := json.Unmarshal([]byte(c.run(t, 0, "status", "-o", "json")), &s); err != nil {
		t.Fatal(err)
	}
	for i := range s.Processes {
		s.Processes[i].RSS = 0 // the only thing that changes by itself
	}
	return s
}

// An interrupted up leaves nothing behind.
func TestInterruptedUp(t *testing.T) {
	c := newCLI(t)
	cmd := c.command(t.Context(), "up")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err := lab.Eventually(t.Context(), 20*time.Second, func(context.Context) error {
		s, err := lab.ReadStatus(c.dir)
		if err == nil && len(s.Processes) < 3 {
			err = errors.New("no API server yet")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("an interrupted up says that all is well")
	}
	if _, err := os.Stat(c.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory: %v, want it gone", err)
	}
}
