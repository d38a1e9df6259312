// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-uplink/ovn-uplink/shared/api/v1alpha1"
	"github.com/ovn-uplink/ovn-uplink/shared/uplinkstate"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ownCookies selects the flows that dpu-agent made.
const ownCookies = "cookie=0x75706c6b00000000/0xffffffff00000000"

// version is one of the versions of OVN, for a test that runs on one.
func version(t *testing.T, name string) lab.Version {
	t.Helper()
	versions := lab.OVNVersions(t)
	return versions[slices.IndexFunc(versions, func(v lab.Version) bool { return v.Name == name })]
}

// footprint is all that others see of the gateways on a node, and all that is others': what is in the two lists
// of flows, the northbound database without what only counts or times, external_ids of Open vSwitch, and the ports of
// bridges that floods are kept from.
type footprint struct {
	Foreign     []string // flows of others on bridges other than OVN's
	Own         []string // flows of dpu-agent on any bridge, with their bridge
	NB          string
	ExternalIDs string
	Quiet       []string
}

// footprint looks.
func (s *site) footprint(ctx context.Context) (f footprint, err error) {
	out, err := s.ovs.OVS.Vsctl(ctx, "list-br")
	if err != nil {
		return f, err
	}
	for _, bridge := range strings.Fields(out) {
		own, err := s.flows(ctx, bridge, ownCookies)
		if err != nil {
			return f, err
		}
		for _, flow := range own {
			f.Own = append(f.Own, bridge+" "+flow)
		}
		ports, err := s.ovs.Exec(ctx, "ovs-ofctl", "-OOpenFlow10", "dump-ports-desc", bridge)
		if err != nil {
			return f, err
		}
		for _, line := range strings.Split(ports, "\n") {
			if strings.Contains(line, "NO_FLOOD") {
				f.Quiet = append(f.Quiet, bridge+" "+strings.TrimSpace(line))
			}
		}
		if bridge == "br-int" {
			continue
		}
		all, err := s.flows(ctx, bridge)
		if err != nil {
			return f, err
		}
		for _, flow := range all {
			if !slices.Contains(own, flow) {
				f.Foreign = append(f.Foreign, bridge+" "+flow)
			}
		}
	}
	if f.NB, err = s.nbDump(ctx); err != nil {
		return f, err
	}
	f.ExternalIDs, err = s.ovs.OVS.Vsctl(ctx, "get", "Open_vSwitch", ".", "external_ids")
	return f, err
}

// flows are those of a bridge, without what changes with every packet, sorted.
func (s *site) flows(ctx context.Context, bridge string, filter ...string) ([]string, error) {
	out, err := s.ovs.OVS.Ofctl(ctx, append([]string{"--no-stats", "--no-names", "dump-flows", bridge}, filter...)...)
	if err != nil {
		return nil, err
	}
	var flows []string
	for _, line := range strings.Split(out, "\n") {
		if line = strings.TrimSpace(line); strings.Contains(line, "actions=") {
			flows = append(flows, line)
		}
	}
	slices.Sort(flows)
	return flows, nil
}

