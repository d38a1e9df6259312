#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Looks whether a BlueField card has what dpu-agent needs. Reads only.
#
# usage: check-card.sh [options]
#
#   -o FORMAT            text (default) or json
#   --bridge NAME        bridge that an Uplink is to use; default: every bridge but OVN's
#   --kubeconfig FILE    the agent's (/etc/ovn-uplink/kubeconfig)
#   --sysfs-root DIR     where sysfs is mounted (/sys)
#   --simulated          the card is simulated: there is no eswitch to ask
#
# Open vSwitch and OVN are where OVS_RUNDIR and OVN_RUNDIR say, by default
# /var/run/openvswitch and /var/run/ovn.
#
# Each line is ok, warn (it works, and something is not as it should be) or
# FAIL (it does not work), and says what to do. Exit code: 0 without FAIL, 1
# with one, 2 for mistakes in the options.
#
# examples:
#   check-card.sh
#   check-card.sh --bridge br-tenants -o json
set -euo pipefail

format=text bridge='' kubeconfig=/etc/ovn-uplink/kubeconfig sysfs=/sys simulated=''
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		sed -n '4,25s/^# \{0,1\}//p' "$0"
		exit 0
		;;
	-o | --bridge | --kubeconfig | --sysfs-root)
		[ $# -ge 2 ] || {
			echo "check-card: $1 needs a value" >&2
			exit 2
		}
		case $1 in
		-o) format=$2 ;;
		--bridge) bridge=$2 ;;
		--kubeconfig) kubeconfig=$2 ;;
		--sysfs-root) sysfs=$2 ;;
		esac
		shift 2
		;;
	--simulated)
		simulated=yes
		shift
		;;
	--dry-run) shift ;; # it only reads
	*)
		echo "check-card: $1 is no option; see --help" >&2
		exit 2
		;;
	esac
done
case $format in
text | json) ;;
*)
	echo "check-card: -o $format is neither text nor json" >&2
	exit 2
	;;
esac
ovs_run=${OVS_RUNDIR:-/var/run/openvswitch} ovn_run=${OVN_RUNDIR:-/var/run/ovn}

failed=0
lines=()

