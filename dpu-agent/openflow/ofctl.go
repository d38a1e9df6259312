// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// maxLine is the longest line of ovs-ofctl that is read.
const maxLine = 1 << 20

// ofctl runs ovs-ofctl.
type ofctl struct {
	program string
	runDir  string
	timeout time.Duration
}

// socket is where ovs-vswitchd takes OpenFlow connections for a bridge.
func (o ofctl) socket(bridge string) string { return filepath.Join(o.runDir, bridge+".mgmt") }

func (o ofctl) target(bridge string) string { return "unix:" + o.socket(bridge) }

// run runs a command to its end and gives every line of its output to each, whose error ends it.
func (o ofctl) run(ctx context.Context, stdin io.Reader, each func(string) error, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.program, args...)
	cmd.Stdin = stdin
	cmd.WaitDelay = time.Second
	complaint := &tail{most: 8192}
	cmd.Stderr = complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run %s: %w", o.program, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %s: %w", o.program, err)
	}
	readErr := lines(out, each)
	if readErr != nil {
		cancel()
	}
	err = cmd.Wait()
	switch {
	case readErr != nil:
		return readErr
	case ctx.Err() != nil:
		return fmt.Errorf("%s gave no answer: %w", o.program, ctx.Err())
	case err != nil:
		return &refusal{words: complaint.String(), err: err}
	}
	return nil
}

func lines(from io.Reader, each func(string) error) error {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
	for scanner.Scan() {
		if each == nil {
			continue
		}
		if err := each(scanner.Text()); err != nil {
			return err
		}
	}
	return scanner.Err()
}

// tail keeps the beginning of what is written to it.
type tail struct {
	bytes.Buffer
	most int
}

func (t *tail) Write(p []byte) (int, error) {
	if room := t.most - t.Len(); room > 0 {
		t.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// refusal is what ovs-ofctl said when it failed.
type refusal struct {
	words string
	err   error
}

func (r *refusal) Unwrap() error { return r.err }

// Error is what was said without hex dumps, which begin with an offset, and without the times of log lines.
func (r *refusal) Error() string {
	var said []string
	for line := range strings.Lines(r.words) {
		line = strings.TrimSpace(line)
		if _, err := strconv.ParseUint(firstWord(line), 16, 32); line == "" || err == nil {
			continue
		}
		if parts := strings.SplitN(line, "|", 5); len(parts) == 5 {
			line = parts[4]
		}
		said = append(said, line)
	}
	if len(said) == 0 {
		return r.err.Error()
	}
	return clip(strings.Join(said, "; "))
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// line is the number of the input's line that ovs-ofctl complains about, 0 if about none: "ovs-ofctl: -:4: …".
func (r *refusal) line() int {
	_, rest, found := strings.Cut(r.words, "ovs-ofctl: -:")
	if !found {
		return 0
	}
	n, _, _ := strings.Cut(rest, ":")
	line, err := strconv.Atoi(n)
	if err != nil {
		return 0
	}
	return line
}

// dump gives every flow of the package's on a bridge to each; more are fields that they also match.
func (o ofctl) dump(ctx context.Context, bridge string, each func(Flow), more ...string) error {
	filter := strings.Join(append([]string{ownFlows}, more...), ",")
	read := func(line string) error {
		if !strings.HasPrefix(line, " ") {
			return nil // a heading
		}
		f, err := parseFlow(line)
		if err != nil {
			return err
		}
		if owned(f.Cookie) {
			each(f)
		}
		return nil
	}
	err := o.run(ctx, nil, read, "-OOpenFlow14", "--no-names", "--no-stats", "dump-flows", o.target(bridge), filter)
	if err != nil {
		return fmt.Errorf("read the flows of bridge %s: %w", bridge, err)
	}
	return nil
}

// send carries a plan out in one atomic bundle.
func (o ofctl) send(ctx context.Context, bridge string, p plan) error {
	var text []byte
	for _, f := range p.del {
		text = f.appendDelete(text)
	}
	for _, f := range p.add {
		text = f.appendAdd(text)
	}
	err := o.run(ctx, bytes.NewReader(text), nil, "-OOpenFlow14", "--bundle", "add-flows", o.target(bridge), "-")
	var refused *refusal
	if errors.As(err, &refused) {
		if all, n := slicesOfLines(text), refused.line(); n > 0 && n <= len(all) {
			return fmt.Errorf("program bridge %s: %w; the flow is %q", bridge, err, clip(all[n-1]))
		}
	}
	if err != nil {
		return fmt.Errorf("program bridge %s with %d flows: %w", bridge, len(p.del)+len(p.add), err)
	}
	return nil
}

func slicesOfLines(text []byte) []string { return strings.Split(strings.TrimSpace(string(text)), "\n") }

// deleteOwn deletes all flows of the package's on a bridge.
func (o ofctl) deleteOwn(ctx context.Context, bridge string) error {
	if err := o.run(ctx, nil, nil, "-OOpenFlow14", "del-flows", o.target(bridge), ownFlows); err != nil {
		return fmt.Errorf("delete the flows of bridge %s: %w", bridge, err)
	}
	return nil
}
