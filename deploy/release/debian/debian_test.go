// SPDX-License-Identifier: Apache-2.0

package debian_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/debian"
)

// pinDir has the pins of the real images.
const pinDir = ".."

func TestReadPins(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for _, test := range []struct {
		name, text, problem string
	}{
		{"good", "# comment\n\nzlib1g 1:1.2 amd64 " + sum + " http://x/y.deb\nlibc6 2.36 amd64 " + sum + " http://x/y.deb\n", ""},
		{"no version yet", "libc6\n", "package libc6 has no version yet; 'make pins'"},
		{"too little", "libc6 2.36\n", ":1: \"libc6 2.36\": want name, version, architecture, sha256 and place"},
		{"a short digest", "\nlibc6 2.36 amd64 abab http://x/y.deb\n", `:2: "abab" is no sha256`},
		{"no place", "libc6 2.36 amd64 " + sum + " /etc/passwd\n", `"/etc/passwd" is no address`},
		{"an option", "--option=x\n", "is no name of a package"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, debian.PinFile("amd64")), []byte(test.text), 0o644); err != nil {
				t.Fatal(err)
			}
			pins, err := debian.ReadPins(dir, "amd64")
			if test.problem != "" {
				refused(t, err, test.problem)
				return
			}
			if err != nil || len(pins.List) != 2 || pins.List[0].Name != "libc6" || pins.List[1].Version != "1:1.2" {
				t.Errorf("pins are %+v, error %v", pins, err)
			}
		})
	}
}

func TestPinsOfArchitecturesAreOfTheSamePackages(t *testing.T) {
	names := func(arch string) []string {
		pins, err := debian.ReadPins(pinDir, arch)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, pin := range pins.List {
			names = append(names, pin.Name)
		}
		return names
	}
	if amd64, arm64 := names("amd64"), names("arm64"); !slices.Equal(amd64, arm64) {
		t.Errorf("amd64 has %v, arm64 has %v", amd64, arm64)
	}
}

func cache(t *testing.T) debian.Cache {
	t.Helper()
	if testing.Short() {
		t.Skip("fetches Debian packages")
	}
	dir, err := debian.DefaultCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return debian.Cache{Dir: dir, Progress: t.Output()}
}

// TestProgramOfForeignArchitecture takes a program with its libraries from packages for arm64.
func TestProgramOfForeignArchitecture(t *testing.T) {
	c := cache(t)
	pins, err := debian.ReadPins(pinDir, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	debs, err := c.Fetch(t.Context(), pins)
	if err != nil {
		t.Fatal(err)
	}
	root, err := debian.Unpack(t.Context(), pins, debs)
	if err != nil {
		t.Fatal(err)
	}
	files, err := root.Program("usr/bin/ovs-ofctl")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, file := range files {
		paths = append(paths, file.Path)
	}
	for _, want := range []string{
		"usr/bin/ovs-ofctl", "lib/ld-linux-aarch64.so.1", "lib/aarch64-linux-gnu/libc.so.6", "usr/lib/aarch64-linux-gnu/libssl.so.3",
		"usr/lib/aarch64-linux-gnu/libevent-2.1.so.7", // by libunbound alone
	} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is missing in %v", want, paths)
		}
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "/ovs-vsctl") || strings.Contains(path, "x86_64") {
			t.Errorf("%s is there, and is not needed", path)
		}
	}
	if _, err := root.Program("usr/bin/ovs-testcontroller"); err == nil {
		t.Error("a program that no package has was found")
	}

	// Without the package of one library, the error says which one is missing.
	without := func(pin debian.Pin) bool { return pin.Name == "libunbound8" }
	i := slices.IndexFunc(pins.List, without)
	fewer := debian.Pins{Arch: "arm64", List: slices.DeleteFunc(slices.Clone(pins.List), without)}
	root, err = debian.Unpack(t.Context(), fewer, slices.Delete(slices.Clone(debs), i, i+1))
	if err != nil {
		t.Fatal(err)
	}
	_, err = root.Program("usr/bin/ovs-ofctl")
	refused(t, err, "needs libunbound.so.8, which no package in debian-arm64.lock has")
}

// TestFetchRefuses has pins that the mirror cannot serve, in a cache of its own.
func TestFetchRefuses(t *testing.T) {
	c := cache(t)
	c.Dir = t.TempDir()
	pins, err := debian.ReadPins(pinDir, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(pins.List, func(pin debian.Pin) bool { return pin.Name == "libnuma1" })
	pin := pins.List[i]

	vanished := pin
	vanished.Version, vanished.URI = "0.0.1-1", strings.ReplaceAll(pin.URI, pin.Version, "0.0.1-1")
	_, err = c.Fetch(t.Context(), debian.Pins{Arch: "arm64", List: []debian.Pin{vanished}})
	refused(t, err, "package libnuma1 0.0.1-1 for arm64", vanished.URI, "404", "make pins")

	other := pin
	other.SHA256 = strings.Repeat("ab", 32)
	_, err = c.Fetch(t.Context(), debian.Pins{Arch: "arm64", List: []debian.Pin{other}})
	refused(t, err, other.SHA256, pin.SHA256)

	if left, _ := filepath.Glob(filepath.Join(c.Dir, "*.deb")); len(left) > 0 {
		t.Errorf("in the cache: %v", left)
	}

	// What was cut short is fetched again.
	if err := os.WriteFile(filepath.Join(c.Dir, pin.SHA256+".deb"), []byte("cut"), 0o644); err != nil {
		t.Fatal(err)
	}
	paths, err := c.Fetch(t.Context(), debian.Pins{Arch: "arm64", List: []debian.Pin{pin}})
	if err != nil {
		t.Fatal(err)
	}
	deb, err := debian.ReadDeb(t.Context(), paths[0])
	deb.URI = pin.URI
	if err != nil || deb.Pin != pin {
		t.Errorf("fetched %+v, %v; want %+v", deb.Pin, err, pin)
	}
}

func refused(t *testing.T, err error, words ...string) {
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

// TestRefresh pins the newest version of a package of which only the name is given.
func TestRefresh(t *testing.T) {
	c := cache(t)
	c.Dir = t.TempDir()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, debian.PinFile("arm64")), []byte("libnuma1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	pins, err := c.Refresh(t.Context(), dir, "arm64")
	if err != nil {
		t.Fatal(err)
	}
	if err := pins.Write(dir); err != nil {
		t.Fatal(err)
	}
	written, err := debian.ReadPins(dir, "arm64")
	if err != nil || len(written.List) != 1 {
		t.Fatalf("wrote %+v, %v", written, err)
	}
	debs, err := c.Fetch(t.Context(), written)
	if err != nil {
		t.Fatal(err)
	}
	deb, err := debian.ReadDeb(t.Context(), debs[0])
	deb.URI = written.List[0].URI
	if err != nil || deb.Pin != written.List[0] || deb.Architecture != "arm64" {
		t.Errorf("pinned %+v, the package is %+v, %v", written.List[0], deb.Pin, err)
	}
}
