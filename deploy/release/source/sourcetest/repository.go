// SPDX-License-Identifier: Apache-2.0

// Package sourcetest makes git repositories for tests.
package sourcetest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/source"
)

// Repository is a repository with a checkout. What fails in it ends the test.
type Repository struct {
	Root string
	t    testing.TB
}

// New makes a repository in a directory of the test's, with files in one commit.
func New(t testing.TB, files map[string]string) *Repository {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := At(t, root)
	for name, text := range files {
		r.Write(name, text)
	}
	r.Commit("first")
	return r
}

// At makes a repository of the files that are in a directory, without committing them.
func At(t testing.TB, root string) *Repository {
	t.Helper()
	r := &Repository{root, t}
	r.Git("init", "--quiet", "--initial-branch=main")
	return r
}

// Head makes a repository with one commit: the files of the commit that is checked out at a directory, without its locks
// and without its history. It works where that checkout is shallow, or somebody else's.
func Head(t testing.TB, checkout string) *Repository {
	t.Helper()
	archive := exec.CommandContext(t.Context(), "git", "-C", checkout, "archive", "--format=tar", "HEAD", ".")
	files, err := archive.Output()
	if err != nil {
		t.Fatalf("read the commit that is checked out at %s: %v", checkout, err)
	}
	root := t.TempDir()
	unpack := exec.CommandContext(t.Context(), "tar", "-x", "-C", root)
	unpack.Stdin = bytes.NewReader(files)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("unpack the commit: %v: %s", err, out)
	}
	if err := os.RemoveAll(filepath.Join(root, source.LockDir)); err != nil {
		t.Fatal(err)
	}
	r := At(t, root)
	r.Commit("source")
	return r
}

// Clone clones the repository to a directory.
func (r *Repository) Clone(root string) *Repository {
	r.t.Helper()
	r.Git("clone", "--quiet", r.Root, root)
	return &Repository{root, r.t}
}

// Write writes a file.
func (r *Repository) Write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.Root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// Commit commits all that is there, and returns the commit's id.
func (r *Repository) Commit(message string) string {
	r.t.Helper()
	r.Git("add", "--all")
	r.Git("commit", "--quiet", "--allow-empty", "--message", message)
	return r.Git("rev-parse", "HEAD")
}

// Git runs git in the repository, without anybody's configuration, and returns what it prints.
func (r *Repository) Git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-C", r.Root}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n")
}
