// SPDX-License-Identifier: Apache-2.0

// Package debian takes single files out of Debian's packages, for another architecture than the machine's as well. Which
// packages, and which version of each, is pinned in a file; so what is taken is the same today and tomorrow.
package debian

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Pin is one package that is used.
type Pin struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	// Architecture is what the package is for, "all" if for every one.
	Architecture string `json:"architecture"`
	// SHA256 is the digest of the .deb, in hex.
	SHA256 string `json:"sha256"`
	// URI is where the .deb is.
	URI string `json:"uri"`
}

// Pins are the packages for one architecture.
type Pins struct {
	// Arch is Debian's name of the architecture; Go's is the same for those that there are: amd64, arm64.
	Arch string
	// List is sorted by name.
	List []Pin
}

// PinFile is where the pins of an architecture are, in the directory of the release program.
func PinFile(arch string) string { return "debian-" + arch + ".lock" }

const heading = `# SPDX-License-Identifier: Apache-2.0
# Debian packages that the dpu-agent's image for %s has files of: name, version, architecture, and sha256 and
# place of the .deb.
# 'make pins' writes the newest versions of these packages; add a package by a line with its name alone.
`

// ReadPins reads the pins of an architecture from a directory. A line may have a name alone only if names are wanted.
func ReadPins(dir, arch string) (Pins, error) {
	pins, err := readPins(dir, arch)
	if err != nil {
		return Pins{}, err
	}
	for _, pin := range pins.List {
		if pin.Version == "" {
			return Pins{}, fmt.Errorf("%s: package %s has no version yet; 'make pins' finds it", PinFile(arch), pin.Name)
		}
	}
	return pins, nil
}

func readPins(dir, arch string) (Pins, error) {
	path := filepath.Join(dir, PinFile(arch))
	file, err := os.Open(path)
	if err != nil {
		return Pins{}, fmt.Errorf("read the pinned Debian packages: %w", err)
	}
	defer func() { _ = file.Close() }()
	pins := Pins{Arch: arch}
	scanner := bufio.NewScanner(file)
	for number := 1; scanner.Scan(); number++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pin, err := parsePin(line)
		if err != nil {
			return Pins{}, fmt.Errorf("%s:%d: %w", path, number, err)
		}
		pins.List = append(pins.List, pin)
	}
	if err := scanner.Err(); err != nil {
		return Pins{}, fmt.Errorf("read %s: %w", path, err)
	}
	slices.SortFunc(pins.List, func(a, b Pin) int { return cmp.Compare(a.Name, b.Name) })
	return pins, nil
}

func parsePin(line string) (Pin, error) {
	fields := strings.Fields(line)
	switch {
	case strings.HasPrefix(fields[0], "-"):
		return Pin{}, fmt.Errorf("%q is no name of a package", fields[0])
	case len(fields) == 1:
		return Pin{Name: fields[0]}, nil
	case len(fields) != 5:
		return Pin{}, fmt.Errorf("%q: want name, version, architecture, sha256 and place", line)
	}
	if sum, err := hex.DecodeString(fields[3]); err != nil || len(sum) != 32 {
		return Pin{}, fmt.Errorf("%q is no sha256 in hex", fields[3])
	}
	if !strings.HasPrefix(fields[4], "http://") && !strings.HasPrefix(fields[4], "https://") {
		return Pin{}, fmt.Errorf("%q is no address of a package", fields[4])
	}
	return Pin{Name: fields[0], Version: fields[1], Architecture: fields[2], SHA256: fields[3], URI: fields[4]}, nil
}

// Write writes the pins into a directory.
func (p Pins) Write(dir string) error {
	var text strings.Builder
	fmt.Fprintf(&text, heading, p.Arch)
	for _, pin := range p.List {
		fmt.Fprintf(&text, "%s %s %s %s %s\n", pin.Name, pin.Version, pin.Architecture, pin.SHA256, pin.URI)
	}
	path := filepath.Join(dir, PinFile(p.Arch))
	if err := os.WriteFile(path+".new", []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("write the pinned Debian packages: %w", err)
	}
	return os.Rename(path+".new", path)
}
