// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// crashed returns the status of a lab whose process is gone.
func crashed(t *testing.T) lab.Status {
	t.Helper()
	lab.NeedRoot(t)
	// Always the same, so that a run that was killed is cleaned up by the
	// next; t.TempDir is too long for sockets besides.
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("ovn-uplink-lab-crash-%08x", crc32.ChecksumIEEE([]byte(wd))))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := lab.Down(ctx, dir); err != nil {
			t.Error(err)
		}
	})
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s, err := lab.ReadStatus(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Healthy(); err != nil {
		t.Fatalf("the lab did not outlive its process: %v", err)
	}
	if len(s.Processes) != 9 || len(s.Namespaces) != 2 {
		t.Fatalf("recorded %+v", s)
	}
	return s
}

// gone fails the test if anything of the lab is left.
func gone(t *testing.T, s lab.Status) {
	t.Helper()
	for _, ns := range s.Namespaces {
		if _, err := os.Stat(filepath.Join("/run/netns", ns.NetNS)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("namespace %s: %v, want it gone", ns.NetNS, err)
		}
	}
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range environs {
		// Unreadable or empty: ended.
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, []byte("OVN_UPLINK_LAB="+s.Dir+"\x00")) {
			t.Errorf("%s belongs to a process that is left", path)
		}
	}
}

func TestDownAfterCrash(t *testing.T) {
	s := crashed(t)
	begin := time.Now()
	if err := lab.Down(t.Context(), s.Dir); err != nil {
		t.Fatal(err)
	}
	t.Logf("down took %s", time.Since(begin))
	gone(t, s)
	if _, err := os.Stat(s.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory: %v, want it gone", err)
	}
	if _, err := lab.ReadStatus(s.Dir); !errors.Is(err, lab.ErrNoLab) {
		t.Errorf("status: %v, want %v", err, lab.ErrNoLab)
	}
	if err := lab.Down(t.Context(), s.Dir); err != nil {
		t.Errorf("second time: %v", err)
	}
}

func TestNewAfterCrash(t *testing.T) {
	s := crashed(t)
	l := lab.ForTest(t, lab.Options{Dir: s.Dir, NoAPIServer: true})
	again, err := lab.ReadStatus(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Processes) != 1 || len(again.Namespaces) != 1 {
		t.Errorf("recorded after the clean-up: %+v", again)
	}
	for _, p := range s.Processes {
		if _, err := os.Stat(filepath.Join("/proc", itoa(p.Pid))); err == nil && p.Name != "api.forward" {
			if cmdline, _ := os.ReadFile(filepath.Join("/proc", itoa(p.Pid), "cmdline")); len(cmdline) > 0 {
				t.Errorf("%s still runs", p.Name)
			}
		}
	}
	if _, err := l.AddNode(t.Context(), "worker-a"); err != nil {
		t.Errorf("the same node again: %v", err)
	}
}

// A test process that was killed leaves a lab that the next one removes.
func TestNextTestRemovesOrphan(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoAPIServer: true})
	other := lab.ForTest(t, lab.Options{NoAPIServer: true})
	if l.Dir() == other.Dir() {
		t.Fatal("two tests share a directory")
	}
	if s, err := lab.ReadStatus(l.Dir()); err != nil || s.Healthy() != nil {
		t.Fatalf("a lab in use was touched: %v, %+v", err, s)
	}
	// Make it look as if its process had gone.
	marker := filepath.Join(other.Dir(), "lab.json")
	raw, err := os.ReadFile(marker)
	if err != nil {
		t.Fatal(err)
	}
	orphan := strings.Replace(string(raw), `"start": `, `"start": 9`, 1)
	if err := os.WriteFile(marker, []byte(orphan), 0o644); err != nil {
		t.Fatal(err)
	}
	lab.ForTest(t, lab.Options{NoAPIServer: true})
	if _, err := lab.ReadStatus(other.Dir()); !errors.Is(err, lab.ErrNoLab) {
		t.Errorf("orphan: %v, want %v", err, lab.ErrNoLab)
	}
}
