// SPDX-License-Identifier: Apache-2.0

package image

import (
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Spec is what an image is made of. It has two layers, so that an upgrade fetches the program alone: Base, which is the
// same as long as the Debian packages are, and the program.
type Spec struct {
	// Program is the name of the program; it becomes /usr/bin/Program.
	Program string
	// Arch is the architecture as Go names it.
	Arch string
	// User runs the program, as UID:GID; empty for root.
	User string
	// Base is everything but the program.
	Base []File
	// Binary is the program.
	Binary []byte
	// Notices are the licenses of what is linked into the program, in its layer.
	Notices []File
	// Labels describe the image.
	Labels map[string]string
	// Created is the date of the image and of the program.
	Created time.Time
}

// epoch dates the base, which is as old as its packages.
var epoch = time.Unix(0, 0).UTC()

// Build makes an image for one platform.
func Build(spec Spec) (v1.Image, error) {
	base, err := layer(spec.Base, epoch)
	if err != nil {
		return nil, err
	}
	files := append([]File{{Path: "usr/bin/" + spec.Program, Mode: 0o755, Data: spec.Binary}}, spec.Notices...)
	program, err := layer(files, spec.Created)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	history := func(when time.Time, what string) v1.History {
		return v1.History{Created: v1.Time{Time: when}, CreatedBy: "ovn-uplink deploy/release: " + what}
	}
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: base, History: history(epoch, "files of Debian packages")},
		mutate.Addendum{Layer: program, History: history(spec.Created, spec.Program)})
	if err != nil {
		return nil, fmt.Errorf("put the layers of %s for %s together: %w", spec.Program, spec.Arch, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("configure the image of %s for %s: %w", spec.Program, spec.Arch, err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", spec.Arch
	config.Created = v1.Time{Time: spec.Created}
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/" + spec.Program},
		Env:        []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
		Labels:     spec.Labels,
		User:       spec.User,
		WorkingDir: "/",
	}
	return mutate.ConfigFile(image, config)
}

// Index puts the images of several platforms together.
func Index(images []v1.Image, annotations map[string]string) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("put the images of the platforms together: %w", err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture}},
		})
	}
	annotated, ok := mutate.Annotations(index, annotations).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("annotate the index: it is no index any more")
	}
	return annotated, nil
}

// Size is what is transferred of an image: its layers, compressed, in bytes.
func Size(image v1.Image) (int64, error) {
	manifest, err := image.Manifest()
	if err != nil {
		return 0, fmt.Errorf("read the size of an image: %w", err)
	}
	var size int64
	for _, layer := range manifest.Layers {
		size += layer.Size
	}
	return size, nil
}
