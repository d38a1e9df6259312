// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// SysfsNetdev is a network device of the injected sysfs. Empty fields have no
// file, as attributes that a driver does not support cannot be read.
type SysfsNetdev struct {
	Name string
	// Device is the PCI address of the function that it belongs to, which
	// must be among the functions given.
	Device       string
	Address      string // MAC
	PhysPortName string // such as "p0", "c1pf0", "c1pf0vf3"
	PhysSwitchID string
}

// SysfsPCI is a PCI function of the injected sysfs.
type SysfsPCI struct {
	Address string
	// TotalVFs is sriov_totalvfs; 0 means that the function has no SR-IOV.
	TotalVFs int
	// PhysFn is the PCI address of a virtual function's physical one,
	// which must come earlier in the list. VF is its number there.
	PhysFn string
	VF     int
}

// Vendor and device id of a BlueField's network function.
const (
	sysfsVendor = "0x15b3"
	sysfsDevice = "0xa2dc"
)

// SysfsRoot is the path of the node's injected sysfs: the tree that /sys
// would be, as far as network devices of PCI functions go. It exists after
// SetSysfs.
func (n *Node) SysfsRoot() string { return filepath.Join(n.Dir(), "sys") }

// SetSysfs replaces the node's sysfs in one step. A reader that holds a file
// of the old tree open keeps it.
func (n *Node) SetSysfs(netdevs []SysfsNetdev, functions []SysfsPCI) error {
	tree, err := os.MkdirTemp(n.Dir(), "sys-")
	if err != nil {
		return fmt.Errorf("set sysfs of %s: %w", n.Name, err)
	}
	w := sysfsWriter{root: tree}
	w.directory("class/net") // a sysfs has it even where there is no interface
	for _, f := range functions {
		w.function(f)
	}
	for _, d := range netdevs {
		w.netdev(d)
	}
	if w.err == nil {
		w.err = swapLink(n.SysfsRoot(), tree)
	}
	if w.err != nil {
		return errors.Join(fmt.Errorf("set sysfs of %s: %w", n.Name, w.err), os.RemoveAll(tree))
	}
	return nil
}

// swapLink points link at dir, beside it, and removes what it pointed at.
func swapLink(link, dir string) error {
	old, err := os.Readlink(link)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmp := dir + ".link"
	if err := os.Symlink(filepath.Base(dir), tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, link); err != nil {
		return err
	}
	if old == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(filepath.Dir(link), old))
}

// sysfsWriter lays out a tree as the kernel does: devices below
// devices/pci0000:00, and links to them from class/net and bus/pci/devices.
// It keeps the first error.
type sysfsWriter struct {
	root string
	err  error
}

const pciRoot = "devices/pci0000:00"

func (w *sysfsWriter) directory(path string) {
	if w.err == nil {
		w.err = os.MkdirAll(filepath.Join(w.root, path), 0o755)
	}
}

func (w *sysfsWriter) function(f SysfsPCI) {
	dir := filepath.Join(pciRoot, f.Address)
	w.file(filepath.Join(dir, "vendor"), sysfsVendor)
	w.file(filepath.Join(dir, "device"), sysfsDevice)
	w.file(filepath.Join(dir, "class"), "0x020000")
	w.file(filepath.Join(dir, "uevent"), "DRIVER=mlx5_core\nPCI_SLOT_NAME="+f.Address)
	w.link(filepath.Join("bus/pci/devices", f.Address), dir)
	if f.TotalVFs > 0 {
		w.file(filepath.Join(dir, "sriov_totalvfs"), strconv.Itoa(f.TotalVFs))
		w.file(filepath.Join(dir, "sriov_numvfs"), strconv.Itoa(w.virtualFunctions(f)))
	}
	if f.PhysFn != "" {
		pf := filepath.Join(pciRoot, f.PhysFn)
		w.link(filepath.Join(dir, "physfn"), pf)
		w.link(filepath.Join(pf, "virtfn"+strconv.Itoa(f.VF)), dir)
		w.file(filepath.Join(pf, "sriov_numvfs"), strconv.Itoa(w.virtualFunctions(SysfsPCI{Address: f.PhysFn})))
	}
}

// virtualFunctions counts those that were written so far.
func (w *sysfsWriter) virtualFunctions(pf SysfsPCI) int {
	links, err := filepath.Glob(filepath.Join(w.root, pciRoot, pf.Address, "virtfn*"))
	if err != nil && w.err == nil {
		w.err = err
	}
	return len(links)
}

func (w *sysfsWriter) netdev(d SysfsNetdev) {
	dir := filepath.Join(pciRoot, d.Device, "net", d.Name)
	attributes := [][2]string{
		{"address", d.Address},
		{"phys_port_name", d.PhysPortName},
		{"phys_switch_id", d.PhysSwitchID},
	}
	for _, a := range attributes {
		if a[1] != "" {
			w.file(filepath.Join(dir, a[0]), a[1])
		}
	}
	w.link(filepath.Join(dir, "device"), filepath.Join(pciRoot, d.Device))
	w.link(filepath.Join("class/net", d.Name), dir)
}

func (w *sysfsWriter) file(path, content string) {
	if w.err == nil {
		w.err = writeFile(filepath.Join(w.root, path), []byte(content+"\n"), 0o644)
	}
}

// link makes path point at target, both relative to the root, by a relative
// link whose last element is the target's name: readers of sysfs rely on that.
func (w *sysfsWriter) link(path, target string) {
	if w.err != nil {
		return
	}
	dir := filepath.Join(w.root, filepath.Dir(path))
	if w.err = os.MkdirAll(dir, 0o755); w.err != nil {
		return
	}
	rel, err := filepath.Rel(dir, filepath.Join(w.root, filepath.Dir(target)))
	if err != nil {
		w.err = err
		return
	}
	w.err = os.Symlink(filepath.Join(rel, filepath.Base(target)), filepath.Join(w.root, path))
}
