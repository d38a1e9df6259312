// SPDX-License-Identifier: Apache-2.0

// Package service knows how the Services of networks' namespaces are reached from outside: addresses and ports with the
// endpoints behind them, as the gateway is to load-balance them.
//
// An Index is fed Services, EndpointSlices and Namespaces in any order. What they say is parsed at once into
// netip values, numbers and a closed set of protocols; text that does not parse never gets any further.
// A Health answers the health checks of load balancers outside.
package service
