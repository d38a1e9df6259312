// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/locate"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
)

// chainHost is the host's end of the chain, as inspect prints it.
type chainHost struct {
	Interface string                 `json:"interface"`
	MAC       string                 `json:"mac,omitempty"`
	Function  *v1alpha1.HostFunction `json:"function,omitempty"`
}

func hostOf(data uplinkstate.HostData) chainHost {
	return chainHost{data.Interface, data.MAC.String(), data.Function}
}

func printChain(w io.Writer, host chainHost, r locate.Report) {
	table := agent.NewTable(w)
	defer table.Flush()
	line := table.Line
	line("interface", "%s, MAC %s", host.Interface, cmp.Or(host.MAC, "unknown"))
	line("function", "%s", functionText(host.Function))
	if rep := r.Representor; rep != nil {
		verified := "verified by MAC"
		if !rep.Verified {
			verified = "not verified by MAC"
		}
		if rep.Netdev == "" {
			line("representor", "none")
		} else {
			line("representor", "%s, found by %s, %s", rep.Netdev, rep.Method, verified)
		}
		for _, c := range rep.Candidates {
			if c.Rejected != "" {
				line("  rejected", "%s", c)
			}
		}
	}
	if b := r.Bridge; b != nil {
		line("bridge", "%s, found by %s", b.Bridge, r.Method)
		if b.HostOFPort != 0 { // else the checks ended before they came to it
			line("host port", "%s, OpenFlow port %d", b.HostPort, b.HostOFPort)
			line("VLAN", "%s", vlanText(b.VLAN))
		}
		line("uplink port", "%s", cmp.Or(b.Uplink.Port, "none"))
		if len(b.Uplink.Via) > 0 {
			line("  via", "%s", strings.Join(b.Uplink.Via, ", "))
		}
		for _, m := range b.Uplink.Members {
			line("  member", "%s, OpenFlow port %d, MTU %d, %s", m.Interface, m.OFPort, m.MTU, cmp.Or(m.Down, "up"))
		}
		for _, c := range b.Uplink.Candidates {
			if c.Port != b.Uplink.Port || c.Bridge != b.Uplink.Bridge {
				line("  rejected", "%s/%s", c.Bridge, c)
			}
		}
	}
	for _, warning := range r.Warnings {
		line("warning", "%s", warning)
	}
	switch {
	case r.Unknown != "":
		line("result", "unknown: %s", r.Unknown)
	case r.Reason != "":
		line("result", "Resolved=False, %s: %s", r.Reason, r.Message)
	default:
		line("result", "Resolved=True")
	}
}

func vlanText(vlan *int32) string {
	if vlan == nil {
		return "none"
	}
	return fmt.Sprint(*vlan)
}

func functionText(f *v1alpha1.HostFunction) string {
	if f == nil {
		return "none"
	}
	text := fmt.Sprintf("PF %d", f.PFID)
	if f.VFID != nil {
		text = fmt.Sprintf("VF %d of %s", *f.VFID, text)
	}
	if f.SFID != nil {
		text = fmt.Sprintf("SF %d of %s", *f.SFID, text)
	}
	return text + ", MAC of the PF " + cmp.Or(f.PFMAC, "unknown")
}
