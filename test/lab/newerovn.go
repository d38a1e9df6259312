// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	// newerMinimum is the oldest OVN that counts as the newer one. A cached
	// one that is older is left alone and another fetched.
	newerMinimum = "26.03"
	// newerSuite is the Debian suite that it comes from.
	newerSuite = "sid"
	// fetchDeadline bounds the fetch, of some 15 MB of packages and the
	// suite's package list, which is about as large.
	fetchDeadline = 10 * time.Minute
)

// newerPackages hold the programs; the libraries that they need are looked up.
var newerPackages = []string{"openvswitch-common", "openvswitch-switch", "ovn-common", "ovn-central", "ovn-host"}

// newerPrograms are what a node needs, in the packages' directories.
var newerPrograms = []string{
	"usr/bin/ovs-vsctl", "usr/bin/ovs-ofctl", "usr/bin/ovs-appctl", "usr/bin/ovs-dpctl",
	"usr/bin/ovsdb-client", "usr/bin/ovsdb-tool", "usr/sbin/ovsdb-server",
	"usr/lib/openvswitch-switch/ovs-vswitchd",
	"usr/bin/ovn-nbctl", "usr/bin/ovn-sbctl", "usr/bin/ovn-appctl", "usr/bin/ovn-trace",
	"usr/bin/ovn-controller", "usr/bin/ovn-northd",
}

// NewerOVN returns an OVN and Open vSwitch newer than the installed ones: those
// of Debian's development suite, fetched once and unpacked in the cache with
// the libraries that they were built for. Nothing is installed. Whoever comes
// while they are being fetched waits for that.
func NewerOVN(ctx context.Context, log func(string, ...any)) (*OVSBuild, error) {
	if log == nil {
		log = func(string, ...any) {}
	}
	ctx, cancel := context.WithTimeout(ctx, fetchDeadline)
	defer cancel()
	base := filepath.Join(cacheDir(), "ovn")
	if b := cachedOVN(base); b != nil {
		return b, nil
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		return nil, fmt.Errorf("make cache for OVN: %w", err)
	}
	lk, err := lockPath(ctx, base, func() { log("another process is fetching OVN, waiting for it") })
	if err != nil {
		return nil, fmt.Errorf("fetch OVN: %w", err)
	}
	defer lk.release()
	if b := cachedOVN(base); b != nil {
		return b, nil
	}
	f := fetcher{base: base, dir: filepath.Join(base, "tmp"), log: log}
	begin := time.Now()
	err = f.fetch(ctx)
	if err := errors.Join(err, os.RemoveAll(f.dir)); err != nil {
		return nil, fmt.Errorf("fetch a newer OVN from Debian %s: %w", newerSuite, err)
	}
	b := cachedOVN(base)
	if b == nil {
		return nil, fmt.Errorf("fetch a newer OVN from Debian %s: what was unpacked in %s is older than %s", newerSuite, base, newerMinimum)
	}
	log("fetched OVN in %s", time.Since(begin).Round(time.Second))
	return b, nil
}

// cachedOVN returns the newest one below base, nil when there is none that is
// new enough.
func cachedOVN(base string) *OVSBuild {
	found, err := filepath.Glob(filepath.Join(base, "*-"+runtime.GOARCH))
	if err != nil || len(found) == 0 {
		return nil
	}
	slices.Sort(found) // the versions' first parts have two digits
	dir := found[len(found)-1]
	if filepath.Base(dir) < newerMinimum {
		return nil
	}
	return unpackedOVN(dir)
}

func unpackedOVN(dir string) *OVSBuild {
	share := filepath.Join(dir, "root", "usr", "share")
	return &OVSBuild{
		Path:       filepath.Join(dir, "bin"),
		Schema:     filepath.Join(share, "openvswitch", "vswitch.ovsschema"),
		OVNSchemas: filepath.Join(share, "ovn"),
	}
}

// fetcher fetches into dir and renames the result to its place in base.
type fetcher struct {
	base, dir string
	log       func(string, ...any)
	mirror    string
}

func (f *fetcher) fetch(ctx context.Context) error {
	// A fetch that was killed may have left it.
	if err := os.RemoveAll(f.dir); err != nil {
		return err
	}
	if err := f.configure(); err != nil {
		return err
	}
	f.log("fetching OVN from %s into %s, once, usually less than a minute", f.mirror, f.base)
	if _, err := f.run(ctx, "apt-get", "-q", "update"); err != nil {
		return err
	}
	packages, err := f.withLibraries(ctx)
	if err != nil {
		return err
	}
	f.log("downloading %d packages", len(packages))
	if _, err := f.run(ctx, "apt-get", append([]string{"-q", "download"}, packages...)...); err != nil {
		return err
	}
	return f.unpack(ctx)
}

