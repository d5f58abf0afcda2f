/* SPDX-License-Identifier: Apache-2.0 */
/* The transports by name, their options' choices, and how an end fails: see net.h. */
#include "core/wire/net.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/units.h"

static const struct net_ops *const transports[] = {&net_shm, &net_tcp, &net_rdma, NULL};
const char *const net_names[] = {"shm", "tcp", "rdma", NULL};

const char *const net_tcp_modes[] = {"blocking", "epoll", NULL};
const char *const net_verbs[] = {"write", "write-imm", "read", "send", NULL};
const char *const net_connects[] = {"exchange", "cm", NULL};
const char *const net_completions[] = {"poll", "event", NULL};

const struct net_ops *net_find(const char *name)
{
    for (size_t i = 0; transports[i]; i++)
        if (!strcmp(transports[i]->name, name))
            return transports[i];
    return NULL;
}

int net_parse_auto(const char *text, void *value, char *error, size_t len)
{
    uint64_t number;

    *(int *)value = -1;
    if (!strcmp(text, "auto"))
        return 0;
    if (units_parse_u64(text, &number) || number > 65535) {
        snprintf(error, len, "'%s' is not auto or a number", text);
        return -EINVAL;
    }
    *(int *)value = (int)number;
    return 0;
}

int net_fail(struct net_end *e, int err, const char *format, ...)
{
    va_list args;

    pthread_mutex_lock(&e->error_lock);
    if (!atomic_load(&e->error_code)) { /* what follows is, as a rule, for the first one's sake */
        va_start(args, format);
        vsnprintf(e->error, sizeof(e->error), format, args);
        va_end(args);
        atomic_store(&e->error_code, err);
    }
    atomic_store(&e->give_up, true);
    pthread_mutex_unlock(&e->error_lock);
    return err;
}
