// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// prepareDeadline bounds making an image: 220 MB of packages, and one small kernel module.
const prepareDeadline = 10 * time.Minute

// modules are loaded at boot in this order, each after those it needs.
var modules = []string{
	"virtio_pci", "9pnet_virtio", "9p",
	"vrf", "veth", "dummy", "8021q", "macvlan", "bonding", "bridge", "tun",
	"nf_conntrack", "nf_nat", "nf_tables", "nft_ct", "openvswitch", "vxlan", "geneve",
	"psample", "igb", "igbvf",
}

//go:embed netdevsim/function.c
var functionSource string

// image is what a guest boots from, in a directory of the cache.
type image struct{ dir string }

// kernel is an ELF kernel, which boots three seconds sooner than a compressed one without KVM.
func (i image) kernel() string { return filepath.Join(i.dir, "vmlinux") }

// modules holds the modules, named so that their order is the one to load them in.
func (i image) modules() string { return filepath.Join(i.dir, "modules") }

// recipe changes when an image made before is not what prepare would make now.
func recipe() string {
	sum := sha256.Sum256([]byte(strings.Join(modules, " ") + fmt.Sprint(edits) + functionSource))
	return hex.EncodeToString(sum[:4])
}

// prepare returns the image of the cache, newest kernel first, or makes one. Whoever comes while it is being made
// waits for that.
func prepare(ctx context.Context, log func(string, ...any)) (image, error) {
	if runtime.GOARCH != "amd64" {
		return image{}, fmt.Errorf("the virtual machine is for amd64, this is %s", runtime.GOARCH)
	}
	base, err := os.UserCacheDir()
	if err != nil { // no HOME
		base = "/var/cache"
	}
	base = filepath.Join(base, "ovn-uplink", "vm")
	if i, ok := cached(base); ok {
		return i, nil
	}
	ctx, cancel := context.WithTimeout(ctx, prepareDeadline)
	defer cancel()
	if err := os.MkdirAll(base, 0o755); err != nil {
		return image{}, fmt.Errorf("make cache for the virtual machine: %w", err)
	}
	unlock, err := lock(ctx, base, log)
	if err != nil {
		return image{}, err
	}
	defer unlock()
	if i, ok := cached(base); ok {
		return i, nil
	}
	begin := time.Now()
	m := maker{dir: filepath.Join(base, "tmp"), log: log}
	name, err := m.make(ctx)
	if err == nil {
		err = os.Rename(m.out(), filepath.Join(base, name))
	}
	if err := errors.Join(err, os.RemoveAll(m.dir)); err != nil {
		return image{}, fmt.Errorf("make the virtual machine: %w", err)
	}
	log("made the virtual machine in %s", time.Since(begin).Round(time.Second))
	return image{filepath.Join(base, name)}, nil
}

// cached finds the image with the newest kernel that was made by this recipe.
func cached(base string) (image, bool) {
	found, err := filepath.Glob(filepath.Join(base, "kernel-*-"+recipe()))
	if err != nil || len(found) == 0 {
		return image{}, false
	}
	return image{slices.Max(found)}, true
}

// lock takes the lock on a directory. The kernel drops it when the process ends, however that happens.
func lock(ctx context.Context, dir string, log func(string, ...any)) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	for said := false; ; said = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !said {
			log("another process holds %s, waiting for it", dir)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("lock %s, which another process holds: %w", dir, errors.Join(err, ctx.Err()))
		}
	}
}
