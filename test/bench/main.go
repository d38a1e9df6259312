// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"github.com/spf13/cobra"
)

// deadline bounds a whole run, the build of an API server on a machine that has none included.
const deadline = time.Hour

// errMissed ends the program with 1; the table has said what it is about.
var errMissed = errors.New("not every target was met")

// bench is one run.
type bench struct {
	quick    bool
	bin, dir string
	// allinone is the binary that the agents are compared with, built for the run.
	allinone string
	// agent is what the host-agent says of its version.
	agent string
	began time.Time
}

// section measures some rows of the table.
type section struct {
	name, title string
	// needsLab is whether it runs the agents, which takes root and their binaries.
	needsLab bool
	measure  func(*bench, context.Context) ([]row, error)
}

var sections = []section{
	{"weight", "binary sizes and memory", true, (*bench).weight},
	{"fanout", "what is received of other nodes' changes", true, (*bench).fanout},
	{"drift", "from a change to the UplinkState", true, (*bench).drift},
	{"gateway", "networks and services", true, (*bench).gateway},
	{"services", "adding networks and services, in process", true, (*bench).services},
	{"lookup", "finding a representor", false, (*bench).lookup},
}

func main() {
	b := &bench{began: time.Now()}
	var output, file string
	var only []string
	names := make([]string, len(sections))
	for i, s := range sections {
		names[i] = s.name
	}
	root := &cobra.Command{
		Use:   "bench",
		Short: "Measure the agents on a simulated cluster, as a table and JSON",
		Args:  agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return agent.Usagef("-o %s: must be table or json", output)
			}
			for _, name := range only {
				if !slices.Contains(names, name) {
					return agent.Usagef("--only %s: must be some of %s", name, strings.Join(names, ", "))
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, deadline)
			defer cancel()
			return b.run(ctx, only, output, file)
		},
	}
	flags := root.Flags()
	flags.BoolVar(&b.quick, "quick", false, "measure shorter and less often: to try the bench, not for figures to quote")
	flags.StringVarP(&output, "output", "o", "table", "how to print: table or json")
	flags.StringVar(&file, "json", filepath.Join("out", "bench.json"), "`file` that gets the JSON in any case; empty for none")
	flags.StringVar(&b.bin, "bin", "bin/linux-"+runtime.GOARCH, "`directory` of the agents' binaries")
	flags.StringVar(&b.dir, "dir", filepath.Join(os.TempDir(), "ovn-uplink-bench"), "`directory` of the simulated cluster's state")
	flags.StringSliceVar(&only, "only", nil, "measure only these `parts`: "+strings.Join(names, ", "))
	agent.Main(root)
}

func (b *bench) run(ctx context.Context, only []string, output, file string) error {
	chosen := slices.DeleteFunc(slices.Clone(sections), func(s section) bool {
		return len(only) > 0 && !slices.Contains(only, s.name)
	})
	r := newReport(b.quick)
	if slices.ContainsFunc(chosen, func(s section) bool { return s.needsLab }) {
		remove, err := b.prepare(ctx)
		if err != nil {
			return err
		}
		defer remove()
		r.Agent = b.agent
	}
	for _, s := range chosen {
		if ctx.Err() != nil {
			r.Rows = append(r.Rows, failed(s.title, context.Cause(ctx)))
			continue
		}
		b.say("%s: %s", s.name, s.title)
		rows, err := s.measure(b, ctx)
		if err != nil {
			// The other parts are worth their figures all the same.
			b.say("%s: failed: %v", s.name, err)
			rows = append(rows, failed(s.title, err))
		}
		r.Rows = append(r.Rows, rows...)
	}
	r.Took = time.Since(b.began).Round(time.Second).String()
	if err := r.print(os.Stdout, output); err != nil {
		return err
	}
	if file != "" {
		if err := r.write(file); err != nil {
			return err
		}
		b.say("JSON is in %s", file)
	}
	if !r.met() {
		return errMissed
	}
	return nil
}

// prepare finds the agents and builds what they are compared with. remove takes that away again.
func (b *bench) prepare(ctx context.Context) (remove func(), err error) {
	if os.Geteuid() != 0 {
		return nil, lab.ErrNotRoot
	}
	if b.bin, err = filepath.Abs(b.bin); err != nil {
		return nil, err
	}
	for _, name := range []string{"host-agent", "dpu-agent"} {
		if _, err := os.Stat(filepath.Join(b.bin, name)); err != nil {
			return nil, fmt.Errorf("the agents are not built (make build): %w", err)
		}
	}
	version, err := exec.CommandContext(ctx, filepath.Join(b.bin, "host-agent"), "version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask host-agent for its version: %w", err)
	}
	b.agent = strings.TrimSpace(string(version))
	dir, err := os.MkdirTemp("", "ovn-uplink-bench-bin")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	b.allinone = filepath.Join(dir, "allinone")
	b.say("building the agent that the others are compared with (a minute the first time)")
	if err := buildAllInOne(ctx, b.allinone); err != nil {
		remove()
		return nil, err
	}
	return remove, nil
}

// say reports progress.
func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%5.0f s  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, args...))
}

// full is one of two values: the one for a full run, or the one for a quick run.
func full[T any](b *bench, normal, quick T) T {
	if b.quick {
		return quick
	}
	return normal
}
