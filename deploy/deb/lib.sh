#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What making any of the packages takes; sourced by build.sh.
# shellcheck disable=SC2154 # build.sh sets version, commit, debversion, epoch, work

fail() {
	printf 'debs: %s\n' "$*" >&2
	exit 1
}

usage_error() {
	printf 'debs: %s\n' "$*" >&2
	exit 2
}

# check_release: what goes into file names and control files has the form that it must have.
check_release() {
	[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+([~.a-z0-9]*)$ ]] || fail "version $version is not like 1.2.3"
	[[ $commit =~ ^[0-9a-f]{40}$ ]] || fail "commit $commit is not 40 hex digits"
	[[ $epoch =~ ^[0-9]+$ ]] || fail "epoch $epoch is no number of seconds"
	local arch
	for arch in $archs; do
		case $arch in
		amd64 | arm64) ;;
		*) fail "architecture $arch is neither amd64 nor arm64" ;;
		esac
	done
}

# fill FILE ARCH: FILE with the placeholders filled in. A line "@include FILE@" becomes that file.
fill() {
	local line
	while IFS= read -r line; do
		case $line in
		'@include '*@)
			line=${line#@include }
			grep -v -e '^#!' -e '^# SPDX' -e '^# shellcheck' "${1%/*}/${line%@}"
			;;
		*) printf '%s\n' "$line" ;;
		esac
	done <"$1" | sed -e "s/@VERSION@/$version/g" -e "s/@DEBVERSION@/$debversion/g" -e "s/@COMMIT@/$commit/g" \
		-e "s/@TAG@/${commit:0:12}/g" -e "s/@ARCH@/$2/g"
}

# put MODE SOURCE TARGET: a file of the package.
put() {
	mkdir -p "$(dirname "$3")"
	install -m "$1" "$2" "$3"
}

# compress_doc SOURCE TARGET: without the name and time that gzip would keep.
compress_doc() {
	mkdir -p "$(dirname "$2")"
	gzip -9 -n <"$1" >"$2"
	chmod 644 "$2"
}

# document ROOT PACKAGE: what every package has below /usr/share/doc.
document() {
	local doc=$1/usr/share/doc/$2
	put 644 deploy/deb/copyright "$doc/copyright"
	{
		printf '%s (%s) stable; urgency=medium\n\n  * Built from commit %s.\n\n' "$2" "$debversion" "$commit"
		printf ' -- ovn-uplink <maintainers@ovn-uplink.invalid>  %s\n' "$(LC_ALL=C date -u -R -d "@$epoch")"
	} | gzip -9 -n >"$doc/changelog.gz"
	chmod 644 "$doc/changelog.gz"
}

# control ROOT TEMPLATES ARCH: the control files, from the templates that are there.
control() {
	local root=$1 templates=$2 arch=$3 script size
	mkdir -p "$root/DEBIAN"
	for script in preinst postinst prerm postrm; do
		[ -e "$templates/$script" ] || continue
		fill "$templates/$script" "$arch" >"$root/DEBIAN/$script"
		chmod 755 "$root/DEBIAN/$script"
	done
	[ ! -e "$templates/conffiles" ] || put 644 "$templates/conffiles" "$root/DEBIAN/conffiles"
	(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
	size=$(find "$root" -path "$root/DEBIAN" -prune -o -type f -printf '%s\n' | awk '{kib += int(($1 + 1023) / 1024)} END {print kib + 0}')
	fill "$templates/control" "$arch" | sed "s/@SIZE@/$size/" >"$root/DEBIAN/control"
	chmod 644 "$root"/DEBIAN/control "$root"/DEBIAN/md5sums
}

# pack ROOT COMPRESSION: the package, among those that are done. COMPRESSION is a list of dpkg-deb's options.
pack() {
	local root=$1 compression=("${@:2}") name arch
	name=$(sed -n 's/^Package: //p' "$root/DEBIAN/control")
	arch=$(sed -n 's/^Architecture: //p' "$root/DEBIAN/control")
	find "$root" -type d -exec chmod 755 {} +
	[ ! -d "$root/etc/ovn-uplink" ] || chmod 700 "$root/etc/ovn-uplink"
	find "$root" -exec touch -h -d "@$epoch" {} +
	dpkg-deb --root-owner-group "${compression[@]}" --threads-max=1 --build "$root" "$work/done/${name}_${debversion}_$arch.deb" >/dev/null
	rm -rf "$root"
}
