// SPDX-License-Identifier: Apache-2.0

// Package routeimport keeps, for each routing domain that is asked for, the last known good set of the routes that BGP
// taught the kernel and that leave through one interface.
//
// The kernel is read, table by table, whenever an event says that something of a table may have changed; events are
// never taken for the change itself, because the kernel does not tell of all: routes go silently with their link, their
// next-hop object or the last IPv4 address of an interface.
//
// What is read becomes what is believed by rules that keep a routing daemon's restart from a tenant's traffic (see
// state.next): what is new counts at once, what is gone counts once the table is quiet, and where nothing is left the
// former routes stay for the grace time, together with those that come back meanwhile. What cannot be read is unknown
// and changes nothing.
package routeimport
