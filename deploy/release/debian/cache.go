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
	fmt.Fprintf(c.Progress, "fetching %d Debian packages for %s, usually half a minute\n", len(missing), pins.Arch)
	return paths, c.locked(func() error {
		a, err := newAPT(ctx, filepath.Join(c.Dir, "apt-"+pins.Arch), pins.Arch)
		if err != nil {
			return err
		}
		if err := a.update(ctx); err != nil {
			return err
		}
		for _, i := range missing {
			if _, err := c.add(ctx, a, pins.List[i]); err != nil {
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
			if pins.List[i], err = c.add(ctx, a, Pin{Name: pin.Name}); err != nil {
				return err
			}
		}
		return nil
	})
	return pins, err
}

// add fetches a package into the cache. A pin with a name alone is completed.
func (c Cache) add(ctx context.Context, a apt, pin Pin) (Pin, error) {
	dir, err := os.MkdirTemp(c.Dir, "new-")
	if err != nil {
		return pin, fmt.Errorf("fetch package %s: %w", pin.Name, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path, err := a.download(ctx, dir, pin.Name, pin.Version)
	if err != nil {
		if pin.Version == "" {
			return pin, fmt.Errorf("fetch package %s for %s: %w", pin.Name, a.arch, err)
		}
		return pin, fmt.Errorf("the Debian mirror has no %s %s for %s any more, it is pinned in %s: "+
			"take the newest versions with 'make pins', commit them and make a new lock: %w", pin.Name, pin.Version, a.arch, PinFile(a.arch), err)
	}
	sum, err := digest(path)
	if err != nil {
		return pin, fmt.Errorf("fetch package %s: %w", pin.Name, err)
	}
	if pin.Version == "" {
		out, err := run(ctx, "", nil, "dpkg-deb", "--show", "--showformat=${Version} ${Architecture}", path)
		if err != nil {
			return pin, fmt.Errorf("read the version of package %s: %w", pin.Name, err)
		}
		pin.Version, pin.Architecture, _ = strings.Cut(out, " ")
		pin.SHA256 = sum
	}
	if sum != pin.SHA256 {
		return pin, fmt.Errorf("package %s %s for %s has sha256 %s, pinned in %s is %s", pin.Name, pin.Version, a.arch, sum, PinFile(a.arch), pin.SHA256)
	}
	return pin, os.Rename(path, filepath.Join(c.Dir, sum+".deb"))
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
