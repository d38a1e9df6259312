// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"time"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/locate"
	"github.com/ovn-uplink/ovn-uplink/host-agent/hostlink"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/kernel"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/spf13/cobra"
)

// errUnresolved ends inspect with 1 when the chain does not hold; the report has said why.
var errUnresolved = errors.New("the uplink does not resolve")

// subject is what inspect is asked about: an Uplink by name, an interface of this machine, or a host's interface
// by what identifies it.
type subject struct {
	uplink     string
	iface      string
	mac, pfMAC string
	pf, vf, sf int64
}

func inspectCommand(f *flags) *cobra.Command {
	var output string
	var s subject
	command := &cobra.Command{
		Use:   "inspect [UPLINK]",
		Short: "Print the whole chain from the host's interface to the wire, and what was rejected",
		Long: `Follows the chain that the agent follows: the host's interface, its PCI function, the representor, the
OVS port and bridge, the uplink port and the VLAN; every candidate that was rejected is printed with the
reason. Reads only. With the name of an Uplink it takes what the host published from the UplinkState;
without one it needs no API server. Ends with 1 when the chain does not hold.`,
		Example: `  # what the agent makes of an UplinkState of this node
  dpu-agent inspect tenant-blue --kubeconfig /etc/ovn-uplink/kubeconfig

  # a regular node: an interface of this machine
  dpu-agent inspect --role all --interface ovsbr1

  # a card: VF 3 of the host's first PF, before there is any Uplink
  dpu-agent inspect --role dpu --mac 00:00:5e:00:53:07 --pf-mac 00:00:5e:00:53:01 --pf 0 --vf 3 -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return agent.Usagef("name one Uplink, not %d", len(args))
			}
			if len(args) == 1 {
				s.uplink = args[0]
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			slog.SetLogLoggerLevel(slog.LevelWarn) // what is printed is the report
			return f.inspect(ctx, cmd.OutOrStdout(), s, output)
		},
	}
	agent.OutputFlag(command, &output)
	flags := command.Flags()
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "", "kubeconfig `file` of the cluster, to inspect an Uplink by name")
	flags.StringVar(&s.iface, "interface", "", "`name` of an interface of this machine")
	flags.StringVar(&s.mac, "mac", "", "MAC `address` of the host's interface")
	flags.StringVar(&s.pfMAC, "pf-mac", "", "MAC `address` of the PF that the host's function belongs to")
	flags.Int64Var(&s.pf, "pf", -1, "`number` of the host's PF")
	flags.Int64Var(&s.vf, "vf", -1, "`number` of the host's VF")
	flags.Int64Var(&s.sf, "sf", -1, "`number` of the host's SF")
	return command
}

func (f *flags) inspect(ctx context.Context, w io.Writer, s subject, output string) error {
	role, _, err := chooseRole(f.role)
	if err != nil {
		return err
	}
	f.system.Regular = role == roleAll
	var host uplinkstate.HostData
	switch {
	case s.uplink != "":
		host, err = f.published(ctx, role, s.uplink)
	case s.iface != "":
		host, err = f.measured(ctx, s.iface)
	case s.mac != "" || s.pf >= 0:
		host, err = s.described()
	default:
		err = agent.Usagef("say what to inspect: the name of an Uplink, --interface, or --mac and --pf")
	}
	if err != nil {
		return err
	}
	report, err := locate.Inspect(ctx, f.system, host)
	if err != nil {
		return err
	}
	full := struct {
		Host chainHost `json:"host"`
		locate.Report
	}{hostOf(host), report}
	if err := agent.Print(w, output, full, func(w io.Writer) { printChain(w, full.Host, report) }); err != nil {
		return err
	}
	if report.Reason != "" || report.Unknown != "" {
		return errUnresolved
	}
	return nil
}

// published is the host half of the UplinkState of this node.
func (f *flags) published(ctx context.Context, role, uplink string) (uplinkstate.HostData, error) {
	node := f.NodeName
	if role == roleDPU {
		if node = f.hostNodeName; node == "" {
			var err error
			if node, err = locate.HostNode(ctx, f.system); err != nil {
				return uplinkstate.HostData{}, err
			}
		}
	}
	if node == "" {
		return uplinkstate.HostData{}, agent.Usagef("--node-name is required to inspect an Uplink by name")
	}
	config, err := kube.Config(f.Kubeconfig, component, agent.Version)
	if err != nil {
		return uplinkstate.HostData{}, &agent.UsageError{Err: err}
	}
	states, err := kube.UplinkStates(config)
	if err != nil {
		return uplinkstate.HostData{}, err
	}
	state, err := states.Get(ctx, uplinkstate.Name(uplink, node))
	if err != nil {
		return uplinkstate.HostData{}, fmt.Errorf("read the state of Uplink %s on node %s: %w", uplink, node, err)
	}
	half, ok := uplinkstate.HostHalfOf(state)
	switch {
	case !ok:
		return half.Data, fmt.Errorf("the host has published nothing of Uplink %s yet", uplink)
	case !half.Ready.Status:
		return half.Data, fmt.Errorf("the host's data of Uplink %s is not ready: %s: %s", uplink, half.Ready.Reason, half.Ready.Message)
	}
	return half.Data, nil
}

// measured reads an interface of this machine as the host role does.
func (f *flags) measured(ctx context.Context, iface string) (uplinkstate.HostData, error) {
	snapshot, err := kernel.Read(ctx, nil)
	if err != nil {
		return uplinkstate.HostData{}, err
	}
	data, problem := hostlink.Discover(snapshot, iface)
	if problem != nil {
		return data, problem
	}
	data.Function, err = hostlink.NewFunctionReader(f.system.SysfsRoot).Function(ctx, snapshot, iface)
	return data, err
}

// described is what the flags say of a host's interface.
func (s subject) described() (uplinkstate.HostData, error) {
	host := uplinkstate.HostData{Interface: "of the host"}
	if s.mac != "" {
		mac, err := net.ParseMAC(s.mac)
		if err != nil || !uplinkstate.UsableMAC(mac) {
			return host, agent.Usagef("--mac %q: must be a unicast MAC address of 6 bytes that is not zero", s.mac)
		}
		host.MAC = mac
	}
	if s.pf < 0 {
		if s.vf >= 0 || s.sf >= 0 || s.pfMAC != "" {
			return host, agent.Usagef("--vf, --sf and --pf-mac need --pf")
		}
		return host, nil
	}
	if s.vf >= 0 && s.sf >= 0 {
		return host, agent.Usagef("--vf and --sf exclude each other")
	}
	if s.pf > math.MaxUint16 || s.vf > math.MaxUint16 || s.sf > math.MaxUint32 {
		return host, agent.Usagef("--pf and --vf must be below 65536, --sf below 4294967296")
	}
	if mac, err := net.ParseMAC(s.pfMAC); s.pfMAC != "" && (err != nil || !uplinkstate.UsableMAC(mac)) {
		return host, agent.Usagef("--pf-mac %q: must be a unicast MAC address of 6 bytes that is not zero", s.pfMAC)
	}
	host.Function = &v1alpha1.HostFunction{PFID: int32(s.pf), PFMAC: s.pfMAC}
	if s.vf >= 0 {
		vf := int32(s.vf)
		host.Function.VFID = &vf
	}
	if s.sf >= 0 {
		host.Function.SFID = &s.sf
	}
	return host, nil
}
