// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// TestKernel runs what the machine's own kernel may not be able to, in one guest.
func TestKernel(t *testing.T) {
	Run(t,
		Suite{Package: "test/vm/guest", Tests: "."},
		Suite{Package: "shared/kernel", Tests: "^(TestReadVRF|TestMonitorFollowsNextHopObjects)$"},
		Suite{Package: "dpu-agent/representor", Tests: "^TestKernel"},
		Suite{Package: "dpu-agent/routeimport", Tests: "^(TestKernel|TestFollowsTheKernel$)", Timeout: 4 * time.Minute},
		Suite{Package: "dpu-agent/service", Tests: "^TestHealthInVRF$"},
		Suite{Package: "dpu-agent/vrf", Tests: "^TestKernel", Timeout: 8 * time.Minute},
	)
}

// TestRouting runs the product, with its API server, Open vSwitch, OVN and FRR, on a kernel that has VRFs.
func TestRouting(t *testing.T) {
	Run(t, Suite{Package: "test/integration", Tests: "^TestKernel", Timeout: 25 * time.Minute, Lab: true})
}

// TestEdits: a kernel whose source is another one is told from one that was edited.
func TestEdits(t *testing.T) {
	e := edit{line: "struct b {", before: "x\n", after: "y\n"}
	if got, err := e.apply("a\nstruct b {\nc\n"); err != nil || got != "a\nx\nstruct b {\ny\nc\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"a\n", "a\nstruct b {\nstruct b {\n", "a\n struct b {\n"} {
		if _, err := e.apply(text); err == nil {
			t.Errorf("%q could be edited", text)
		}
	}
}

// TestExitCode: a program of the guest that fails, and a guest that dies, are no success.
func TestExitCode(t *testing.T) {
	lab.NeedRoot(t)
	image, err := prepare(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := shares{tests: filepath.Join(dir, "tests"), out: filepath.Join(dir, "out"), repository: filepath.Join(dir, "repository"), memory: memory}
	for _, d := range []string{s.tests, s.out, s.repository} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := func(text string) {
		if err := os.WriteFile(filepath.Join(s.tests, "run"), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program("echo on the console; echo to the machine > /out/text; exit 42")
	code, console, err := boot(t.Context(), image, dir, s)
	if err != nil || code != 42 || !strings.Contains(console, "on the console") {
		t.Errorf("exit code %d, %v, want 42; on the console:\n%s", code, err, console)
	}
	if text, err := os.ReadFile(filepath.Join(s.out, "text")); err != nil || !bytes.Equal(text, []byte("to the machine\n")) {
		t.Errorf("the guest wrote %q, %v", text, err)
	}
	program("echo 1 > /proc/sys/kernel/panic; echo c > /proc/sysrq-trigger")
	if code, console, err := boot(t.Context(), image, dir, s); err == nil {
		t.Errorf("a kernel that panicked ended with %d; on the console:\n%s", code, console)
	}
}
