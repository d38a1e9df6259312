// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel/kerneltest"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// Suite is a package whose tests run in the guest.
type Suite struct {
	// Package is its directory in the repository.
	Package string
	// Tests selects tests, as -test.run does.
	Tests string
	// Timeout bounds all of them; default one minute.
	Timeout time.Duration
	// Lab says that the tests use test/lab: they get the agents, in the directory of lab.AgentsVariable, and an API
	// server, and the guest more memory.
	Lab bool
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
func compile(ctx context.Context, repository, dir string, suites []Suite, log func(string, ...any)) error {
	var run strings.Builder
	run.WriteString("export " + kerneltest.GuestVariable + "=1 HOME=/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n")
	if needLab(suites) {
		if err := equip(ctx, repository, dir, log); err != nil {
			return err
		}
		run.WriteString("export " + lab.AgentsVariable + "=/tests/agents\n")
	}
	for i, s := range suites {
		binary := fmt.Sprintf("%d.test", i)
		if err := build(ctx, repository, "test", "-c", "-o", filepath.Join(dir, binary), "./"+s.Package); err != nil {
			return err
		}
		fmt.Fprintf(&run, "cd %s || exit\n/tests/%s -test.v=test2json -test.count=1 -test.timeout=%s -test.run=%s >/out/%d.log 2>&1\necho $? >/out/%d.code\n",
			quote(filepath.Join(repository, s.Package)), binary, s.limit(), quote(s.Tests), i, i)
	}
	return os.WriteFile(filepath.Join(dir, "run"), []byte(run.String()), 0o755)
}

func needLab(suites []Suite) bool {
	return slices.ContainsFunc(suites, func(s Suite) bool { return s.Lab })
}

// equip builds the agents into dir, and prepares what labs take from their cache.
func equip(ctx context.Context, repository, dir string, log func(string, ...any)) error {
	agents := filepath.Join(dir, "agents")
	if err := os.Mkdir(agents, 0o755); err != nil {
		return err
	}
	if err := build(ctx, repository, "build", "-o", agents, "./host-agent", "./dpu-agent"); err != nil {
		return err
	}
	if _, err := lab.APIServerBinary(ctx, log); err != nil {
		return err
	}
	_, err := lab.NewerOVN(ctx, log)
	return err
}

// build runs go for the guest, which is another machine than this, if only by the C library.
func build(ctx context.Context, repository string, args ...string) error {
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "10", "go"}, args...)...)
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, said)
	}
	return nil
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
