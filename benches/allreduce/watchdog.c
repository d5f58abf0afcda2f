/* SPDX-License-Identifier: Apache-2.0 */
/* A process that hangs ends itself: see watchdog.h. */
#include "benches/allreduce/watchdog.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/exit_code.h"

#define LOOK_NS 100000000

struct watchdog {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
    uint64_t ns, until_ns; /* until_ns 0: there is no deadline */
    char what[192];
};

static void bark(const struct watchdog *d)
{
    fprintf(stderr, "%s has not ended after %.3g s: this process ends\n", d->what,
            (double)d->ns / 1e9);
    fflush(stderr);
    _exit(EXIT_INCOMPLETE);
}

static void *watch(void *arg)
{
    struct watchdog *d = arg;

    pthread_mutex_lock(&d->lock);
    while (!d->over) {
        struct timespec t;
        if (d->until_ns && clock_now_ns() >= d->until_ns)
            bark(d);
        clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_nsec += LOOK_NS;
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        if (d->until_ns)
            pthread_cond_timedwait(&d->changed, &d->lock, &t);
        else
            pthread_cond_wait(&d->changed, &d->lock);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

int watchdog_open(struct watchdog **dog)
{
    struct watchdog *d = calloc(1, sizeof(*d));
    pthread_condattr_t attr;

    if (!d)
        return -ENOMEM;
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&d->changed, &attr);
    pthread_condattr_destroy(&attr);
    int err = -pthread_create(&d->thread, NULL, watch, d);
    if (err) {
        pthread_cond_destroy(&d->changed);
        pthread_mutex_destroy(&d->lock);
        free(d);
        return err;
    }
    *dog = d;
    return 0;
}

/* The thread is woken only when it waits for a first deadline; a later one it sees by itself. */
static void set_until(struct watchdog *d, uint64_t until_ns)
{
    bool wake = !d->until_ns && until_ns;

    d->until_ns = until_ns;
    if (wake)
        pthread_cond_signal(&d->changed);
}

void watchdog_set(struct watchdog *d, uint64_t ns, const char *what)
{
    pthread_mutex_lock(&d->lock);
    d->ns = ns;
    snprintf(d->what, sizeof(d->what), "%s", what);
    set_until(d, clock_now_ns() + ns);
    pthread_mutex_unlock(&d->lock);
}

void watchdog_feed(struct watchdog *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    if (d->until_ns)
        set_until(d, clock_now_ns() + d->ns);
    pthread_mutex_unlock(&d->lock);
}

void watchdog_rest(struct watchdog *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    set_until(d, 0);
    pthread_mutex_unlock(&d->lock);
}

void watchdog_close(struct watchdog *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    d->over = true;
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
