// SPDX-License-Identifier: Apache-2.0

package hostlink

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
)

// Report is what the host role sees of one interface and what it makes of it, from the code that decides what
// is published.
type Report struct {
	// Interface is the name that was asked for, KernelName the link's own if an alternative name was.
	Interface  string `json:"interface"`
	KernelName string `json:"kernelName,omitempty"`
	// State is "up", or why the link carries no packets.
	State string `json:"state,omitempty"`
	MAC   string `json:"mac,omitempty"`
	MTU   int    `json:"mtu,omitempty"`
	// Table is the routing table that the interface is in.
	Table     uint32                 `json:"table,omitempty"`
	Addresses []AddressVerdict       `json:"addresses,omitempty"`
	Gateways  []GatewayVerdict       `json:"gateways,omitempty"`
	Function  *v1alpha1.HostFunction `json:"function,omitempty"`
	Hardware  *Hardware              `json:"hardware,omitempty"`
	// IPAddresses and DefaultGateways are what would be published.
	IPAddresses     []string `json:"ipAddresses,omitempty"`
	DefaultGateways []string `json:"defaultGateways,omitempty"`
	// Reason and Message are those of HostDataReady=False; empty if the interface can be an Uplink's.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Warnings are what a person may want to look into, though it keeps nothing from working.
	Warnings []string `json:"warnings,omitempty"`
}

// Inspect reports on an interface. Unlike Discover it looks at the hardware too, and goes on after a problem.
func (r FunctionReader) Inspect(ctx context.Context, s *kernel.Snapshot, iface string) Report {
	f := examine(s, iface)
	report := Report{Interface: iface, Addresses: f.addresses, Gateways: f.gateways, Table: f.table}
	if f.problem != nil {
		report.Reason, report.Message = f.problem.Reason, f.problem.Message
	}
	if f.link.Index == 0 {
		return report
	}
	report.KernelName, report.MTU, report.MAC = f.link.Name, f.link.MTU, f.link.HardwareAddr.String()
	report.State = "up"
	if seen, _ := linkDown(f.link); seen != "" {
		report.State = seen
	}
	if f.problem == nil {
		report.IPAddresses = textOf(chosenAddresses(f.addresses))
		report.DefaultGateways = textOf(chosenGateways(f.gateways))
	}
	r.inspectCard(ctx, s, f.link, &report)
	return report
}

func (r FunctionReader) inspectCard(ctx context.Context, s *kernel.Snapshot, link kernel.Link, report *Report) {
	warn := func(format string, args ...any) {
		report.Warnings = append(report.Warnings, fmt.Sprintf(format, args...))
	}
	var err error
	if report.Function, err = r.Function(ctx, s, link.Name); err != nil {
		warn("%v", err)
	}
	if report.Hardware, err = readHardware(ctx, r.sysfs, link); err != nil {
		warn("%v", err)
	}
	if report.Function == nil {
		return
	}
	if report.Function.PFMAC == "" {
		warn("the MAC address of physical function %d is not known here: the card finds its end by the MAC address of %s alone",
			report.Function.PFID, report.Interface)
	}
	if report.Hardware != nil && len(report.Hardware.RDMADevices) == 0 && r.sysfs.IsReal() {
		warn("the PCI function of %s has no RDMA device: its driver or firmware may not be set up for acceleration", report.Interface)
	}
}

// textOf writes addresses as the API does.
func textOf[T netip.Addr | netip.Prefix](values []T) []string {
	var text []string
	for _, v := range values {
		text = append(text, fmt.Sprint(v))
	}
	return text
}
