#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is in which package; sourced by build.sh.
# shellcheck disable=SC2154 # build.sh sets bin, images, chart, values, work, commit

# The chart, unpacked, where NVKE's node agent looks for it, and beside it NVKE's values.
build_charts() {
	local root=$work/charts dir
	dir=$root/etc/dgx/ovn-uplink
	[ -f "$chart/Chart.yaml" ] || fail "there is no chart in $chart; make chart"
	[ -f "$values" ] || fail "NVKE's values $values are missing"
	grep -qx "  tag: \"${commit:0:12}\"" "$chart/values.yaml" ||
		fail "the chart in $chart is of another commit: its values.yaml has$(grep '^  tag:' "$chart/values.yaml" || echo ' no tag'), want tag: \"${commit:0:12}\"; make chart"
	mkdir -p "${dir%/*}"
	cp -r "$chart" "$dir"
	put 644 "$values" "$dir/nvke-values.yaml"
	find "$dir" -type f -exec chmod 644 {} +
	document "$root" "nvke-cni-ovn-uplink-charts-$version"
	control "$root" deploy/nvke/deb/charts all
	pack "$root" -Zxz -z6
}

# Both images of an architecture, with what their names and architecture must be when they are imported.
build_images() {
	local arch=$1 root=$work/images dir agent archive
	dir=$root/usr/share/ovn-uplink/images
	mkdir -p "$dir"
	for agent in host-agent dpu-agent; do
		archive=ovn-uplink-$agent-linux-$arch.tar
		[ -f "$images/$archive" ] || fail "there is no $images/$archive; make images"
		check_image "$images/$archive" "nvke/ovn-uplink-$agent:${commit:0:12}" "$arch"
		put 644 "$images/$archive" "$dir/$archive"
		printf '%s %s\n' "$archive" "nvke/ovn-uplink-$agent:${commit:0:12}" >>"$dir/names"
	done
	(cd "$dir" && sha256sum -- *.tar names >SHA256SUMS)
	chmod 644 "$dir/names" "$dir/SHA256SUMS"
	mkdir -p "$root/usr/sbin"
	fill deploy/nvke/deb/images/ovn-uplink-images "$arch" >"$root/usr/sbin/ovn-uplink-images"
	chmod 755 "$root/usr/sbin/ovn-uplink-images"
	document "$root" "nvke-cni-ovn-uplink-images-$version"
	control "$root" deploy/nvke/deb/images "$arch"
	pack "$root" -Zgzip -z1 # the layers in the archives are compressed already
}

# check_image ARCHIVE NAME ARCH: a package never has an image that its node could not run.
check_image() {
	local is config
	is=$(tar -xOf "$1" manifest.json | grep -oE '"RepoTags": *\["[^"]*"\]' | cut -d'"' -f4) || fail "$1 is no Docker archive"
	[ "$is" = "$2" ] || fail "$1 has the image $is, not $2: it was built from another commit"
	config=$(tar -xOf "$1" manifest.json | grep -oE '"Config": *"[^"]*"' | cut -d'"' -f4)
	is=$(tar -xOf "$1" "$config" | grep -oE '"architecture": *"[^"]*"' | cut -d'"' -f4)
	[ "$is" = "$3" ] || fail "$1 has an image for $is, not $3"
}

# The agent for cards that run it as a service.
build_dpu_agent() {
	local arch=$1 root=$work/dpu-agent from=deploy/dpu/deb doc
	doc=$root/usr/share/doc/ovn-uplink-dpu-agent
	[ -f "$bin/linux-$arch/dpu-agent" ] || fail "there is no $bin/linux-$arch/dpu-agent; make images"
	put 755 "$bin/linux-$arch/dpu-agent" "$root/usr/bin/dpu-agent"
	put 755 hack/bluefield/check-card.sh "$root/usr/sbin/ovn-uplink-check-card"
	put 755 hack/bluefield/enroll-dpu.sh "$root/usr/sbin/ovn-uplink-enroll-dpu"
	put 644 $from/default "$root/etc/default/ovn-uplink-dpu-agent"
	mkdir -p "$root/etc/ovn-uplink"
	for unit in ovn-uplink-dpu-agent.service ovn-uplink-rotate.service ovn-uplink-rotate.timer; do
		put 644 "$from/$unit" "$root/lib/systemd/system/$unit"
	done
	compress_doc $from/dpu-agent.8 "$root/usr/share/man/man8/dpu-agent.8.gz"
	document "$root" ovn-uplink-dpu-agent
	mkdir -p "$doc/examples"
	fill deploy/dpu/static-pod.yaml "$arch" >"$doc/examples/static-pod.yaml"
	chmod 644 "$doc/examples/static-pod.yaml"
	control "$root" $from "$arch"
	pack "$root" -Zxz -z3 # level 6 takes three times as long, for a tenth
}
