// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
)

// portsOfNode is how many services may have a node port: the API server has 2768 of them.
const portsOfNode = 2500

// crowdOf says how many services there are, and in how many networks.
func (b *bench) crowdOf() (services, networks int) {
	return full(b, 5000, 200), full(b, 50, 5)
}

// fill makes the services while the agent is down, has it program them all, and measures one more.
func (s *site) fill(ctx context.Context) (row, error) {
	services, networks := s.b.crowdOf()
	client, err := s.quietClient()
	if err != nil {
		return row{}, err
	}
	if err := s.agent.Stop(ctx); err != nil {
		return row{}, err
	}
	s.b.say("creating %d services in %d networks", services, networks)
	err = parallel(ctx, services, func(ctx context.Context, i int) error {
		return createService(ctx, client, i, s.networks[i%networks])
	})
	if err != nil {
		return row{}, err
	}
	flows, err := s.flows.changes()
	if err != nil {
		return row{}, err
	}
	before := s.nb.sum()
	if err := s.startAgent(ctx); err != nil {
		return row{}, err
	}
	s.b.say("having them programmed")
	err = lab.Eventually(ctx, converged, func(context.Context) error {
		now, err := s.flows.changes()
		if err == nil && (now-flows < services || s.nb.sum().minus(before).inserts < services) {
			err = fmt.Errorf("%d flows, northbound %+v of %d services", now-flows, s.nb.sum().minus(before), services)
		}
		return err
	})
	if err != nil {
		return row{}, err
	}
	if err := s.rest(ctx); err != nil {
		return row{}, err
	}
	s.b.say("adding one more")
	a, err := s.measure(ctx, func() error {
		inserts := s.nb.sum().inserts
		if err := createService(ctx, client, services, s.networks[services%networks]); err != nil {
			return err
		}
		return lab.Eventually(ctx, converged, func(context.Context) error {
			if s.nb.sum().inserts == inserts {
				return fmt.Errorf("service %d has no load balancer", services)
			}
			return nil
		})
	})
	if err != nil {
		return row{}, err
	}
	ok := a.flows > 0 && a.flows <= maxFlowsPerPort && a.nb.inserts > 0 && a.nb.inserts <= maxRowsPerPort && a.nb.transactions == 1 && a.ovs == written{}
	return row{
		Measure: "add a service: whole agent",
		How:     fmt.Sprintf("one with an external address beside %d, %d networks; from the API request on", services, len(s.networks)),
		Figure: fmt.Sprintf("%d flow mods, NB %d + %d rows, OVS %d transactions, %s",
			a.flows, a.nb.inserts, a.nb.changes, a.ovs.transactions, millis(a.took)),
		Target: fmt.Sprintf("≤ %d flow mods, ≤ %d rows, 0 OVS", maxFlowsPerPort, maxRowsPerPort), Verdict: judge(ok),
		Values: map[string]float64{
			"flows": float64(a.flows), "inserts": float64(a.nb.inserts), "changes": float64(a.nb.changes), "seconds": a.took.Seconds(),
		},
	}, nil
}

// quietClient is for many objects. It passes over the API server's opinion of external addresses.
func (s *site) quietClient() (kubernetes.Interface, error) {
	config := s.RESTConfig()
	config.ContentType = runtime.ContentTypeProtobuf
	config.WarningHandler = clientrest.NoWarnings{}
	return kubernetes.NewForConfig(config)
}

// rest waits until OVN is through with everything and the agent writes nothing any more.
func (s *site) rest(ctx context.Context) error {
	if err := s.covered(ctx, len(s.networks)); err != nil {
		return err
	}
	if err := s.zone.Sync(ctx); err != nil {
		return err
	}
	const still = 3 * time.Second
	type state struct {
		flows   int
		nb, ovs written
	}
	var last state
	since := time.Now()
	return lab.Eventually(ctx, converged, func(context.Context) error {
		flows, err := s.flows.changes()
		if err != nil {
			return err
		}
		if now := (state{flows, s.nb.sum(), s.ovs.sum()}); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < still {
			return fmt.Errorf("the agent still writes: %+v", last)
		}
		return nil
	})
}

// createService makes the i-th service of a network, with one endpoint. The first have node ports, the others an
// address of their own. The endpoints come first, so that it takes one look to program the service.
func createService(ctx context.Context, client kubernetes.Interface, i int, n *lab.Network) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	name := fmt.Sprintf("service-%04d", i)
	spec := corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Name: "web", Protocol: corev1.ProtocolTCP, Port: 80}}}
	if i >= portsOfNode {
		spec.Type = corev1.ServiceTypeClusterIP
		spec.ExternalIPs = []string{externalAddress(i).String()}
	}
	port, protocol, ready, node := int32(8080), corev1.ProtocolTCP, true, worker
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: name + "-1", Namespace: n.Spec.Namespace,
			Labels:      map[string]string{"k8s.ovn.org/service-name": name},
			Annotations: map[string]string{"k8s.ovn.org/endpointslice-network": n.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{fmt.Sprintf("10.200.1.%d", 100+i%100)}, NodeName: &node, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		}},
		Ports: []discoveryv1.EndpointPort{{Name: &spec.Ports[0].Name, Protocol: &protocol, Port: &port}},
	}
	if _, err := client.DiscoveryV1().EndpointSlices(n.Spec.Namespace).Create(ctx, slice, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create endpoints of service %s: %w", name, err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: n.Spec.Namespace}, Spec: spec}
	if _, err := client.CoreV1().Services(n.Spec.Namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create service %s: %w", name, err)
	}
	return nil
}

// externalAddress is the i-th of the services' own addresses.
func externalAddress(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{172, 30, byte(i / 250), byte(1 + i%250)})
}
