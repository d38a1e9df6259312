// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReplace(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "dist", "images")
	put := func(name string) func(string) error {
		return func(fresh string) error { return os.WriteFile(filepath.Join(fresh, name), nil, 0o644) }
	}
	failed := errors.New("failed")
	for _, step := range []struct {
		name  string
		build func(string) error
		err   error
		want  []string
	}{
		{"the first fails", func(fresh string) error { return errors.Join(put("half")(fresh), failed) }, failed, nil},
		{"the first", put("one"), nil, []string{"images/one"}},
		{"another", put("two"), nil, []string{"images/two"}},
		{"another fails", func(fresh string) error { return errors.Join(put("half")(fresh), failed) }, failed, []string{"images/two"}},
	} {
		if err := Replace(dir, step.build); !errors.Is(err, step.err) {
			t.Errorf("%s: error is %v, want %v", step.name, err, step.err)
		}
		var there []string
		err := filepath.WalkDir(filepath.Dir(dir), func(path string, _ os.DirEntry, err error) error {
			if name, _ := filepath.Rel(filepath.Dir(dir), path); err == nil && name != "." && name != "images" {
				there = append(there, name)
			}
			return err
		})
		if err != nil || !slices.Equal(there, step.want) {
			t.Errorf("%s: there is %v (%v), want %v", step.name, there, err, step.want)
		}
	}
}

func TestBuildEnvironment(t *testing.T) {
	got := buildEnvironment([]string{"HOME=/root", "CGO_ENABLED=1", "GOFLAGS=-tags=x", "GOAMD64=v3", "MAKEFLAGS=-n", "PATH=/bin"})
	for _, want := range []string{"HOME=/root", "PATH=/bin", "CGO_ENABLED=0", "GOFLAGS=-trimpath -buildvcs=false"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
	for _, variable := range got {
		if strings.HasPrefix(variable, "GOAMD64=") || strings.HasPrefix(variable, "MAKEFLAGS=") || variable == "CGO_ENABLED=1" {
			t.Errorf("%s is left", variable)
		}
	}
}

func TestReadManifestOfNothing(t *testing.T) {
	_, err := ReadManifest(t.TempDir())
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "make images") {
		t.Errorf("error is %v", err)
	}
}
