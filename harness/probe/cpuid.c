// SPDX-License-Identifier: Apache-2.0
/* CPUID, on processors that have it. */
#include "harness/probe/cpuid.h"

#include <errno.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

int cpuid_hypervisor(char name[13])
{
    unsigned eax, part[3];

    __cpuid(0x40000000, eax, part[0], part[1], part[2]);
    memcpy(name, part, 12);
    name[12] = '\0';
    return 0;
}
#else
int cpuid_hypervisor(char name[13])
{
    name[0] = '\0';
    return -EOPNOTSUPP;
}
#endif
