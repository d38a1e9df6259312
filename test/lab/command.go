// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// commandDeadline bounds every command whose caller set no deadline.
const commandDeadline = 30 * time.Second

// command is something that is run to its end.
type command struct {
	argv  []string
	env   []string
	dir   string
	stdin string
}

// run returns the command's standard output. Its error names the command and
// holds the end of what it printed on both outputs.
func (c command) run(ctx context.Context) (string, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, commandDeadline)
		defer cancel()
	}
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Env, cmd.Dir = c.env, c.dir
	cmd.Stdin = strings.NewReader(c.stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	// A killed command's children may keep its output open.
	cmd.WaitDelay = 2 * time.Second
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	said := strings.TrimSpace(tail(strings.TrimSpace(out.String()+"\n"+errOut.String()), 2000))
	if said == "" {
		return out.String(), fmt.Errorf("run %s: %w", strings.Join(c.argv, " "), err)
	}
	return out.String(), fmt.Errorf("run %s: %w: %s", strings.Join(c.argv, " "), err, said)
}

// tail returns at most the last n bytes of s, from the start of a line.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[i+1:]
	}
	return s
}

// keptVariables are what the lab's commands and processes see of the
// environment that it was started from. KUBECONFIG, for one, must not get in.
var keptVariables = []string{"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "GOCOVERDIR", "GORACE"}

// baseEnv is the environment that everything in a lab starts from.
func baseEnv() []string {
	env := make([]string, 0, len(keptVariables))
	for _, name := range keptVariables {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// lookPath finds an executable the way a shell would in the given
// environment, and where root's tools usually are.
func lookPath(name string, env []string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	dirs := []string{"/usr/local/sbin", "/usr/sbin", "/sbin"}
	for _, kv := range env {
		if list, ok := strings.CutPrefix(kv, "PATH="); ok {
			dirs = append(filepath.SplitList(list), dirs...)
		}
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("find %s: %w; test/setup.sh installs what the lab needs", name, errNotInstalled)
}

var errNotInstalled = errors.New("not installed")
