// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	ovnkCRDs = "deploy/host/ovn-kubernetes-crds"
	// wire is the Uplink that the networks of a site share.
	wire = "wire"
	// converged is how long a step may take: OVN computes its flows anew, for a hundred networks at worst.
	converged = 3 * time.Minute
)

// site is a regular node with OVN on a cluster, and the agent for both roles.
type site struct {
	*cluster
	node  *lab.Regular
	zone  *lab.Zone
	agent *subject
	// nb and ovs count what the agent writes, flows what happens to the flows of the Uplink's bridge.
	nb, ovs  *tap
	flows    *flowLog
	networks []*lab.Network
}

// withSite makes a site with one Uplink, and an agent on it, calls f and takes all down again.
func (b *bench) withSite(ctx context.Context, f func(context.Context, *site) ([]row, error)) ([]row, error) {
	return b.withAPI(ctx, b.dir, func(c *cluster) (rows []row, err error) {
		s := &site{cluster: c}
		defer func() { err = errors.Join(err, s.close()) }()
		if err := s.build(ctx); err != nil {
			return nil, fmt.Errorf("make the node: %w", err)
		}
		return f(ctx, s)
	})
}

func (s *site) build(ctx context.Context) (err error) {
	if err := s.ApplyFile(ctx, ovnkCRDs); err != nil {
		return err
	}
	if s.node, err = s.RegularNode(ctx, worker, lab.RegularSpec{}); err != nil {
		return err
	}
	s.iface = v1alpha1.InterfaceName(s.node.Spec.Bridge)
	if err := s.CreateNode(ctx, worker, nil); err != nil {
		return err
	}
	if s.zone, err = s.node.StartOVN(ctx, lab.OVNSpec{}); err != nil {
		return err
	}
	if s.nb, err = newTap(filepath.Join(s.node.Dir(), "nb.tap"), s.zone.NB()); err != nil {
		return err
	}
	if s.ovs, err = newTap(filepath.Join(s.node.Dir(), "ovs.tap"), s.node.OVS.DB()); err != nil {
		return err
	}
	if s.flows, err = watchFlows(ctx, s.node.Node, s.node.Spec.Bridge); err != nil {
		return err
	}
	if err := s.addUplink(ctx, wire, nil); err != nil {
		return err
	}
	return s.startAgent(ctx)
}

func (s *site) close() error {
	var errs []error
	for _, t := range []*tap{s.nb, s.ovs} {
		if t != nil {
			errs = append(errs, t.Close())
		}
	}
	return errors.Join(errs...)
}

// startAgent starts the agent as it is shipped, and waits until it is ready.
func (s *site) startAgent(ctx context.Context) error {
	kubeconfig, err := s.NodeKubeconfig(lab.AdminUser)
	if err != nil {
		return err
	}
	argv := []string{filepath.Join(s.b.bin, "dpu-agent"), "--role", "all", "--node-name", worker, "--kubeconfig", kubeconfig,
		"--ovs-db", s.ovs.endpoint, "--ovn-nb-db", s.nb.endpoint, "--ovs-run-dir", s.node.OVS.RunDir(),
		"--state-dir", filepath.Join(s.node.Dir(), "state")}
	p, err := s.node.Start(ctx, "dpu-agent", argv, nil)
	if err != nil {
		return err
	}
	s.agent = &subject{Process: p, node: s.node.Node, address: "127.0.0.1:9982", began: time.Now()}
	return s.agent.ready(ctx)
}

// prepareNetwork writes what the CNI has of the next network, without the object that gives it an Uplink.
func (s *site) prepareNetwork(ctx context.Context) error {
	spec := lab.NetworkSpec{CUDN: fmt.Sprintf("net-%03d", len(s.networks)+1)}
	n, err := s.Network(ctx, spec, s.zone)
	if err != nil {
		return err
	}
	s.networks = append(s.networks, n)
	return nil
}

// covered waits until the gateway is ready and has exactly this many networks.
func (s *site) covered(ctx context.Context, networks int) error {
	return lab.Eventually(ctx, converged, func(ctx context.Context) error {
		state, err := s.uplinks.K8sV1alpha1().UplinkStates().Get(ctx, uplinkstate.Name(wire, worker), metav1.GetOptions{})
		if err != nil {
			return err
		}
		return covers(state, networks)
	})
}

func covers(state *v1alpha1.UplinkState, networks int) error {
	if n := len(state.Status.Networks); n != networks {
		return fmt.Errorf("%s has %d networks instead of %d", state.Name, n, networks)
	}
	for _, n := range state.Status.Networks {
		if n.Phase != v1alpha1.NetworkReady {
			return fmt.Errorf("network %s is %s: %s", n.Name, n.Phase, n.Message)
		}
	}
	i := slices.IndexFunc(state.Status.Conditions, func(c metav1.Condition) bool { return c.Type == uplinkstate.GatewayReady })
	if i < 0 || state.Status.Conditions[i].Status != metav1.ConditionTrue {
		return fmt.Errorf("%s is not ready: %+v", state.Name, state.Status.Conditions)
	}
	return nil
}

// ofport is the OpenFlow port of an interface.
func (s *site) ofport(ctx context.Context, name string) (int, error) {
	out, err := s.node.OVS.Vsctl(ctx, "get", "Interface", name, "ofport")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(trim(out))
}
