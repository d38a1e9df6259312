// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"
)

// verdict is how a figure stands to its target.
type verdict string

const (
	met    verdict = "ok"
	missed verdict = "MISSED"
	// noTarget is for figures that others are compared with.
	noTarget verdict = "-"
	// notMeasured counts as missed: a target that nobody looked at is not met.
	notMeasured verdict = "FAILED"
)

func judge(ok bool) verdict {
	if ok {
		return met
	}
	return missed
}

// row is one line of the table.
type row struct {
	Measure string  `json:"measure"`
	How     string  `json:"how"`
	Figure  string  `json:"figure"`
	Target  string  `json:"target,omitempty"`
	Verdict verdict `json:"verdict"`
	// Values are what Figure is made of, in bytes, seconds or counts.
	Values map[string]float64 `json:"values,omitempty"`
}

func failed(measure string, err error) row {
	return row{Measure: measure, Figure: err.Error(), Verdict: notMeasured}
}

// report is the outcome of a run.
type report struct {
	// Agent is what the host-agent that was measured says of itself; empty if none was.
	Agent string `json:"agent,omitempty"`
	// Quick runs are for trying the bench.
	Quick    bool   `json:"quick"`
	Platform string `json:"platform"`
	Go       string `json:"go"`
	Cores    int    `json:"cores"`
	// Load is the load average of the last minute when the run began: what else the machine had to do.
	Load string `json:"load"`
	Took string `json:"took"`
	Rows []row  `json:"rows"`
}

func newReport(quick bool) *report {
	load, _, _ := strings.Cut(readText("/proc/loadavg"), " ")
	return &report{
		Quick: quick, Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Go: runtime.Version(), Cores: runtime.NumCPU(), Load: load, Rows: []row{},
	}
}

func readText(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// met tells whether every target was.
func (r *report) met() bool {
	for _, row := range r.Rows {
		if row.Verdict == missed || row.Verdict == notMeasured {
			return false
		}
	}
	return true
}

func (r *report) print(w io.Writer, output string) error {
	if output == "json" {
		text, err := r.json()
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	rows := [][]string{{"measure", "how", "figure", "target", "verdict"}}
	for _, row := range r.Rows {
		rows = append(rows, []string{row.Measure, row.How, row.Figure, row.Target, string(row.Verdict)})
	}
	kind := "full"
	if r.Quick {
		kind = "quick"
	}
	_, err := fmt.Fprintf(w, "%s\n%s run of %s on %s, %d cores, %s, load average before it %s\n",
		table(rows), kind, r.Took, r.Platform, r.Cores, r.Go, r.Load)
	if err == nil && r.Agent != "" {
		_, err = fmt.Fprintln(w, r.Agent)
	}
	return err
}

// write writes the report as JSON.
func (r *report) write(path string) error {
	text, err := r.json()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (r *report) json() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		return nil, fmt.Errorf("encode report: %w", err)
	}
	return text.Bytes(), nil
}

// table draws rows, the first one being the headings, as people and Markdown read them.
func table(rows [][]string) string {
	cell := strings.NewReplacer("|", "/", "\n", " ")
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i := range row {
			row[i] = cell.Replace(row[i])
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var b strings.Builder
	line := func(row []string, fill string) {
		for i, text := range row {
			b.WriteString("| " + text + strings.Repeat(fill, widths[i]-utf8.RuneCountInString(text)) + " ")
		}
		b.WriteString("|\n")
	}
	for i, row := range rows {
		line(row, " ")
		if i == 0 {
			line(make([]string, len(row)), "-")
		}
	}
	return b.String()
}
