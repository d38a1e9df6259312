// SPDX-License-Identifier: Apache-2.0

// Package sourcetest makes git repositories for tests.
package sourcetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
