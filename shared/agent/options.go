// SPDX-License-Identifier: Apache-2.0

// Package agent is the frame of both binaries: flags, logging, health and metrics endpoints, signals.
package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options are the flags that every role has.
type Options struct {
	Component     string
	NodeName      string
	Kubeconfig    string
	LogLevel      string
	LogFormat     string
	HealthAddress string
	Settle        time.Duration
	Resync        time.Duration
}

// AddFlags binds the options to flags; what is set in the Options already is the default.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "kubeconfig `file` of the cluster whose Uplinks to serve; without it, the credentials of the pod")
	flags.StringVar(&o.LogLevel, "log-level", "info", "lowest level that is logged: debug, info, warn or error")
	flags.StringVar(&o.LogFormat, "log-format", "text", "how log lines look: text or json")
	flags.StringVar(&o.HealthAddress, "health-address", o.HealthAddress, "`address` of /healthz, /readyz and /metrics; empty switches them off")
	flags.DurationVar(&o.Settle, "settle", time.Second, "how long a change must last before it is published; shorter flaps are not seen")
	flags.DurationVar(&o.Resync, "resync", 5*time.Minute, "how often everything is looked at although no event came")
}

// UsageError is a mistake in how the program was called; it makes the program exit with 2.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap gives the mistake.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Validate checks the values that the flags cannot check themselves, and sets up logging.
func (o *Options) Validate() error {
	if err := setupLogging(o.LogLevel, o.LogFormat); err != nil {
		return &UsageError{err}
	}
	if o.Settle < 0 || o.Settle > time.Minute {
		return Usagef("--settle %s: must be between 0 and 1m", o.Settle)
	}
	if o.Resync < 10*time.Second {
		return Usagef("--resync %s: must be at least 10s", o.Resync)
	}
	if o.HealthAddress != "" {
		host, _, err := net.SplitHostPort(o.HealthAddress)
		if err != nil {
			return Usagef("--health-address %q: must be host:port, for example 127.0.0.1:9981", o.HealthAddress)
		}
		if _, err := netip.ParseAddr(host); host != "" && host != "localhost" && err != nil {
			return Usagef("--health-address %q: the host must be an IP address or localhost", o.HealthAddress)
		}
	}
	return nil
}

// CheckNodeName tells whether a value given with a flag can be the name of a Node.
func CheckNodeName(flag, name string) error {
	if name == "" {
		return Usagef("%s is required: the name of this node's Node object", flag)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return Usagef("%s %q is not a node name: %s", flag, name, strings.Join(problems, "; "))
	}
	return nil
}

func setupLogging(level, format string) error {
	var threshold slog.Level
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, level) {
		return fmt.Errorf("--log-level %q: must be debug, info, warn or error", level)
	}
	if err := threshold.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("--log-level %q: %w", level, err)
	}
	options := &slog.HandlerOptions{Level: threshold}
	switch format {
	case "text":
		slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, options)))
	case "json":
		slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, options)))
	default:
		return errors.New("--log-format " + format + ": must be text or json")
	}
	return nil
}
