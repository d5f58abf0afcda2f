/* SPDX-License-Identifier: Apache-2.0 */
/* The wires by name: a file of its own, so that a test which names one needs no other. */
#include <string.h>

#include "core/wire/wire.h"

/* A transport is a word here. Its table is wire_NAME. */
#define WIRES(wire) wire(shm) wire(tcp) wire(rdma)

#define OPS(name)  &wire_##name,
#define NAME(name) #name,
static const struct wire_ops *const wires[] = {WIRES(OPS) NULL};
const char *const wire_names[] = {WIRES(NAME) NULL};

const struct wire_ops *wire_find(const char *name)
{
    for (size_t i = 0; wires[i]; i++)
        if (!strcmp(wires[i]->name, name))
            return wires[i];
    return NULL;
}

void wire_backends(backend_say_fn *say, void *arg)
{
    for (size_t i = 0; wires[i]; i++)
        if (wires[i]->backends)
            wires[i]->backends(say, arg);
        else
            say(arg, &(struct backend){.name = wires[i]->name, .state = BACKEND_PRESENT});
}
