// SPDX-License-Identifier: Apache-2.0

// Package core is a read-only view of built-in objects: only the fields that are used. The full types would link
// the whole core API into light agents.
//
// +k8s:deepcopy-gen=package
package core
