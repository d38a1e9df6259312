// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"golang.org/x/sys/unix"
)

// MAC addresses of physical functions.
const (
	pf0MAC = "00:00:5e:00:53:a0"
	pf1MAC = "00:00:5e:00:53:a1"
)

// snapshotOf is a snapshot with links of these names, in the order of their index.
func snapshotOf(names ...string) *kernel.Snapshot {
	s := &kernel.Snapshot{}
	for i, name := range names {
		s.Links = append(s.Links, kernel.Link{Index: i + 1, Name: name})
	}
	return s
}

// twoPorts is a card with two ports; the second port's function has a virtual and a scalable function.
func twoPorts(t testing.TB) (f fakeSysfs, pf0, pf1 string) {
	f = newSysfs(t)
	pf0, pf1 = f.pci("0000:03:00.0"), f.pci("0000:03:00.1")
	f.netdev(pf0, "ens1f0np0", map[string]string{"phys_port_name": "p0\n", "address": pf0MAC + "\n"})
	f.netdev(pf1, "ens1f1np1", map[string]string{"phys_port_name": "p1\n", "address": pf1MAC + "\n"})
	f.netdev(f.vf(pf1, 11, "0000:03:01.5"), "ens1f1v11", nil)
	f.netdev(f.sf(pf1, "mlx5_core.sf.4", "88\n"), "enp3s0f1s88", nil)
	return f, pf0, pf1
}

