// SPDX-License-Identifier: Apache-2.0

// Package ovsdb keeps a copy of a few columns of one OVSDB database (RFC 7047) and sends transactions to it. It is
// the only package that imports libovsdb, so that another library can take its place.
//
// Of libovsdb it uses what knows OVSDB's values, schemas and updates, but not its client. That one's reconnecting
// keeps rows that were deleted while the connection was down and panics when its retries end; and within one
// connection, libovsdb v0.7.0 gives out tables of which one has a transaction and the other has not yet, only logs
// an update that it could not apply, and cannot be closed while a call hangs in writing to the server.
//
// Here every connection begins with nothing: nothing is concluded before its first monitor is complete and the root
// table has a row, and its content replaces the one before as a whole. While there is no connection the last
// content is kept and marked as such: it is unknown then what the database holds, not known to be nothing.
package ovsdb
