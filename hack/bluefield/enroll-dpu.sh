#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Gets a card its credentials: makes a key, which never leaves the card, asks
# the cluster for a certificate that is valid for a limited time, and writes
# the kubeconfig of dpu-agent. An administrator approves every request.
#
# usage: enroll-dpu.sh --node NODE --bootstrap FILE [options]    by kubectl
#        enroll-dpu.sh --node NODE --server URL --ca FILE        by hand: step 1
#        enroll-dpu.sh --certificate FILE [options]              by hand: step 2
#        enroll-dpu.sh --rotate [options]                        renew, if due
#        enroll-dpu.sh --status
#
#   --node NODE         name of the Node object of the card's host
#   --bootstrap FILE    kubeconfig of whoever may create and get
#                       CertificateSigningRequests; used for that only
#   --server URL, --ca FILE  the cluster's address and CA; by default those of
#                       the bootstrap kubeconfig
#   --certificate FILE  what an administrator signed for the request of step 1
#   --rotate            renew when less than a third of the certificate's life
#                       remains, with the credentials that are there
#   --lifetime DAYS     of the certificate (30); the cluster may shorten it
#   --wait SECONDS      for the approval (900)
#   --dir DIR           where everything is (/etc/ovn-uplink)
#   --dry-run           say what would be done
#
# It can be run again at any time: a request that waits is taken up again.
#
# Exit code: 0 done or nothing to do, 1 failure, 2 mistake in the options,
# 3 the request is not approved yet.
#
# examples:
#   enroll-dpu.sh --node worker-b --bootstrap ./bootstrap.kubeconfig
#   enroll-dpu.sh --node worker-b --server https://10.0.0.1:6443 --ca ca.crt
#   enroll-dpu.sh --rotate --lifetime 7
set -euo pipefail
umask 077

say() { printf 'enroll: %s\n' "$*"; }
fail() {
	printf 'enroll: %s\n' "$*" >&2
	exit 1
}
usage_error() {
	printf 'enroll: %s\n' "$*" >&2
	exit 2
}

node='' bootstrap='' server='' ca='' certificate='' lifetime=30 wait=900 dir=/etc/ovn-uplink mode=enroll dry=''
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		sed -n '4,40s/^# \{0,1\}//p' "$0"
		exit 0
		;;
	--rotate | --status)
		mode=${1#--}
		shift
		;;
	--dry-run)
		dry=yes
		shift
		;;
	--node | --bootstrap | --server | --ca | --certificate | --lifetime | --wait | --dir)
		[ $# -ge 2 ] || usage_error "$1 needs a value"
		printf -v "${1#--}" %s "$2"
		shift 2
		;;
	*) usage_error "$1 is no option; see --help" ;;
	esac
done
[[ $lifetime =~ ^[1-9][0-9]{0,3}$ ]] || usage_error "--lifetime $lifetime is no number of days"
[[ $wait =~ ^[0-9]+$ ]] || usage_error "--wait $wait is no number of seconds"
command -v openssl >/dev/null || fail 'openssl is missing; install it'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
current=$dir/client.pem config=$dir/kubeconfig pending=$dir/pending

# put FILE writes standard input, whole or not at all.
put() {
	local tmp
	tmp=$(mktemp "$1.XXXXXX")
	cat >"$tmp"
	chmod 600 "$tmp"
	mv -f "$tmp" "$1"
}

# of_current ARGUMENTS: asks openssl about the certificate that is in use.
of_current() { openssl x509 -in "$current" -noout "$@"; }

# end_of, start_of: seconds since 1970.
end_of() { date -d "$(of_current -enddate | cut -d= -f2)" +%s; }
start_of() { date -d "$(of_current -startdate | cut -d= -f2)" +%s; }

# node_of FILE: the node that a certificate is for.
node_of() {
	openssl x509 -in "$1" -noout -subject -nameopt multiline | sed -n 's/^ *commonName *= system:ovn-uplink:dpu://p'
}

# kube FILE ARGUMENTS: kubectl with a deadline.
kube() {
	local file=$1
	shift
	timeout 45 kubectl --kubeconfig "$file" --request-timeout 30s "$@"
}

