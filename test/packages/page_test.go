// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// A step is a code block of a page that a test runs. Its fence is "```sh WHERE NAME".
type step struct {
	where  string // on which machine
	name   string
	script string
}

// steps reads the steps of a page, in the page's order. Code blocks without a place are not run.
func steps(t *testing.T, page string) []step {
	t.Helper()
	raw, err := os.ReadFile(page)
	must(t, err)
	const fence = "```"
	var all []step
	var open *step
	for line := range strings.Lines(string(raw)) {
		info, isFence := strings.CutPrefix(line, fence)
		switch words := strings.Fields(info); {
		case isFence && open == nil:
			open = &step{}
			if len(words) > 1 && words[0] == "sh" {
				if len(words) != 3 {
					t.Fatalf("%s: a fence is %q", page, strings.TrimSpace(line))
				}
				open.where, open.name = words[1], words[2]
			}
		case isFence:
			if open.where != "" {
				all = append(all, *open)
			}
			open = nil
		case open != nil:
			open.script += line
		}
	}
	return all
}

// variables are those that a script exports.
func variables(script string) []string {
	var names []string
	for line := range strings.Lines(script) {
		if assignment, ok := strings.CutPrefix(line, "export "); ok {
			name, _, _ := strings.Cut(assignment, "=")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
