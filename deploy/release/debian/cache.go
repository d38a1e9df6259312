// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Cache keeps packages that were fetched, in Dir/<sha256>.deb. Several processes may use it at once.
type Cache struct {
	Dir string
	// Progress is told in words what takes a while.
	Progress io.Writer
}

// DefaultCacheDir is ~/.cache/ovn-uplink/debs, or below XDG_CACHE_HOME where that is set.
func DefaultCacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for Debian's packages: %w", err)
	}
	return filepath.Join(cache, "ovn-uplink", "debs"), nil
}

// Fetch returns the paths of the packages' .deb files, in the order of the pins. What is not cached is fetched from the
// Debian mirror. A package with another digest than the pinned one is refused.
func (c Cache) Fetch(ctx context.Context, pins Pins) ([]string, error) {
	paths := make([]string, len(pins.List))
	var missing []int
	for i, pin := range pins.List {
		paths[i] = filepath.Join(c.Dir, pin.SHA256+".deb")
		switch sum, err := digest(paths[i]); {
		case errors.Is(err, fs.ErrNotExist), err == nil && sum != pin.SHA256: // the latter was cut short, fetch it again
			missing = append(missing, i)
		case err != nil:
			return nil, fmt.Errorf("read the cached package %s: %w", pin.Name, err)
		}
	}
	if len(missing) == 0 {
		return paths, nil
	}
	fmt.Fprintf(c.Progress, "fetching %d Debian packages for %s, usually some seconds\n", len(missing), pins.Arch)
	return paths, c.locked(func() error {
		a, err := newAPT(ctx, filepath.Join(c.Dir, "apt-"+pins.Arch), pins.Arch)
		if err != nil {
			return err
		}
		for _, i := range missing {
			if err := c.add(ctx, a, pins.List[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// Refresh returns the pins in a directory with the newest version of every package that the mirror has.
func (c Cache) Refresh(ctx context.Context, dir, arch string) (Pins, error) {
	pins, err := readPins(dir, arch)
	if err != nil {
		return Pins{}, err
	}
	fmt.Fprintf(c.Progress, "looking for the newest versions of %d Debian packages for %s\n", len(pins.List), arch)
	err = c.locked(func() error {
		a, err := newAPT(ctx, filepath.Join(c.Dir, "apt-"+arch), arch)
		if err != nil {
			return err
		}
		if err := a.update(ctx); err != nil {
			return err
		}
		for i, pin := range pins.List {
			if pins.List[i], err = c.newest(ctx, a, pin.Name); err != nil {
				return err
			}
		}
		return nil
	})
	return pins, err
}

// newest fetches the newest version of a package into the cache, and pins it.
func (c Cache) newest(ctx context.Context, a apt, name string) (Pin, error) {
	pin, err := a.newest(ctx, name)
	if err != nil {
		return pin, err
	}
	path := filepath.Join(c.Dir, pin.SHA256+".deb")
	if sum, err := digest(path); err != nil || sum != pin.SHA256 {
		if err := c.add(ctx, a, pin); err != nil {
			return pin, err
		}
	}
	out, err := run(ctx, nil, "dpkg-deb", "--show", "--showformat=${Version} ${Architecture}", path)
	if err != nil {
		return pin, fmt.Errorf("read the version of package %s: %w", name, err)
	}
	pin.Version, pin.Architecture, _ = strings.Cut(out, " ")
	return pin, nil
}

// add fetches a package into the cache.
func (c Cache) add(ctx context.Context, a apt, pin Pin) error {
	dir, err := os.MkdirTemp(c.Dir, "new-")
	if err != nil {
		return fmt.Errorf("fetch package %s: %w", pin.Name, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fetched := filepath.Join(dir, "deb")
	if err := a.download(ctx, pin, fetched); err != nil {
		return fmt.Errorf("fetch package %s %s for %s from %s, as it is pinned in %s: %w\nwhere the mirror has a newer version instead, "+
			"'make pins' takes the newest of all; commit them and make a new lock", pin.Name, pin.Version, a.arch, pin.URI, PinFile(a.arch), err)
	}
	return os.Rename(fetched, filepath.Join(c.Dir, pin.SHA256+".deb"))
}

func (c Cache) locked(do func() error) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("set up the cache of Debian's packages: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(c.Dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("lock the cache of Debian's packages: %w", err)
	}
	defer func() { _ = lock.Close() }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock the cache of Debian's packages: %w", err)
	}
	return do()
}

func digest(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
