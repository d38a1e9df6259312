// SPDX-License-Identifier: Apache-2.0

package routeimport

import (
	"encoding/binary"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// event is what a message of rtnetlink may have changed.
type event struct {
	// table is that of a route; 0 for other messages.
	table uint32
	// link and names are those of a network interface.
	link  int
	names []string
	// everything is set where it cannot be told what goes or comes with what the message is about.
	everything bool
}

// parseEvent reads a message; one that cannot be read may be about everything.
func parseEvent(kind uint16, raw []byte) event {
	switch kind {
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		if len(raw) < unix.SizeofRtMsg {
			break
		}
		e := event{table: uint32(raw[rtmTable])}
		if scan(raw[unix.SizeofRtMsg:], unix.RTA_TABLE, func(a attribute) { e.table = a.number() }) {
			return e
		}
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		if len(raw) < unix.SizeofIfInfomsg {
			break
		}
		if raw[0] != unix.AF_UNSPEC {
			return event{} // what a bridge tells of its ports
		}
		e := event{link: int(int32(binary.NativeEndian.Uint32(raw[4:])))}
		named := func(a attribute) { e.names = append(e.names, strings.TrimRight(string(a.value), "\x00")) }
		rest, whole := raw[unix.SizeofIfInfomsg:], true
		if scan(rest, unix.IFLA_IFNAME, named) &&
			scan(rest, unix.IFLA_PROP_LIST, func(list attribute) { whole = scan(list.value, unix.IFLA_ALT_IFNAME, named) }) && whole {
			return e
		}
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		if len(raw) < unix.SizeofIfAddrmsg {
			break
		}
		// The last IPv4 address of a link takes routes with it. Link-local ones have none, and come and go with pods.
		only := true
		if scan(raw[unix.SizeofIfAddrmsg:], unix.IFA_ADDRESS, func(a attribute) { only = a.address().IsLinkLocalUnicast() }) && only {
			return event{}
		}
	}
	return event{everything: true}
}

// scan passes the attributes of one kind on; it returns false if they cannot be read to the end.
func scan(b []byte, kind uint16, each func(attribute)) bool {
	for len(b) > 0 {
		a, rest, err := cut(b)
		if err != nil {
			return false
		}
		if a.kind == kind {
			each(a)
		}
		b = rest
	}
	return true
}

// journal notes when what somebody is interested in was last said to change.
type journal struct {
	mu sync.Mutex
	// names, links and tables are what matters.
	names  map[string]bool
	links  map[int]bool
	tables map[uint32]bool
	// changed has the time of the last change of a table, everything that of what may concern all.
	changed    map[uint32]time.Time
	everything time.Time
}

// follow sets what matters from now on. What names stand for is found out after it was set, so that no change is
// missed in between; links and tables are those found.
func (j *journal) follow(names map[string]bool, links map[int]bool, tables map[uint32]bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.names, j.links, j.tables = names, links, tables
	maps.DeleteFunc(j.changed, func(table uint32, _ time.Time) bool { return !tables[table] })
}

// note writes an event down and tells whether it matters.
func (j *journal) note(e event, now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := e.everything || j.links[e.link]
	for _, name := range e.names {
		all = all || j.names[name]
	}
	switch {
	case all:
		j.everything = now
	case e.table != 0 && j.tables[e.table]:
		if j.changed == nil {
			j.changed = map[uint32]time.Time{}
		}
		j.changed[e.table] = now
	default:
		return false
	}
	return true
}

// last is when a table was last said to change.
func (j *journal) last(table uint32) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	if t := j.changed[table]; t.After(j.everything) {
		return t
	}
	return j.everything
}