// nbDump is the northbound database, UUIDs included, with its rows sorted. NB_Global counts what was waited for.
func (s *site) nbDump(ctx context.Context) (string, error) {
	out, err := s.ovs.Exec(ctx, "ovsdb-client", "--format=csv", "dump", s.zone.NB(), "OVN_Northbound")
	if err != nil {
		return "", err
	}
	var kept []string
	for _, table := range strings.Split(out, "\n\n") {
		rows := strings.Split(strings.TrimSpace(table), "\n")
		if strings.HasPrefix(rows[0], "NB_Global") {
			continue
		}
		slices.Sort(rows[min(2, len(rows)):])
		kept = append(kept, rows...)
	}
	return strings.Join(kept, "\n"), nil
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// othersRows are the rows of a dump that are not dpu-agent's, without the references to those that are.
func othersRows(dump string) string {
	var kept []string
	own := map[string]bool{}
	for _, row := range strings.Split(dump, "\n") {
		if strings.Contains(row, "ovn-uplink/owner") {
			own[uuids.FindString(row)] = true
			continue
		}
		kept = append(kept, row)
	}
	text := uuids.ReplaceAllStringFunc(strings.Join(kept, "\n"), func(uuid string) string {
		if own[uuid] {
			return ""
		}
		return uuid
	})
	// What is left of a set of references; one of one element has no brackets.
	text = regexp.MustCompile(`(, )+`).ReplaceAllString(text, ", ")
	return strings.NewReplacer("[, ", "[", ", ]", "]").Replace(strings.NewReplacer("[, ", "", "[", "", ", ]", "", "]", "", `"`, "").Replace(text))
}

// others is what must stay the same whatever dpu-agent does.
func (f footprint) others() footprint {
	var ids []string
	for _, pair := range strings.Split(strings.Trim(strings.TrimSpace(f.ExternalIDs), "{}"), ", ") {
		if !strings.HasPrefix(pair, "ovn-uplink-mappings=") {
			ids = append(ids, pair)
		}
	}
	text := regexp.MustCompile(`,uplink-[^,:"]*:[^,:"]*`).ReplaceAllString(strings.Join(ids, ", "), "")
	return footprint{Foreign: f.Foreign, NB: othersRows(f.NB), ExternalIDs: text}
}

// look is footprint that ends the test when it fails.
func (s *site) look() footprint {
	s.t.Helper()
	f, err := s.footprint(s.t.Context())
	s.must(err)
	return f
}

// untouched asserts that what others have is what it was.
func (s *site) untouched(before footprint, after string) {
	s.t.Helper()
	if diff := cmp.Diff(before.others(), s.look().others()); diff != "" {
		s.t.Errorf("after %s, what is others' has changed (-before +now):\n%s", after, diff)
	}
}

// gone waits until nothing of dpu-agent's is left, and everything is as it was before.
func (s *site) gone(before footprint) {
	s.t.Helper()
	s.must(lab.Eventually(s.t.Context(), programmed, func(ctx context.Context) error {
		now, err := s.footprint(ctx)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(before, now); diff != "" {
			return fmt.Errorf("left behind (-before +now):\n%s", diff)
		}
		return nil
	}))
}

// foreigners puts things of others on the bridge: flows that look like an administrator's, one of which has the lower
// half of dpu-agent's cookies, and external_ids.
func (s *site) foreigners() {
	s.t.Helper()
	for _, flow := range []string{
		"cookie=0xabc,priority=5,tcp,tp_dst=7777,actions=NORMAL",
		"cookie=0xfac8,priority=32000,udp,tp_dst=7778,actions=drop",
		"cookie=0x75706c6a0000fac8,table=40,priority=9,arp,actions=drop",
	} {
		_, err := s.ovs.OVS.Ofctl(s.t.Context(), "add-flow", s.bridge, flow)
		s.must(err)
	}
	s.vsctl(s.ovs, "set", "Open_vSwitch", ".", "external_ids:somebody=\"else's, value\"",
		"external_ids:ovn-bridge-mappings=\"physnet:br-ex,other:br-other\"")
}

// broken waits until the gateway is not ready for the reason, with all words in the condition's message.
func (c *cluster) broken(uplink, node, reason string, words ...string) *v1alpha1.UplinkState {
	c.t.Helper()
	return c.within(programmed, uplink, node, func(s *v1alpha1.UplinkState) error {
		if err := gatewayFails(reason)(s); err != nil {
			return err
		}
		message := meta.FindStatusCondition(s.Status.Conditions, uplinkstate.GatewayReady).Message
		for _, word := range words {
			if !strings.Contains(message, word) {
				return fmt.Errorf("the message does not say %q: %s", word, message)
			}
		}
		c.t.Logf("%s: %s", reason, message)
		return nil
	})
}

// phase checks what is published about one network.
func phase(network string, want v1alpha1.NetworkPhase, words ...string) func(*v1alpha1.UplinkState) error {
	return func(s *v1alpha1.UplinkState) error {
		i := slices.IndexFunc(s.Status.Networks, func(n v1alpha1.NetworkStatus) bool { return n.Name == network })
		if i < 0 {
			return fmt.Errorf("network %s is not covered", network)
		}
		n := s.Status.Networks[i]
		if n.Phase != want {
			return fmt.Errorf("network %s is %s (%s), want %s", network, n.Phase, n.Message, want)
		}
		for _, word := range words {
			if !strings.Contains(n.Message, word) {
				return fmt.Errorf("the message of %s does not say %q: %s", network, word, n.Message)
			}
		}
		return nil
	}
}

// lossless runs f while a machine pings an address a hundred times a second, and asserts that no answer is missing.
func (c *cluster) lossless(from *lab.Node, what string, f func()) {
	c.t.Helper()
	if result := c.losing(from, f); result.Lost() != 0 {
		c.t.Errorf("%s: %s", what, result)
	}
}

// losing runs f while a machine pings an address a hundred times a second.
func (c *cluster) losing(from *lab.Node, f func()) lab.PingResult {
	c.t.Helper()
	series, err := from.PingSeries(lab.InternetAddress, 10*time.Millisecond)
	c.must(err)
	f()
	return series.Stop(c.t.Context())
}

// pod makes a pod that reaches the outside.
func (s *site) pod(n *lab.Network, name string) *lab.Pod {
	s.t.Helper()
	pod, err := n.Pod(s.t.Context(), s.zone, name)
	s.must(err)
	s.pings(pod.Node, lab.InternetAddress)
	return pod
}

// dropUplink deletes an Uplink.
func (c *cluster) dropUplink(name string) {
	c.t.Helper()
	c.must(c.client.K8sV1alpha1().Uplinks().Delete(c.t.Context(), name, metav1.DeleteOptions{}))
}

// noFlows checks that there are no flows of dpu-agent.
func (s *site) noFlows(ctx context.Context) error {
	f, err := s.footprint(ctx)
	if err == nil && len(f.Own) > 0 {
		err = fmt.Errorf("flows are left: %q", f.Own)
	}
	return err
}
