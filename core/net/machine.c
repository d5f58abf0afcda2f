/* SPDX-License-Identifier: Apache-2.0 */
/* Which machine this is: see machine.h. */
#include "core/net/machine.h"

#include <string.h>

#include "core/net/nic_sys.h"

void machine_id(char text[MACHINE_ID_BYTES])
{
    if (sys_line(NULL, text, MACHINE_ID_BYTES, "proc/sys/kernel/random/boot_id"))
        text[0] = '\0';
}

bool machine_same(const char *a, const char *b)
{
    return a[0] && !strcmp(a, b);
}
