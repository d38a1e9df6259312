// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The upper half of a cookie says that a flow is this package's, the lower half is the bridge's conntrack zone.
const (
	cookieBase uint64 = 0x75706c6b << 32
	cookieMask uint64 = 0xffffffff << 32
)

func cookieOf(zone uint16) uint64 { return cookieBase | uint64(zone) }

func owned(cookie uint64) bool { return cookie&cookieMask == cookieBase }

// Flow is one OpenFlow flow in the form in which two are equal exactly if they do the same.
type Flow struct {
	Table    uint8
	Priority uint16
	Cookie   uint64
	// Match are the fields, sorted and joined by commas; empty matches everything.
	Match string
	// Actions are as Open vSwitch prints them.
	Actions string
	// Extra are timeouts and flags. This package's flows have none.
	Extra string
}

// place is where a flow is. Rendered flows differ in it, so that a flow monitor's line, which has no priority, names
// one of them.
type place struct {
	table uint8
	match string
}

func (f Flow) place() place { return place{f.Table, f.Match} }

// match brings fields into the order of Flow.Match.
func match(fields ...string) string {
	slices.Sort(fields)
	return strings.Join(fields, ",")
}

// String is the flow as ovs-ofctl takes it.
func (f Flow) String() string { return string(f.appendTo(nil)) }

func (f Flow) appendTo(to []byte) []byte {
	to = append(f.appendMatch(to), ",actions="...)
	return append(to, f.Actions...)
}

func (f Flow) appendMatch(to []byte) []byte {
	to = append(to, "cookie=0x"...)
	to = strconv.AppendUint(to, f.Cookie, 16)
	to = append(to, ",table="...)
	to = strconv.AppendUint(to, uint64(f.Table), 10)
	to = append(to, ",priority="...)
	to = strconv.AppendUint(to, uint64(f.Priority), 10)
	for _, part := range []string{f.Extra, f.Match} {
		if part != "" {
			to = append(append(to, ','), part...)
		}
	}
	return to
}

// appendDelete is the command that deletes exactly this flow. Another's in its place has a cookie outside the mask.
// The mask must not be of all bits: with that, Open vSwitch walks through all flows of the cookie for every command,
// and deleting many takes minutes in which it does nothing else.
func (f Flow) appendDelete(to []byte) []byte {
	to = append(to, "delete_strict "...)
	to = append(to, ownFlows...)
	to = append(to, ",table="...)
	to = strconv.AppendUint(to, uint64(f.Table), 10)
	to = append(to, ",priority="...)
	to = strconv.AppendUint(to, uint64(f.Priority), 10)
	if f.Match != "" {
		to = append(append(to, ','), f.Match...)
	}
	return append(to, '\n')
}

func (f Flow) appendAdd(to []byte) []byte {
	return append(f.appendTo(append(to, "add "...)), '\n')
}

// ownFlows is the argument that limits a command to this package's flows.
var ownFlows = fmt.Sprintf("cookie=%#x/%#x", cookieBase, cookieMask)

// compare orders flows as they are tried.
func (f Flow) compare(o Flow) int {
	return cmp.Or(cmp.Compare(f.Table, o.Table), cmp.Compare(o.Priority, f.Priority), cmp.Compare(f.Match, o.Match))
}
