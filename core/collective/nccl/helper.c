/* SPDX-License-Identifier: Apache-2.0 */
/* See helper.h. */
#include "core/collective/nccl/helper.h"

#include <errno.h>
#include <time.h>

#define STEP_NS 10000000

static void *help(void *arg)
{
    struct helper *h = arg;

    h->result = h->fn(h->arg);
    atomic_store(&h->ended, true);
    return NULL;
}

int helper_start(struct helper *h, helper_fn *fn, void *arg)
{
    h->fn = fn;
    h->arg = arg;
    atomic_store(&h->ended, false);
    int err = pthread_create(&h->thread, NULL, help, h);
    h->running = !err;
    return -err;
}

int helper_state(struct helper *h, int *result)
{
    if (!h->running)
        return -EALREADY;
    if (!atomic_load(&h->ended))
        return -EAGAIN;
    pthread_join(h->thread, NULL);
    h->running = false;
    *result = h->result;
    return 0;
}

void helper_pause(void)
{
    nanosleep(&(const struct timespec){.tv_nsec = STEP_NS}, NULL);
}
