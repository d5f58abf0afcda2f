/* SPDX-License-Identifier: Apache-2.0 */
/* Which machine this is: do two ends run on one, so that its CPUs must not be counted twice? */
#ifndef PLUMB_CORE_NET_MACHINE_H
#define PLUMB_CORE_NET_MACHINE_H

#include <stdbool.h>

#define MACHINE_ID_BYTES 64

/* The running kernel's boot_id: new with each boot, the same in all namespaces and containers of a machine (what
 * belongs to a namespace or a container, host name, addresses, machine-id, is left out on purpose). "" where /proc
 * does not tell. Guests that were restored from one snapshot share it: those are taken for one machine. */
void machine_id(char text[MACHINE_ID_BYTES]);

/* Both known, and the same. */
bool machine_same(const char *a, const char *b);

#endif