func TestFunction(t *testing.T) {
	vf, sf := int32(11), int64(88)
	tests := map[string]struct {
		iface  string
		change func(f fakeSysfs, pf0, pf1 string)
		links  func(s *kernel.Snapshot)
		want   *v1alpha1.HostFunction
	}{
		"physical function": {iface: "ens1f0np0", want: &v1alpha1.HostFunction{PFMAC: pf0MAC, PFID: 0}},
		"its second port":   {iface: "ens1f1np1", want: &v1alpha1.HostFunction{PFMAC: pf1MAC, PFID: 1}},
		"virtual function":  {iface: "ens1f1v11", want: &v1alpha1.HostFunction{PFMAC: pf1MAC, PFID: 1, VFID: &vf}},
		"scalable function": {iface: "enp3s0f1s88", want: &v1alpha1.HostFunction{PFMAC: pf1MAC, PFID: 1, SFID: &sf}},
		"by altname": {
			iface: "uplink0", links: func(s *kernel.Snapshot) { s.Links[0].AltNames = []string{"uplink0"} },
			want: &v1alpha1.HostFunction{PFMAC: pf0MAC, PFID: 0},
		},
		"the port number before the function's": {
			iface: "ens9",
			change: func(f fakeSysfs, _, _ string) {
				f.netdev(f.pci("0000:07:00.0"), "ens9", map[string]string{"phys_port_name": "p1"})
			},
			want: &v1alpha1.HostFunction{PFID: 1},
		},
		"the function's number where there is no port name": {
			iface: "ens9",
			change: func(f fakeSysfs, _, _ string) {
				f.netdev(f.pci("0000:07:00.3"), "ens9", map[string]string{"phys_port_name": ""})
			},
			want: &v1alpha1.HostFunction{PFID: 3},
		},
		"a domain above ffff": {
			iface: "ens9", change: func(f fakeSysfs, _, _ string) { f.netdev(f.pci("10000:07:00.2"), "ens9", nil) },
			want: &v1alpha1.HostFunction{PFID: 2},
		},
		"A20: the permanent MAC under a bond": {
			iface: "ens1f1v11",
			links: func(s *kernel.Snapshot) {
				s.Links[1].HardwareAddr, s.Links[1].PermanentAddr = mac(t, "00:00:5e:00:53:bb"), mac(t, "00:00:5e:00:53:c1")
			},
			want: &v1alpha1.HostFunction{PFMAC: "00:00:5e:00:53:c1", PFID: 1, VFID: &vf},
		},
		"the current MAC where none is permanent": {
			iface: "ens1f0np0", links: func(s *kernel.Snapshot) { s.Links[0].HardwareAddr = mac(t, "00:00:5e:00:53:bb") },
			want: &v1alpha1.HostFunction{PFMAC: "00:00:5e:00:53:bb", PFID: 0},
		},
		"A2: a zero MAC is none": {
			iface:  "ens1f1v11",
			change: func(f fakeSysfs, _, pf1 string) { f.write(pf1+"/net/ens1f1np1/address", "00:00:00:00:00:00\n") },
			want:   &v1alpha1.HostFunction{PFID: 1, VFID: &vf},
		},
		"the physical function's interface is elsewhere": {
			iface: "ens1f1v11",
			change: func(f fakeSysfs, _, pf1 string) {
				if err := os.RemoveAll(filepath.Join(f.root, pf1, "net")); err != nil {
					t.Fatal(err)
				}
			},
			want: &v1alpha1.HostFunction{PFID: 1, VFID: &vf},
		},
		"the uplink among the representors of a switchdev card": {
			iface: "ens1f1v11",
			change: func(f fakeSysfs, _, pf1 string) {
				f.netdev(pf1, "eth0", map[string]string{"phys_port_name": "pf1vf0\n", "phys_switch_id": "ab\n", "address": pf0MAC})
				f.write(pf1+"/net/ens1f1np1/phys_switch_id", "ab\n")
			},
			want: &v1alpha1.HostFunction{PFMAC: pf1MAC, PFID: 1, VFID: &vf},
		},
		"a representor is no function": {
			iface: "eth0",
			change: func(f fakeSysfs, _, pf1 string) {
				f.netdev(pf1, "eth0", map[string]string{"phys_port_name": "c1pf1vf0\n"})
			},
		},
		"A9: the name says nothing": {
			iface: "pf0vf3",
			change: func(f fakeSysfs, _, _ string) {
				f.netdev(f.pci("0000:07:00.0"), "pf0vf3", map[string]string{"phys_port_name": "p0"})
			},
			want: &v1alpha1.HostFunction{PFID: 0},
		},
		"no device: veth, Open vSwitch": {iface: "ovsbr1"},
		"virtio": {
			iface: "eth0",
			change: func(f fakeSysfs, _, _ string) {
				virtio := filepath.Join(f.pci("0000:00:03.0"), "virtio2")
				f.dir(virtio)
				f.netdev(virtio, "eth0", nil)
			},
		},
		"a link of another namespace's sysfs": {
			iface:  "ens1f0np0",
			change: func(f fakeSysfs, pf0, _ string) { f.write(pf0+"/net/ens1f0np0/ifindex", "77\n") },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, pf0, pf1 := twoPorts(t)
			if test.change != nil {
				test.change(f, pf0, pf1)
			}
			s := snapshotOf("ens1f0np0", "ens1f1np1", "ens1f1v11", "enp3s0f1s88", "ens9", "eth0", "pf0vf3", "ovsbr1")
			if test.links != nil {
				test.links(s)
			}
			got, err := NewFunctionReader(f.root).Function(t.Context(), s, test.iface)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFunctionUnknown(t *testing.T) {
	tests := map[string]struct {
		iface  string
		change func(f fakeSysfs, pf1 string)
		says   string
	}{
		"no such link":        {iface: "none", says: "no such interface"},
		"a number that isn't": {iface: "enp3s0f1s88", change: func(f fakeSysfs, pf1 string) { f.write(pf1+"/mlx5_core.sf.4/sfnum", "x") }, says: "sfnum of mlx5_core.sf.4"},
		"a VF that its PF does not list": {
			iface: "ens9",
			change: func(f fakeSysfs, pf1 string) {
				d := f.pci("0000:03:01.6")
				f.link(d+"/physfn", pf1)
				f.netdev(d, "ens9", nil)
			},
			says: "has no virtual function 0000:03:01.6",
		},
		"an auxiliary device on no PCI function": {
			iface: "ens9", change: func(f fakeSysfs, _ string) {
				f.dir("devices/platform")
				f.netdev(f.sf("devices/platform", "x.sf.1", "1"), "ens9", nil)
			},
			says: "below no PCI function",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _, pf1 := twoPorts(t)
			if test.change != nil {
				test.change(f, pf1)
			}
			got, err := NewFunctionReader(f.root).Function(t.Context(), snapshotOf("ens9", "enp3s0f1s88"), test.iface)
			if got != nil || err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %+v, %v; want an error with %q", got, err, test.says)
			}
		})
	}
}

// TestFunctionThatHangs is A17: a driver that does not answer. What is known already stays.
func TestFunctionThatHangs(t *testing.T) {
	f := newSysfs(t)
	device := f.pci("0000:03:00.0")
	f.netdev(device, "ens9", nil)
	r := NewFunctionReader(f.root)
	r.sysfs.Timeout = 20 * time.Millisecond
	known, err := r.Function(t.Context(), snapshotOf("ens9"), "ens9")
	if known == nil || err != nil {
		t.Fatalf("got %+v, %v", known, err)
	}
	fifo := filepath.Join(f.root, device, "net/ens9/phys_port_name")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Function(t.Context(), snapshotOf("ens9"), "ens9"); !cmp.Equal(got, known) || !errors.Is(err, kernel.ErrTimeout) {
		t.Errorf("of the same link: %+v, %v; want what was known, and an error", got, err)
	}
	if got, err := r.Function(t.Context(), snapshotOf("ens8", "ens9"), "ens9"); got != nil || !errors.Is(err, kernel.ErrTimeout) {
		t.Errorf("of another link of that name: %+v, %v", got, err)
	}
	w, err := os.OpenFile(fifo, os.O_WRONLY|unix.O_NONBLOCK, 0) // lets the readers go
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
}

// TestSilentDriverIsLeftAlone: a driver that did not answer is asked again only after a while, unless the link is
// another one.
func TestSilentDriverIsLeftAlone(t *testing.T) {
	f := newSysfs(t)
	device := f.pci("0000:03:00.0")
	f.netdev(device, "ens9", nil)
	r := NewFunctionReader(f.root)
	r.sysfs.Timeout = 20 * time.Millisecond
	if r.memory.pause != 30*time.Second {
		t.Errorf("a silent driver is left alone for %s", r.memory.pause)
	}
	s := snapshotOf("ens9")
	known, err := r.Function(t.Context(), s, "ens9")
	if known == nil || err != nil {
		t.Fatalf("got %+v, %v", known, err)
	}
	port := filepath.Join(f.root, device, "net/ens9/phys_port_name")
	if err := unix.Mkfifo(port, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Function(t.Context(), s, "ens9"); !cmp.Equal(got, known) || !errors.Is(err, kernel.ErrTimeout) {
		t.Errorf("a driver that hangs: %+v, %v", got, err)
	}
	w, err := os.OpenFile(port, os.O_WRONLY|unix.O_NONBLOCK, 0) // lets the reader go
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if err := os.Remove(port); err != nil {
		t.Fatal(err)
	}
	f.write(filepath.Join(device, "net/ens9/phys_port_name"), "p1\n")
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		if port, err := r.sysfs.ReadAttr(t.Context(), netDevices, "ens9", "phys_port_name"); err == nil && port == "p1" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the reader hangs still")
		}
	}
	if got, err := r.Function(t.Context(), s, "ens9"); !cmp.Equal(got, known) || !errors.Is(err, kernel.ErrTimeout) {
		t.Errorf("sysfs was read again at once: %+v, %v", got, err)
	}
	want := &v1alpha1.HostFunction{PFID: 1}
	if got, err := r.Function(t.Context(), snapshotOf("ens8", "ens9"), "ens9"); !cmp.Equal(got, want) || err != nil {
		t.Errorf("another link of that name: %+v, %v", got, err)
	}
}

