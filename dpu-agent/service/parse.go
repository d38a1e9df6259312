// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// What one object may make the gateway do is bounded. The API server has bounds of its own, some of them far higher.
const (
	maxPorts     = 1000 // of a service
	maxAddresses = 100  // of a service
	maxEntries   = 2000 // of a service
	maxSources   = 256  // of a service
	maxSlices    = 200  // of a service
	maxBackends  = 1000 // of an entry
	maxTargets   = 1000 // ports of a slice
	maxEndpoints = 1000 // of a slice, which is the API server's bound too
)

// trouble is what of an object is ignored, in words. A hostile object does not make it long.
type trouble struct {
	first string
	more  int
}

func (t *trouble) add(format string, args ...any) {
	if t.first == "" {
		t.first = fmt.Sprintf(format, args...)
		return
	}
	t.more++
}

func (t *trouble) String() string {
	if t.more == 0 {
		return t.first
	}
	return fmt.Sprintf("%s, and %d more", t.first, t.more)
}

// bound is the first max of some items.
func bound[T any](items []T, maximum int, what string, t *trouble) []T {
	if len(items) <= maximum {
		return items
	}
	t.add("%d %s, of which %d are used", len(items), what, maximum)
	return items[:maximum]
}

// parseAddress takes what can be the address of a service or of an endpoint on a network.
func parseAddress(text string, t *trouble) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" || a.Is4In6() {
		t.add("address %.50q", text)
		return netip.Addr{}, false
	}
	if !a.IsGlobalUnicast() { // private addresses are such
		t.add("address %s, which is no unicast address of a network", a)
		return netip.Addr{}, false
	}
	return a, true
}

// parsePort takes a port number; zero is for one that is not usable.
func parsePort(n int32, t *trouble) uint16 {
	if n < 1 || n > 65535 {
		t.add("port %d", n)
		return 0
	}
	return uint16(n)
}

// parseProtocol takes one of the protocols that there are, TCP where none is named.
func parseProtocol(text string, t *trouble) (Protocol, bool) {
	switch p := Protocol(text); p {
	case "":
		return TCP, true
	case TCP, UDP, SCTP:
		return p, true
	default:
		t.add("protocol %.50q", text)
		return "", false
	}
}

// isLabel tells whether text can be a name that is shown and compared.
func isLabel(text string) bool { return len(validation.IsDNS1123Label(text)) == 0 }

// parsePortName takes the name of a port, which may be empty.
func parsePortName(text string, t *trouble) (string, bool) {
	if text != "" && !isLabel(text) {
		t.add("port name %.50q", text)
		return "", false
	}
	return text, true
}

// parseSources takes the networks of clients, sorted. One that does not parse lets nobody in.
func parseSources(ranges []string, t *trouble) []netip.Prefix {
	var sources []netip.Prefix
	for _, text := range bound(ranges, maxSources, "source ranges", t) {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if err != nil || p.Addr().Is4In6() {
			t.add("source range %.50q", text)
			continue
		}
		sources = append(sources, p.Masked())
	}
	slices.SortFunc(sources, netip.Prefix.Compare)
	return slices.Compact(sources)
}
