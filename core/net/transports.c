/* SPDX-License-Identifier: Apache-2.0 */
/* The transports by name. */
#include <string.h>

#include "core/net/net.h"

static const struct net_ops *const transports[] = {&net_shm, &net_tcp, &net_rdma, NULL};
const char *const net_names[] = {"shm", "tcp", "rdma", NULL};

const struct net_ops *net_find(const char *name)
{
    for (size_t i = 0; transports[i]; i++)
        if (!strcmp(transports[i]->name, name))
            return transports[i];
    return NULL;
}
