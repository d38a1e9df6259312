// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/k8snetworkplumbingwg/sriovnet"
)

func (n PortName) text() string {
	var b strings.Builder
	if n.Flavour == sriovnet.PORT_FLAVOUR_PHYSICAL {
		return fmt.Sprintf("p%d", n.Number)
	}
	if n.Controller != nil {
		fmt.Fprintf(&b, "c%d", *n.Controller)
	}
	fmt.Fprintf(&b, "pf%d", n.PF)
	if n.VF != nil {
		fmt.Fprintf(&b, "vf%d", *n.VF)
	}
	if n.SF != nil {
		fmt.Fprintf(&b, "sf%d", *n.SF)
	}
	return b.String()
}

func TestZ1ParsePortName(t *testing.T) {
	for text, flavour := range map[string]sriovnet.PortFlavour{
		"p0":               sriovnet.PORT_FLAVOUR_PHYSICAL,
		"p1":               sriovnet.PORT_FLAVOUR_PHYSICAL,
		"p7":               sriovnet.PORT_FLAVOUR_PHYSICAL,
		"pf0":              sriovnet.PORT_FLAVOUR_PCI_PF,
		"pf1":              sriovnet.PORT_FLAVOUR_PCI_PF,
		"c1pf0":            sriovnet.PORT_FLAVOUR_PCI_PF,
		"c2pf0":            sriovnet.PORT_FLAVOUR_PCI_PF,
		"pf0vf3":           sriovnet.PORT_FLAVOUR_PCI_VF,
		"c1pf0vf3":         sriovnet.PORT_FLAVOUR_PCI_VF,
		"c12pf7vf1023":     sriovnet.PORT_FLAVOUR_PCI_VF,
		"pf0sf88":          sriovnet.PORT_FLAVOUR_PCI_SF,
		"c1pf1sf4":         sriovnet.PORT_FLAVOUR_PCI_SF,
		"c1pf1sf429496729": sriovnet.PORT_FLAVOUR_PCI_SF,
	} {
		name, ok := ParsePortName(text)
		if !ok || name.Flavour != flavour || name.text() != text {
			t.Errorf("%q: %+v, %v", text, name, ok)
		}
	}
	for _, text := range []string{
		"", "3", "p0\n", "P0", "pf0vf", "pf0vf99999999999", "c1pf0vf3x", "pf-1vf0", "xpf0vf3", "pf0hpf", "c1p0", "pf0vf3sf4",
		"cpf0", "pf", "p", " p0", "pf0 vf3", "p0s1", "enp3s0f0np0", "pf99999999999", "c99999999999pf0",
	} {
		if name, ok := ParsePortName(text); ok {
			t.Errorf("%q was taken for %+v", text, name)
		}
	}
}

func FuzzParsePortName(f *testing.F) {
	for _, seed := range []string{"p0", "pf0", "c1pf0vf3", "pf0sf88", "pf0vf", "c1pf0vf3x", "p0\n", "pf00vf00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, ok := ParsePortName(text)
		if !ok {
			return
		}
		if again, ok := ParsePortName(name.text()); !ok || again.text() != name.text() {
			t.Errorf("%q is %q, which is %+v", text, name.text(), again)
		}
	})
}
