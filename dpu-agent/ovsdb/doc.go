// SPDX-License-Identifier: Apache-2.0

// Package ovsdb keeps a copy of a few columns of one OVSDB database (RFC 7047) and sends transactions to it.
// It is the only package that imports libovsdb, so that another client library can take its place.
//
// libovsdb's own reconnecting is not used: it keeps rows that were deleted while the connection was down and
// panics when its retries end. Here every connection has a client of its own, nothing is concluded before its
// first monitor is complete and the root table has a row, and the content of a new connection replaces the old
// one as a whole. While there is no connection the last content is kept and marked as such: it is unknown then
// what the database holds, not known to be nothing.
package ovsdb
