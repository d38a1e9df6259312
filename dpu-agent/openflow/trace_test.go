// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// traced is what ofproto/trace says about a packet.
type traced struct {
	rows    []string // of this package, "table/priority"
	outputs []string // up0, br0 and pn, sorted
	recirc  int
	actions string // the datapath's
}

var (
	tracedRow  = regexp.MustCompile(`(?m)^ *(\d+)\. .*priority (\d+)(?:, cookie .*)?$`)
	dpPort     = regexp.MustCompile(`(?m)^ *port (\d+): (\S+)`)
	dpActions  = regexp.MustCompile(`(?m)^Datapath actions: (.*)$`)
	tracedArgs = regexp.MustCompile(`\([^()]*\)`)
)

// trace has Open vSwitch say what it does with a packet. A packet that went through conntrack is new.
func trace(t *testing.T, r *rig, flow string) traced {
	t.Helper()
	out, err := r.node.OVS.Appctl(t.Context(), "ofproto/trace", "br0", flow)
	do(t, err)
	shown, err := r.node.OVS.Appctl(t.Context(), "dpctl/show")
	do(t, err)
	names := map[string]string{}
	for _, m := range dpPort.FindAllStringSubmatch(shown, -1) {
		names[m[1]] = m[2]
	}
	res := traced{recirc: strings.Count(out, "\nrecirc(0x")}
	for _, m := range tracedRow.FindAllStringSubmatch(out, -1) {
		if p, _ := strconv.Atoi(m[2]); p >= base && p < base+100 {
			res.rows = append(res.rows, m[1]+"/"+strconv.Itoa(p-base))
		}
	}
	for _, m := range dpActions.FindAllStringSubmatch(out, -1) {
		res.actions += m[1] + ";"
		text := m[1]
		for tracedArgs.MatchString(text) { // arguments may have arguments
			text = tracedArgs.ReplaceAllString(text, "")
		}
		for _, action := range strings.Split(text, ",") {
			if name := names[action]; name == "up0" || name == "br0" {
				res.outputs = append(res.outputs, name)
			}
		}
	}
	if strings.Contains(out, `bridge("brn")`) {
		res.outputs = append(res.outputs, "pn")
	}
	slices.Sort(res.outputs)
	res.outputs = slices.Compact(res.outputs)
	return res
}

