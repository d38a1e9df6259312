// SPDX-License-Identifier: Apache-2.0

// Package ovn turns the desired gateway of an Uplink on this node into rows of the OVN northbound database.
//
// An Uplink is one edge router, which has the Uplink's MAC and addresses and one localnet port to the Uplink's
// bridge. Behind it every network has a gateway router of its own, which translates addresses and balances load; it
// is linked to the router that the CNI made for the network:
//
//	pods - node switch - CNI's router - link switch - network gateway - edge router - external switch - bridge
//
// Of the CNI's rows only the sets of ports, policies and static routes of its routers are touched, and only by adding
// and removing references to rows of this package. Its rows are looked up anew for every plan.
//
// A DB keeps a View of the database; Plan is a pure function from a View and a Gateway to one transaction, empty if
// the database is as it should be. Rows of this package carry external_ids by which they are found again; nothing is
// remembered elsewhere. Tables, columns and options are those of ovn-nb(5).
package ovn
