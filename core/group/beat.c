/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of life over channels: see beat.h. */
#include "core/group/beat.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define EVERY_NS 500000000

struct beat {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool over;
    unsigned n;
    struct channel *channels[];
};

static void beat_all(const struct beat *b)
{
    for (unsigned i = 0; i < b->n; i++)
        channel_base(b->channels[i])->ops->beat(b->channels[i]);
}

static void *live(void *arg)
{
    struct beat *b = arg;
    struct timespec next;

    pthread_mutex_lock(&b->lock);
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!b->over) {
        beat_all(b);
        next.tv_nsec += EVERY_NS;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&b->ended, &b->lock, &next);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void release(struct beat *b)
{
    pthread_cond_destroy(&b->ended);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

static void take(struct beat *b, struct channel *c, uint64_t silent_ns)
{
    if (!c || !channel_base(c)->ops->beat)
        return;
    channel_base(c)->ops->expect(c, silent_ns);
    b->channels[b->n++] = c;
}

int beat_start(struct beat **out, struct channel *const *channels, unsigned n, uint64_t silent_ns)
{
    struct beat *b = calloc(1, sizeof(*b) + n * sizeof(struct channel *));
    pthread_condattr_t attr;
    sigset_t all, before;

    *out = NULL;
    if (!b)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        take(b, channels[i], silent_ns);
    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&b->ended, &attr);
    pthread_condattr_destroy(&attr);
    beat_all(b);      /* so that the other end has one before it hears anything else */
    sigfillset(&all); /* signals are for who waits */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = b->n ? -pthread_create(&b->thread, NULL, live, b) : -EOPNOTSUPP;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err)
        release(b);
    else
        *out = b;
    return err;
}

void beat_end(struct beat *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->over = true;
    pthread_cond_signal(&b->ended);
    pthread_mutex_unlock(&b->lock);
    pthread_join(b->thread, NULL);
    release(b);
}
