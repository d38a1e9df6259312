// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// fakeAPT puts an apt-get into PATH that fails, and isolates the cache.
func fakeAPT(t *testing.T, body string) (cache string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "apt-get"), []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	return filepath.Join(dir, "cache", "ovn-uplink", "ovn")
}

func TestNewerOVNUnreachable(t *testing.T) {
	cache := fakeAPT(t, "echo 'E: Could not resolve the mirror' >&2\nexit 100\n")
	_, err := NewerOVN(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "fetch a newer OVN") || !strings.Contains(err.Error(), "Could not resolve the mirror") {
		t.Errorf("error is %v", err)
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) > 0 {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}

func TestCachedOVN(t *testing.T) {
	cases := []struct {
		name string
		dirs []string
		want string
	}{
		{"none", nil, ""},
		{"too old", []string{"25.09.1-1-" + runtime.GOARCH}, ""},
		{"one", []string{"26.03.1-1-" + runtime.GOARCH}, "26.03.1-1-" + runtime.GOARCH},
		{"newest", []string{"26.09.0-1-" + runtime.GOARCH, "26.03.1-1-" + runtime.GOARCH}, "26.09.0-1-" + runtime.GOARCH},
		{"other architecture", []string{"26.03.1-1-z80"}, ""},
		{"unfinished", []string{"tmp"}, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cache := fakeAPT(t, "exit 1\n")
			for _, dir := range c.dirs {
				if err := os.MkdirAll(filepath.Join(cache, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			got := cachedOVN(cache)
			if (got == nil) != (c.want == "") || (got != nil && got.Path != filepath.Join(cache, c.want, "bin")) {
				t.Errorf("got %+v, want %q", got, c.want)
			}
		})
	}
}

func TestDebianMirror(t *testing.T) {
	cases := map[string]string{
		"Types: deb\n# http://snapshot.debian.org/archive/debian\nURIs: http://mirror.example/debian\nSuites: x\n": "http://mirror.example/debian",
		"deb http://security.example/debian-security x main\ndeb https://m.example/debian/ x main\n":               "https://m.example/debian",
		"deb [arch=amd64] http://m.example/debian x main\n":                                                        "http://m.example/debian",
		"# deb http://m.example/debian x main\n":                                                                   "",
		"deb http://archive.ubuntu.example/ubuntu x main\n":                                                        "",
	}
	for text, want := range cases {
		got := ""
		if m := mirrorLine.FindStringSubmatch(text); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("in %q: %q, want %q", text, got, want)
		}
	}
}
