// SPDX-License-Identifier: Apache-2.0

// Package vm runs tests on a kernel that has what the machine's own may lack: VRF, devlink with switchdev cards,
// the kernel's Open vSwitch. It boots Debian's kernel in QEMU, without KVM, and runs test binaries of this module's
// packages in it; the machine itself gets neither kernel nor module.
//
// The guest sees of the machine /usr, the repository and the test binaries, all read-only, and one directory that
// it writes its results to. It has no network.
//
// The kernel, its modules and a netdevsim built for it are made once from Debian packages and kept in the user's
// cache directory under the kernel's version.
package vm
