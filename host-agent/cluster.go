// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/host-agent/cluster"
	"github.com/ovn-uplink/ovn-uplink/shared/agent"
	"github.com/ovn-uplink/ovn-uplink/shared/kube"
	"github.com/ovn-uplink/ovn-uplink/shared/lease"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
)

// podNamespaceFile is where a pod finds the name of its namespace.
const podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// clusterFlags are the flags of the cluster role alone.
type clusterFlags struct {
	elect                     bool
	leaseNamespace, leaseName string
	gatewayMode               string
	dynamic                   bool
	grace                     time.Duration
}

func clusterCommand() *cobra.Command {
	options := agent.Options{Component: component + "-cluster", HealthAddress: "127.0.0.1:9983"}
	var flags clusterFlags
	command := &cobra.Command{
		Use:   "cluster",
		Short: "Look after Uplinks and networks for the whole cluster",
		Long: `Does what no node can do alone: sets Ready on every Uplink and UplinksReady on every
ClusterUserDefinedNetwork, keeps an Uplink while a network names it, and deletes the UplinkStates of
Uplinks and Nodes that are gone. Runs as a Deployment; several replicas elect one by a Lease, the
others stand by.`,
		Example: `  # in a pod; the Lease is in the pod's namespace
  host-agent cluster

  # one instance, by hand, in a cluster with Dynamic UDN
  host-agent cluster --kubeconfig ~/.kube/config --leader-elect=false --dynamic-udn`,
		Args: agent.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := options.Validate(); err != nil {
				return err
			}
			config, err := flags.config(options)
			if err != nil {
				return err
			}
			rest, err := kube.Config(options.Kubeconfig, options.Component, agent.Version)
			if err != nil {
				return &agent.UsageError{Err: err}
			}
			role, err := cluster.New(rest, config)
			if err != nil {
				return err
			}
			return agent.Run(cmd.Context(), options, role)
		},
	}
	options.AddFlags(command.Flags())
	command.Flags().Lookup("settle").Usage = "least time between two writes to an object of which only the message changes"
	flags.add(command)
	return command
}

func (f *clusterFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&f.elect, "leader-elect", true, "elect one of several replicas by a Lease")
	flags.StringVar(&f.leaseNamespace, "leader-elect-lease-namespace", podNamespace(), "`namespace` of the Lease; default: the pod's")
	flags.StringVar(&f.leaseName, "leader-elect-lease-name", "ovn-uplink-cluster", "`name` of the Lease")
	flags.StringVar(&f.gatewayMode, "gateway-mode", "shared", "gateway mode of OVN-Kubernetes in this cluster: shared or local")
	flags.BoolVar(&f.dynamic, "dynamic-udn", false, "a network is active only on nodes with a pod of its namespaces (Dynamic UDN), not on all")
	flags.DurationVar(&f.grace, "deselected-state-grace", 2*uplinkstate.LeaveAnswerTimeout,
		"how long the UplinkState of a deselected node is left to the node's own agents before it is deleted")
}

// config makes the role's Config; an error is a mistake in the call.
func (f *clusterFlags) config(o agent.Options) (cluster.Config, error) {
	host, err := os.Hostname()
	if err != nil {
		return cluster.Config{}, fmt.Errorf("read the host's name: %w", err)
	}
	instance := cmp.Or(os.Getenv("POD_NAME"), host)
	config := cluster.Config{
		Component:     o.Component,
		Instance:      instance,
		SharedGateway: f.gatewayMode == "shared",
		Dynamic:       f.dynamic,
		Settle:        o.Settle,
		Resync:        o.Resync,
		Grace:         f.grace,
	}
	if f.gatewayMode != "shared" && f.gatewayMode != "local" {
		return config, agent.Usagef("--gateway-mode %q: must be shared or local", f.gatewayMode)
	}
	if f.grace < time.Second {
		return config, agent.Usagef("--deselected-state-grace %s: must be at least 1s", f.grace)
	}
	if !f.elect {
		return config, nil
	}
	if f.leaseNamespace == "" {
		return config, agent.Usagef("--leader-elect-lease-namespace is required outside a pod; or give --leader-elect=false for a single instance")
	}
	if problems := validation.IsDNS1123Label(f.leaseNamespace); len(problems) > 0 {
		return config, agent.Usagef("--leader-elect-lease-namespace %q: %s", f.leaseNamespace, strings.Join(problems, "; "))
	}
	if problems := validation.IsDNS1123Subdomain(f.leaseName); len(problems) > 0 {
		return config, agent.Usagef("--leader-elect-lease-name %q: %s", f.leaseName, strings.Join(problems, "; "))
	}
	config.Lease = &lease.Config{
		Namespace: f.leaseNamespace,
		Name:      f.leaseName,
		// A container that was restarted is not the one that held the Lease.
		Identity: instance + "_" + rand.String(8),
	}
	return config, nil
}

func podNamespace() string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	raw, err := os.ReadFile(podNamespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
