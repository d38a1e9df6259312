// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseFlow(t *testing.T) {
	want := Flow{Table: 171, Priority: 31080, Cookie: 0x75706c6b0000fac8, Match: "ct_mark=0x2,ct_state=+trk,ip",
		Actions: "pop_vlan,goto_table:172"}
	timed := want
	timed.Extra = "idle_timeout=60,send_flow_rem"
	for line, want := range map[string]Flow{
		" cookie=0x75706c6b0000fac8, table=171, priority=31080,ct_state=+trk,ct_mark=0x2,ip actions=pop_vlan,goto_table:172":                                                    want,
		" cookie=0x75706c6b0000fac8, duration=1.5s, table=171, n_packets=0, n_bytes=0, idle_age=1, priority=31080,ip,ct_state=+trk,ct_mark=0x2 actions=pop_vlan,goto_table:172": want,
		" cookie=0x75706c6b0000fac8, table=171, idle_timeout=60, send_flow_rem priority=31080,ct_state=+trk,ct_mark=0x2,ip actions=pop_vlan,goto_table:172":                     timed,
		" priority=1 actions=drop": {Priority: 1, Actions: "drop"},
		" actions=NORMAL":          {Priority: 32768, Actions: "NORMAL"},
	} {
		got, err := parseFlow(line)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", line, err, diff)
		}
	}
	for _, line := range []string{"", " table=1", " table=300 actions=drop", " cookie=x actions=drop", " priority=-1 actions=drop"} {
		if f, err := parseFlow(line); err == nil {
			t.Errorf("%q is %+v", line, f)
		}
	}
}

func TestParseEvent(t *testing.T) {
	arp := Flow{Table: 0, Cookie: 1, Match: "arp,arp_op=1,in_port=3", Actions: "NORMAL"}
	drop := arp
	drop.Actions = "drop"
	for line, want := range map[string]event{
		"OFPST_FLOW_MONITOR reply (OF1.4) (xid=0x5):":                                           {kind: subscribed},
		" event=ADDED table=0 cookie=0x1 arp,in_port=3,arp_op=1 actions=NORMAL":                 {kind: flowAdded, flow: arp},
		" event=MODIFIED table=0 cookie=0x1 arp,in_port=3,arp_op=1 actions=NORMAL":              {kind: flowModified, flow: arp},
		" event=DELETED reason=delete table=0 cookie=0x1 arp,in_port=3,arp_op=1 actions=NORMAL": {kind: flowDeleted, flow: arp},
		" event=ADDED table=0 cookie=0x1 arp,in_port=3,arp_op=1":                                {kind: flowAdded, flow: drop},
		" event=ABBREV xid=0x3":                                                       {},
		"NXT_FLOW_MONITOR_PAUSED (OF1.4) (xid=0x0):":                                  {kind: lost},
		"OFPT_PORT_STATUS (OF1.4) (xid=0x0): ADD: 5(pn): addr:c2:2a:48:74:0a:1b":      {kind: portChanged, port: 5},
		"OFPT_PORT_STATUS (OF1.4) (xid=0x0): MOD: LOCAL(br0): addr:c2:2a:48:74:0a:1b": {},
		"     config:     0":                                                          {},
		"OFPT_ECHO_REQUEST (OF1.4) (xid=0x0): 0 bytes of payload":                     {},
	} {
		got, err := parseEvent(line)
		if err != nil || got != want {
			t.Errorf("%q: %+v (%v), want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{" event=ADDED table=x", "OFPT_PORT_STATUS", " event=DELETED reason=delete table=0 cookie=y"} {
		if e, err := parseEvent(line); err == nil {
			t.Errorf("%q is %+v", line, e)
		}
	}
}

// FuzzParse: no line makes the parser panic, and a flow that was read is written in a form that reads the same.
func FuzzParse(f *testing.F) {
	f.Add(" cookie=0x75706c6b0000fac8, table=171, idle_timeout=60, send_flow_rem priority=31080,ct_state=+trk,ip actions=drop")
	f.Add(" event=DELETED reason=delete table=0 cookie=0x1 arp,in_port=3,arp_op=1 actions=output:2")
	f.Add("OFPT_PORT_STATUS (OF1.4) (xid=0x0): ADD: 5(pn): addr:c2:2a:48:74:0a:1b")
	f.Add(" actions=")
	f.Fuzz(func(t *testing.T, line string) {
		_, _ = parseEvent(line)
		flow, err := parseFlow(line)
		if err != nil {
			return
		}
		text := strings.Replace(flow.String(), ",actions=", " actions=", 1)
		if strings.Contains(flow.Match+flow.Extra, "actions=") {
			return // no field of OpenFlow's
		}
		again, err := parseFlow(text)
		if err != nil || again != flow {
			t.Errorf("%q is %+v, and written %q is %+v (%v)", line, flow, text, again, err)
		}
	})
}

// FuzzRefusal: whatever ovs-ofctl says when it fails can be shown.
func FuzzRefusal(f *testing.F) {
	f.Add("ovs-ofctl: -:4: actions are invalid with specified match (OFPBAC_MATCH_INCONSISTENT)")
	f.Add("2026-11-29T19:50:42Z|00001|vconn|WARN|unix: version negotiation failed\n00000000  05 0e 00 b0 |....|\n")
	f.Fuzz(func(t *testing.T, words string) {
		r := &refusal{words: words, err: errors.New("exit status 1")}
		if r.Error() == "" {
			t.Errorf("%q is no message, line %d", words, r.line())
		}
	})
}
