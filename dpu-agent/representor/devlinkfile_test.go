// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/k8snetworkplumbingwg/sriovnet"
)

func parseTestMAC(text string) net.HardwareAddr {
	mac, err := net.ParseMAC(text)
	if err != nil {
		panic(err)
	}
	return mac
}

func TestParseDevlinkPorts(t *testing.T) {
	const text = `{"port":{
		"pci/0000:03:00.0/65535":{"type":"eth","netdev":"p0","flavour":"physical","port":0,"splittable":false},
		"pci/0000:03:00.0/196608":{"type":"eth","netdev":"pf0hpf","flavour":"pcipf","controller":1,"pfnum":0,"external":true,"splittable":false,"function":{"hw_addr":"00:00:5e:00:53:01"}},
		"pci/0000:03:00.0/196609":{"type":"eth","netdev":"pf0vf0","flavour":"pcivf","controller":1,"pfnum":0,"vfnum":0,"external":true,"function":{"hw_addr":"00:00:00:00:00:00"}},
		"pci/0000:03:00.0/32768":{"type":"notset","flavour":"pcisf","controller":0,"pfnum":0,"sfnum":88,"external":false,"function":{"hw_addr":"none","state":"inactive","opstate":"detached"}},
		"auxiliary/mlx5_core.eth.5/262143":{"type":"eth","netdev":"eth9","flavour":"virtual"}}}`
	got, err := ParseDevlinkPorts([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	number := func(n uint32) *uint32 { return &n }
	want := []Port{
		{Bus: "auxiliary", Device: "mlx5_core.eth.5", Index: 262143, Flavour: sriovnet.PORT_FLAVOUR_UNKNOWN, Netdev: "eth9"},
		{Bus: "pci", Device: ecpf0, Index: 32768, Flavour: sriovnet.PORT_FLAVOUR_PCI_SF, Controller: number(0), PF: number(0), SF: number(88), External: new(false)},
		{Bus: "pci", Device: ecpf0, Index: 65535, Flavour: sriovnet.PORT_FLAVOUR_PHYSICAL, Netdev: "p0"},
		{Bus: "pci", Device: ecpf0, Index: 196608, Flavour: sriovnet.PORT_FLAVOUR_PCI_PF, Netdev: "pf0hpf", Controller: number(1), PF: number(0), External: new(true), HWAddr: mac(1)},
		{Bus: "pci", Device: ecpf0, Index: 196609, Flavour: sriovnet.PORT_FLAVOUR_PCI_VF, Netdev: "pf0vf0", Controller: number(1), PF: number(0), VF: number(0), External: new(true), HWAddr: zeroMAC},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got[4].Handle() != "pci/0000:03:00.0/196609" {
		t.Errorf("handle %s", got[4].Handle())
	}
	if ports, err := ParseDevlinkPorts([]byte(`{"port":{}}`)); err != nil || len(ports) != 0 {
		t.Errorf("no ports: %v, %v", ports, err)
	}
	for text, wrong := range map[string]string{
		"":                                   "unexpected end",
		"{}":                                 `no object "port"`,
		"[]":                                 "cannot unmarshal",
		`{"port":{"pci/0":{}}}`:              `"pci/0" is not bus/device/index`,
		`{"port":{"pci/0000:03:00.0/x":{}}}`: "is not bus/device/index",
		`{"port":{"/a/0":{}}}`:               "is not bus/device/index",
		`{"port":{"pci//0":{}}}`:             "is not bus/device/index",
		`{"port":{"pci/a/0":{"vfnum":-1}}}`:  "vfnum",
		`{"port":{}}{}`:                      "after top-level value",
	} {
		if _, err := ParseDevlinkPorts([]byte(text)); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: error %v, want %q", text, err, wrong)
		}
	}
}

func FuzzParseDevlinkPorts(f *testing.F) {
	for _, seed := range []string{
		`{"port":{}}`, `{}`, `null`, `{"port":{"pci/0000:03:00.0/1":{"flavour":"pcivf","pfnum":0,"vfnum":3,"netdev":"a","external":true,"function":{"hw_addr":"02:00:00:00:00:07"}}}}`,
		`{"port":{"a/b/c/1":{"function":null}}}`, `{"port":{"pci/a/4294967296":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		ports, err := ParseDevlinkPorts(text)
		if err != nil {
			return
		}
		for _, p := range ports {
			if p.Bus == "" || p.Device == "" {
				t.Errorf("port without handle: %+v", p)
			}
		}
		x := Build(Input{Ports: ports})
		macs := map[string]string{}
		for _, r := range x.Representors() {
			macs[r.Netdev] = r.PeerMAC
		}
		for _, r := range x.Representors() {
			found, err := x.Resolve(Query{MAC: r.mac})
			if err == nil && !slices.Equal(parseTestMAC(macs[found.Netdev]), r.mac) {
				t.Errorf("%s led to %s, which has %s", r.PeerMAC, found.Netdev, macs[found.Netdev])
			}
		}
	})
}
