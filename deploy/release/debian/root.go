// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// File is a regular file or a symbolic link of a package.
type File struct {
	// Path has no slash in front.
	Path string
	// Mode is the permission bits.
	Mode int64
	Data []byte
	// Link is where a symbolic link points, empty for a regular file.
	Link string
	// Package is the name of the package that has the file.
	Package string
}

// Root is what would be on disk if the packages were unpacked, without running anything of theirs.
type Root struct {
	pins  Pins
	files map[string]File
	// control is what dpkg knows about a package, by its name.
	control map[string]string
}

// Unpack reads the packages of the pins from their .deb files, in the same order.
func Unpack(ctx context.Context, pins Pins, debs []string) (*Root, error) {
	r := &Root{pins: pins, files: map[string]File{}, control: map[string]string{}}
	for i, pin := range pins.List {
		data, err := run(ctx, nil, "dpkg-deb", "--fsys-tarfile", debs[i])
		if err != nil {
			return nil, fmt.Errorf("unpack package %s: %w", pin.Name, err)
		}
		if err := r.read(pin.Name, strings.NewReader(data)); err != nil {
			return nil, fmt.Errorf("unpack package %s: %w", pin.Name, err)
		}
		if r.control[pin.Name], err = run(ctx, nil, "dpkg-deb", "--field", debs[i]); err != nil {
			return nil, fmt.Errorf("read what package %s says of itself: %w", pin.Name, err)
		}
	}
	return r, nil
}

func (r *Root) read(name string, from io.Reader) error {
	archive := tar.NewReader(from)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		file := File{Path: clean(header.Name), Mode: header.Mode & 0o755, Package: name}
		switch header.Typeflag {
		case tar.TypeReg:
			if file.Data, err = io.ReadAll(archive); err != nil {
				return err
			}
		case tar.TypeSymlink:
			file.Link = header.Linkname
		case tar.TypeLink:
			target, ok := r.files[clean(header.Linkname)]
			if !ok {
				return fmt.Errorf("%s is a link to %s, which is not there", file.Path, header.Linkname)
			}
			file.Data = target.Data
		default:
			continue
		}
		r.files[file.Path] = file
	}
}

func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// Pin is the pin of a package by its name.
func (r *Root) Pin(name string) (Pin, bool) {
	i, found := slices.BinarySearchFunc(r.pins.List, name, func(p Pin, name string) int { return strings.Compare(p.Name, name) })
	if !found {
		return Pin{}, false
	}
	return r.pins.List[i], true
}

// Control is what dpkg knows about a package (deb-control(5)).
func (r *Root) Control(name string) string { return r.control[name] }

// Below lists the files below a directory, sorted by path.
func (r *Root) Below(dir string) []File {
	var below []File
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		if strings.HasPrefix(name, dir+"/") {
			below = append(below, r.files[name])
		}
	}
	return below
}

// Follow returns a file, and the symbolic links that lead to it before it.
func (r *Root) Follow(name string) ([]File, error) {
	var chain []File
	for at := clean(name); ; {
		file, ok := r.files[at]
		if !ok {
			return nil, fmt.Errorf("no package that is pinned in %s has the file /%s", PinFile(r.pins.Arch), at)
		}
		chain = append(chain, file)
		if file.Link == "" {
			return chain, nil
		}
		if len(chain) > 10 {
			return nil, fmt.Errorf("too many symbolic links from /%s", name)
		}
		at = clean(file.Link)
		if !path.IsAbs(file.Link) {
			at = clean(path.Join(path.Dir(file.Path), file.Link))
		}
	}
}

// machines are the architectures as ELF and as Debian's directories for libraries name them.
var machines = map[string]struct {
	elf     elf.Machine
	triplet string
}{
	"amd64": {elf.EM_X86_64, "x86_64-linux-gnu"},
	"arm64": {elf.EM_AARCH64, "aarch64-linux-gnu"},
}

// Program returns a program with all that the dynamic loader needs to run it: its interpreter, and the libraries that
// it and they name as NEEDED (ld.so(8)). What a program loads by itself later is not among them. Sorted by path.
func (r *Root) Program(name string) ([]File, error) {
	found := map[string]File{}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		if _, known := found[clean(queue[0])]; known {
			continue
		}
		chain, err := r.Follow(queue[0])
		if err != nil {
			return nil, fmt.Errorf("collect what %s needs: %w", name, err)
		}
		for _, file := range chain {
			found[file.Path] = file
		}
		needed, err := r.needs(chain[len(chain)-1])
		if err != nil {
			return nil, fmt.Errorf("collect what %s needs: %w", name, err)
		}
		queue = append(queue, needed...)
	}
	files := slices.Collect(maps.Values(found))
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// needs are the paths of what an ELF file names.
func (r *Root) needs(file File) ([]string, error) {
	object, err := elf.NewFile(bytes.NewReader(file.Data))
	if err != nil {
		return nil, fmt.Errorf("read /%s: %w", file.Path, err)
	}
	machine, ok := machines[r.pins.Arch]
	if !ok || object.Machine != machine.elf {
		return nil, fmt.Errorf("/%s is for %s, want %s", file.Path, object.Machine, r.pins.Arch)
	}
	var needed []string
	for _, segment := range object.Progs {
		if segment.Type == elf.PT_INTERP {
			interpreter, err := io.ReadAll(segment.Open())
			if err != nil {
				return nil, fmt.Errorf("read the interpreter of /%s: %w", file.Path, err)
			}
			needed = append(needed, strings.TrimRight(string(interpreter), "\x00"))
		}
	}
	libraries, err := object.ImportedLibraries()
	if err != nil {
		return nil, fmt.Errorf("read what /%s needs: %w", file.Path, err)
	}
	for _, library := range libraries {
		where, ok := r.library(library, machine.triplet)
		if !ok {
			return nil, fmt.Errorf("/%s needs %s, which no package in %s has: add the package that has it", file.Path, library, PinFile(r.pins.Arch))
		}
		needed = append(needed, where)
	}
	return needed, nil
}

func (r *Root) library(name, triplet string) (string, bool) {
	for _, dir := range []string{"lib/" + triplet, "usr/lib/" + triplet} {
		if _, ok := r.files[dir+"/"+name]; ok {
			return dir + "/" + name, true
		}
	}
	return "", false
}
