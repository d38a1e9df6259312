#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A card for people without one: a host, its card and a regular node as network
# namespaces of this machine, with real Open vSwitch, OVN and agents and a real
# API server. Nothing of this machine's network is touched. Needs root.
#
# usage: simulated-card.sh up|check|down [--dry-run]
#
#   up     build the agents and start everything; see what it prints
#   check  run check-card.sh on the simulated card
#   down   end everything and remove it
#
# examples:
#   simulated-card.sh up
#   simulated-card.sh check -o json
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/../.."

command=${1:-}
case $command in
-h | --help)
	sed -n '4,18s/^# \{0,1\}//p' "$self"
	exit 0
	;;
up | check | down) shift ;;
*)
	echo "simulated-card: say up, check or down; see --help" >&2
	exit 2
	;;
esac
run=()
[ "${1:-}" != --dry-run ] || {
	run=(echo)
	shift
}
# The Go that make uses.
go=$(test/setup.sh --go-dir)
PATH=$go:$PATH
case $command in
up) "${run[@]}" make --no-print-directory demo ;;
down) "${run[@]}" make --no-print-directory demo-down ;;
check)
	dir=/var/lib/ovn-uplink-lab/demo
	"${run[@]}" go run ./test/lab/cmd/lab --dir $dir exec worker-b-dpu -- \
		"$PWD/hack/bluefield/check-card.sh" --simulated --sysfs-root $dir/n/worker-b-dpu/sys --kubeconfig $dir/kubeconfig "$@"
	;;
esac
