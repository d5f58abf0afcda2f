// SPDX-License-Identifier: Apache-2.0
/* The name a hypervisor gives itself in CPUID leaf 0x40000000, of the machine we run on. */
#ifndef PLUMB_PROBE_CPUID_H
#define PLUMB_PROBE_CPUID_H

/*
 * Writes up to 12 characters, e.g. "KVMKVMKVM". Ask only where the CPU flag "hypervisor" is set: the
 * leaf means nothing otherwise. Returns 0, or -EOPNOTSUPP where the processor has no CPUID.
 */
int cpuid_hypervisor(char name[13]);

#endif
