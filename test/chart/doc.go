// SPDX-License-Identifier: Apache-2.0

// Package chart tests deploy/host/chart with the real Helm: what it renders, what the API server makes of that, and that
// the agents do their work when they are started as the rendered pods say, with the rights that the chart gives them.
package chart
