// SPDX-License-Identifier: Apache-2.0

package openflow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parseFlow reads a line of `ovs-ofctl dump-flows --no-names`, with or without statistics.
func parseFlow(line string) (Flow, error) {
	var f Flow
	head, actions, found := strings.Cut(line, " actions=")
	if !found {
		return f, fmt.Errorf("a flow without actions: %q", clip(line))
	}
	f.Actions = strings.TrimSpace(actions)
	f.Priority = defaultPriority
	return f, f.parseHead(head)
}

// defaultPriority is that of a flow that is printed without one.
const defaultPriority = 32768

// parseHead reads what is printed in front of the actions.
func (f *Flow) parseHead(head string) error {
	var fields, extra []string
	for _, token := range strings.FieldsFunc(head, func(r rune) bool { return r == ' ' || r == ',' }) {
		name, value, _ := strings.Cut(token, "=")
		var err error
		var n uint64
		switch name {
		case "cookie":
			f.Cookie, err = strconv.ParseUint(value, 0, 64)
		case "table":
			n, err = strconv.ParseUint(value, 10, 8)
			f.Table = uint8(n)
		case "priority":
			n, err = strconv.ParseUint(value, 10, 16)
			f.Priority = uint16(n)
		case "duration", "n_packets", "n_bytes", "idle_age", "hard_age", "event", "reason":
		case "idle_timeout", "hard_timeout", "importance",
			"send_flow_rem", "check_overlap", "reset_counts", "no_packet_counts", "no_byte_counts":
			extra = append(extra, token)
		default:
			fields = append(fields, token)
		}
		if err != nil {
			return fmt.Errorf("field %q of a flow: %w", token, err)
		}
	}
	slices.Sort(extra)
	f.Match, f.Extra = match(fields...), strings.Join(extra, ",")
	return nil
}

// eventKind is what a line of a flow monitor is about.
type eventKind int

const (
	noEvent    eventKind = iota
	subscribed           // the monitor's request was answered: from here on nothing is missed
	flowAdded            // also: replaced
	flowModified
	flowDeleted
	portChanged
	lost // events were or will be left out
)

// event is one line of `ovs-ofctl monitor`. A flow in it has no priority.
type event struct {
	kind eventKind
	flow Flow
	port uint32
}

// parseEvent reads a line of `ovs-ofctl monitor --no-names BRIDGE 1 watch:…`. Lines about anything else, such as the
// rest of a port's description, are noEvent.
func parseEvent(line string) (event, error) {
	if rest, found := strings.CutPrefix(line, " event="); found {
		return parseFlowEvent(rest)
	}
	switch {
	case strings.Contains(line, "FLOW_MONITOR_PAUSED"), strings.Contains(line, "FLOW_MONITOR_RESUMED"):
		return event{kind: lost}, nil
	case strings.HasPrefix(line, "OFPST_FLOW_MONITOR reply"):
		return event{kind: subscribed}, nil
	case strings.HasPrefix(line, "OFPT_PORT_STATUS"):
		return parsePortStatus(line)
	}
	return event{}, nil
}

func parseFlowEvent(rest string) (event, error) {
	kind, rest, _ := strings.Cut(rest, " ")
	var e event
	switch kind {
	case "ADDED":
		e.kind = flowAdded
	case "MODIFIED":
		e.kind = flowModified
	case "DELETED":
		e.kind = flowDeleted
	default: // of this connection's own changes, which makes none
		return event{}, nil
	}
	head, actions, _ := strings.Cut(rest, " actions=")
	e.flow.Actions = strings.TrimSpace(actions)
	if e.flow.Actions == "" {
		e.flow.Actions = "drop" // a monitor prints no actions for it
	}
	return e, e.flow.parseHead(head)
}

// parsePortStatus reads "OFPT_PORT_STATUS (OF1.4) (xid=0x0): ADD: 5(pn): addr:…".
func parsePortStatus(line string) (event, error) {
	parts := strings.SplitN(line, ": ", 3)
	if len(parts) < 3 {
		return event{}, fmt.Errorf("a port's change: %q", clip(line))
	}
	number, _, _ := strings.Cut(strings.TrimSpace(parts[2]), "(")
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return event{}, nil // LOCAL and other reserved ports
	}
	return event{kind: portChanged, port: uint32(n)}, nil
}

// clip keeps text of unknown length out of messages.
func clip(s string) string {
	const most = 400
	s = strings.TrimSpace(s)
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
