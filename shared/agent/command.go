// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/spf13/cobra"
)

// Version and Commit are stamped by the build (-ldflags -X).
var (
	Version = "dev"
	Commit  = "unknown"
)

// Main runs a command and ends the process: 0 done, 1 failed, 2 called in a wrong way.
func Main(command *cobra.Command) {
	// The agents live long and idle: trade a little collecting for a small heap, unless told otherwise.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
	command.SilenceErrors = true
	command.SilenceUsage = true
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &UsageError{err} })
	command.AddCommand(versionCommand(command.Name()))
	err := command.Execute()
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", command.Name(), err)
	var usage *UsageError
	if errors.As(err, &usage) || strings.HasPrefix(err.Error(), "unknown command") {
		fmt.Fprintf(os.Stderr, "Run '%s --help' for usage.\n", command.Name())
		os.Exit(2)
	}
	os.Exit(1)
}

// NoArgs refuses arguments as a mistake of the caller.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unexpected argument %q", args[0])
	}
	return nil
}

// OutputFlag adds -o to a command that can print text or JSON.
func OutputFlag(command *cobra.Command, output *string) {
	command.Flags().StringVarP(output, "output", "o", "text", "how to print: text or json")
}

// Print writes a value as JSON, or as text by the function given, as -o says.
func Print(w io.Writer, output string, value any, text func(io.Writer)) error {
	switch output {
	case "text":
		text(w)
		return nil
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(value)
	}
	return Usagef("-o %s: must be text or json", output)
}

// Table prints aligned lines for a person: a name, and columns made from a format in which tabs separate them. What
// the arguments say may come from anywhere; it cannot reach the terminal as anything but text.
type Table struct{ writer *tabwriter.Writer }

// NewTable makes a table; Flush it in the end.
func NewTable(w io.Writer) *Table { return &Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// Line adds a line.
func (t *Table) Line(name, format string, args ...any) {
	for i, arg := range args {
		switch arg.(type) {
		case string, fmt.Stringer, error:
			args[i] = uplinkstate.Message(fmt.Sprint(arg))
		}
	}
	fmt.Fprintf(t.writer, name+"\t"+format+"\n", args...)
}

// Flush writes what was added.
func (t *Table) Flush() { _ = t.writer.Flush() }

func versionCommand(component string) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and platform",
		Args:  NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := struct {
				Component string `json:"component"`
				Version   string `json:"version"`
				Commit    string `json:"commit"`
				Platform  string `json:"platform"`
				Go        string `json:"go"`
			}{component, Version, Commit, runtime.GOOS + "/" + runtime.GOARCH, runtime.Version()}
			return Print(cmd.OutOrStdout(), output, info, func(w io.Writer) {
				fmt.Fprintf(w, "%s %s (commit %s, %s, %s)\n", info.Component, info.Version, info.Commit, info.Platform, info.Go)
			})
		},
	}
	OutputFlag(command, &output)
	return command
}
