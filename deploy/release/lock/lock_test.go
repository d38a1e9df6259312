// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/lock"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source/sourcetest"
)

const toolchain = "go1.26.8"

// locked makes a repository with a commit, its locks, and a commit of those.
func locked(t *testing.T) (*sourcetest.Repository, source.Checkout, lock.Set) {
	t.Helper()
	repository := sourcetest.New(t, map[string]string{"VERSION": "1.2.3\n", "main.go": "package main\n"})
	checkout := source.Checkout{Root: repository.Root}
	head, err := checkout.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var set lock.Set
	for _, arch := range []string{"amd64", "arm64"} {
		set = append(set, lock.Lock{
			Version: "1.2.3", Architecture: arch, Commit: head.Commit, Tree: head.Tree, Go: toolchain,
			Artifacts: []lock.Artifact{
				{Kind: "binary", Name: "dpu-agent", Value: "sha256:1"},
				{Kind: "image", Name: "nvke/ovn-uplink-dpu-agent", Value: "sha256:2"},
				{Kind: "deb", Name: "libc6", Value: "2.36-9 " + arch + " 3"},
			},
		})
	}
	write(t, checkout, set)
	repository.Commit("lock")
	return repository, checkout, set
}

func write(t *testing.T, checkout source.Checkout, set lock.Set) {
	t.Helper()
	if err := lock.Write(checkout, set...); err != nil {
		t.Fatal(err)
	}
}

func TestWrittenIsRead(t *testing.T) {
	_, checkout, set := locked(t)
	read, err := lock.ReadSet(checkout, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(set, read); diff != "" {
		t.Error(diff)
	}
	left, err := filepath.Glob(filepath.Join(checkout.Root, source.LockDir, "*", "*.new"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestVerify(t *testing.T) {
	_, checkout, set := locked(t)
	src, err := set.Verify(t.Context(), checkout, toolchain)
	if err != nil {
		t.Fatal(err)
	}
	if src.Commit != set[0].Commit {
		t.Errorf("source is commit %s, locked is %s", src.Commit, set[0].Commit)
	}
}

func TestVerifyRefuses(t *testing.T) {
	const unknown = "0123456789012345678901234567890123456789"
	for _, test := range []struct {
		name string
		// change changes repository or locks and returns what the error has to name.
		change    func(*sourcetest.Repository, lock.Set) []string
		toolchain string
	}{
		{name: "the source changed after the lock", change: func(r *sourcetest.Repository, set lock.Set) []string {
			r.Write("main.go", "package main // changed\n")
			return []string{"commit " + set[0].Commit, "tree " + set[0].Tree, "commit " + r.Commit("change")}
		}},
		{name: "the lock has another tree hash", change: func(_ *sourcetest.Repository, set lock.Set) []string {
			tree := set[0].Tree
			set[0].Tree = unknown
			return []string{"tree " + unknown, "has tree " + tree}
		}},
		{name: "the commit is not there", change: func(r *sourcetest.Repository, set lock.Set) []string {
			set[0].Commit = unknown
			return []string{"commit " + unknown, "commit " + r.Git("rev-parse", "HEAD")}
		}},
		{name: "the commit was moved, with the same tree", change: func(r *sourcetest.Repository, set lock.Set) []string {
			r.Git("checkout", "--quiet", "--orphan", "other")
			return []string{"commit " + set[0].Commit, "commit " + r.Commit("moved")}
		}},
		{name: "another toolchain", toolchain: "go1.99.0", change: func(*sourcetest.Repository, lock.Set) []string {
			return []string{toolchain, "go1.99.0"}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			repository, checkout, set := locked(t)
			words := test.change(repository, set)
			with := toolchain
			if test.toolchain != "" {
				with = test.toolchain
			}
			_, err := set.Verify(t.Context(), checkout, with)
			names(t, err, words...)
		})
	}
}

func TestReadSetRefuses(t *testing.T) {
	for _, test := range []struct {
		name, arch string
		change     func(string) string
		words      []string
	}{
		{"locks of different commits", "arm64", func(text string) string {
			return replaceLine(text, "commit", "commit "+strings.Repeat("ab", 20))
		}, []string{strings.Repeat("ab", 20), "arm64", "amd64"}},
		{"another version in it", "amd64", func(text string) string { return replaceLine(text, "version", "version 9.9.9") }, []string{"9.9.9"}},
		{"no toolchain", "amd64", func(text string) string { return replaceLine(text, "go", "") }, []string{"does not say the go"}},
		{"a short commit", "amd64", func(text string) string { return replaceLine(text, "commit", "commit abc") }, []string{`"abc"`}},
		{"two commits", "amd64", func(text string) string { return text + "commit abc\n" }, []string{"commit abc", ".lock:"}},
		{"an unknown key", "amd64", func(text string) string { return text + "picture x sha256:1\n" }, []string{"picture x"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, checkout, _ := locked(t)
			path := lock.File(checkout, test.arch, "1.2.3")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(test.change(string(text))), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err = lock.ReadSet(checkout, "1.2.3")
			names(t, err, test.words...)
		})
	}
	t.Run("none", func(t *testing.T) {
		_, checkout, _ := locked(t)
		_, err := lock.ReadSet(checkout, "2.0.0")
		names(t, err, "2.0.0", "make lock")
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v is not fs.ErrNotExist", err)
		}
	})
}

func replaceLine(text, key, line string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		if strings.HasPrefix(lines[i], key+" ") {
			lines[i] = line
		}
	}
	return strings.Join(lines, "\n")
}

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(lock.Set)
		words  []string
	}{
		{"the same", func(lock.Set) {}, nil},
		{"another digest", func(built lock.Set) { built[1].Artifacts[1].Value = "sha256:9" },
			[]string{"arm64: image nvke/ovn-uplink-dpu-agent is locked as sha256:2, built is sha256:9"}},
		{"another package", func(built lock.Set) { built[0].Artifacts[2].Value = "2.36-10 amd64 4" },
			[]string{"locked as 2.36-9 amd64 3, built is 2.36-10 amd64 4"}},
		{"one is not built", func(built lock.Set) { built[0].Artifacts = built[0].Artifacts[1:] },
			[]string{"amd64: binary dpu-agent is locked as sha256:1, and is not built"}},
		{"one is not locked", func(built lock.Set) {
			built[0].Artifacts = append(built[0].Artifacts, lock.Artifact{Kind: "sbom", Name: "x.json", Value: "sha256:5"})
		}, []string{"amd64: sbom x.json is built as sha256:5, and is not locked"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, set := locked(t)
			built := lock.Set{}
			for _, l := range set {
				l.Artifacts = append([]lock.Artifact{}, l.Artifacts...)
				built = append(built, l)
			}
			test.change(built)
			err := set.Compare(built)
			if test.words == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			names(t, err, test.words...)
		})
	}
}

