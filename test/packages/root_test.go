// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

const (
	// commandTime bounds one command in a root; apt-get by emulation takes its time.
	commandTime = 2 * time.Minute
	// startTime bounds the start of a root, booting included.
	startTime = time.Minute
)

// A root is a Debian system of its own: a base with an overlay, in namespaces that end with the test. What the test puts
// into share is /srv in it.
type root struct {
	t     *testing.T
	share string
	pid   int // of its process 1, as the machine counts
}

// surroundings are what a root shares with the machine, besides /srv.
type surroundings struct {
	netns string // name of its network namespace; empty for one of its own
	dir   string // directory that it sees at the same place; empty for none
}

// bootRoot starts a machine with systemd.
func bootRoot(t *testing.T, in surroundings) *root {
	t.Helper()
	r := startRoot(t, amd64Base, "boot", in)
	// "degraded" is a failed unit, such as one that a machine in namespaces cannot have.
	r.eventually(startTime, func() error {
		out, _ := r.run("systemctl", "is-system-running")
		if s := strings.TrimSpace(out); s != "running" && s != "degraded" {
			return fmt.Errorf("systemd is %s", s)
		}
		return nil
	})
	return r
}

// idleRoot starts a root in which nothing runs.
func idleRoot(t *testing.T, b base) *root {
	t.Helper()
	return startRoot(t, b, "idle", surroundings{})
}

func startRoot(t *testing.T, b base, how string, in surroundings) *root {
	t.Helper()
	lab.NeedRoot(t)
	if b.arch != "amd64" {
		emulate(t)
	}
	tree, work := b.path(t), t.TempDir()
	for _, dir := range []string{"mnt", "srv", "upper"} {
		must(t, os.Mkdir(filepath.Join(work, dir), 0o755))
	}
	args := []string{"unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--cgroup"}
	if in.netns == "" {
		args = append(args, "--net")
	} else {
		args = append([]string{"ip", "netns", "exec", in.netns}, args...)
	}
	args = append(args, "bash", "testdata/root.sh", tree, work, how, in.dir)
	r := &root{t: t, share: filepath.Join(work, "srv")}
	const mark = "started"
	r.file(mark, "")
	var log bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = &log, &log
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("the root said: %s", tail(log.String()))
		}
	})
	r.eventually(startTime, func() error {
		select {
		case <-ended:
			t.Fatalf("the root ended: %s", tail(log.String()))
		default:
		}
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if err != nil {
			return err
		}
		if r.pid, err = strconv.Atoi(strings.TrimSpace(string(children))); err != nil {
			return fmt.Errorf("no child yet: %w", err)
		}
		_, err = r.run("test", "-e", "/srv/"+mark)
		return err
	})
	return r
}

// run runs a command in the root and returns all that it printed.
func (r *root) run(args ...string) (string, error) {
	return r.with(nil, args...)
}

// with runs a command with a standard input.
func (r *root) with(stdin []byte, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	enter := []string{"--target", strconv.Itoa(r.pid), "--all", "--root", "--wd", "--", "env", "-i", "LC_ALL=C.UTF-8",
		"DEBIAN_FRONTEND=noninteractive", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, tail(string(out)))
	}
	return string(out), nil
}

// must runs a command that has to succeed.
func (r *root) must(args ...string) string {
	r.t.Helper()
	out, err := r.run(args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// fails runs a command that has to fail and to say why.
func (r *root) fails(says []string, args ...string) string {
	r.t.Helper()
	out, err := r.run(args...)
	if err == nil {
		r.t.Fatalf("%s succeeded: %s", strings.Join(args, " "), tail(out))
	}
	for _, want := range says {
		if !strings.Contains(out, want) {
			r.t.Errorf("%s does not say %q: %s", strings.Join(args, " "), want, tail(out))
		}
	}
	return out
}

// write makes a file in the root.
func (r *root) write(path, mode, content string) {
	r.t.Helper()
	_, err := r.with([]byte(content), "sh", "-c", `mkdir -p "${1%/*}" && cat >"$1" && chmod "$2" "$1"`, "sh", path, mode)
	must(r.t, err)
}

// file makes a file below /srv.
func (r *root) file(name, content string) {
	r.t.Helper()
	must(r.t, os.WriteFile(filepath.Join(r.share, name), []byte(content), 0o644))
}

// source makes a repository below /srv the only one that apt knows, and refreshes apt's lists.
func (r *root) source(name string) (string, error) {
	r.t.Helper()
	r.write("/etc/apt/sources.list.d/ovn-uplink.list", "644", "deb [signed-by=/srv/key.gpg] file:/srv/"+name+" ./\n")
	return r.run("apt-get", "update", "-o", "APT::Update::Error-Mode=any")
}

// files lists every file of the root with its mode, but for the bookkeeping of apt and dpkg, logs and caches.
func (r *root) files() map[string]bool {
	r.t.Helper()
	out := r.must("find", "/", "-xdev", "(", "-path", "/var/lib/dpkg", "-o", "-path", "/var/lib/apt", "-o", "-path", "/var/cache",
		"-o", "-path", "/var/log", "-o", "-path", "/etc/apt", "-o", "-path", "/var/lib/containerd", "-o", "-path", "/srv", ")", "-prune",
		"-o", "-printf", "%p %M\\n")
	list := map[string]bool{}
	for line := range strings.Lines(out) {
		list[strings.TrimSpace(line)] = true
	}
	if len(list) < 1000 {
		r.t.Fatalf("only %d files in the root", len(list))
	}
	return list
}

// sameFiles says what is more and what is less than before.
func (r *root) sameFiles(before map[string]bool) {
	r.t.Helper()
	after := r.files()
	for f := range after {
		if !before[f] {
			r.t.Errorf("left: %s", f)
		}
	}
	for f := range before {
		if !after[f] {
			r.t.Errorf("gone: %s", f)
		}
	}
}

func (r *root) eventually(d time.Duration, check func() error) {
	r.t.Helper()
	err := lab.Eventually(context.Background(), d, func(context.Context) error { return check() })
	if err != nil {
		r.t.Fatal(err)
	}
}
