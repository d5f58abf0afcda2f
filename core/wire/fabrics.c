/* SPDX-License-Identifier: Apache-2.0 */
/* The fabrics by name: a file of its own, so that a test which names one needs no other. */
#include <string.h>

#include "core/wire/fabric.h"

static const struct fabric_ops *const fabrics[] = {&fabric_shm, &fabric_tcp, &fabric_rdma, NULL};
const char *const fabric_names[] = {"shm", "tcp", "rdma", NULL};

const struct fabric_ops *fabric_find(const char *name)
{
    for (size_t i = 0; fabrics[i]; i++)
        if (!strcmp(fabrics[i]->name, name))
            return fabrics[i];
    return NULL;
}