json_string() {
	local s=$1
	s=${s//\\/\\\\}
	s=${s//\"/\\\"}
	s=${s//$'\n'/ }
	s=${s//$'\t'/ }
	printf '"%s"' "$s"
}

# report RESULT CHECK MESSAGE [HINT]: one line.
report() {
	[ "$1" != FAIL ] || failed=1
	if [ "$format" = json ]; then
		lines+=("{\"result\":$(json_string "$1"),\"check\":$(json_string "$2"),\"message\":$(json_string "$3"),\"hint\":$(json_string "${4:-}")}")
		return
	fi
	printf '%-5s %-13s %s\n' "$1" "$2" "$3"
	[ -z "${4:-}" ] || printf '%-5s %-13s -> %s\n' '' '' "$4"
}

have() { command -v "$1" >/dev/null 2>&1; }
vsctl() { timeout 15 ovs-vsctl --timeout=10 --db="unix:$ovs_run/db.sock" "$@" 2>/dev/null; }
# of the root row of Open vSwitch
external_id() { vsctl --if-exists get Open_vSwitch . "external_ids:$1" | tr -d '"'; }
attribute() { cat "$sysfs/class/net/$1/$2" 2>/dev/null || true; }
mtu() { vsctl --if-exists get Interface "$1" mtu | grep -xE '[0-9]+' || true; }

check_programs() {
	local missing=() program
	for program in ovs-vsctl ovs-ofctl ip; do
		have "$program" || missing+=("$program")
	done
	if [ ${#missing[@]} -eq 0 ]; then
		report ok programs 'ovs-vsctl, ovs-ofctl and ip are there'
	else
		report FAIL programs "missing: ${missing[*]}" 'install openvswitch-switch and iproute2'
	fi
}

# The eswitch of every card that has a port to the wire.
check_eswitch() {
	local device mode devices
	if [ -n "$simulated" ]; then
		report warn eswitch 'a simulated card has none' 'nothing: this is no card'
		return
	fi
	if ! have devlink; then
		report warn eswitch 'there is no devlink to ask' 'install iproute2'
		return
	fi
	devices=$(timeout 10 devlink port show 2>/dev/null | grep 'flavour physical' | sed 's|/[0-9]*: .*||' | sort -u) || true
	if [ -z "$devices" ]; then
		report FAIL eswitch 'devlink shows no physical port' 'is the mlx5 driver loaded, and is this the card and not the host?'
		return
	fi
	for device in $devices; do
		mode=$(timeout 10 devlink dev eswitch show "$device" 2>/dev/null | grep -oE 'mode [a-z_]+' | head -1 | cut -d' ' -f2) || true
		case $mode in
		switchdev) report ok eswitch "$device is in mode switchdev" ;;
		'') report warn eswitch "$device does not tell its mode" 'run this as root' ;;
		*) report FAIL eswitch "$device is in mode $mode" "devlink dev eswitch set $device mode switchdev" ;;
		esac
	done
}

# representors lists the network devices that stand for functions of the host: c1pf0, c1pf0vf3 (pf0, pf0vf3 on old kernels).
representors() {
	local path name
	for path in "$sysfs"/class/net/*; do
		name=${path##*/}
		[ -n "$(attribute "$name" phys_switch_id)" ] || continue
		if [[ $(attribute "$name" phys_port_name) =~ ^(c[0-9]+)?pf[0-9]+((vf|sf)[0-9]+)?$ ]]; then
			printf '%s\n' "$name"
		fi
	done
}

# is_wire NAME: whether the device is the card's port to the wire (p0, p1).
is_wire() { [[ $(attribute "$1" phys_port_name) =~ ^p[0-9]+$ ]]; }

check_representors() {
	if [ -z "$host_ports" ]; then
		report FAIL representors 'no network device stands for a function of the host' \
			'the card must be in DPU mode: mlxconfig -d <device> q INTERNAL_CPU_OFFLOAD_ENGINE'
	else
		report ok representors "$(wc -w <<<"$host_ports") of the host: $(xargs <<<"$host_ports")"
	fi
}

check_ovs() {
	local version
	if ! version=$(vsctl --if-exists get Open_vSwitch . ovs_version | tr -d '"'); then
		report FAIL openvswitch "its database does not answer at $ovs_run/db.sock" 'systemctl status openvswitch-switch; set OVS_RUNDIR if it is elsewhere'
		return 1
	fi
	[[ $version =~ ^[0-9] ]] || version=$(ovs-vsctl --version | awk 'NR == 1 {print $NF}')
	report ok openvswitch "version $version"
	[ "$(vsctl --if-exists get Open_vSwitch . other_config:hw-offload | tr -d '"')" = true ] ||
		report warn hw-offload 'Open vSwitch does not offload to the card' 'ovs-vsctl set Open_vSwitch . other_config:hw-offload=true, then restart it'
}

check_bridges() {
	local name found=0
	for name in ${bridge:-$(vsctl list-br)}; do
		[ "$name" != br-int ] || continue
		if ! vsctl br-exists "$name"; then
			report FAIL bridge "there is no bridge $name" 'ovs-vsctl list-br shows those that are there'
			continue
		fi
		check_bridge "$name" && found=1
	done
	[ $found = 1 ] || [ -n "$bridge" ] ||
		report FAIL bridge "no bridge connects a port to the wire with a representor of the host" \
			'an Uplink needs one: ovs-vsctl add-br br-ext -- add-port br-ext p0 -- add-port br-ext pf0hpf'
}

# check_bridge NAME succeeds if the bridge connects host and wire.
check_bridge() {
	local port wires=() hosts=() sizes size kind=ok
	for port in $(vsctl list-ports "$1"); do
		if is_wire "$port"; then
			wires+=("$port")
		elif grep -qx "$port" <<<"$host_ports"; then
			hosts+=("$port")
		fi
	done
	if [ ${#wires[@]} -eq 0 ] || [ ${#hosts[@]} -eq 0 ]; then
		[ -z "$bridge" ] || kind=FAIL
		report "$kind" bridge "$1 is no Uplink's: to the wire ${wires[*]:-nothing}, of the host ${hosts[*]:-nothing}"
		return 1
	fi
	report ok bridge "$1: to the wire ${wires[*]}, of the host ${hosts[*]}"
	[ ${#wires[@]} -eq 1 ] || report warn bridge "$1 has several ports to the wire: ${wires[*]}" 'an Uplink uses one; make a bond of them'
	[ "$(vsctl --if-exists get Interface "$1" link_state)" = up ] ||
		report warn bridge "the interface $1 itself is down" "ip link set $1 up"
	sizes=$(for port in "$1" "${wires[@]}" "${hosts[@]}"; do
		size=$(mtu "$port")
		printf '%s=%s\n' "$port" "${size:-unknown}"
	done)
	if [ "$(cut -d= -f2 <<<"$sizes" | sort -u | wc -l)" -eq 1 ]; then
		report ok mtu "$1: $(head -1 <<<"$sizes" | cut -d= -f2) on all of it"
	else
		report warn mtu "$1: $(xargs <<<"$sizes")" 'what is larger than the smallest gets lost: set all to the same, on the host too'
	fi
}

check_ovn() {
	local node encap remote version name
	node=$(external_id host-k8s-nodename)
	if [ -n "$node" ]; then
		report ok node "the host is the node $node"
	else
		report FAIL node 'external_ids:host-k8s-nodename is not set' \
			'ovs-vsctl set Open_vSwitch . external_ids:host-k8s-nodename=<node>, or --host-node-name in /etc/default/ovn-uplink-dpu-agent'
	fi
	encap=$(external_id ovn-encap-ip) remote=$(external_id ovn-remote)
	if [ -n "$encap" ] && [ -n "$remote" ]; then
		report ok ovn "chassis $(external_id system-id), tunnels from $encap by $(external_id ovn-encap-type)"
	else
		report FAIL ovn "external_ids lack$([ -n "$encap" ] || echo ' ovn-encap-ip')$([ -n "$remote" ] || echo ' ovn-remote')" \
			'OVN-Kubernetes sets them: does its pod run on this card?'
	fi
	if [ -n "$encap" ] && have ip && ! ip -o address show to "$encap" 2>/dev/null | grep -q .; then
		report warn ovn "no interface has the tunnels' address $encap" 'ip address'
	fi
	if ! have ovn-nbctl; then
		[ -S "$ovn_run/ovnnb_db.sock" ] && report ok ovn-nb "its socket is at $ovn_run" && return
		report FAIL ovn-nb "there is no $ovn_run/ovnnb_db.sock" 'OVN must run on this card, a zone of its own; set OVN_RUNDIR if it is elsewhere'
	elif name=$(timeout 15 ovn-nbctl --no-leader-only --timeout=10 --db="unix:$ovn_run/ovnnb_db.sock" --if-exists get NB_Global . name 2>/dev/null); then
		version=$(ovn-nbctl --version | awk 'NR == 1 {print $NF}')
		report ok ovn-nb "zone ${name:-without a name}, version $version"
	else
		report FAIL ovn-nb "the northbound database does not answer at $ovn_run/ovnnb_db.sock" \
			'OVN must run on this card, a zone of its own; set OVN_RUNDIR if it is elsewhere'
	fi
}

# field NAME: the first value of that name in the kubeconfig.
field() { sed -n "s/^[- ]*$1: *//p" "$kubeconfig" | head -1 | tr -d "\"'"; }

# material NAME: what the kubeconfig has under NAME or NAME-data, as PEM.
material() {
	local value
	value=$(field "$1-data")
	if [ -n "$value" ]; then
		base64 -d <<<"$value"
		return
	fi
	value=$(field "$1")
	case $value in
	'') return 1 ;;
	/*) cat "$value" ;;
	*) cat "$(dirname "$kubeconfig")/$value" ;;
	esac
}

check_kubeconfig() {
	local server end left code
	if [ ! -e "$kubeconfig" ]; then
		report warn kubeconfig "there is no $kubeconfig" 'enroll-dpu.sh --help'
		return
	fi
	[ -z "$(find "$kubeconfig" -perm /077)" ] || report warn kubeconfig "others than root can read $kubeconfig" "chmod 600 $kubeconfig"
	server=$(field server)
	if [ -z "$server" ]; then
		report FAIL kubeconfig "$kubeconfig names no server" 'enroll-dpu.sh --help'
		return
	fi
	if have openssl && end=$(material client-certificate 2>/dev/null | openssl x509 -noout -enddate 2>/dev/null); then
		end=${end#notAfter=}
		left=$((($(date -d "$end" +%s) - $(date +%s)) / 86400))
		if [ $left -lt 0 ]; then
			report FAIL certificate "it was valid until $end" 'enroll-dpu.sh --help'
		elif [ $left -lt 7 ]; then
			report warn certificate "valid until $end" 'enroll-dpu.sh --rotate; is ovn-uplink-rotate.timer enabled?'
		else
			report ok certificate "valid until $end"
		fi
	fi
	if ! have curl; then
		report warn apiserver "there is no curl to ask $server" 'install curl'
		return
	fi
	code=$(curl -sS -o /dev/null -w '%{http_code}' --connect-timeout 5 --max-time 10 --cacert <(material certificate-authority) "$server/readyz" 2>&1) || true
	case $code in
	2* | 401 | 403) report ok apiserver "$server answers" ;;
	*) report FAIL apiserver "$server: $code" 'address, routes, CA and clock of this card' ;;
	esac
}

host_ports=$(representors)
check_programs
check_eswitch
check_representors
if check_ovs; then
	check_bridges
	check_ovn
fi
check_kubeconfig

if [ "$format" = json ]; then
	(
		IFS=,
		printf '[%s]\n' "${lines[*]}"
	)
fi
exit $failed
