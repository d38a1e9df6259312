// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// viewNode is a node that has nothing but a directory.
func viewNode(t *testing.T) *Node {
	t.Helper()
	n := &Node{Name: "card", lab: &Lab{state: layout{t.TempDir()}}}
	mustMkdir(t, n.Dir())
	return n
}

func TestDevlinkView(t *testing.T) {
	n := viewNode(t)
	ports := map[string]DevlinkPort{
		"pci/0000:03:00.0/65535":  PhysicalPort("p0", 0),
		"pci/0000:03:00.0/196608": HostPFPort("pf0hpf", 0, "02:42:ac:1c:00:03"),
		"pci/0000:03:00.0/196609": HostVFPort("pf0vf0", 0, 0, "00:00:00:00:00:00"),
	}
	if err := n.SetDevlink(ports); err != nil {
		t.Fatal(err)
	}
	got, err := n.Devlink()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ports, got); diff != "" {
		t.Errorf("read back (-written +read):\n%s", diff)
	}
	raw, err := os.ReadFile(n.DevlinkFile())
	if err != nil {
		t.Fatal(err)
	}
	// What iproute2 prints, byte for byte but for white space.
	want := `{"port":{` +
		`"pci/0000:03:00.0/196608":{"type":"eth","netdev":"pf0hpf","flavour":"pcipf","controller":1,"pfnum":0,"external":true,"splittable":false,"function":{"hw_addr":"02:42:ac:1c:00:03"}},` +
		`"pci/0000:03:00.0/196609":{"type":"eth","netdev":"pf0vf0","flavour":"pcivf","controller":1,"pfnum":0,"vfnum":0,"external":true,"splittable":false,"function":{"hw_addr":"00:00:00:00:00:00"}},` +
		`"pci/0000:03:00.0/65535":{"type":"eth","netdev":"p0","flavour":"physical","port":0,"splittable":false}}}`
	if diff := cmp.Diff(want, strings.Join(strings.Fields(string(raw)), "")); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

func TestSysfsView(t *testing.T) {
	n := viewNode(t)
	const pf, vf = "0000:03:00.0", "0000:03:00.2"
	err := n.SetSysfs(
		[]SysfsNetdev{
			{Name: "ens1f0", Device: pf, PhysPortName: "p0"},
			{Name: "ens1f0v0", Device: vf, Address: "02:00:00:00:00:07"},
		},
		[]SysfsPCI{{Address: pf, TotalVFs: 16}, {Address: vf, PhysFn: pf, VF: 0}})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"class/net/ens1f0/phys_port_name":                      "p0\n",
		"class/net/ens1f0/device/sriov_totalvfs":               "16\n",
		"class/net/ens1f0/device/sriov_numvfs":                 "1\n",
		"class/net/ens1f0/device/virtfn0/net/ens1f0v0/address": "02:00:00:00:00:07\n",
		"class/net/ens1f0v0/device/physfn/sriov_totalvfs":      "16\n",
		"bus/pci/devices/0000:03:00.2/uevent":                  "DRIVER=mlx5_core\nPCI_SLOT_NAME=0000:03:00.2\n",
	}
	for path, want := range files {
		got, err := os.ReadFile(filepath.Join(n.SysfsRoot(), path))
		if err != nil {
			t.Error(err)
		} else if string(got) != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
	// As in the kernel, a link's last element names the device.
	device, err := os.Readlink(filepath.Join(n.SysfsRoot(), "class/net/ens1f0v0/device"))
	if err != nil || filepath.Base(device) != vf {
		t.Errorf("device link is %q, %v", device, err)
	}
	for _, absent := range []string{"class/net/ens1f0/phys_switch_id", "class/net/ens1f0v0/device/sriov_totalvfs"} {
		if _, err := os.Stat(filepath.Join(n.SysfsRoot(), absent)); !os.IsNotExist(err) {
			t.Errorf("%s: %v, want it absent", absent, err)
		}
	}
	// A second view replaces the first and leaves nothing of it.
	if err := n.SetSysfs([]SysfsNetdev{{Name: "p0", Device: pf}}, []SysfsPCI{{Address: pf}}); err != nil {
		t.Fatal(err)
	}
	devices, err := filepath.Glob(filepath.Join(n.SysfsRoot(), "class/net/*"))
	if err != nil || len(devices) != 1 || filepath.Base(devices[0]) != "p0" {
		t.Errorf("devices after the change: %v, %v", devices, err)
	}
	trees, err := filepath.Glob(filepath.Join(n.Dir(), "sys*"))
	if err != nil || len(trees) != 2 { // the link and its target
		t.Errorf("left in the node's directory: %v, %v", trees, err)
	}
}