# new_request makes key and request, both of which stay until there is a certificate for them.
new_request() {
	local tmp
	mkdir -p "$dir"
	chmod 700 "$dir"
	tmp=$(mktemp -d "$dir/.pending-XXXXXX")
	openssl ecparam -name prime256v1 -genkey -noout -out "$tmp/key.pem"
	openssl req -new -sha256 -key "$tmp/key.pem" -subj "/O=system:ovn-uplink:dpus/CN=system:ovn-uplink:dpu:$node" -out "$tmp/csr.pem"
	printf '%s\n' "$node" >"$tmp/node"
	printf 'ovn-uplink-dpu-%s-%s\n' "$node" "$(fingerprint "$tmp" | cut -c1-10)" >"$tmp/name"
	cat >"$tmp/request.yaml" <<-REQUEST
		apiVersion: certificates.k8s.io/v1
		kind: CertificateSigningRequest
		metadata:
		  name: $(cat "$tmp/name")
		spec:
		  signerName: kubernetes.io/kube-apiserver-client
		  usages: [client auth]
		  expirationSeconds: $((lifetime * 86400))
		  request: $(base64 -w0 <"$tmp/csr.pem")
	REQUEST
	rm -rf "$pending"
	mv "$tmp" "$pending"
}

# fingerprint DIR: of the public key, which the administrator compares.
fingerprint() { openssl req -in "$1/csr.pem" -noout -pubkey | openssl pkey -pubin -outform DER | sha256sum | cut -d' ' -f1; }

# install_certificate FILE: what was signed, if it is for the pending key and node.
install_certificate() {
	local signed=$1
	openssl x509 -in "$signed" -noout 2>/dev/null || fail "$signed is no certificate"
	[ "$(openssl x509 -in "$signed" -noout -pubkey)" = "$(openssl pkey -in "$pending/key.pem" -pubout)" ] ||
		fail "the certificate is for another key than the one that waits in $pending"
	[ "$(node_of "$signed")" = "$(cat "$pending/node")" ] || fail "the certificate is for $(openssl x509 -in "$signed" -noout -subject)"
	openssl x509 -in "$signed" -noout -checkend 0 >/dev/null || fail 'the certificate has expired, or the clock of this card is wrong'
	# Certificate and key are one file: whoever reads it has two that belong together.
	cat "$signed" "$pending/key.pem" | put "$current"
	if [ -n "$server" ]; then
		put "$config" <<-CONFIG
			apiVersion: v1
			kind: Config
			current-context: ovn-uplink
			clusters:
			- name: ovn-uplink
			  cluster:
			    server: $server
			    certificate-authority-data: $(base64 -w0 <"$ca")
			contexts:
			- name: ovn-uplink
			  context: {cluster: ovn-uplink, user: dpu}
			users:
			- name: dpu
			  user: {client-certificate: client.pem, client-key: client.pem}
		CONFIG
	fi
	rm -rf "$pending"
	say "$config: certificate of $(node_of "$current"), valid until $(of_current -enddate | cut -d= -f2)"
}

# submit FILE: asks the cluster by the kubeconfig, shows what the administrator has to do, and waits for that.
submit() {
	local name out until signed
	command -v kubectl >/dev/null || fail 'kubectl is missing; install it, or do it by hand: --server and --ca instead of --bootstrap'
	name=$(cat "$pending/name")
	if ! out=$(kube "$1" create -f "$pending/request.yaml" 2>&1) && [[ $out != *AlreadyExists* ]]; then
		fail "create the request $name: $out"
	fi
	instructions
	until=$((SECONDS + wait))
	signed=$scratch/signed.crt
	while :; do
		if ! out=$(kube "$1" get csr "$name" -o 'jsonpath={range .status.conditions[*]}{.type} {end}/{.status.certificate}' 2>&1); then
			case $out in
			*NotFound*)
				rm -rf "$pending"
				fail "the cluster has forgotten the request $name, which it does after a while; run this again for a new one"
				;;
			*) say "could not look at the request, trying again: $out" ;;
			esac
		else
			case ${out%%/*} in
			*Denied* | *Failed*)
				rm -rf "$pending"
				fail "the request $name was ${out%%/*}: kubectl describe csr $name"
				;;
			esac
			if [ -n "${out#*/}" ]; then
				base64 -d <<<"${out#*/}" >"$signed"
				install_certificate "$signed"
				return
			fi
		fi
		if [ $SECONDS -ge $until ]; then
			say "the request $name is not approved yet; run the same again to go on waiting"
			exit 3
		fi
		sleep 2
	done
}

# instructions: what only an administrator can do.
instructions() {
	local name
	name=$(cat "$pending/name")
	cat <<-TEXT
		enroll: the request $name waits for an administrator, who makes sure that it
		comes from the card in $(cat "$pending/node") and not from anybody else. The key's fingerprint is
		  $(fingerprint "$pending")
		and must be what he gets from
		  kubectl get csr $name -o jsonpath='{.spec.request}' | base64 -d | openssl req -noout -pubkey | openssl pkey -pubin -outform DER | sha256sum
		Then
		  kubectl certificate approve $name
	TEXT
}

