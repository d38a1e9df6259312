// SPDX-License-Identifier: Apache-2.0

// Package source says what a release is made from: the commit of a checkout, the tree of that commit, its time and the
// version. Locks are kept in the tree that they are about, so the tree that counts is the one without them.
package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// LockDir is where locks are kept, relative to the root of the checkout. It is no part of Tree.
const LockDir = "deploy/nvke/lock"

// VersionFile has the version in the root of the checkout.
const VersionFile = "VERSION"

// Source is a state of the source.
type Source struct {
	// Commit is the full id of a commit.
	Commit string
	// Tree is the id of git's tree object of that commit without LockDir. Adding a lock does not change it.
	Tree string
	// Time is when the commit was made, in UTC.
	Time time.Time
	// Version is what the file VERSION says in that commit.
	Version string
}

// Tag is the tag of the images that are built from the source: the first 12 characters of its commit.
func (s Source) Tag() string { return s.Commit[:12] }

// Checkout is a directory that git has checked out.
type Checkout struct{ Root string }

// Open finds the checkout that a directory is in.
func Open(ctx context.Context, dir string) (Checkout, error) {
	root, err := git(ctx, dir, nil, "rev-parse", "--show-toplevel")
	if err != nil {
		return Checkout{}, fmt.Errorf("find the checkout that %s is in: %w", dir, err)
	}
	return Checkout{root}, nil
}

// Head is the commit that is checked out.
func (c Checkout) Head(ctx context.Context) (Source, error) { return c.At(ctx, "HEAD") }

// At is the state of the source in a commit.
func (c Checkout) At(ctx context.Context, revision string) (Source, error) {
	commit, err := git(ctx, c.Root, nil, "rev-parse", "--verify", "--quiet", revision+"^{commit}")
	if err != nil {
		return Source{}, fmt.Errorf("find commit %s in %s (a shallow clone may lack it: git fetch --unshallow): %w", revision, c.Root, err)
	}
	seconds, err := git(ctx, c.Root, nil, "show", "--no-patch", "--format=%ct", commit)
	if err != nil {
		return Source{}, fmt.Errorf("read the time of commit %s: %w", commit, err)
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Source{}, fmt.Errorf("read the time of commit %s: %w", commit, err)
	}
	version, err := git(ctx, c.Root, nil, "show", commit+":"+VersionFile)
	if err != nil {
		return Source{}, fmt.Errorf("read %s of commit %s: %w", VersionFile, commit, err)
	}
	if err := CheckVersion(version); err != nil {
		return Source{}, fmt.Errorf("%s of commit %s: %w", VersionFile, commit, err)
	}
	tree, err := c.tree(ctx, commit)
	if err != nil {
		return Source{}, fmt.Errorf("compute the tree of commit %s without %s: %w", commit, LockDir, err)
	}
	return Source{Commit: commit, Tree: tree, Time: time.Unix(unix, 0).UTC(), Version: version}, nil
}

// CheckVersion says what is wrong with a version: it becomes part of file and package names.
func CheckVersion(version string) error {
	if version == "" || strings.Trim(version, "0123456789.abcdefghijklmnopqrstuvwxyz+~-") != "" || strings.Trim(version[:1], "0123456789") != "" {
		return fmt.Errorf("%q is no version such as 0.1.0", version)
	}
	return nil
}

// tree reads the commit into an index of its own, takes the locks out and has git write the tree.
func (c Checkout) tree(ctx context.Context, commit string) (string, error) {
	dir, err := os.MkdirTemp("", "ovn-uplink-index-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}
	if _, err := git(ctx, c.Root, env, "read-tree", commit); err != nil {
		return "", err
	}
	// By force, because the locks of another commit than HEAD are neither HEAD's nor the checkout's.
	if _, err := git(ctx, c.Root, env, "rm", "--cached", "--force", "-r", "--quiet", "--ignore-unmatch", "--", LockDir); err != nil {
		return "", err
	}
	return git(ctx, c.Root, env, "write-tree")
}

// Contains says whether a commit is the one that is checked out, or one that it came from.
func (c Checkout) Contains(ctx context.Context, commit string) (bool, error) {
	_, err := git(ctx, c.Root, nil, "merge-base", "--is-ancestor", commit, "HEAD")
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return false, nil
	}
	return false, fmt.Errorf("find commit %s in the history of what is checked out: %w", commit, err)
}

// Dirty lists what differs from the commit that is checked out, untracked files too, as `git status --short` does. Locks
// are no part of the source and do not count.
func (c Checkout) Dirty(ctx context.Context) ([]string, error) {
	status, err := git(ctx, c.Root, nil, "status", "--porcelain", "--untracked-files=all", "--", ".", ":(exclude)"+LockDir)
	if err != nil {
		return nil, fmt.Errorf("compare %s with its commit: %w", c.Root, err)
	}
	if status == "" {
		return nil, nil
	}
	return strings.Split(status, "\n"), nil
}

func git(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimRight(string(out), "\n"), nil
}
