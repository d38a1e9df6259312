// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// maker makes an image in dir, from packages that are unpacked there and not installed.
type maker struct {
	dir string
	log func(string, ...any)
}

// out is where the image is made, root where packages are unpacked.
func (m maker) out() string  { return filepath.Join(m.dir, "out") }
func (m maker) root() string { return filepath.Join(m.dir, "root") }

var kernelDependency = regexp.MustCompile(`(?m)^ *Depends: (linux-(?:image|headers|kbuild)-[a-z0-9.+-]+)$`)

// make returns the name that the image is kept under.
func (m maker) make(ctx context.Context) (name string, err error) {
	// One that was killed may have left it.
	if err := os.RemoveAll(m.dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(m.out(), "modules"), 0o755); err != nil {
		return "", err
	}
	packages, release, err := m.packages(ctx)
	if err != nil {
		return "", err
	}
	m.log("fetching the kernel %s and its source, 220 MB, once; usually 1-2 minutes with building a module", release)
	if err := m.download(ctx, packages); err != nil {
		return "", err
	}
	debs, err := filepath.Glob(filepath.Join(m.dir, "*.deb"))
	if err != nil {
		return "", err
	}
	for _, deb := range debs {
		if _, err := m.run(ctx, "dpkg-deb", "--extract", deb, m.root()); err != nil {
			return "", err
		}
	}
	if err := m.kernel(ctx, release); err != nil {
		return "", err
	}
	if err := m.collect(ctx, release); err != nil {
		return "", err
	}
	m.log("building netdevsim for %s", release)
	if err := m.netdevsim(ctx, release); err != nil {
		return "", err
	}
	return "kernel-" + release + "-" + recipe(), nil
}

// packages are those that the image is made of, and the kernel's release.
func (m maker) packages(ctx context.Context) (names []string, release string, err error) {
	depends := func(of string) ([]string, error) {
		said, err := m.run(ctx, "apt-cache", "depends", "--important", of)
		if err != nil {
			return nil, err
		}
		var found []string
		for _, d := range kernelDependency.FindAllStringSubmatch(said, -1) {
			found = append(found, d[1])
		}
		return found, nil
	}
	images, err := depends("linux-image-amd64")
	if err != nil {
		return nil, "", err
	}
	if len(images) != 1 {
		return nil, "", fmt.Errorf("linux-image-amd64 depends on %v, want one kernel", images)
	}
	release = strings.TrimPrefix(images[0], "linux-image-")
	headers, err := depends("linux-headers-" + release)
	if err != nil {
		return nil, "", err
	}
	major, rest, _ := strings.Cut(release, ".")
	minor, _, _ := strings.Cut(rest, ".")
	names = append([]string{images[0], "linux-headers-" + release, "linux-source-" + major + "." + minor}, headers...)
	return names, release, nil
}

// download fetches packages; where they are gone from the mirror, after looking what there is now.
func (m maker) download(ctx context.Context, packages []string) error {
	args := append([]string{"-q", "-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=2", "download"}, packages...)
	if _, err := m.run(ctx, "apt-get", args...); err == nil {
		return nil
	}
	if _, err := m.run(ctx, "apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", "update"); err != nil {
		return err
	}
	_, err := m.run(ctx, "apt-get", args...)
	return err
}

// kernel unpacks the ELF kernel out of a bzImage (Documentation/x86/boot.rst: payload_offset and payload_length count
// from the end of the setup sectors).
func (m maker) kernel(ctx context.Context, release string) error {
	bz, err := os.ReadFile(filepath.Join(m.root(), "boot", "vmlinuz-"+release))
	if err != nil {
		return err
	}
	const setupSectors, magic, payloadOffset, payloadLength = 0x1f1, 0x202, 0x248, 0x24c
	if len(bz) < 0x400 || !bytes.Equal(bz[magic:magic+4], []byte("HdrS")) {
		return fmt.Errorf("vmlinuz-%s is no bzImage", release)
	}
	start := (int(bz[setupSectors])+1)*512 + int(binary.LittleEndian.Uint32(bz[payloadOffset:]))
	end := start + int(binary.LittleEndian.Uint32(bz[payloadLength:]))
	if end > len(bz) || !bytes.HasPrefix(bz[start:], []byte("\xfd7zXZ\x00")) {
		return fmt.Errorf("the payload of vmlinuz-%s is not compressed with xz", release)
	}
	packed := filepath.Join(m.dir, "vmlinux.xz")
	if err := os.WriteFile(packed, bz[start:end], 0o644); err != nil {
		return err
	}
	// Four bytes with the length follow the stream.
	_, err = m.shell(ctx, `xz --decompress --single-stream --stdout "$1" > "$2"`, packed, image{m.out()}.kernel())
	return err
}

// collect copies the modules, numbered in the order in which they can be loaded.
func (m maker) collect(ctx context.Context, release string) error {
	if _, err := m.run(ctx, "depmod", "--basedir", m.root(), release); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, name := range modules {
		said, err := m.run(ctx, "modprobe", "--dirname", m.root(), "--set-version", release, "--show-depends", name)
		if err != nil {
			return err
		}
		for line := range strings.Lines(said) {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != "insmod" || seen[fields[1]] {
				continue // the rest is built in
			}
			to := filepath.Join(image{m.out()}.modules(), fmt.Sprintf("%03d-%s", len(seen), filepath.Base(fields[1])))
			if _, err := m.run(ctx, "cp", fields[1], to); err != nil {
				return err
			}
			seen[fields[1]] = true
		}
	}
	return nil
}

// shell runs a command of sh(1) with arguments.
func (m maker) shell(ctx context.Context, script string, args ...string) (string, error) {
	return m.run(ctx, "sh", append([]string{"-euc", script, "sh"}, args...)...)
}

// run runs a program in the maker's directory and returns what it printed.
func (m maker) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "10", name}, args...)...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	cmd.WaitDelay = 5 * time.Second
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(out.String() + errOut.String())
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said[max(0, len(said)-2000):])
	}
	return out.String(), nil
}
