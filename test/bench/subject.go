// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// buildAllInOne builds the agent that the others are compared with, the way the others are built.
func buildAllInOne(ctx context.Context, path string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "./test/bench/allinone")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the all-in-one agent: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// subject is a running agent.
type subject struct {
	*lab.Process
	node    *lab.Node
	address string // of its health endpoint, inside the node
	began   time.Time
}

// subjects are the three agents, each on a machine of its own.
type subjects struct{ host, dpu, allinone *subject }

func (s subjects) all() []*subject { return []*subject{s.host, s.dpu, s.allinone} }

// start starts the agents as their packages would, and waits until they are ready.
func (c *cluster) start(ctx context.Context, extra ...string) (s subjects, err error) {
	kubeconfig, err := c.NodeKubeconfig(lab.AdminUser)
	if err != nil {
		return s, err
	}
	host, card := c.pair.Host, c.pair.Card
	for _, a := range []struct {
		to      **subject
		node    *lab.Node
		address string
		argv    []string
	}{
		{&s.host, host, "127.0.0.1:9981", []string{filepath.Join(c.b.bin, "host-agent"),
			"--node-name", host.Name, "--sysfs-root", host.SysfsRoot()}},
		{&s.dpu, card, "127.0.0.1:9982", []string{filepath.Join(c.b.bin, "dpu-agent"),
			"--gateway=false", "--role", "dpu", "--ovs-db", card.OVS.DB(), "--devlink-ports", card.DevlinkFile(), "--sysfs-root", card.SysfsRoot()}},
		{&s.allinone, c.spare, "127.0.0.1:9983", []string{c.b.allinone}},
	} {
		argv := append(append(a.argv, "--kubeconfig", kubeconfig), extra...)
		p, err := a.node.Start(ctx, filepath.Base(a.argv[0]), argv, nil)
		if err != nil {
			return s, err
		}
		*a.to = &subject{Process: p, node: a.node, address: a.address, began: time.Now()}
	}
	for _, a := range s.all() {
		if err := a.ready(ctx); err != nil {
			return s, err
		}
	}
	return s, nil
}

// ready waits until the agent says that it is.
func (s *subject) ready(ctx context.Context) error {
	err := lab.Eventually(ctx, time.Minute, func(ctx context.Context) error {
		_, err := s.get(ctx, "/readyz")
		return err
	})
	if err != nil {
		return fmt.Errorf("%s does not become ready: %w; the end of its log:\n%s", s.Name, err, s.Log(2000))
	}
	return nil
}

// stop ends the agents; what they published stays.
func (s subjects) stop(ctx context.Context) error {
	var errs []error
	for _, a := range s.all() {
		errs = append(errs, a.Stop(ctx))
	}
	return errors.Join(errs...)
}

// get asks the agent's health endpoint, from inside its node and past the interface that is measured.
func (s *subject) get(ctx context.Context, path string) ([]byte, error) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			err = s.node.Do(func() error {
				conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
				return err
			})
			return conn, err
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", s.Name, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", s.Name, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask %s for %s: %s: %s", s.Name, path, response.Status, bytes.TrimSpace(body))
	}
	return body, nil
}

// counter reads a metric of the agent, summed over its labels.
func (s *subject) counter(ctx context.Context, metric string) (float64, error) {
	text, err := s.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	return sumMetric(text, metric)
}

// sumMetric sums a metric in the Prometheus text format. One that is not there is an error, so that a renamed one is
// not taken for one that stands still.
func sumMetric(text []byte, metric string) (sum float64, err error) {
	found := false
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), metric)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", metric, err)
		}
		sum, found = sum+value, true
	}
	if err := lines.Err(); err != nil {
		return 0, fmt.Errorf("read metrics: %w", err)
	}
	if !found {
		return 0, fmt.Errorf("there is no metric %s", metric)
	}
	return sum, nil
}

// traffic is what an interface received since it was made.
type traffic struct {
	Bytes   int64 `json:"bytes"`
	Packets int64 `json:"packets"`
}

// received reads the counters of a node's management interface.
func received(ctx context.Context, n *lab.Node) (traffic, error) {
	out, err := n.IP(ctx, "-s", "-j", "link", "show", "dev", lab.ManagementInterface)
	if err != nil {
		return traffic{}, err
	}
	return parseTraffic([]byte(out))
}

func parseTraffic(text []byte) (traffic, error) {
	var links []struct {
		Stats struct {
			RX traffic `json:"rx"`
		} `json:"stats64"`
	}
	if err := json.Unmarshal(text, &links); err != nil {
		return traffic{}, fmt.Errorf("read interface counters: %w", err)
	}
	if len(links) != 1 {
		return traffic{}, fmt.Errorf("read interface counters: %d interfaces instead of one", len(links))
	}
	return links[0].Stats.RX, nil
}
