// SPDX-License-Identifier: Apache-2.0

// Package image makes container images out of files, without Docker and without a base image. The same input gives the
// same digest: entries are sorted, owned by root and dated by the caller, and nothing of the machine is in them.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// File is an entry of a layer. The directories that lead to it need no entries.
type File struct {
	// Path has no slash in front.
	Path string
	// Mode is the permission bits of a regular file.
	Mode int64
	Data []byte
	// Link is where a symbolic link points, empty for a regular file.
	Link string
}

// layer packs files, all of them of one date.
func layer(files []File, when time.Time) (v1.Layer, error) {
	headers, data := map[string]*tar.Header{}, map[string][]byte{}
	for _, file := range files {
		if headers[file.Path] != nil {
			return nil, fmt.Errorf("pack a layer: /%s is there twice", file.Path)
		}
		header := &tar.Header{Name: file.Path, Typeflag: tar.TypeReg, Mode: file.Mode, Size: int64(len(file.Data)), ModTime: when}
		if file.Link != "" {
			header.Typeflag, header.Linkname, header.Mode, header.Size = tar.TypeSymlink, file.Link, 0o777, 0
		}
		headers[file.Path], data[file.Path] = header, file.Data
		for dir := path.Dir(file.Path); dir != "."; dir = path.Dir(dir) {
			headers[dir] = cmp.Or(headers[dir], &tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: when})
		}
	}
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed) // the best compression takes three times as long, for a third of a percent
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if err := archive.WriteHeader(headers[name]); err != nil {
			return nil, fmt.Errorf("pack /%s: %w", name, err)
		}
		if _, err := archive.Write(data[name]); err != nil {
			return nil, fmt.Errorf("pack /%s: %w", name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("pack a layer: %w", err)
	}
	if err := compressed.Close(); err != nil {
		return nil, fmt.Errorf("pack a layer: %w", err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}
