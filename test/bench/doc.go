// SPDX-License-Identifier: Apache-2.0

// Command bench measures the agents on a simulated cluster of this machine: what they weigh, what they receive of
// what happens elsewhere, how long a change takes to be published, how long a representor takes to be found, and what
// gateways cost: networks and services that come, packets, ARP, a restart.
//
// Times on a shared machine mean little by themselves, so what is judged is a ratio within one run, a count, or a
// growth. What the agents are compared with is package allinone, built here from the same libraries.
//
// It prints a table, or JSON, to standard output and what it is doing to standard error, and ends with 1 when a
// target is missed or something could not be measured.
package main
