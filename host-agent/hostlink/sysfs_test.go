// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// fakeSysfs is a sysfs of cards that the test lays out as the kernel does.
type fakeSysfs struct {
	t    testing.TB
	root string
}

func newSysfs(t testing.TB) fakeSysfs {
	f := fakeSysfs{t: t, root: t.TempDir()}
	for _, dir := range []string{netDevices, pciDevices, "bus/auxiliary/devices", "bus/pci/drivers/mlx5_core"} {
		f.dir(dir)
	}
	return f
}

func (f fakeSysfs) dir(path string) {
	f.t.Helper()
	if err := os.MkdirAll(filepath.Join(f.root, path), 0o700); err != nil {
		f.t.Fatal(err)
	}
}

func (f fakeSysfs) write(path, content string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.root, path), []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// link makes a symbolic link with a relative target.
func (f fakeSysfs) link(path, target string) {
	f.t.Helper()
	relative, err := filepath.Rel(filepath.Dir(path), target)
	if err == nil {
		err = os.Symlink(relative, filepath.Join(f.root, path))
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// pci adds a PCI function and returns its device path.
func (f fakeSysfs) pci(address string) string {
	device := filepath.Join("devices/pci0000:00/0000:00:01.0", address)
	f.dir(device)
	f.link(filepath.Join(pciDevices, address), device)
	f.link(filepath.Join(device, "driver"), "bus/pci/drivers/mlx5_core")
	// A BlueField-3 ConnectX-7.
	f.write(filepath.Join(device, "modalias"), "pci:v000015B3d0000A2DCsv000015B3sd00000009bc02sc00i00\n")
	return device
}

// vf adds virtual function number index of a physical one.
func (f fakeSysfs) vf(pf string, index int, address string) string {
	device := f.pci(address)
	f.link(filepath.Join(device, "physfn"), pf)
	f.link(filepath.Join(pf, "virtfn"+strconv.Itoa(index)), device)
	return device
}

// sf adds a scalable function on a physical one.
func (f fakeSysfs) sf(pf, name, number string) string {
	device := filepath.Join(pf, name)
	f.dir(device)
	f.link(filepath.Join("bus/auxiliary/devices", name), device)
	f.write(filepath.Join(device, "sfnum"), number)
	return device
}

// netdev adds an interface on a device, with attributes by name.
func (f fakeSysfs) netdev(device, name string, attributes map[string]string) {
	path := filepath.Join(device, "net", name)
	f.dir(path)
	f.link(filepath.Join(netDevices, name), path)
	f.link(filepath.Join(path, "device"), device)
	for attribute, value := range attributes {
		f.write(filepath.Join(path, attribute), value)
	}
}
