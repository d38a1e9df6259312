// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"os"
	"strings"

	utilfs "github.com/k8snetworkplumbingwg/sriovnet/pkg/utils/filesystem"
)

// RedirectSriovnet makes the library sriovnet read below the root of s. The library knows only /sys and has
// one variable for the whole process to read it through: set it once, before anything calls the library. For
// the machine's own sysfs it does nothing.
//
// Not all of the library obeys: GetVfIndexByPciAddress and whatever opens files itself reads /sys all the same.
func RedirectSriovnet(s *Sysfs) {
	if !s.IsReal() {
		utilfs.Fs = rootedFS{sysfs: s}
	}
}

// rootedFS is sriovnet's file system with /sys somewhere else, as far as the library reads it.
type rootedFS struct {
	utilfs.DefaultFs
	sysfs *Sysfs
}

func (f rootedFS) path(name string) string {
	if below, ok := strings.CutPrefix(name, defaultSysfs+"/"); ok {
		return f.sysfs.Path(below)
	}
	return name
}

func (f rootedFS) Stat(name string) (os.FileInfo, error) { return f.DefaultFs.Stat(f.path(name)) }

func (f rootedFS) Readlink(name string) (string, error) { return f.DefaultFs.Readlink(f.path(name)) }

func (f rootedFS) ReadFile(name string) ([]byte, error) { return f.DefaultFs.ReadFile(f.path(name)) }

func (f rootedFS) ReadDir(name string) ([]os.FileInfo, error) {
	return f.DefaultFs.ReadDir(f.path(name))
}
