#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Formatting, vet, golangci-lint with .golangci.yml, shellcheck. The linter is built once, pinned, into a cache.
set -euo pipefail
cd "$(dirname "$0")/.."

version=v2.15.0
bin=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/ovn-uplink/golangci-lint-$version
if [ ! -x "$bin/golangci-lint" ]; then
	echo "building golangci-lint $version from source, once; usually 3 to 5 minutes"
	mkdir -p "$bin"
	GOBIN=$bin go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
fi
unformatted=$(gofmt -l deploy host-agent dpu-agent shared test)
if [ -n "$unformatted" ]; then
	echo "not formatted with gofmt:" "$unformatted" >&2
	exit 1
fi
go vet ./...
"$bin/golangci-lint" run ./...
if command -v shellcheck >/dev/null; then
	git ls-files -z -- '*.sh' .ci/run | xargs -0 shellcheck
fi
echo "lint: clean"
