// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ovn-uplink/ovn-uplink/test/lab"
)

// ledger counts from outside what is written where, whoever writes: to UplinkStates by a watch, to the databases by
// what their servers log of their clients, to the flows and ports of the bridge by a flow monitor.
type ledger struct {
	*site
	api     *recorder
	monitor *lab.Process
}

// writes are counts of a ledger.
type writes struct{ API, OVSDB, NB, Flows int }

func (w writes) minus(o writes) writes {
	return writes{API: w.API - o.API, OVSDB: w.OVSDB - o.OVSDB, NB: w.NB - o.NB, Flows: w.Flows - o.Flows}
}

// ledger starts to count.
func (s *site) ledger() *ledger {
	s.t.Helper()
	// Statistics are written every few seconds otherwise.
	s.vsctl(s.ovs, "set", "Open_vSwitch", ".", "other_config:stats-update-interval=3600000")
	s.logMessages("ovsdb-server", "dbg")
	s.logMessages("ovnnb_db.ctl", "dbg")
	p, err := s.ovs.Start(s.t.Context(), "flow-monitor",
		[]string{"ovs-ofctl", "-OOpenFlow14", "--no-names", "monitor", s.bridge, "1", "watch:!initial"}, nil)
	s.must(err)
	return &ledger{site: s, api: s.record(), monitor: p}
}

// logMessages has a database server log all messages of its clients, or not.
func (s *site) logMessages(target, level string) {
	s.t.Helper()
	if strings.HasSuffix(target, ".ctl") {
		target = s.ovs.OVS.RunDir() + "/" + target
	}
	_, err := s.ovs.Exec(s.t.Context(), "ovs-appctl", "--target="+target, "vlog/set", "jsonrpc:console:"+level)
	s.must(err)
}

// counts are the writes so far.
func (l *ledger) counts() writes {
	l.t.Helper()
	const transaction = `received request, method="transact"`
	return writes{
		API:   l.api.count(),
		OVSDB: l.lines(l.ovs.OVS.DBProcess(), transaction),
		NB:    l.lines(l.zone.NBProcess(), transaction),
		Flows: l.lines(l.monitor, "event=", "OFPT_PORT_STATUS"),
	}
}

// lines counts those of a process's log that have one of the words.
func (l *ledger) lines(p *lab.Process, words ...string) (n int) {
	l.t.Helper()
	text, err := os.ReadFile(p.LogPath)
	l.must(err)
	for line := range strings.Lines(string(text)) {
		for _, word := range words {
			if strings.Contains(line, word) {
				n++
				break
			}
		}
	}
	return n
}

// still asserts that nothing at all is written for a while, from f on.
func (l *ledger) still(d time.Duration, what string, f func()) {
	l.t.Helper()
	before, versions := l.counts(), l.api.count()
	f()
	pause(l.t, d)
	if got := l.counts().minus(before); got != (writes{}) {
		for _, s := range l.api.since(versions) {
			l.t.Logf("written: %s %+v", s.Name, s.Status)
		}
		l.t.Logf("flow events: %s", l.monitor.Log(1000))
		l.t.Errorf("%s: writes %+v, want none", what, got)
	}
}

// settle waits until nothing has been written for two seconds.
func (l *ledger) settle() {
	l.t.Helper()
	last, since := l.counts(), time.Now()
	l.must(lab.Eventually(l.t.Context(), settled, func(context.Context) error {
		if now := l.counts(); now != last {
			last, since = now, time.Now()
		}
		if still := time.Since(since); still < 2*time.Second {
			return fmt.Errorf("last write %s ago: %+v", still.Round(time.Millisecond), last)
		}
		return nil
	}))
}

// sentMods is how many changes of flows and ports an agent says that it has sent since it was started.
func (s *site) sentMods() string {
	s.t.Helper()
	out, err := s.ovs.Exec(s.t.Context(), "curl", "-sS", "-m", "5", "http://"+dpuHealth+"/metrics")
	s.must(err)
	var lines []string
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "ovn_uplink_openflow_mods_total") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}
