// SPDX-License-Identifier: Apache-2.0

package representor

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

func (c Candidate) String() string {
	text := c.Netdev
	if c.Port != "" {
		text += " (" + c.Port + ")"
	}
	if c.Rejected != "" {
		text += ": " + c.Rejected
	}
	return text
}

type macs []net.HardwareAddr

func (m macs) has(mac net.HardwareAddr) bool {
	return slices.ContainsFunc(m, func(other net.HardwareAddr) bool { return slices.Equal(other, mac) })
}

func (m macs) String() string {
	texts := make([]string, len(m))
	for i, mac := range m {
		texts[i] = mac.String()
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// maxListed is how many candidates a message names; the rest is counted.
const maxListed = 8

func list(candidates []Candidate) string {
	texts := make([]string, 0, maxListed+1)
	for _, c := range candidates[:min(len(candidates), maxListed)] {
		texts = append(texts, c.String())
	}
	if more := len(candidates) - maxListed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

// wanted names what was looked for.
func wanted(q Query, f function, known bool) string {
	var texts []string
	if known {
		texts = append(texts, f.String())
	}
	if q.MAC != nil {
		texts = append(texts, "MAC address "+q.MAC.String())
	}
	if texts == nil {
		return "an interface without PCI function and MAC address"
	}
	return "the host's " + strings.Join(texts, ", ")
}

func ambiguous(q Query, f function, known bool, found []Candidate) *uplinkstate.Problem {
	advice := "name the right one in the representor map"
	switch {
	case found[0].Method == ByMAC:
		advice = "give each of the host's functions a MAC address of its own, or " + advice
	case found[0].Method == ByFunction && f.pfMAC == nil:
		advice = "update the host agent, so that it publishes the MAC address of the PF, or " + advice
	case found[0].Method == ByMap:
		advice = "leave only one of these entries in the representor map"
	}
	return uplinkstate.Problemf(uplinkstate.ReasonBridgeNotFound,
		"%d representors fit %s equally well: %s; expected one; %s", len(found), wanted(q, f, known), list(found), advice)
}

func notFound(q Query, f function, known bool, candidates []Candidate) *uplinkstate.Problem {
	seen := "nothing on this card fits"
	if len(candidates) > 0 {
		seen = list(candidates)
	}
	return uplinkstate.Problemf(uplinkstate.ReasonBridgeNotFound,
		"no representor of %s: %s; check that the card serves this host and is in switchdev mode, or name the representor in the representor map",
		wanted(q, f, known), seen)
}
