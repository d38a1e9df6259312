// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// restarted is what a restart of the agent did.
type restarted struct {
	addition
	api int
	pings
	// calm are the pings of as long a time in which nothing happened: on a busy machine some are lost anyway.
	calm pings
}

// pings are what became of the echo requests of a pod and of the host.
type pings struct{ pod, host lab.PingResult }

func (p pings) lost() int { return p.pod.Lost() + p.host.Lost() }

func (p pings) String() string {
	return fmt.Sprintf("%d of %d, %d of %d", p.pod.Lost(), p.pod.Sent, p.host.Lost(), p.host.Sent)
}

// restart has the agent restarted while a pod and the host talk with the outside.
func (s *site) restart(ctx context.Context) ([]row, error) {
	if err := s.rest(ctx); err != nil {
		return nil, err
	}
	s.b.say("restarting the agent")
	api, err := s.apiWrites(ctx)
	if err != nil {
		return nil, err
	}
	var r restarted
	r.pings, err = s.ping(ctx, func() error {
		r.addition, err = s.measure(ctx, func() error {
			if err := s.agent.Stop(ctx); err != nil {
				return err
			}
			if err := s.startAgent(ctx); err != nil {
				return err
			}
			if err := s.covered(ctx, len(s.networks)); err != nil {
				return err
			}
			// What it might still do: its first passes are long over by then.
			return sleep(ctx, full(s.b, 10*time.Second, 5*time.Second))
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	after, err := s.apiWrites(ctx)
	if err != nil {
		return nil, err
	}
	r.api = after - api
	if r.calm, err = s.ping(ctx, func() error { return sleep(ctx, r.took) }); err != nil {
		return nil, err
	}
	services, _ := s.b.crowdOf()
	return r.rows(len(s.networks), services), nil
}

// ping has a pod ping the outside, and the host its gateway, while f runs.
func (s *site) ping(ctx context.Context, f func() error) (p pings, err error) {
	pod := s.Node(podOf(s.networks[0]))
	if pod == nil {
		return p, fmt.Errorf("there is no pod %s", podOf(s.networks[0]))
	}
	// The first packet to a neighbour that nobody knows any more is lost with or without the agent.
	if _, err := pod.Exec(ctx, "ping", "-c", "3", "-i", "0.2", "-W", "2", lab.InternetAddress.String()); err != nil {
		return p, err
	}
	fromPod, err := pod.PingSeries(lab.InternetAddress, time.Millisecond)
	if err != nil {
		return p, err
	}
	defer func() { _ = fromPod.Close() }()
	fromHost, err := s.node.PingSeries(s.node.Spec.Gateways[0], 10*time.Millisecond)
	if err != nil {
		return p, err
	}
	defer func() { _ = fromHost.Close() }()
	if err := f(); err != nil {
		return p, err
	}
	return pings{fromPod.Stop(ctx), fromHost.Stop(ctx)}, nil
}

// podOf is the name of the pod that costs made.
func podOf(n *lab.Network) string { return n.Spec.CUDN + "-a" }

func (r restarted) rows(networks, services int) []row {
	how := fmt.Sprintf("agent restarted, %d networks, %d services", networks, services)
	none := r.api == 0 && r.flows == 0 && r.nb.transactions == 0 && r.ovs.transactions == 0
	return []row{{
		Measure: "restart: writes", How: how,
		Figure: fmt.Sprintf("API %d, northbound %d, Open_vSwitch %d, flow mods %d", r.api, r.nb.transactions, r.ovs.transactions, r.flows),
		Target: "0", Verdict: judge(none),
		Values: map[string]float64{"api": float64(r.api), "northbound": float64(r.nb.transactions), "ovs": float64(r.ovs.transactions), "flows": float64(r.flows)},
	}, {
		Measure: "restart: pings lost", How: how + "; 1000 a second from a pod, 100 from the host",
		Figure: fmt.Sprintf("%s; without a restart %s", r.pings, r.calm),
		Target: "0, or as without", Verdict: judge(r.lost() <= r.calm.lost() && r.pod.Sent > 0 && r.host.Sent > 0),
		Values: map[string]float64{
			"pod": float64(r.pod.Lost()), "host": float64(r.host.Lost()), "podCalm": float64(r.calm.pod.Lost()), "hostCalm": float64(r.calm.host.Lost()),
		},
	}}
}

// apiWrites is how many requests the API server got that write something, whether that changed anything or not,
// without those for its own leases.
func (s *site) apiWrites(ctx context.Context) (int, error) {
	client, err := s.Client()
	if err != nil {
		return 0, err
	}
	text, err := client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("metrics of the API server: %w", err)
	}
	return sumWrites(string(text))
}

func sumWrites(metrics string) (n int, err error) {
	for line := range strings.Lines(metrics) {
		rest, ok := strings.CutPrefix(line, "apiserver_request_total{")
		if !ok || strings.Contains(rest, `resource="leases"`) {
			continue
		}
		for _, verb := range []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"} {
			if !strings.Contains(rest, `verb="`+verb+`"`) {
				continue
			}
			value, err := strconv.ParseFloat(trim(rest[strings.LastIndexByte(rest, ' ')+1:]), 64)
			if err != nil {
				return 0, fmt.Errorf("metrics of the API server: %w", err)
			}
			n += int(value)
		}
	}
	// The lab's own are among them.
	if n == 0 {
		return 0, fmt.Errorf("the API server has no metric of its requests")
	}
	return n, nil
}

// more adds Uplinks, each with a bridge of its own and without a network, and weighs the agent after another start.
func (s *site) more(ctx context.Context) (resident, error) {
	if err := s.agent.Stop(ctx); err != nil {
		return resident{}, err
	}
	names := numbered("br", full(s.b, manyUplinks, 5)-1)
	s.b.say("adding %d Uplinks", len(names))
	for i, name := range names {
		port, end := fmt.Sprintf("w%d", i), fmt.Sprintf("e%d", i)
		for _, args := range [][]string{
			{"link", "add", port, "type", "veth", "peer", "name", end}, {"link", "set", port, "up"}, {"link", "set", end, "up"},
		} {
			if _, err := s.node.IP(ctx, args...); err != nil {
				return resident{}, err
			}
		}
		if _, err := s.node.OVS.Vsctl(ctx, "add-br", name, "--", "set", "Bridge", name, "datapath_type=netdev", "--", "add-port", name, port); err != nil {
			return resident{}, err
		}
		for _, args := range [][]string{{"addr", "add", fmt.Sprintf("172.31.%d.2/24", i), "dev", name}, {"link", "set", name, "up"}} {
			if _, err := s.node.IP(ctx, args...); err != nil {
				return resident{}, err
			}
		}
		if err := s.createUplink(ctx, name, v1alpha1.InterfaceName(name), nil); err != nil {
			return resident{}, err
		}
	}
	if err := s.startAgent(ctx); err != nil {
		return resident{}, err
	}
	if err := s.waitResolved(ctx, names...); err != nil {
		return resident{}, err
	}
	return s.weigh(ctx, s.b.busyAge())
}

// weigh reads the agent's memory when it is old enough.
func (s *site) weigh(ctx context.Context, age time.Duration) (resident, error) {
	s.b.say("memory of the gateway's agent; waiting until it is %s old", age)
	if err := sleep(ctx, time.Until(s.agent.began.Add(age))); err != nil {
		return resident{}, err
	}
	return residentOf(s.agent.Pid)
}

// idleAge and busyAge are enough to give back what only the start took: the more that was, the longer it takes.
func (b *bench) idleAge() time.Duration { return full(b, 20*time.Second, 5*time.Second) }

func (b *bench) busyAge() time.Duration { return full(b, 40*time.Second, 5*time.Second) }

func weightRow(idle, busy resident, s *site) row {
	services, _ := s.b.crowdOf()
	r := row{
		Measure: "dpu-agent with gateways, RSS", Figure: fmt.Sprintf("%s / %s", idle, busy), Verdict: noTarget,
		How: fmt.Sprintf("1 Uplink, after %.0f s / %d Uplinks, %d networks, %d services, after %.0f s; both roles",
			s.b.idleAge().Seconds(), full(s.b, manyUplinks, 5), len(s.networks), services, s.b.busyAge().Seconds()),
		Values: map[string]float64{"idle": float64(idle.all), "busy": float64(busy.all), "idleOwn": float64(idle.own), "busyOwn": float64(busy.own)},
	}
	if info, err := os.Stat(filepath.Join(s.b.bin, "dpu-agent")); err == nil {
		r.Figure += fmt.Sprintf("; binary %.1f MB", float64(info.Size())/1e6)
		r.Values["binary"] = float64(info.Size())
	}
	return r
}
