// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
)

// A13: interfaces that are no port of a switch say so in several ways, none of which is an error.
func TestA13ReadPortName(t *testing.T) {
	root := t.TempDir()
	write := func(netdev string, attributes map[string]string) {
		dir := filepath.Join(root, "class/net", netdev)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range attributes {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("rep", map[string]string{"phys_port_name": "c1pf0vf3\n", "phys_switch_id": "00aa\n"})
	write("legacy", map[string]string{"phys_port_name": "\n"})
	write("none", nil)
	if err := os.MkdirAll(filepath.Join(root, "class/net/broken/phys_port_name"), 0o700); err != nil {
		t.Fatal(err)
	}
	sysfs := &kernel.Sysfs{Root: root}
	for name, want := range map[string]Link{
		"rep":    {PortName: "c1pf0vf3", SwitchID: "00aa"},
		"legacy": {},
		"none":   {},
		"gone":   {},
	} {
		link := Link{Name: name}
		readPortName(t.Context(), sysfs, &link)
		if link.PortName != want.PortName || link.SwitchID != want.SwitchID || link.Unreadable != nil {
			t.Errorf("%s: %+v", name, link)
		}
	}
	link := Link{Name: "broken"}
	if readPortName(t.Context(), sysfs, &link); link.Unreadable == nil {
		t.Errorf("a read error is lost: %+v", link)
	}
	// The kernel's own answer for what is no port is EOPNOTSUPP.
	lo := Link{Name: "lo"}
	if readPortName(t.Context(), &kernel.Sysfs{}, &lo); lo.Unreadable != nil || lo.PortName != "" {
		t.Errorf("lo: %+v", lo)
	}
}

// Where no sysfs is mounted, no interface is known to be no port of a switch.
func TestReadPortNameWithoutSysfs(t *testing.T) {
	link := Link{Name: "rep"}
	if readPortName(t.Context(), &kernel.Sysfs{Root: t.TempDir()}, &link); link.Unreadable == nil {
		t.Errorf("%+v", link)
	}
}
