// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package apiserver pins the Kubernetes version that the test lab runs. It
// is a module of its own so that the several hundred modules behind
// kube-apiserver never reach the product's go.mod.
package apiserver

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
