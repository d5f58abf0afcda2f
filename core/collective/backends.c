/* SPDX-License-Identifier: Apache-2.0 */
/* The table of backends. */
#include <string.h>

#include "core/collective/collective.h"

static const struct collective_ops *const backends[] = {&collective_ring,     &collective_halving,
                                                        &collective_doubling, &collective_mpi,
                                                        &collective_mpi_cuda, &collective_nccl};

/* In the order of backends[]. */
const char *const collective_names[] = {"ring",     "halving", "doubling", "mpi",
                                        "mpi-cuda", "nccl",    NULL};

_Static_assert(sizeof(collective_names) / sizeof(*collective_names) ==
                   sizeof(backends) / sizeof(*backends) + 1,
               "each backend has its name");

const struct collective_ops *collective_find(const char *name)
{
    for (size_t i = 0; i < sizeof(backends) / sizeof(*backends); i++)
        if (!strcmp(name, backends[i]->name))
            return backends[i];
    return NULL;
}
