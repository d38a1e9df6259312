// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/source"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source/sourcetest"
)

func TestTreeIsWithoutLocks(t *testing.T) {
	repository := sourcetest.New(t, map[string]string{"VERSION": "1.2.3\n", "main.go": "package main\n"})
	checkout := open(t, repository)
	before := head(t, checkout)
	if before.Version != "1.2.3" || len(before.Commit) != 40 || before.Tag() != before.Commit[:12] {
		t.Fatalf("source is %+v", before)
	}
	if whole := repository.Git("rev-parse", "HEAD^{tree}"); before.Tree != whole {
		t.Errorf("tree without locks is %s, git has %s", before.Tree, whole)
	}

	repository.Write("deploy/nvke/lock/amd64/1.2.3.lock", "anything\n")
	repository.Commit("lock")
	locked := head(t, checkout)
	if locked.Commit == before.Commit || locked.Tree != before.Tree {
		t.Errorf("with a lock the tree is %s, it was %s", locked.Tree, before.Tree)
	}
	if within, err := checkout.Contains(t.Context(), before.Commit); err != nil || !within {
		t.Errorf("the commit before is not in the history: %v %v", within, err)
	}

	repository.Write("deploy/nvke/lock/amd64/1.2.3.lock", "anything else\n")
	repository.Commit("another lock")
	if again, err := checkout.At(t.Context(), locked.Commit); err != nil || again.Tree != before.Tree {
		t.Errorf("of a commit with another lock than HEAD the tree is %s, want %s: %v", again.Tree, before.Tree, err)
	}

	repository.Write("main.go", "package main // changed\n")
	repository.Commit("change")
	if changed := head(t, checkout); changed.Tree == before.Tree {
		t.Error("a change of the source left its tree as it was")
	}
	if status := repository.Git("status", "--porcelain"); status != "" {
		t.Errorf("computing trees changed the checkout: %s", status)
	}
}

func TestDirty(t *testing.T) {
	repository := sourcetest.New(t, map[string]string{"VERSION": "1.2.3\n", ".gitignore": "/dist/\n"})
	checkout := open(t, repository)
	for _, step := range []struct {
		name, file, want string
	}{
		{"nothing", "", ""},
		{"what is ignored", "dist/image", ""},
		{"a lock that is not committed", "deploy/nvke/lock/amd64/1.2.3.lock", ""},
		{"a file that is not tracked", "new/file.go", "?? new/file.go"},
		{"a file that differs", "VERSION", " M VERSION"},
	} {
		if step.file != "" {
			repository.Write(step.file, "changed\n")
		}
		changes, err := checkout.Dirty(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(changes, ","); (step.want == "" && got != "") || (step.want != "" && !slices.Contains(changes, step.want)) {
			t.Errorf("%s: changes are %q, want %q", step.name, got, step.want)
		}
	}
}

func TestBadVersionAndPlace(t *testing.T) {
	repository := sourcetest.New(t, map[string]string{"VERSION": "../1\n"})
	if _, err := open(t, repository).Head(t.Context()); err == nil || !strings.Contains(err.Error(), `"../1" is no version`) {
		t.Errorf("error is %v", err)
	}
	dir := t.TempDir()
	if _, err := source.Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("error is %v", err)
	}
}

func open(t *testing.T, repository *sourcetest.Repository) source.Checkout {
	t.Helper()
	below := filepath.Join(repository.Root, "below")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	checkout, err := source.Open(t.Context(), below)
	if err != nil {
		t.Fatal(err)
	}
	return checkout
}

func head(t *testing.T, checkout source.Checkout) source.Source {
	t.Helper()
	src, err := checkout.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return src
}