// TestSilentDriverIsAskedAgain: after the pause.
func TestSilentDriverIsAskedAgain(t *testing.T) {
	f := newSysfs(t)
	f.netdev(f.pci("0000:03:00.2"), "ens9", nil)
	r := NewFunctionReader(f.root)
	s := snapshotOf("ens9")
	r.memory.keep("ens9", s, knownFunction{index: 1, silent: time.Now().Add(-r.memory.pause)})
	if got, err := r.Function(t.Context(), s, "ens9"); err != nil || got == nil || got.PFID != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	if last := r.memory.known["ens9"]; !last.silent.IsZero() {
		t.Errorf("a driver that answers is still noted as silent: %+v", last)
	}
}

func TestFunctionMemoryIsBounded(t *testing.T) {
	f := newSysfs(t)
	r := NewFunctionReader(f.root)
	for i := range 100 {
		name := "ens" + strconv.Itoa(i)
		f.netdev(f.pci(fmt.Sprintf("0000:03:%02x.%d", i/8, i%8)), name, nil)
		s := snapshotOf("stays", name)
		for _, name := range []string{"stays", name} {
			if _, err := r.Function(t.Context(), s, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(r.memory.known); n > 3 {
		t.Errorf("%d links are remembered, of which two are left", n)
	}
	if _, ok := r.memory.known["stays"]; !ok {
		t.Error("a link that is still there was forgotten")
	}
}

func TestParsePCIAddress(t *testing.T) {
	for text, want := range map[string]pciAddress{
		"0000:03:00.1":     {bus: 3, function: 1},
		"0001:ff:1f.7":     {domain: 1, bus: 0xff, device: 0x1f, function: 7},
		"10000:e1:00.0":    {domain: 0x10000, bus: 0xe1},
		"ffffffff:00:00.0": {domain: 0xffffffff},
	} {
		if got, ok := parsePCIAddress(text); !ok || got != want || got.String() != text {
			t.Errorf("%s: %+v, %t", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "03:00.0", "0000:03:00", "0000:03:00.8", "0000:03:20.0", "0000:03:00.0 ", "0000:03:00.0\n", "000G:03:00.0",
		"00000:03:00.0", "123456789:03:00.0", "0000:03:00-0", "0000:03:00.10", "mlx5_core.sf.4", "0000:0A:00.0",
	} {
		if got, ok := parsePCIAddress(text); ok {
			t.Errorf("%q passes for %s", text, got)
		}
	}
	for text, want := range map[string]string{
		"devices/pci0000:00/0000:00:01.0/0000:03:00.0/mlx5_core.sf.4": "0000:03:00.0",
		"devices/pci0000:00/0000:00:03.0/virtio2":                     "0000:00:03.0",
		"devices/virtual/net/lo":                                      "",
		"../../devices/virtual":                                       "",
		"/":                                                           "",
		"":                                                            "",
	} {
		got, ok := nearestPCI(text)
		if ok != (want != "") || (ok && got.String() != want) {
			t.Errorf("nearest to %q: %s, %t", text, got, ok)
		}
	}
}
