// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"fmt"
	"strings"
)

// Deb is a package that was read.
type Deb struct {
	Pin
	fields string
	// Files are by path, without a slash in front.
	Files map[string]File
}

// Field is a field of the package's control file (deb-control(5)), empty if it has none of that name.
func (d Deb) Field(name string) string {
	for line := range strings.Lines(d.fields) {
		if key, value, found := strings.Cut(line, ":"); found && strings.EqualFold(key, name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// ReadDeb reads a .deb.
func ReadDeb(ctx context.Context, path string) (Deb, error) {
	fields, err := run(ctx, nil, "dpkg-deb", "--field", path)
	if err != nil {
		return Deb{}, fmt.Errorf("read the package %s: %w", path, err)
	}
	deb := Deb{fields: fields}
	deb.Name, deb.Version, deb.Architecture = deb.Field("Package"), deb.Field("Version"), deb.Field("Architecture")
	if deb.SHA256, err = digest(path); err != nil {
		return Deb{}, fmt.Errorf("read the package %s: %w", path, err)
	}
	root, err := Unpack(ctx, Pins{List: []Pin{deb.Pin}}, []string{path})
	if err != nil {
		return Deb{}, fmt.Errorf("read the package %s: %w", path, err)
	}
	deb.Files = root.files
	return deb, nil
}
