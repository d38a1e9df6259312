// SPDX-License-Identifier: Apache-2.0

//go:build tools

// Package helm pins the Helm that tests run. It is a module of its own so that what Helm needs never reaches the
// product's go.mod.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
