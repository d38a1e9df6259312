// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"cmp"
	"fmt"
	"os"
	"time"
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
}

func (c Config) withDefaults() Config {
	c.Sysfs = cmp.Or(c.Sysfs, "/sys")
	if c.Links == nil {
		c.Links = KernelLinks
	}
	return c
}

// source reads the ports of the card. It has one user at a time.
type source struct {
	cfg Config
	// representors is the last representor map that could be read, and mapError why the file cannot be read now.
	representors *Map
	mapError     error
	// stamps are the files as they were when last read.
	stamps map[string]stamp
}

// stamp tells whether a file was written or replaced.
type stamp struct {
	modified time.Time
	size     int64
	inode    uint64
}

// read gives what an index is built from. A representor map that cannot be read is replaced by the last one that
// could: a slip of the administrator's hand must not move a tenant's traffic.
func (s *source) read() (Input, error) {
	s.stamps = s.look()
	if s.cfg.Map != "" {
		m, err := LoadMap(s.cfg.Map)
		if s.mapError = err; err == nil {
			s.representors = m
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
	for i := range links {
		if !told[links[i].Name] {
			readPortName(s.cfg.Sysfs, &links[i])
		}
	}
	return Input{Ports: ports, Links: links, Map: s.representors}, nil
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
