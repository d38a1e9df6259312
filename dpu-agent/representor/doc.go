// SPDX-License-Identifier: Apache-2.0

// Package representor finds the network interface of the card that stands for a function of the host. One Index,
// built from one devlink dump and sysfs, answers every question: which representor belongs to a PCI function,
// which to a MAC address, and what an interface of the card is. A Monitor keeps it fresh. There is no second way
// to find a representor, so that whoever programs a bridge uses the one that was validated.
//
// A name alone proves nothing: pf0vf3 is a function of the card itself, or of the host with an older kernel, or of
// one of several hosts. What devlink says goes first, then phys_port_name, then alternative names.
package representor
