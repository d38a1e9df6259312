// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	uplinkclient "github.com/ovn-uplink/ovn-uplink/shared/api/client"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	crds = "deploy/host/chart/crds"
	// worker is the node whose agents are measured: a host with a DPU in it.
	worker = "worker-a"
	// requestTimeout bounds each request of the bench's own.
	requestTimeout = 30 * time.Second
)

// cluster is a lab with the CRDs. Those of withCluster have one host with its card, and a node on which the all-in-one
// agent runs.
type cluster struct {
	*lab.Lab
	b       *bench
	pair    *lab.Pair
	spare   *lab.Node
	uplinks uplinkclient.Interface
	// iface is the interface of the worker that Uplinks name.
	iface v1alpha1.InterfaceName
}

// withCluster makes a cluster, calls f and takes it down again.
func (b *bench) withCluster(ctx context.Context, f func(*cluster) ([]row, error)) ([]row, error) {
	return b.withClusterIn(ctx, b.dir, f)
}

// withClusterIn is withCluster for several at once, each in a directory of its own.
func (b *bench) withClusterIn(ctx context.Context, dir string, f func(*cluster) ([]row, error)) ([]row, error) {
	return b.withAPI(ctx, dir, func(c *cluster) ([]row, error) {
		if err := c.build(ctx); err != nil {
			return nil, fmt.Errorf("make the cluster: %w", err)
		}
		return f(c)
	})
}

// withAPI makes a cluster without nodes in a directory, calls f and takes it down again.
func (b *bench) withAPI(ctx context.Context, dir string, f func(*cluster) ([]row, error)) (rows []row, err error) {
	l, err := lab.New(ctx, lab.Options{Dir: dir, Log: b.say})
	if err != nil {
		return nil, err
	}
	defer func() {
		// Also when the run was interrupted.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		err = errors.Join(err, l.Close(ctx))
	}()
	c := &cluster{Lab: l, b: b}
	if err := c.ApplyFile(ctx, crds); err != nil {
		return nil, err
	}
	config := c.RESTConfig()
	config.Timeout = requestTimeout
	if c.uplinks, err = uplinkclient.NewForConfig(config); err != nil {
		return nil, err
	}
	return f(c)
}

func (c *cluster) build(ctx context.Context) (err error) {
	if c.pair, err = c.Pair(ctx, worker, lab.PairSpec{}); err != nil {
		return err
	}
	c.iface = v1alpha1.InterfaceName(c.pair.Spec.Interface)
	// What OVN-Kubernetes sets: which bridge is the cluster's own.
	if _, err := c.pair.Card.OVS.Vsctl(ctx, "set", "Open_vSwitch", ".", "external_ids:ovn-bridge-mappings=physnet:br-ex"); err != nil {
		return err
	}
	if c.spare, err = c.AddNode(ctx, "spare"); err != nil {
		return err
	}
	return c.CreateNode(ctx, worker, nil)
}

// addUplink creates an Uplink of the worker's interface; no labels select every node.
func (c *cluster) addUplink(ctx context.Context, name string, labels map[string]string) error {
	return c.createUplink(ctx, name, c.iface, labels)
}

func (c *cluster) createUplink(ctx context.Context, name string, iface v1alpha1.InterfaceName, labels map[string]string) error {
	_, err := c.uplinks.K8sV1alpha1().Uplinks().Create(ctx, &v1alpha1.Uplink{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.UplinkSpec{NodeConfigs: []v1alpha1.UplinkNodeConfig{{
			Type:              v1alpha1.OVSBridge,
			NodeSelector:      metav1.LabelSelector{MatchLabels: labels},
			HostInterfaceName: iface,
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create Uplink %s: %w", name, err)
	}
	return nil
}

// waitResolved waits until the card has answered for all Uplinks of the names.
func (c *cluster) waitResolved(ctx context.Context, uplinks ...string) error {
	return lab.Eventually(ctx, time.Minute, func(ctx context.Context) error {
		for _, uplink := range uplinks {
			state, err := c.uplinks.K8sV1alpha1().UplinkStates().Get(ctx, uplinkstate.Name(uplink, worker), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(state.Status.Conditions, uplinkstate.Resolved) {
				return fmt.Errorf("%s is not resolved: %+v", state.Name, state.Status.Conditions)
			}
		}
		return nil
	})
}

// parallel calls f with 0 to n-1, several at a time, and stops after the first error.
func parallel(ctx context.Context, n int, f func(context.Context, int) error) error {
	const workers = 8
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	work := make(chan int)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for i := range work {
				if err := f(ctx, i); err != nil {
					fail(err)
				}
			}
		})
	}
	for i := range n {
		select {
		case work <- i:
		case <-ctx.Done():
		}
	}
	close(work)
	running.Wait()
	return context.Cause(ctx)
}

// sleep waits, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// numbered makes the names of n things.
func numbered(kind string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%04d", kind, i)
	}
	return all
}
