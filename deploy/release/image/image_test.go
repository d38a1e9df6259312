// SPDX-License-Identifier: Apache-2.0

package image_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/image"
)

func spec() image.Spec {
	return image.Spec{
		Program: "agent", Arch: "arm64", User: image.NobodyID, Binary: []byte("program"), Created: time.Unix(1e9, 0).UTC(),
		Labels: map[string]string{"b": "2", "a": "1"},
		Base: []image.File{
			{Path: "usr/lib/libx.so", Link: "libx.so.1"},
			{Path: "etc/passwd", Mode: 0o644, Data: []byte("root")},
			{Path: "usr/lib/libx.so.1", Mode: 0o755, Data: []byte("library")},
		},
	}
}

func digest(t *testing.T, s image.Spec) string {
	t.Helper()
	built, err := image.Build(s)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := built.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return sum.String()
}

func TestSameInputSameDigest(t *testing.T) {
	want := digest(t, spec())
	turned := spec()
	slices.Reverse(turned.Base)
	if got := digest(t, turned); got != want {
		t.Errorf("with files in another order the digest is %s, it was %s", got, want)
	}
	for name, change := range map[string]func(*image.Spec){
		"program": func(s *image.Spec) { s.Binary = []byte("other") },
		"date":    func(s *image.Spec) { s.Created = s.Created.Add(time.Second) },
		"file":    func(s *image.Spec) { s.Base[1].Data = []byte("other") },
		"mode":    func(s *image.Spec) { s.Base[1].Mode = 0o600 },
		"label":   func(s *image.Spec) { s.Labels["a"] = "3" },
		"user":    func(s *image.Spec) { s.User = "" },
	} {
		changed := spec()
		change(&changed)
		if digest(t, changed) == want {
			t.Errorf("another %s, and the same digest", name)
		}
	}
}

// TestLayers says what is in which layer: an upgrade transfers the second alone.
func TestLayers(t *testing.T) {
	built, err := image.Build(spec())
	if err != nil {
		t.Fatal(err)
	}
	layers, err := built.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for archive := tar.NewReader(content); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if header.Uid != 0 || header.Gid != 0 || header.Uname != "" {
				t.Errorf("%s is of %d:%d %q", header.Name, header.Uid, header.Gid, header.Uname)
			}
			got = append(got, fmt.Sprintf("%d %04o %d %s %s", i, header.Mode, header.ModTime.Unix(), header.Name, header.Linkname))
		}
	}
	want := []string{
		"0 0755 0 etc/ ", "0 0644 0 etc/passwd ", "0 0755 0 usr/ ", "0 0755 0 usr/lib/ ", "0 0777 0 usr/lib/libx.so libx.so.1",
		"0 0755 0 usr/lib/libx.so.1 ", "1 0755 1000000000 usr/ ", "1 0755 1000000000 usr/bin/ ", "1 0755 1000000000 usr/bin/agent ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTwiceTheSameFile(t *testing.T) {
	twice := spec()
	twice.Base = append(twice.Base, twice.Base[0])
	if _, err := image.Build(twice); err == nil || !strings.Contains(err.Error(), "/usr/lib/libx.so is there twice") {
		t.Errorf("error is %v", err)
	}
}
