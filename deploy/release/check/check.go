// SPDX-License-Identifier: Apache-2.0

// Package check says whether all that is to be released comes from one source: locks, images, chart and packages.
package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/dist"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/lock"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source"
)

// Item is something to be released, and what it says it was made from.
type Item struct {
	What    string
	Version string
	// Commit may be its first 12 characters; it is empty for what does not say it.
	Commit string
}

// Report is what was found.
type Report struct {
	// Items were there.
	Items []Item
	// Problems are what is missing and what does not fit.
	Problems []error
}

// release is what everything is compared with.
type release struct {
	version, commit string
	// by says what said so.
	by string
}

// checker collects the report.
type checker struct {
	checkout source.Checkout
	release  release
	images   *dist.Manifest
	report   Report
}

// Check checks a checkout and what was built from it into its directory dist. The error is for what could not be looked
// at; what does not fit is in the report.
func Check(ctx context.Context, checkout source.Checkout) (Report, error) {
	head, err := checkout.Head(ctx)
	if err != nil {
		return Report{}, err
	}
	c := &checker{checkout: checkout, release: release{head.Version, head.Commit, "the commit that is checked out"}}
	set := c.locks(ctx, head.Version)
	if err := c.checkImages(set); err != nil {
		return Report{}, err
	}
	if err := c.checkCharts(); err != nil {
		return Report{}, err
	}
	return c.report, c.checkPackages(ctx)
}

func (c *checker) path(parts ...string) string {
	return filepath.Join(append([]string{c.checkout.Root}, parts...)...)
}

func (c *checker) problem(format string, args ...any) {
	c.report.Problems = append(c.report.Problems, fmt.Errorf(format, args...))
}

// item notes something that is there and compares it with the release. What says nothing of one of them leaves it empty.
func (c *checker) item(what, version, commit string) {
	c.report.Items = append(c.report.Items, Item{what, version, commit})
	if version != "" && version != c.release.version {
		c.problem("%s is of version %s, %s of version %s", what, version, c.release.by, c.release.version)
	}
	if commit != "" && commit != c.release.commit && commit != c.release.commit[:12] {
		c.problem("%s is of commit %s, %s of commit %s", what, commit, c.release.by, c.release.commit)
	}
}

// locks are what the release is, if they are there.
func (c *checker) locks(ctx context.Context, version string) lock.Set {
	set, err := lock.ReadSet(c.checkout, version)
	if err != nil {
		c.problem("%w", err)
		return nil
	}
	// With which toolchain this program was built does not matter here.
	if _, err := set.Verify(ctx, c.checkout, set[0].Go); err != nil {
		c.problem("%w", err)
	}
	c.release = release{set[0].Version, set[0].Commit, "the lock"}
	for _, l := range set {
		c.item("lock for "+l.Architecture, l.Version, l.Commit)
	}
	return set
}

func (c *checker) checkImages(set lock.Set) error {
	dir := c.path("dist", "images")
	manifest, err := dist.ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		c.problem("%w", err)
		return nil
	}
	if err != nil {
		return err
	}
	c.images = &manifest
	if set == nil {
		c.release = release{manifest.Version, manifest.Commit, "the build in dist/images"}
	}
	for _, image := range manifest.Images {
		c.item("image "+image.Repository, manifest.Version, image.Tag)
	}
	if manifest.Dirty {
		c.problem("the images are of commit %s with changes that are not committed", manifest.Commit)
	}
	for _, err := range manifest.Verify(dir) {
		c.problem("%w", err)
	}
	if set == nil || manifest.Commit != set[0].Commit {
		return nil
	}
	built, err := lock.OfBuild(c.checkout, manifest)
	if err != nil {
		return err
	}
	if err := set.Compare(built); err != nil {
		c.problem("%w", err)
	}
	return nil
}
