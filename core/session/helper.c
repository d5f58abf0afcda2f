/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that does what may never end: see member.h. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/program.h"
#include "core/session/member.h"

#define LOOK_NS 20000000

struct helper {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t asked, done;
    int (*fn)(void *arg); /* NULL: nothing to do */
    void *arg;
    int result;
    bool left, over;
};

/* Under the lock. Somebody else goes on in this thread's place. */
static void stay(struct helper *h)
{
    if (!h->left)
        return;
    pthread_mutex_unlock(&h->lock);
    for (;;)
        pause();
}

static void *work(void *arg)
{
    struct helper *h = arg;

    pthread_mutex_lock(&h->lock);
    for (;;) {
        while (!h->fn && !h->over)
            pthread_cond_wait(&h->asked, &h->lock);
        if (h->over)
            break;
        pthread_mutex_unlock(&h->lock);
        int result = h->fn(h->arg);
        pthread_mutex_lock(&h->lock);
        stay(h);
        h->result = result;
        h->fn = NULL;
        pthread_cond_signal(&h->done);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

static void release(struct helper *h)
{
    pthread_cond_destroy(&h->asked);
    pthread_cond_destroy(&h->done);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

int helper_open(struct helper **out)
{
    struct helper *h = xcalloc(1, sizeof(*h));
    pthread_condattr_t attr;

    *out = NULL;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->asked, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&h->done, &attr);
    pthread_condattr_destroy(&attr);
    int err = -pthread_create(&h->thread, NULL, work, h);
    if (err)
        release(h);
    else
        *out = h;
    return err;
}

/* A library's handlers would find its own thread at work. */
static void end_at_once(int status, void *arg)
{
    (void)arg;
    fflush(NULL);
    _exit(status);
}

int helper_do(struct helper *h, int (*fn)(void *arg), void *arg, int (*look)(void *look_arg),
              void *look_arg)
{
    int err = 0;

    pthread_mutex_lock(&h->lock);
    h->fn = fn;
    h->arg = arg;
    pthread_cond_signal(&h->asked);
    while (h->fn && !err) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_nsec += LOOK_NS;
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&h->done, &h->lock, &t);
        err = h->fn ? look(look_arg) : 0;
    }
    if (err) {
        h->left = true;
        on_exit(end_at_once, NULL);
    } else {
        err = h->result;
    }
    pthread_mutex_unlock(&h->lock);
    return err;
}

void helper_hold(struct helper *h)
{
    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    stay(h);
}

void helper_let(struct helper *h)
{
    if (h)
        pthread_mutex_unlock(&h->lock);
}

bool helper_abandoned(const struct helper *h)
{
    return h && h->left;
}

void helper_close(struct helper *h)
{
    if (!h || h->left)
        return;
    pthread_mutex_lock(&h->lock);
    h->over = true;
    pthread_cond_signal(&h->asked);
    pthread_mutex_unlock(&h->lock);
    pthread_join(h->thread, NULL);
    release(h);
}

/* --- the watchdog: a process that hangs ends itself --- */

struct watchdog {
    timer_t timer;
    uint64_t ns; /* 0: there is no deadline */
    char what[192];
};

static void bite(union sigval dog)
{
    const struct watchdog *d = dog.sival_ptr;

    fprintf(stderr, "%s has not ended after %.3g s: this process ends\n", d->what,
            (double)d->ns / 1e9);
    fflush(stderr);
    _exit(EXIT_INCOMPLETE);
}

int watchdog_open(struct watchdog **dog)
{
    struct watchdog *d = xcalloc(1, sizeof(*d));
    struct sigevent event = {.sigev_notify = SIGEV_THREAD,
                             .sigev_notify_function = bite,
                             .sigev_value = {.sival_ptr = d}};

    if (timer_create(CLOCK_MONOTONIC, &event, &d->timer)) {
        int err = -errno;
        free(d);
        return err;
    }
    *dog = d;
    return 0;
}

void watchdog_feed(struct watchdog *d)
{
    if (!d)
        return;
    struct itimerspec left = {.it_value = {.tv_sec = (time_t)(d->ns / 1000000000),
                                           .tv_nsec = (long)(d->ns % 1000000000)}};
    timer_settime(d->timer, 0, &left, NULL);
}

void watchdog_set(struct watchdog *d, uint64_t ns, const char *what)
{
    watchdog_rest(d); /* what it would say changes */
    d->ns = ns;
    snprintf(d->what, sizeof(d->what), "%s", what);
    watchdog_feed(d);
}

void watchdog_rest(struct watchdog *d)
{
    if (!d)
        return;
    d->ns = 0;
    watchdog_feed(d);
}

void watchdog_close(struct watchdog *d)
{
    if (!d)
        return;
    timer_delete(d->timer);
    free(d);
}
