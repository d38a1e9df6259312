// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
)

// Config says where the ports of the card are read. The zero value reads them from the kernel.
type Config struct {
	// Sysfs is the root of sysfs; default /sys.
	Sysfs string
	// DevlinkPorts is a file with what `devlink -j port show` prints, to be read instead of asking the kernel.
	DevlinkPorts string
	// Map is the file of the representor map; empty for none.
	Map string
	// Links lists the network interfaces with their alternative names; default KernelLinks. It must return in time.
	Links func() ([]Link, error)
	// Resync is how often all is read although no event came, give or take a quarter; default 5 min.
	Resync time.Duration
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Resync <= 0 {
		c.Resync = resync
	}
	if c.Links == nil {
		c.Links = KernelLinks
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// source reads the ports of the card. It has one user at a time.
type source struct {
	cfg   Config
	sysfs *kernel.Sysfs
	// given is the last representor map that could be read.
	given *Map
	// stamps are the files as they were when last read.
	stamps map[string]stamp
}

// stamp tells whether a file was written or replaced; the zero stamp is that of no file.
type stamp struct {
	modified time.Time
	size     int64
	inode    uint64
}

// look stamps the files that are read.
func (s *source) look() map[string]stamp {
	stamps := map[string]stamp{}
	for _, path := range []string{s.cfg.DevlinkPorts, s.cfg.Map} {
		if path == "" {
			continue
		}
		var now stamp
		if info, err := os.Stat(path); err == nil {
			now = stamp{modified: info.ModTime(), size: info.Size()}
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				now.inode = stat.Ino
			}
		}
		stamps[path] = now
	}
	return stamps
}

// outdated tells whether a file changed since it was read.
func (s *source) outdated() bool { return !maps.Equal(s.stamps, s.look()) }

// read gives what an index is built from. A representor map that cannot be read is replaced by the last one that
// could: a slip of the administrator's hand must not move a tenant's traffic.
func (s *source) read() (Input, error) {
	s.stamps = s.look()
	var mapError error
	if s.cfg.Map != "" {
		var m *Map
		if m, mapError = loadMap(s.cfg.Map); mapError == nil {
			s.given = m
		}
	}
	ports, err := s.ports()
	if err != nil {
		return Input{}, err
	}
	links, err := s.cfg.Links()
	if err != nil {
		return Input{}, err
	}
	told := map[string]bool{}
	for _, p := range ports {
		// Without the external attribute the name has to say whose function it is.
		told[p.Netdev] = p.External != nil
	}
	links = slices.Clone(links)
	slices.SortFunc(links, func(a, b Link) int { return cmp.Compare(a.Name, b.Name) })
	for i := range links {
		if !told[links[i].Name] {
			// Sysfs sets a deadline to each of these, the monitor one to all.
			readPortName(context.Background(), s.sysfs, &links[i])
		}
	}
	return Input{Ports: ports, Links: links, Map: s.given, MapError: mapError}, nil
}

// loadMap loads a representor map from a regular file. To open a FIFO would block.
func loadMap(path string) (*Map, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("representor map %s: it is no regular file", path)
	}
	return LoadMap(path)
}

func (s *source) ports() ([]Port, error) {
	if s.cfg.DevlinkPorts == "" {
		return kernelPorts()
	}
	text, err := os.ReadFile(s.cfg.DevlinkPorts)
	if err != nil {
		return nil, fmt.Errorf("devlink ports: %w", err)
	}
	ports, err := ParseDevlinkPorts(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.cfg.DevlinkPorts, err)
	}
	return ports, nil
}
