// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// passes are what a packet costs a datapath: how often it goes through conntrack, and how often it comes back from
// there, or from elsewhere, to be looked up anew. Both are tables of hardware that takes flows over.
type passes struct{ conntrack, recirculations int }

func (p passes) plus(o passes) passes {
	return passes{p.conntrack + o.conntrack, p.recirculations + o.recirculations}
}

func (p passes) String() string { return fmt.Sprintf("%d+%d", p.conntrack, p.recirculations) }

// cost is what a packet's whole way costs, apart for the Uplink's bridge and for OVN.
type cost struct{ bridge, ovn passes }

func (c cost) plus(o cost) cost { return cost{c.bridge.plus(o.bridge), c.ovn.plus(o.ovn)} }

// more compares by the conntrack passes of all, then by the rest.
func (c cost) more(o cost) bool {
	a, b := c.bridge.plus(c.ovn), o.bridge.plus(o.ovn)
	return a.conntrack > b.conntrack || a.conntrack == b.conntrack && a.recirculations > b.recirculations
}

// The conntrack zones that the agent gives to bridges, its default.
const firstZone, lastZone = 64200, 64299

var costly = regexp.MustCompile(`\b(ct|recirc)\(([^()]|\([^()]*\))*\)`)

var zoneOf = regexp.MustCompile(`zone=(\d+)`)

// costOf is what the actions of one flow of the datapath cost, and where the packet goes on: recirculation ids. A
// recirculation belongs to who sent the packet to conntrack before it.
func costOf(actions string) (c cost, next []string) {
	at := &c.ovn
	for _, m := range costly.FindAllStringSubmatch(actions, -1) {
		if m[1] == "recirc" {
			at.recirculations++
			next = append(next, strings.TrimSuffix(strings.TrimPrefix(m[0], "recirc("), ")"))
			continue
		}
		at = &c.ovn
		if z := zoneOf.FindStringSubmatch(m[0]); z != nil {
			if zone, _ := strconv.Atoi(z[1]); zone >= firstZone && zone <= lastZone {
				at = &c.bridge
			}
		}
		at.conntrack++
	}
	return c, next
}

var (
	recircID = regexp.MustCompile(`\brecirc_id\((0x[0-9a-f]+|0)\)`)
	fromPort = regexp.MustCompile(`\bin_port\(([^)]*)\)`)
)

// pathCost follows the flows of the datapath, as dpctl/dump-flows --names shows them, from a port on, and returns the
// cost of the dearest way of an IPv4 packet: that of a connection's first, or of a later one.
func pathCost(dump, port string) (cost, error) {
	flows := map[string][]string{} // actions by recirculation id
	for line := range strings.Lines(dump) {
		line = strings.TrimSpace(line)
		id := recircID.FindStringSubmatch(line)
		_, actions, found := strings.Cut(line, "actions:")
		if id == nil || !found || !strings.Contains(line, "eth_type(0x0800)") {
			continue
		}
		if id[1] == "0" {
			if in := fromPort.FindStringSubmatch(line); in == nil || in[1] != port {
				continue
			}
		}
		flows[id[1]] = append(flows[id[1]], actions)
	}
	c, err := dearest(flows, "0", 0)
	if err != nil {
		return c, fmt.Errorf("from port %s: %w", port, err)
	}
	return c, nil
}

func dearest(flows map[string][]string, id string, depth int) (most cost, err error) {
	if depth > 20 {
		return most, fmt.Errorf("the datapath's flows go in a circle")
	}
	if len(flows[id]) == 0 {
		return most, fmt.Errorf("the datapath has no flow for what comes back as %s", id)
	}
	for _, actions := range flows[id] {
		c, next := costOf(actions)
		for _, n := range next {
			rest, err := dearest(flows, n, depth+1)
			if err != nil {
				return most, err
			}
			c = c.plus(rest)
		}
		if c.more(most) {
			most = c
		}
	}
	return most, nil
}

var lookup = regexp.MustCompile(`(?m)^ *\d+\. `)

// lookups is how many tables a traced packet was looked up in, in all bridges.
func lookups(trace string) int { return len(lookup.FindAllString(trace, -1)) }