# begin: a request for the node, the one that waits if there is one.
begin() {
	if [ -e "$pending/name" ] && [ "$(cat "$pending/node")" = "$node" ]; then
		say "taking up the request $(cat "$pending/name")"
	else
		new_request
	fi
}

start_agent() {
	[ "$dir" = /etc/ovn-uplink ] && [ -d /run/systemd/system ] || return 0
	systemctl start ovn-uplink-dpu-agent.service ovn-uplink-rotate.timer || say 'could not start ovn-uplink-dpu-agent.service'
}

cluster_of_bootstrap() {
	command -v kubectl >/dev/null || fail 'kubectl is missing; install it, or do it by hand: --server and --ca instead of --bootstrap'
	server=${server:-$(kube "$bootstrap" config view --minify -o 'jsonpath={.clusters[0].cluster.server}')}
	if [ -z "$ca" ]; then
		ca=$scratch/ca.crt
		kube "$bootstrap" config view --minify --raw --flatten -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}' | base64 -d >"$ca"
	fi
}

check_cluster() {
	[[ $server =~ ^https://[]A-Za-z0-9.:[-]+(/[A-Za-z0-9._/-]*)?$ ]] || usage_error "--server '$server' is no https URL"
	openssl x509 -in "$ca" -noout 2>/dev/null || usage_error "--ca '$ca' is no certificate"
}

case $mode in
status)
	[ -e "$current" ] || fail "there is no $current"
	say "certificate of $(node_of "$current"), valid until $(of_current -enddate | cut -d= -f2)"
	[ ! -e "$pending/name" ] || say "the request $(cat "$pending/name") waits for approval"
	exit 0
	;;
rotate)
	[ -e "$current" ] || fail "there is no $current to renew"
	now=$(date +%s)
	life=$(($(end_of) - $(start_of)))
	left=$(($(end_of) - now))
	if [ $((left * 3)) -ge $life ]; then
		say "valid until $(of_current -enddate | cut -d= -f2), which is more than a third of its life; nothing to do"
		exit 0
	fi
	[ $left -gt 0 ] || fail "the certificate expired on $(of_current -enddate | cut -d= -f2); enroll this card again, with --bootstrap or by hand"
	node=$(node_of "$current")
	if [ -n "$dry" ]; then
		say "would ask for a new certificate for $node, and write $current once it is approved"
		exit 0
	fi
	begin
	submit "$config"
	exit 0
	;;
esac

if [ -n "$certificate" ]; then
	[ -e "$pending/key.pem" ] || fail "there is no request in $pending; step 1 is --node with --server and --ca"
	if [ -e "$pending/server" ]; then
		server=$(cat "$pending/server") ca=$pending/ca.crt
	fi
	if [ -n "$dry" ]; then
		say "would write $current and $config from $certificate"
		exit 0
	fi
	install_certificate "$certificate"
	start_agent
	exit 0
fi

[[ $node =~ ^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$ ]] || usage_error "--node '$node' is no name of a node"
if [ -n "$bootstrap" ]; then
	[ -r "$bootstrap" ] || fail "cannot read $bootstrap"
	cluster_of_bootstrap
elif [ -z "$server" ] || [ -z "$ca" ]; then
	usage_error 'say --bootstrap, or --server and --ca; see --help'
fi
check_cluster
if [ -e "$current" ] && [ -e "$config" ] && [ "$(node_of "$current")" = "$node" ] && [ "$(end_of)" -gt "$(date +%s)" ]; then
	say "the card has credentials of $node, valid until $(of_current -enddate | cut -d= -f2); nothing to do (--rotate renews them)"
	start_agent
	exit 0
fi
if [ -n "$dry" ]; then
	say "would make a key in $pending, ask ${bootstrap:+by $bootstrap }for a certificate as system:ovn-uplink:dpu:$node for $lifetime days, and write $config for $server"
	exit 0
fi
begin
if [ -n "$bootstrap" ]; then
	submit "$bootstrap"
	start_agent
	exit 0
fi
printf '%s\n' "$server" | put "$pending/server"
put "$pending/ca.crt" <"$ca"
say "give $pending/request.yaml to an administrator, who applies it:  kubectl apply -f request.yaml"
instructions
cat <<-TEXT
	and returns the certificate:
	  kubectl get csr $(cat "$pending/name") -o jsonpath='{.status.certificate}' | base64 -d >client.crt
	Step 2:
	  enroll-dpu.sh --certificate client.crt$([ "$dir" = /etc/ovn-uplink ] || printf ' --dir %s' "$dir")
TEXT
