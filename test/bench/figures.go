// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const mebibyte = 1 << 20

// percentile is the smallest of the values that p percent of them do not exceed (nearest rank).
func percentile(values []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// resident is the resident memory of a process in bytes, and how much of it is the process's own: the rest is pages of
// its binary, which the kernel may drop and which processes of the same binary share.
type resident struct{ all, own int64 }

func (r resident) String() string {
	return fmt.Sprintf("%.1f MiB (own %.1f)", float64(r.all)/mebibyte, float64(r.own)/mebibyte)
}

// residentOf reads VmRSS and RssAnon of a process, proc_pid_status(5).
func residentOf(pid int) (r resident, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return r, fmt.Errorf("memory of a process: %w", err)
	}
	return parseResident(string(text))
}

func parseResident(status string) (r resident, err error) {
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		to := map[string]*int64{"VmRSS": &r.all, "RssAnon": &r.own}[name]
		if to == nil {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return r, fmt.Errorf("memory of a process: %w", err)
		}
		*to = kib << 10
	}
	if r.all == 0 || r.own == 0 {
		return r, errors.New("memory of a process: the kernel does not tell; has it ended?")
	}
	return r, nil
}

// short is a time with three digits.
func short(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", float64(d)/float64(time.Microsecond))
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	}
	return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
}

func millis(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// series joins what was measured at several sizes.
func series[T any](values []T, text func(T) string) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = text(v)
	}
	return strings.Join(texts, " / ")
}

// trim is a command's output of one line.
func trim(output string) string { return strings.TrimSpace(output) }
