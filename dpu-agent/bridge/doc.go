// SPDX-License-Identifier: Apache-2.0

// Package bridge is the view of Open vSwitch that the roles share: which bridges there are, which bridge a port
// is on, by which port a bridge reaches the wire, and whether a bridge is fit to be an uplink. A Monitor keeps a
// View of the database; everything that is decided is a pure function of a View. Nothing is written of its own
// accord.
//
// Columns and their meaning are those of ovs-vswitchd.conf.db(5).
package bridge
