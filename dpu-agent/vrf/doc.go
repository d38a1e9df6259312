// SPDX-License-Identifier: Apache-2.0

// Package vrf attaches network interfaces to VRFs and takes them out again, without losing an address or a route.
//
// The kernel takes a link down and up when its master changes (net/core/dev.c, drivers/net/vrf.c): all of its routes
// go, and with them IPv6 addresses. So what there is is written to a journal first, whole, as rtnetlink told of it;
// then the master is changed, what is missing is put back in the table that the link is routed by now, and only when
// all of it is there again the work counts as done. Whoever finds an unfinished journal finishes it.
//
// Left to their owners are routes of routing daemons and router advertisements, those that expire, those of next-hop
// objects, IPv6 link-local ones, and this product's own.
package vrf
