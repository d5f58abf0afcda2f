/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for one call of a library that may never return: who asked for it looks whether it has. One call at a time. */
#ifndef PLUMB_CORE_COLLECTIVE_NCCL_HELPER_H
#define PLUMB_CORE_COLLECTIVE_NCCL_HELPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef int helper_fn(void *arg);

/* All-zero at first. It and what `arg` points at must stay until the thread has ended. */
struct helper {
    pthread_t thread;
    bool running; /* started, and its end was not seen */
    atomic_bool ended;
    helper_fn *fn;
    void *arg;
    int result;
};

#define HELPER_STEPS 100 /* of helper_pause(): a second */

int helper_start(struct helper *h, helper_fn *fn, void *arg); /* 0 or -errno */
/* -EAGAIN: it is in the call; 0: it has ended since it was last asked, with *result; -EALREADY: nothing was started since. */
int helper_state(struct helper *h, int *result);
void helper_pause(void);

#endif
