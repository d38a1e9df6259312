// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/debian"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/dist"
)

// commitField of a package's control file is the full id of the source commit.
const commitField = "X-OVN-Uplink-Commit"

const chartsPackage = "nvke-cni-ovn-uplink-charts-"

// wanted are the packages of a version, as name_architecture.
func wanted(version string) []string {
	packages := []string{chartsPackage + version + "_all"}
	for _, arch := range dist.Arches {
		packages = append(packages, "nvke-cni-ovn-uplink-images-"+version+"_"+arch, "ovn-uplink-dpu-agent_"+arch)
	}
	return packages
}

func (c *checker) checkPackages(ctx context.Context) error {
	paths, err := filepath.Glob(c.path("dist", "debs", "*.deb"))
	if err != nil {
		return fmt.Errorf("look for packages: %w", err)
	}
	missing := wanted(c.release.version)
	seen := map[string]string{}
	for _, path := range paths {
		deb, err := debian.ReadDeb(ctx, path)
		if err != nil {
			return err
		}
		key := deb.Name + "_" + deb.Architecture
		i := slices.Index(missing, key)
		switch {
		case seen[key] != "":
			c.problem("package %s is there twice: %s and %s", key, seen[key], filepath.Base(path))
		case i < 0:
			c.problem("package %s (%s) is none of release %s", key, filepath.Base(path), c.release.version)
		default:
			missing = slices.Delete(missing, i, i+1)
		}
		seen[key] = filepath.Base(path)
		if err := c.deb("package "+key, deb); err != nil {
			return err
		}
	}
	for _, key := range missing {
		c.problem("package %s is missing in dist/debs", key)
	}
	return nil
}

// deb compares a package's fields with the release, and what is in it with what was built.
func (c *checker) deb(what string, deb debian.Deb) error {
	commit := deb.Field(commitField)
	if commit == "" {
		c.problem("%s has no field %s", what, commitField)
	}
	version, _, _ := strings.Cut(deb.Version, "+") // what follows orders builds of one version
	c.item(what, version, commit)
	if strings.HasPrefix(deb.Name, chartsPackage) {
		files := map[string][]byte{}
		for _, name := range slices.Sorted(maps.Keys(deb.Files)) {
			base := path.Base(name)
			if base == "Chart.yaml" || strings.HasSuffix(base, "values.yaml") {
				files[name] = deb.Files[name].Data
			}
		}
		return c.chart("chart in "+what, files, true)
	}
	if c.images == nil {
		return nil
	}
	for _, image := range c.images.Images {
		for _, platform := range image.Platforms {
			c.same(what, deb, platform.Archive.Path, platform.Archive.Digest)
		}
	}
	for _, binary := range c.images.Binaries {
		if binary.Architecture == deb.Architecture {
			c.same(what, deb, "usr/bin/"+binary.Agent, binary.File.Digest)
		}
	}
	return nil
}

// same says where a package has a file whose path ends so, and that is not what was built.
func (c *checker) same(what string, deb debian.Deb, end, digest string) {
	for _, name := range slices.Sorted(maps.Keys(deb.Files)) {
		file := deb.Files[name]
		if !strings.HasSuffix("/"+name, "/"+end) || file.Link != "" {
			continue
		}
		sum := sha256.Sum256(file.Data)
		if got := "sha256:" + hex.EncodeToString(sum[:]); got != digest {
			c.problem("%s in %s is %s, in dist/images it is %s", name, what, got, digest)
		}
	}
}
