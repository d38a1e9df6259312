// SPDX-License-Identifier: Apache-2.0

// Package discovery is a read-only view of discovery.k8s.io/v1: only the fields that are used, as in the package core.
//
// +k8s:deepcopy-gen=package
package discovery
