// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// result is one test of the guest, with those below it in the order in which they ran.
type result struct {
	name string
	// action is "pass", "fail" or "skip" (go doc test2json); empty for a test that did not end.
	action string
	// took is in seconds.
	took   float64
	output strings.Builder
	below  []*result
}

// parse gives the results that the output of a test binary tells of, below one that stands for the package.
func parse(ctx context.Context, log string) (*result, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", "-t") // for the times
	cmd.Stdin = strings.NewReader(log)
	events, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool test2json: %w", err)
	}
	all := &result{}
	byName := map[string]*result{"": all}
	find := func(name string) *result {
		if r, ok := byName[name]; ok {
			return r
		}
		// A name may have slashes that separate no tests.
		parent := name
		for {
			i := strings.LastIndexByte(parent, '/')
			parent = parent[:max(i, 0)]
			if _, ok := byName[parent]; ok {
				break
			}
		}
		r := &result{name: strings.TrimPrefix(name[len(parent):], "/")}
		byName[name] = r
		byName[parent].below = append(byName[parent].below, r)
		return r
	}
	for line := range bytes.Lines(events) {
		var e struct {
			Action, Test, Output string
			Elapsed              float64
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("read the output of test2json: %w", err)
		}
		switch r := find(e.Test); e.Action {
		case "output":
			r.output.WriteString(e.Output)
		case "pass", "fail", "skip":
			r.action, r.took = e.Action, e.Elapsed
		}
	}
	return all, nil
}

// reportSuite makes a test of each test of a package whose binary ended with an exit code.
func (r *result) reportSuite(t *testing.T, code string) {
	for _, b := range r.below {
		t.Run(b.name, b.report)
	}
	if len(r.below) == 0 || code != "0" && !t.Failed() {
		t.Errorf("%d tests; the test binary's exit code: %s; it printed\n%s", len(r.below), code, r.output.String())
	}
}

// report makes a test of it and of each below it.
func (r *result) report(t *testing.T) {
	for _, b := range r.below {
		t.Run(b.name, b.report)
	}
	if fault := r.fault(); fault != "" {
		t.Errorf("%s:\n%s", fault, r.output.String())
	}
	t.Logf("%.2f s in the guest", r.took)
}

// fault says why the test counts as failed, or nothing. One that was skipped has nowhere else to run.
func (r *result) fault() string {
	switch r.action {
	case "pass":
		return ""
	case "skip":
		return "skipped in the guest"
	case "fail":
		return "failed in the guest"
	}
	return "did not end in the guest"
}
