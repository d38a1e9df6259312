#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests: "unit" for those that need neither root nor packages, "all" for everything.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
unit)
	echo "unit tests: no root, no packages; usually half a minute"
	go test -short -json ./... 2>&1 | go run ./test/tally
	;;
all)
	[ "$(id -u)" -eq 0 ] || {
		echo "make test needs root, for network namespaces; make test-unit does not" >&2
		exit 1
	}
	echo "all tests, with a real API server, Open vSwitch and network namespaces, race detector on"
	echo "usually 20 minutes; the first time on a machine 5 to 15 more for building the API server, 2 to 4 for Helm, 3 to 5 for
two small Debian systems and 1 or 2 for a kernel in a virtual machine"
	go run ./test/lab/cmd/lab prepare
	go build ./...
	# Two packages at a time: each may run a lab of its own.
	CGO_ENABLED=1 go test -race -count=1 -timeout 45m -p 2 -json ./... 2>&1 | go run ./test/tally
	;;
*)
	echo "usage: $0 unit|all" >&2
	exit 2
	;;
esac