func TestFind(t *testing.T) {
	repository, checkout, set := locked(t)
	head, err := checkout.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found, fits, err := lock.Find(checkout, head); err != nil || !fits || found[0].Commit != set[0].Commit {
		t.Errorf("after the lock: %v %v %v", found, fits, err)
	}
	repository.Write("main.go", "package main // changed\n")
	repository.Commit("change")
	if head, err = checkout.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, fits, err := lock.Find(checkout, head); err != nil || fits || found == nil {
		t.Errorf("after a change: %v %v %v", found, fits, err)
	}
	head.Version = "2.0.0"
	if found, fits, err := lock.Find(checkout, head); err != nil || fits || found != nil {
		t.Errorf("of another version: %v %v %v", found, fits, err)
	}
}

func TestWriteIsAllOrNothing(t *testing.T) {
	_, checkout, set := locked(t)
	dir := filepath.Dir(lock.File(checkout, "arm64", "1.2.3"))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	set[0].Go = "go1.99.0"
	if err := lock.Write(checkout, set...); err == nil {
		t.Fatal("a lock was written where a file is in the way")
	}
	still, err := lock.Read(checkout, "amd64", "1.2.3")
	if err != nil || still.Go != toolchain {
		t.Errorf("the lock for amd64 is of %s (%v), it was of %s", still.Go, err, toolchain)
	}
	if left, _ := filepath.Glob(filepath.Join(checkout.Root, source.LockDir, "*", "*.new")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func names(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that names %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not name %q", err, word)
		}
	}
}
