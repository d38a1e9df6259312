// SPDX-License-Identifier: Apache-2.0

// Command tally reads `go test -json` on its input, prints what a person wants to see of it, and ends with
// one line: "N passed, N failed, N skipped". It exits with 1 when a test or a package failed, and when no
// test ran at all.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// event is one line of `go test -json` (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

type tally struct {
	passed, failed, skipped int
	// output of the tests that are running, by package and test
	output map[[2]string][]string
	skips  []string
	// failures say of each failed test what it complained of first: the rest of its output may be long.
	failures []string
	broken   []string
}

func main() {
	t := tally{output: map[[2]string][]string{}}
	if err := t.read(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
	os.Exit(t.report(os.Stdout))
}

func (t *tally) read(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(out, lines.Text()) // the build's own errors come as plain text
			continue
		}
		t.add(e, out)
	}
	return lines.Err()
}

func (t *tally) add(e event, out io.Writer) {
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "output":
		t.output[key] = append(t.output[key], e.Output)
		return
	case "build-output":
		fmt.Fprint(out, e.Output)
		return
	case "pass":
		if e.Test != "" {
			t.passed++
		} else {
			fmt.Fprintf(out, "ok    %s (%.1fs)\n", e.Package, e.Elapsed)
		}
	case "skip":
		if e.Test != "" {
			t.skipped++
			t.skips = append(t.skips, e.Package+" "+e.Test+": "+reason(t.output[key]))
		}
	case "fail":
		if e.Test != "" {
			t.failed++
			t.failures = append(t.failures, e.Package+" "+e.Test+": "+complaint(t.output[key]))
			fmt.Fprintf(out, "FAIL  %s %s\n%s", e.Package, e.Test, strings.Join(t.output[key], ""))
		} else {
			t.broken = append(t.broken, e.Package)
			fmt.Fprintf(out, "FAIL  %s (%.1fs)\n%s", e.Package, e.Elapsed, strings.Join(t.output[key], ""))
		}
	default:
		return
	}
	delete(t.output, key)
}

func (t *tally) report(out io.Writer) int {
	slices.Sort(t.skips)
	for _, skip := range t.skips {
		fmt.Fprintln(out, "skip ", skip)
	}
	for _, failure := range t.failures {
		fmt.Fprintln(out, "failed", failure)
	}
	for _, pkg := range t.broken {
		fmt.Fprintln(out, "failed package:", pkg)
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
	if t.failed > 0 || len(t.broken) > 0 || t.passed == 0 {
		return 1
	}
	return 0
}

// reason is the line that the test gave for being skipped.
func reason(output []string) string {
	for _, line := range slices.Backward(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "---") && !strings.HasPrefix(line, "===") {
			return line
		}
	}
	return "no reason given"
}

// complaint is the first message that a failed test gave itself, with the lines that belong to it, cut to a readable
// length. What its helpers log is about something else.
func complaint(output []string) string {
	const longest = 600
	var text string
	for _, line := range output {
		isMessage := message.MatchString(line) && (text != "" || strings.Contains(line, "_test.go:"))
		if text != "" && (isMessage || strings.HasPrefix(strings.TrimSpace(line), "---")) {
			break
		}
		if text != "" || isMessage {
			text += line
		}
	}
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return cmp.Or(strings.TrimSpace(text), "see above")
}

// message begins what a test logs: "    file_test.go:12: ".
var message = regexp.MustCompile(`^ +[\w.-]+\.go:\d+: `)
