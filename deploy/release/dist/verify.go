// SPDX-License-Identifier: Apache-2.0

package dist

import (
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// Verify says in what the files in the manifest's directory differ from it.
func (m Manifest) Verify(dir string) []error {
	var problems []error
	compare := func(want Artifact) {
		switch got, err := artifact(dir, want.Path); {
		case err != nil:
			problems = append(problems, err)
		case got.Digest != want.Digest:
			problems = append(problems, fmt.Errorf("%s is %s, %s says %s", filepath.Join(dir, want.Path), got.Digest, ManifestFile, want.Digest))
		}
	}
	for _, image := range m.Images {
		if _, err := OpenIndex(dir, image); err != nil {
			problems = append(problems, err)
		}
		for _, platform := range image.Platforms {
			compare(platform.Archive)
			compare(platform.SBOM)
		}
	}
	for _, binary := range m.Binaries {
		compare(binary.File)
	}
	return problems
}

// OpenIndex opens the multi-platform index of an image in its layout. It must be the one that the manifest is about.
func OpenIndex(dir string, image Image) (v1.ImageIndex, error) {
	path := filepath.Join(dir, image.Index.Path)
	outer, err := layout.ImageIndexFromPath(path)
	if err != nil {
		return nil, fmt.Errorf("read the OCI layout %s: %w", path, err)
	}
	content, err := outer.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("read the OCI layout %s: %w", path, err)
	}
	if len(content.Manifests) != 1 {
		return nil, fmt.Errorf("the OCI layout %s has %d images, want one", path, len(content.Manifests))
	}
	digest := content.Manifests[0].Digest
	if digest.String() != image.Index.Digest {
		return nil, fmt.Errorf("the OCI layout %s has %s, %s says %s", path, digest, ManifestFile, image.Index.Digest)
	}
	return outer.ImageIndex(digest)
}