// TestRows sends a packet for every row through the real tables: which rows it takes, where it ends, and how often
// it recirculates, that is, how many conntrack passes with a table behind it the bridge takes.
func TestRows(t *testing.T) {
	const (
		wire    = "in_port=1,dl_src=0a:00:00:00:00:09,"
		forUs   = wire + "dl_dst=02:00:00:00:01:01,"
		all     = wire + "dl_dst=ff:ff:ff:ff:ff:ff,"
		nodes   = wire + "dl_dst=33:33:00:00:00:01,"
		edge    = "in_port=2,dl_src=02:00:00:00:01:01,dl_dst=0a:00:00:00:00:09,"
		host    = "in_port=LOCAL,dl_src=02:00:00:00:01:01,dl_dst=0a:00:00:00:00:09,"
		own     = "nw_dst=192.0.2.10"
		own6    = "ipv6_dst=2001:db8:1::10"
		snat    = "ct(commit,zone=64200,mark=0x2/0xffffffff,nat(src=192.0.2.10))"
		snat6   = "ct(commit,zone=64200,mark=0x2/0xffffffff,nat(src=2001:db8:1::10))"
		byHost  = "ct(commit,zone=64200,mark=0x1/0xffffffff,nat(src=192.0.2.10))"
		byHost6 = "ct(commit,zone=64200,mark=0x1/0xffffffff,nat(src=2001:db8:1::10))"
	)
	rows := []struct {
		packet  string
		rows    string // table/priority over base
		outputs string
		recirc  int
		has     string // in the datapath's actions
	}{
		{edge + "tcp,nw_src=100.91.0.6,nw_dst=10.96.0.1", "0/90", "", 0, ""},
		{edge + "tcp6,ipv6_src=fd91::6,ipv6_dst=fd96::1", "0/90", "", 0, ""},
		{edge + "tcp,nw_src=100.91.0.6,nw_dst=203.0.113.9", "0/80", "up0", 0, snat},
		{edge + "udp6,ipv6_src=fd91::6,ipv6_dst=2001:db8:9::9", "0/80", "up0", 0, snat6},
		{edge + "icmp,icmp_type=8,nw_src=100.91.0.6,nw_dst=203.0.113.9", "0/85 173/80", "up0", 1, "nat(src=192.0.2.10)"},
		{edge + "icmp6,icmpv6_type=128,ipv6_src=fd91::6,ipv6_dst=2001:db8:9::9", "0/85 173/80", "up0", 1, "nat(src=2001:db8:1::10)"},
		{edge + "tcp,nw_src=10.200.1.5,nw_dst=203.0.113.9", "0/70", "up0", 0, ""},
		{edge + "tcp6,ipv6_src=fd10::5,ipv6_dst=2001:db8:9::9", "0/70", "up0", 0, ""},
		{edge + "tcp,nw_src=198.51.100.7,tp_src=80,nw_dst=203.0.113.9", "0/70", "up0", 0, ""},
		{edge + "udp,nw_src=198.51.100.7,nw_frag=later,nw_dst=203.0.113.9", "0/70", "up0", 0, ""},
		{edge + "arp,arp_op=1,arp_spa=192.0.2.10,arp_tpa=192.0.2.1", "0/60", "up0", 0, ""},
		{edge + "icmp6,icmpv6_type=135,nd_target=2001:db8:1::1", "0/60", "up0", 0, ""},
		{edge + "arp,arp_op=1,arp_spa=100.91.0.6", "0/30", "", 0, ""},
		{edge + "arp,arp_op=2,arp_spa=192.0.2.10", "0/30", "", 0, ""},
		{edge + "icmp6,icmpv6_type=136,nd_target=2001:db8:1::10", "0/30", "", 0, ""},
		{edge + "tcp,nw_src=10.9.9.9,nw_dst=203.0.113.9", "0/30", "", 0, ""},
		{"in_port=2,dl_src=02:00:00:00:77:77,tcp,nw_src=100.91.0.6,nw_dst=203.0.113.9", "0/30", "", 0, ""},

		{host + "icmp6,icmpv6_type=135", "0/60", "up0", 0, ""},
		{host + "tcp,nw_src=192.0.2.10,nw_dst=10.96.0.1", "0/50", "", 0, ""},
		{host + "tcp6,ipv6_src=fd96::1,ipv6_dst=2001:db8:9::9", "0/50", "", 0, ""},
		{host + "tcp,nw_src=192.0.2.10,nw_dst=203.0.113.9", "0/40", "up0", 0, byHost},
		{host + "tcp6,ipv6_src=2001:db8:1::10,ipv6_dst=2001:db8:9::9", "0/40", "up0", 0, byHost6},
		{host + "tcp,nw_src=192.0.2.44,nw_dst=203.0.113.9", "0/30", "up0", 0, ""},
		{host + "arp,arp_op=2,arp_spa=192.0.2.10", "0/30", "up0", 0, ""},
		{"in_port=1,dl_src=02:00:00:00:01:01,dl_dst=ff:ff:ff:ff:ff:ff", "0/10", "", 0, ""},

		{all + "arp,arp_op=1,arp_spa=192.0.2.1,arp_tpa=192.0.2.10", "0/60", "br0", 0, ""},
		{all + "arp,arp_op=1,arp_spa=192.0.2.1,arp_tpa=192.0.2.1", "0/50 172/0", "br0 pn", 0, ""},
		{all + "arp,arp_op=2,arp_spa=192.0.2.1", "0/50 172/0", "br0 pn", 0, ""},
		{forUs + "arp,arp_op=2,arp_spa=192.0.2.77", "0/50 172/0", "br0 pn", 0, ""},
		{all + "arp,arp_op=1,arp_spa=192.0.2.77,arp_tpa=192.0.2.10", "0/60", "br0", 0, ""},
		{all + "arp,arp_op=1,arp_spa=192.0.2.77,arp_tpa=192.0.2.78", "", "br0", 0, ""},
		{nodes + "icmp6,icmpv6_type=136,nd_target=2001:db8:1::1", "0/50 172/0", "br0 pn", 0, ""},
		{nodes + "icmp6,icmpv6_type=136,nd_target=2001:db8:1::77", "", "br0", 0, ""},
		{forUs + "icmp6,icmpv6_type=136,nd_target=2001:db8:1::77", "0/40 170/90 172/0", "br0 pn", 0, ""},
		{forUs + "icmp6,icmpv6_type=135,nd_target=2001:db8:1::10," + own6, "0/40 170/90", "br0", 0, ""},

		{forUs + "tcp,tp_dst=30080," + own, "0/40 170/80 172/0", "pn", 1, "nat(dst=100.91.0.6)"},
		{forUs + "sctp6,sctp_dst=30081," + own6, "0/40 170/80 172/0", "pn", 1, "nat(dst=fd91::6)"},
		{forUs + "tcp,tp_dst=80,nw_dst=198.51.100.7", "0/40 170/80 172/0", "pn", 0, ""},
		{forUs + "udp6,udp_dst=53,ipv6_dst=2001:db8:7::7", "0/40 170/80 172/0", "pn", 0, ""},
		{forUs + "udp,nw_frag=first,nw_dst=198.51.100.7", "0/40 170/70 172/0", "pn", 0, ""},
		{forUs + "icmp,nw_dst=198.51.100.7,icmp_type=3", "0/40 170/70 172/0", "pn", 0, ""},
		{forUs + "icmp6,ipv6_dst=2001:db8:7::7,icmpv6_type=2", "0/40 170/70 172/0", "pn", 0, ""},
		{forUs + "tcp,tp_dst=81,nw_dst=198.51.100.7", "0/40 170/0", "br0", 0, ""},
		{forUs + "tcp,nw_dst=10.200.1.5", "0/40 170/50 172/0", "pn", 0, ""},
		{forUs + "tcp6,ipv6_dst=fd10::5", "0/40 170/50 172/0", "pn", 0, ""},
		{forUs + "tcp,tp_dst=22," + own, "0/40 170/60 171/0", "br0", 1, "ct(zone=64200,nat)"},
		{forUs + "udp6,udp_dst=53," + own6, "0/40 170/60 171/0", "br0", 1, "ct(zone=64200,nat)"},
		{forUs + "tcp,nw_dst=192.0.2.99", "0/40 170/0", "br0", 0, ""},
		{wire + "dl_dst=02:00:00:00:55:55,tcp,nw_dst=192.0.2.99", "", "br0", 0, ""},
	}
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		program(t, r.programmer(t), kinds(t)["full"])
		// Until the host says something its MAC may be known at the patch port, from before there were flows.
		eventually(t, 5*time.Second, func(ctx context.Context) error { return ping(ctx, r.node, "192.0.2.1") })
		for _, row := range rows {
			got := trace(t, r, row.packet)
			if diff := cmp.Diff(row.rows, strings.Join(got.rows, " ")); diff != "" {
				t.Errorf("%s: rows: %s", row.packet, diff)
			}
			if to := strings.Join(got.outputs, " "); to != row.outputs || got.recirc != row.recirc {
				t.Errorf("%s: goes to %q with %d recirculations, want %q with %d",
					row.packet, to, got.recirc, row.outputs, row.recirc)
			}
			if !strings.Contains(got.actions, row.has) {
				t.Errorf("%s: actions %q lack %q", row.packet, got.actions, row.has)
			}
		}
	})
}

// TestH1ResubmitsStayConstant: what a broadcast costs does not grow with the number of services.
func TestH1ResubmitsStayConstant(t *testing.T) {
	eachOVS(t, func(t *testing.T, build *lab.OVSBuild) {
		r := newRig(t, build)
		b := full(t)
		b.Services = services(1000)
		program(t, r.programmer(t), b)
		out, err := r.node.OVS.Appctl(t.Context(), "ofproto/trace", "br0",
			"in_port=1,dl_dst=ff:ff:ff:ff:ff:ff,arp,arp_op=1,arp_spa=192.0.2.1,arp_tpa=192.0.2.1")
		do(t, err)
		if steps := len(tracedRow.FindAllString(out, -1)); steps > 4 {
			t.Errorf("one ARP request takes %d lookups:\n%s", steps, out)
		}
		coverage, err := r.node.OVS.Appctl(t.Context(), "coverage/show")
		do(t, err)
		if strings.Contains(coverage, "xlate_actions_too_many") {
			t.Error(fmt.Errorf("too many resubmits or actions:\n%s", coverage))
		}
	})
}
