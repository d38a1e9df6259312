#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writes everything that is generated from the API types: deepcopy, applyconfigurations, clients, CRDs.
# The generators are pinned in test/tools/go.mod and built into a cache outside the tree.
set -euo pipefail
cd "$(dirname "$0")/.."

module=github.com/ovn-uplink/ovn-uplink
bin=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ovn-uplink/tools
api=$module/shared/api
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
header=$new/header
echo '// SPDX-License-Identifier: Apache-2.0' >"$header"

mkdir -p "$bin"
go -C test/tools build -trimpath -o "$bin/" \
	k8s.io/code-generator/cmd/applyconfiguration-gen k8s.io/code-generator/cmd/client-gen \
	k8s.io/code-generator/cmd/deepcopy-gen sigs.k8s.io/controller-tools/cmd/controller-gen

"$bin/deepcopy-gen" --go-header-file "$header" --output-file zz_generated.deepcopy.go \
	"$api/v1alpha1" "$api/ovnk/v1" "$api/core" "$api/discovery"
# Beside the tree first: a generator that fails leaves what is there.
"$bin/applyconfiguration-gen" --go-header-file "$header" \
	--output-dir "$new/applyconfiguration" --output-pkg "$api/applyconfiguration" "$api/v1alpha1"
"$bin/client-gen" --go-header-file "$header" --clientset-name client --input-base "" --input "$api/v1alpha1" \
	--output-dir "$new" --output-pkg "$api"
for dir in applyconfiguration client; do
	rm -rf "shared/api/$dir"
	cp -r "$new/$dir" "shared/api/$dir"
done
"$bin/controller-gen" crd:generateEmbeddedObjectMeta=false,allowDangerousTypes=false \
	paths=./shared/api/v1alpha1 output:crd:dir=deploy/host/chart/crds
gofmt -w shared/api
