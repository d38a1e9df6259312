// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/ovn-uplink/ovn-uplink/deploy/release/debian"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/dist"
	"github.com/ovn-uplink/ovn-uplink/deploy/release/source"
)

// Set is the locks of a version for all architectures.
type Set []Lock

// ReadSet reads the locks of a version. They have to be of one source and one toolchain.
func ReadSet(checkout source.Checkout, version string) (Set, error) {
	var set Set
	for _, arch := range dist.Arches {
		l, err := Read(checkout, arch, version)
		if err != nil {
			return nil, err
		}
		set = append(set, l)
	}
	first := set[0]
	for _, l := range set[1:] {
		others := l.fields()
		for i, field := range first.fields() {
			if field.key != "architecture" && *field.value != *others[i].value {
				return nil, fmt.Errorf("the locks of %s are of different builds: %s is %s for %s and %s for %s",
					version, field.key, *field.value, first.Architecture, *others[i].value, l.Architecture)
			}
		}
	}
	return set, nil
}

// Verify says whether what is checked out is what the locks are about, and the toolchain the one that they were made with.
// It returns the locked source, by which what is built is named and dated.
func (s Set) Verify(ctx context.Context, checkout source.Checkout, toolchain string) (source.Source, error) {
	l := s[0]
	head, err := checkout.Head(ctx)
	if err != nil {
		return source.Source{}, err
	}
	locked, err := checkout.At(ctx, l.Commit)
	if err != nil {
		return source.Source{}, fmt.Errorf("the lock is of commit %s, checked out is commit %s: %w", l.Commit, head.Commit, err)
	}
	within, err := checkout.Contains(ctx, l.Commit)
	if err != nil {
		return source.Source{}, err
	}
	switch {
	case locked.Tree != l.Tree:
		return source.Source{}, fmt.Errorf("the lock says tree %s, its commit %s has tree %s (both without %s): the lock was changed by hand, or is damaged",
			l.Tree, l.Commit, locked.Tree, source.LockDir)
	case head.Tree != l.Tree:
		return source.Source{}, fmt.Errorf("the lock is of commit %s, tree %s; checked out is commit %s, tree %s (both without %s): make a new lock, or check out what is locked",
			l.Commit, l.Tree, head.Commit, head.Tree, source.LockDir)
	case !within:
		return source.Source{}, fmt.Errorf("the lock is of commit %s, which is not in the history of commit %s that is checked out: it was moved; make a new lock",
			l.Commit, head.Commit)
	case locked.Version != l.Version:
		return source.Source{}, fmt.Errorf("the lock is of version %s, its commit %s says version %s", l.Version, l.Commit, locked.Version)
	case l.Go != toolchain:
		return source.Source{}, fmt.Errorf("the lock was made with %s, this is %s: what would be built has other digests; use the locked toolchain, or make a new lock",
			l.Go, toolchain)
	}
	return locked, nil
}

// Find returns the locks of a version if there are any and they are of a tree.
func Find(checkout source.Checkout, src source.Source) (Set, bool, error) {
	set, err := ReadSet(checkout, src.Version)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return set, set[0].Tree == src.Tree, nil
}

// OfBuild makes the locks of what was built.
func OfBuild(checkout source.Checkout, built dist.Manifest) (Set, error) {
	var set Set
	for _, arch := range dist.Arches {
		pins, err := debian.ReadPins(filepath.Join(checkout.Root, dist.ReleaseDir), arch)
		if err != nil {
			return nil, err
		}
		set = append(set, Of(built, pins))
	}
	return set, nil
}

// Compare says everything in which what was built differs from the locks; both values are in the error.
func (s Set) Compare(built Set) error {
	var differences []error
	for i, l := range s {
		differences = append(differences, l.compare(built[i])...)
	}
	if len(differences) == 0 {
		return nil
	}
	return fmt.Errorf("what was built is not what is locked:\n%w", errors.Join(differences...))
}

func (l Lock) compare(built Lock) []error {
	var differences []error
	others := built.fields()
	for i, field := range l.fields() {
		if *field.value != *others[i].value {
			differences = append(differences, fmt.Errorf("%s: %s is locked as %s, built is %s", l.Architecture, field.key, *field.value, *others[i].value))
		}
	}
	type key struct{ kind, name string }
	values := map[key]string{}
	for _, artifact := range built.Artifacts {
		values[key{artifact.Kind, artifact.Name}] = artifact.Value
	}
	for _, artifact := range l.Artifacts {
		k := key{artifact.Kind, artifact.Name}
		value, there := values[k]
		delete(values, k)
		switch {
		case !there:
			differences = append(differences, fmt.Errorf("%s: %s %s is locked as %s, and is not built", l.Architecture, k.kind, k.name, artifact.Value))
		case value != artifact.Value:
			differences = append(differences, fmt.Errorf("%s: %s %s is locked as %s, built is %s", l.Architecture, k.kind, k.name, artifact.Value, value))
		}
	}
	for _, artifact := range built.Artifacts {
		if value, left := values[key{artifact.Kind, artifact.Name}]; left {
			differences = append(differences, fmt.Errorf("%s: %s %s is built as %s, and is not locked", l.Architecture, artifact.Kind, artifact.Name, value))
		}
	}
	return differences
}
