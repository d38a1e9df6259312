// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/host-agent/hostlink"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/spf13/cobra"
)

// errUnfit ends inspect with 1 when the interface cannot be an Uplink's; the report has said why.
var errUnfit = errors.New("the interface cannot be used as it is")

func inspectCommand(sysfs *string) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "inspect IFACE",
		Short: "Print what would be published of an interface, and why not",
		Long: `Reads an interface as the agent does and prints what would be published of it: every address and
default gateway with the reason why it is chosen or not, the PCI function and the card behind it.
Reads only, and needs no API server. Ends with 1 when the interface cannot be an Uplink's.`,
		Example: "  host-agent inspect ens1f0\n  host-agent inspect ovsbr1 -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return agent.Usagef("name one interface, for example: host-agent inspect ens1f0")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 30*time.Second)
			defer cancel()
			snapshot, err := kernel.Read(ctx, nil)
			if err != nil {
				return err
			}
			report := hostlink.NewFunctionReader(*sysfs).Inspect(ctx, snapshot, args[0])
			if err := agent.Print(cmd.OutOrStdout(), output, report, func(w io.Writer) { printReport(w, report) }); err != nil {
				return err
			}
			if report.Reason != "" {
				return errUnfit
			}
			return nil
		},
	}
	agent.OutputFlag(command, &output)
	return command
}

func printReport(w io.Writer, r hostlink.Report) {
	table := agent.NewTable(w)
	defer table.Flush()
	line := table.Line
	line("interface", "%s", r.Interface)
	if r.KernelName != "" {
		if r.KernelName != r.Interface {
			line("kernel name", "%s", r.KernelName)
		}
		line("state", "%s", r.State)
		line("MAC", "%s", cmp.Or(r.MAC, "none"))
		line("MTU", "%d", r.MTU)
		line("routing table", "%d", r.Table)
	}
	for _, a := range r.Addresses {
		line("address", "%s\t%s", a.Address, verdict(a.Chosen, a.Why))
	}
	for _, g := range r.Gateways {
		gateway := "none"
		if g.Gateway.IsValid() {
			gateway = g.Gateway.String()
		}
		line("gateway", "%s (metric %d, protocol %d)\t%s", gateway, g.Metric, g.Protocol, verdict(g.Chosen, g.Why))
	}
	if f := r.Function; f != nil {
		text := fmt.Sprintf("PF %d", f.PFID)
		if f.VFID != nil {
			text += fmt.Sprintf(", VF %d", *f.VFID)
		}
		if f.SFID != nil {
			text += fmt.Sprintf(", SF %d", *f.SFID)
		}
		line("PCI function", "%s, MAC of the PF %s", text, cmp.Or(f.PFMAC, "unknown"))
	}
	if h := r.Hardware; h != nil {
		card := []string{h.PCIAddress}
		if h.VendorID != "" {
			card = append(card, "["+h.VendorID+":"+h.ProductID+"]", h.Vendor, h.Product)
		}
		line("card", "%s", strings.TrimSpace(strings.Join(card, " ")))
		line("driver", "%s", cmp.Or(h.Driver, "none"))
		line("RDMA device", "%s", cmp.Or(strings.Join(h.RDMADevices, ", "), "none"))
	}
	for _, warning := range r.Warnings {
		line("warning", "%s", warning)
	}
	if r.Reason != "" {
		line("would publish", "HostDataReady=False, %s: %s", r.Reason, r.Message)
	} else {
		line("would publish", "HostDataReady=True, MAC %s, addresses %s, gateways %s", r.MAC,
			strings.Join(r.IPAddresses, " "), cmp.Or(strings.Join(r.DefaultGateways, " "), "none"))
	}
}

func verdict(chosen bool, why string) string {
	if chosen {
		return "chosen"
	}
	return "no: " + why
}