// configure writes an APT configuration whose state is all in the fetcher's
// directory. What the machine's own says of proxies still counts.
func (f *fetcher) configure() error {
	for _, dir := range []string{"lists/partial", "cache/archives/partial", "root", "bin"} {
		if err := os.MkdirAll(filepath.Join(f.dir, dir), 0o755); err != nil {
			return err
		}
	}
	f.mirror = debianMirror()
	const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
	source := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, f.mirror, newerSuite)
	if err := writeFile(filepath.Join(f.dir, "sources.list"), []byte(source), 0o644); err != nil {
		return err
	}
	config := fmt.Sprintf(`Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State::lists "%[1]s/lists";
Dir::Cache "%[1]s/cache";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
`, f.dir)
	return writeFile(filepath.Join(f.dir, "apt.conf"), []byte(config), 0o644)
}

var mirrorLine = regexp.MustCompile(`(?m)^(?:URIs:|deb )[^#\n]*?(https?://\S+/debian)/?(?:\s|$)`)

// debianMirror is the first that the machine's own sources name, or Debian's.
func debianMirror() string {
	files, _ := filepath.Glob("/etc/apt/sources.list.d/*") // the pattern is right
	for _, path := range append(files, "/etc/apt/sources.list") {
		if text, err := os.ReadFile(path); err == nil {
			if m := mirrorLine.FindSubmatch(text); m != nil {
				return string(m[1])
			}
		}
	}
	return "http://deb.debian.org/debian"
}

func (f *fetcher) run(ctx context.Context, name string, args ...string) (string, error) {
	path, err := lookPath(name, baseEnv())
	if err != nil {
		return "", err
	}
	// The rest of the environment stays: proxies of the machine.
	env := append(os.Environ(), "APT_CONFIG="+filepath.Join(f.dir, "apt.conf"), "LC_ALL=C")
	return command{argv: append([]string{path}, args...), env: env, dir: f.dir}.run(ctx)
}

var libraryDependency = regexp.MustCompile(`(?m)^ +(?:Pre)?Depends: (lib[a-z0-9.+-]+)$`)

// withLibraries adds the libraries that the packages depend on, and theirs.
func (f *fetcher) withLibraries(ctx context.Context) ([]string, error) {
	all := slices.Clone(newerPackages)
	for from := 0; from < len(all); {
		out, err := f.run(ctx, "apt-cache", append([]string{"depends", "--important"}, all[from:]...)...)
		if err != nil {
			return nil, err
		}
		from = len(all)
		for _, m := range libraryDependency.FindAllStringSubmatch(out, -1) {
			if !slices.Contains(all, m[1]) {
				all = append(all, m[1])
			}
		}
	}
	return all, nil
}

// unpack lays the packages out, writes a command for each program, tries them
// and moves all to its place.
func (f *fetcher) unpack(ctx context.Context) error {
	packages, err := filepath.Glob(filepath.Join(f.dir, "*.deb"))
	if err != nil {
		return err
	}
	root := filepath.Join(f.dir, "root")
	var version string
	for _, path := range packages {
		if _, err := f.run(ctx, "dpkg-deb", "--extract", path, root); err != nil {
			return err
		}
		if v, ok := strings.CutPrefix(filepath.Base(path), "ovn-common_"); ok {
			version, _, _ = strings.Cut(v, "_")
		}
	}
	if err := f.writeCommands(); err != nil {
		return err
	}
	// Kept: what runs, and the licences of what is kept.
	result := filepath.Join(f.dir, "out")
	if err := os.Mkdir(result, 0o755); err != nil {
		return err
	}
	for _, part := range []string{"root", "bin"} {
		if err := os.Rename(filepath.Join(f.dir, part), filepath.Join(result, part)); err != nil {
			return err
		}
	}
	for _, program := range []string{"ovn-controller", "ovn-northd", "ovs-vswitchd", "ovsdb-server"} {
		if _, err := f.run(ctx, filepath.Join(result, "bin", program), "--version"); err != nil {
			return fmt.Errorf("try what was fetched: %w", err)
		}
	}
	out := filepath.Join(f.base, version+"-"+runtime.GOARCH)
	f.log("OVN %s goes into %s", version, out)
	return os.Rename(result, out)
}

// writeCommands writes scripts that run the programs by their own loader with
// their own libraries, wherever the whole is.
func (f *fetcher) writeCommands() error {
	root := filepath.Join(f.dir, "root")
	loaders, err := filepath.Glob(filepath.Join(root, "usr", "lib", "*-linux-gnu*", "ld-linux*.so.*"))
	if err != nil || len(loaders) != 1 {
		return fmt.Errorf("find the loader of the C library: %v, %w", loaders, errors.Join(err, errNotInstalled))
	}
	loader := strings.TrimPrefix(loaders[0], root)
	for _, program := range newerPrograms {
		if _, err := os.Stat(filepath.Join(root, program)); err != nil {
			return fmt.Errorf("find program: %w", err)
		}
		name := filepath.Base(program)
		script := fmt.Sprintf(`#!/bin/sh
root=${0%%/*}/../root
exec "$root%s" --library-path "$root%s" --argv0 %s "$root/%s" "$@"
`, loader, filepath.Dir(loader), name, program)
		if err := writeFile(filepath.Join(f.dir, "bin", name), []byte(script), 0o755); err != nil {
			return err
		}
	}
	return nil
}
