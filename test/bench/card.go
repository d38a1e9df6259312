// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/representor"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// The card of the lookup benchmarks has two PFs of one host, and VFs of both in turn, numbered from 0 on each, so
// that a number alone names two of them. The host gave the VFs addresses that the card knows.

// query is a question and the name of the representor that answers it.
type query struct {
	representor.Query
	want string
}

// card makes the devlink ports of a card with n representors.
func card(n int) map[string]lab.DevlinkPort {
	ports := map[string]lab.DevlinkPort{}
	for pf := range 2 {
		ports[fmt.Sprintf("pci/0000:03:00.%d/65535", pf)] = lab.PhysicalPort(fmt.Sprintf("p%d", pf), pf)
		ports[fmt.Sprintf("pci/0000:03:00.%d/131072", pf)] = lab.HostPFPort(fmt.Sprintf("pf%dhpf", pf), pf, pfMAC(pf))
	}
	for i := range n - 2 {
		pf, vf := i%2, i/2
		ports[vfHandle(i)] = lab.HostVFPort(vfNetdev(pf, vf), pf, vf, vfMAC(pf, vf))
	}
	return ports
}

func vfHandle(i int) string             { return fmt.Sprintf("pci/0000:03:00.%d/%d", i%2, 131073+i/2) }
func vfNetdev(pf, vf int) string        { return fmt.Sprintf("pf%dvf%d", pf, vf) }
func pfMAC(pf int) string               { return fmt.Sprintf("02:00:00:00:00:0%d", pf+1) }
func vfMAC(pf, vf int) string           { return fmt.Sprintf("02:00:00:1%d:%02x:%02x", pf, vf/256, vf%256) }
func mustMAC(t string) net.HardwareAddr { mac, _ := net.ParseMAC(t); return mac }

// cardPorts is the card as the agent reads it from devlink and rtnetlink.
func cardPorts(n int) ([]representor.Port, []representor.Link, error) {
	text, err := json.Marshal(map[string]any{"port": card(n)})
	if err != nil {
		return nil, nil, err
	}
	ports, err := representor.ParseDevlinkPorts(text)
	if err != nil {
		return nil, nil, err
	}
	links := make([]representor.Link, len(ports))
	for i, p := range ports {
		links[i] = representor.Link{Name: p.Netdev}
	}
	return ports, links, nil
}

// queries makes the questions of a number of Uplinks, each with a VF of its own as far as there are so many,
// spread over the whole card.
func queries(size, n int) []query {
	all := make([]query, n)
	for i := range all {
		vf := i * (size - 2) / n % (size - 2)
		all[i] = vfQuery(vf%2, vf/2)
	}
	return all
}

// vfQuery is what a host publishes of a VF.
func vfQuery(pf, vf int) query {
	number := int32(vf)
	return query{representor.Query{
		Function: &v1alpha1.HostFunction{PFMAC: pfMAC(pf), PFID: int32(pf), VFID: &number},
		MAC:      mustMAC(vfMAC(pf, vf)),
	}, vfNetdev(pf, vf)}
}

// absent asks for a VF that the card has not got.
func absent() query { return vfQuery(0, 5000) }

// checkAnswers makes sure that what is measured finds the right ones.
func checkAnswers(x *representor.Index, all []query) error {
	for _, q := range all {
		found, err := x.Resolve(q.Query)
		if err != nil {
			return err
		}
		if found.Netdev != q.want || !found.Verified {
			return fmt.Errorf("found %s (verified: %t) instead of %s", found.Netdev, found.Verified, q.want)
		}
	}
	if found, err := x.Resolve(absent().Query); err == nil {
		return fmt.Errorf("found %s for a function that is not there", found.Netdev)
	}
	return nil
}
