// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/k8snetworkplumbingwg/sriovnet"
)

// TestZ1Classify has one interface x, known to devlink, to sysfs, or to both.
func TestZ1Classify(t *testing.T) {
	tests := map[string]struct {
		port *Port
		link Link
		want Class
	}{
		"A9: physical, whatever the interface is called": {port: new(physical(ecpf0, "x")), link: Link{PortName: "p0"}, want: Physical},
		"p7 without devlink":                             {link: Link{PortName: "p7"}, want: Physical},
		"host PF":                                        {port: new(pf(ecpf0, 1, 0, "x", nil)), want: HostFacing},
		"host PF, legacy naming":                         {port: new(old(pf(ecpf0, 0, 0, "x", nil))), link: Link{PortName: "pf0"}, want: HostFacing},
		"host PF without devlink":                        {link: Link{PortName: "pf1"}, want: HostFacing},
		"host PF of host 2 without devlink":              {link: Link{PortName: "c2pf0"}, want: HostFacing},
		"host VF":                                        {port: new(vf(ecpf0, 1, 0, 3, "x", nil)), link: Link{PortName: "c1pf0vf3"}, want: HostFacing},
		"host VF, legacy naming but external":            {port: new(vf(ecpf0, 0, 0, 3, "x", nil)), link: Link{PortName: "pf0vf3"}, want: HostFacing},
		"host VF without devlink":                        {link: Link{PortName: "c1pf0vf3"}, want: HostFacing},
		"host SF":                                        {port: new(sf(ecpf0, 1, 1, 4, "x", nil)), want: HostFacing},
		"local VF":                                       {port: new(local(vf(ecpf0, 0, 0, 3, "x", nil))), link: Link{PortName: "pf0vf3"}, want: LocalFunction},
		"A6: local VF with a controller":                 {port: new(local(vf(ecpf0, 1, 0, 3, "x", nil))), link: Link{PortName: "c1pf0vf3"}, want: LocalFunction},
		"local SF":                                       {port: new(local(sf(ecpf0, 0, 0, 88, "x", nil))), link: Link{PortName: "pf0sf88"}, want: LocalFunction},
		"A5: VF without controller or devlink":           {link: Link{PortName: "pf0vf5"}, want: LocalFunction},
		"old kernel, the name says host":                 {port: new(old(vf(ecpf0, 0, 0, 3, "x", nil))), link: Link{PortName: "c1pf0vf3"}, want: HostFacing},
		"bare number of a very old kernel":               {link: Link{PortName: "3"}, want: Plain},
		"no port name":                                   {link: Link{}, want: Plain},
		"A19: only the alternative name tells":           {link: Link{AltNames: []string{"enp3s0f0npf0vf0", "c1pf0vf0"}}, want: HostFacing},
		"A19: only the alias tells":                      {link: Link{Alias: "c1pf0"}, want: HostFacing},
		"the port name goes before other names":          {link: Link{PortName: "p0", Alias: "c1pf0"}, want: Physical},
		"A13, A14: it could not be read":                 {link: Link{Unreadable: syscall.EIO}, want: Unclassified},
		"it could not be read, but devlink knows":        {port: new(vf(ecpf0, 1, 0, 3, "x", nil)), link: Link{Unreadable: syscall.EIO}, want: HostFacing},
		"a flavour that is none of ours":                 {port: &Port{Bus: "pci", Flavour: sriovnet.PORT_FLAVOUR_VIRTUAL, Netdev: "x"}, want: Plain},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.link.Name = "x"
			in := Input{Links: []Link{test.link}}
			if test.port != nil {
				in.Ports = []Port{*test.port}
			}
			if got := Build(in).Classify("x"); got != test.want {
				t.Errorf("class %d, want %d", got, test.want)
			}
		})
	}
}

func TestClassifyOtherNames(t *testing.T) {
	x := build([]Port{vf(ecpf0, 1, 0, 0, "eth7", nil)}, Link{Name: "eth7", AltNames: []string{"enp65s0f0np0pf0vf0"}}, Link{Name: "veth0"})
	for name, want := range map[string]Class{"enp65s0f0np0pf0vf0": HostFacing, "eth7": HostFacing, "veth0": Plain, "none": Absent} {
		if got := x.Classify(name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if got := x.Names("enp65s0f0np0pf0vf0"); !slices.Equal(got, []string{"eth7", "enp65s0f0np0pf0vf0"}) {
		t.Errorf("names %q", got)
	}
	// A14: what an old index does not have may have come since.
	stale := x.asStale(errors.New("busy"))
	for name, want := range map[string]Class{"eth7": HostFacing, "veth0": Plain, "none": Unclassified} {
		if got := stale.Classify(name); got != want {
			t.Errorf("stale: %s is %d, want %d", name, got, want)
		}
	}
}
