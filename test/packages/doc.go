// SPDX-License-Identifier: Apache-2.0

// Package packages tests what a site gets: the Debian packages, the apt repository, the scripts for cards. The packages
// are installed by apt-get into Debian systems of their own, one of which boots with systemd.
package packages
