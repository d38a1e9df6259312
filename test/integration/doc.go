// SPDX-License-Identifier: Apache-2.0

// Package integration runs the real agents, as processes, against a real API server, real Open vSwitch and
// real interfaces in network namespaces.
package integration
