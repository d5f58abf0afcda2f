/* SPDX-License-Identifier: Apache-2.0 */
/* The wires by name: a file of its own, so that a test which names one needs no other. */
#include <string.h>

#include "core/wire/wire.h"

static const struct wire_ops *const wires[] = {&wire_shm, &wire_tcp, &wire_rdma, NULL};
const char *const wire_names[] = {"shm", "tcp", "rdma", NULL};

const struct wire_ops *wire_find(const char *name)
{
    for (size_t i = 0; wires[i]; i++)
        if (!strcmp(wires[i]->name, name))
            return wires[i];
    return NULL;
}
