// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
)

// Suite is a package whose tests run in the guest.
type Suite struct {
	// Package is its directory in the repository.
	Package string
	// Tests selects tests, as -test.run does.
	Tests string
	// Timeout bounds all of them; default one minute.
	Timeout time.Duration
}

func (s Suite) limit() time.Duration { return cmp.Or(s.Timeout, time.Minute) }

// outcome is what the test binary of a suite did.
type outcome struct {
	// code is its exit code, or why there is none.
	code string
	// log is what it printed, marked for test2json.
	log string
}

// compile builds the test binaries of the suites into dir, with the program that runs them.
func compile(ctx context.Context, repository, dir string, suites []Suite) error {
	var run strings.Builder
	run.WriteString("export " + kerneltest.GuestVariable + "=1 HOME=/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n")
	for i, s := range suites {
		binary := fmt.Sprintf("%d.test", i)
		cmd := exec.CommandContext(ctx, "nice", "-n", "10", "go", "test", "-c", "-o", filepath.Join(dir, binary), "./"+s.Package)
		cmd.Dir = repository
		// The binary is for another machine than this, if only by the C library.
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build the tests of %s: %w: %s", s.Package, err, said)
		}
		fmt.Fprintf(&run, "cd %s || exit\n/tests/%s -test.v=test2json -test.count=1 -test.timeout=%s -test.run=%s >/out/%d.log 2>&1\necho $? >/out/%d.code\n",
			quote(filepath.Join(repository, s.Package)), binary, s.limit(), quote(s.Tests), i, i)
	}
	return os.WriteFile(filepath.Join(dir, "run"), []byte(run.String()), 0o755)
}

// quote makes one word for sh(1).
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// outcomes reads what the guest wrote.
func outcomes(dir string, suites []Suite) []outcome {
	all := make([]outcome, len(suites))
	for i := range suites {
		read := func(kind string) string {
			text, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(i)+kind))
			if err != nil {
				return "none: " + err.Error()
			}
			return strings.TrimSpace(string(text))
		}
		all[i] = outcome{code: read(".code"), log: read(".log")}
	}
	return all
}
