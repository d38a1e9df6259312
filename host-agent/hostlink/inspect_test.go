// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

func TestInspect(t *testing.T) {
	f := newSysfs(t)
	f.netdev(f.pci("0000:03:00.1"), "ens3", map[string]string{"phys_port_name": "p1"})
	t.Setenv("PCIDB_PATH", pciIDs(t))
	s := node(t)
	s.Routes = append(s.Routes, via(200, "192.0.2.2"))
	got := NewFunctionReader(f.root).Inspect(t.Context(), s, "enp65s0f0np0pf0vf0")
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "interface": "enp65s0f0np0pf0vf0",
  "kernelName": "ens3",
  "state": "up",
  "mac": "00:00:5e:00:53:07",
  "mtu": 1500,
  "table": 254,
  "addresses": [
    {
      "address": "192.0.2.5/24",
      "chosen": true
    },
    {
      "address": "2001:db8::5/64",
      "chosen": true
    }
  ],
  "gateways": [
    {
      "gateway": "192.0.2.1",
      "destination": "0.0.0.0/0",
      "protocol": 4,
      "metric": 100,
      "weight": 1,
      "chosen": true
    },
    {
      "gateway": "192.0.2.2",
      "destination": "0.0.0.0/0",
      "protocol": 4,
      "metric": 200,
      "weight": 1,
      "chosen": false,
      "why": "its metric is higher than the 100 of 192.0.2.1"
    },
    {
      "gateway": "fe80::1",
      "destination": "::/0",
      "protocol": 4,
      "metric": 1024,
      "weight": 1,
      "chosen": true
    }
  ],
  "function": {
    "pfMAC": "00:00:5e:00:53:07",
    "pfID": 1
  },
  "hardware": {
    "pciAddress": "0000:03:00.1",
    "driver": "mlx5_core",
    "vendorID": "15b3",
    "vendor": "Mellanox Technologies",
    "productID": "a2dc",
    "product": "MT43244 BlueField-3 integrated ConnectX-7 network controller"
  },
  "ipAddresses": [
    "192.0.2.5/24",
    "2001:db8::5/64"
  ],
  "defaultGateways": [
    "192.0.2.1",
    "fe80::1"
  ]
}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
}

// pciIDs is a database of one vendor.
func pciIDs(t *testing.T) string {
	f := fakeSysfs{t: t, root: t.TempDir()}
	f.write("pci.ids", "15b3  Mellanox Technologies\n\ta2dc  MT43244 BlueField-3 integrated ConnectX-7 network controller\n")
	return filepath.Join(f.root, "pci.ids")
}

func TestInspectAfterProblem(t *testing.T) {
	f := newSysfs(t)
	device := f.pci("0000:03:00.0")
	f.netdev(device, "ens3", nil)
	f.write(device+"/modalias", "garbage")
	t.Setenv("PCIDB_PATH", filepath.Join(f.root, "none"))
	s := node(t)
	s.Links[1].Up, s.Links[1].HardwareAddr = false, nil
	r := NewFunctionReader(f.root)
	got := r.Inspect(t.Context(), s, "ens3")
	if got.Reason != uplinkstate.ReasonInvalidHostInterface || got.State != "it is set down" || len(got.Addresses) != 2 || got.IPAddresses != nil {
		t.Errorf("got %+v; want the problem, and every candidate all the same", got)
	}
	warnings := strings.Join(got.Warnings, "\n")
	for _, want := range []string{"modalias \"garbage\" is not that of a PCI device", "MAC address of physical function 0 is not known"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("warnings %q lack %q", got.Warnings, want)
		}
	}
	if got := r.Inspect(t.Context(), &kernel.Snapshot{}, "ens3"); got.Reason != uplinkstate.ReasonHostInterfaceNotFound || got.Hardware != nil {
		t.Errorf("without the interface: %+v", got)
	}
}

func TestHardware(t *testing.T) {
	f, pf0, _ := twoPorts(t)
	virtio := filepath.Join(f.pci("0000:00:03.0"), "virtio2")
	f.dir(virtio)
	f.netdev(virtio, "eth0", nil)
	t.Setenv("PCIDB_PATH", filepath.Join(f.root, "none"))
	tests := map[string]struct {
		netdev string
		want   *Hardware
	}{
		"numbers without a database": {"ens1f0np0", &Hardware{PCIAddress: "0000:03:00.0", Driver: "mlx5_core", VendorID: "15b3", ProductID: "a2dc"}},
		"the card below a driver":    {"eth0", &Hardware{PCIAddress: "0000:00:03.0", VendorID: "15b3", ProductID: "a2dc"}},
		"the card of a scalable one": {"enp3s0f1s88", &Hardware{PCIAddress: "0000:03:00.1", VendorID: "15b3", ProductID: "a2dc"}},
		"none":                       {"veth0", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := readHardware(t.Context(), &kernel.Sysfs{Root: f.root}, kernel.Link{Name: test.netdev})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	f.write(pf0+"/net/ens1f0np0/ifindex", "5")
	if got, err := readHardware(t.Context(), &kernel.Sysfs{Root: f.root}, kernel.Link{Name: "ens1f0np0", Index: 6}); got != nil || err != nil {
		t.Errorf("another link's card: %+v, %v", got, err)
	}
}
