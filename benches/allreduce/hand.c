/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that does what may never end: see hand.h. */
#include "benches/allreduce/hand.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS 20000000

struct hand {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t asked, done;
    int (*fn)(void *arg); /* NULL: nothing to do */
    void *arg;
    int result;
    bool left, over;
};

/* Under the lock. Somebody else goes on in this thread's place. */
static void stay(struct hand *h)
{
    if (!h->left)
        return;
    pthread_mutex_unlock(&h->lock);
    for (;;)
        pause();
}

static void *work(void *arg)
{
    struct hand *h = arg;

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

static void release(struct hand *h)
{
    pthread_cond_destroy(&h->asked);
    pthread_cond_destroy(&h->done);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

int hand_open(struct hand **out)
{
    struct hand *h = calloc(1, sizeof(*h));
    pthread_condattr_t attr;

    *out = NULL;
    if (!h)
        return -ENOMEM;
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

static void wait_a_while(struct hand *h)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += LOOK_NS;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&h->done, &h->lock, &t);
}

int hand_do(struct hand *h, int (*fn)(void *arg), void *arg, int (*look)(void *look_arg),
            void *look_arg)
{
    int err = 0;

    pthread_mutex_lock(&h->lock);
    h->fn = fn;
    h->arg = arg;
    pthread_cond_signal(&h->asked);
    while (h->fn && !err) {
        wait_a_while(h);
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

void hand_hold(struct hand *h)
{
    if (!h)
        return;
    pthread_mutex_lock(&h->lock);
    stay(h);
}

void hand_let(struct hand *h)
{
    if (h)
        pthread_mutex_unlock(&h->lock);
}

bool hand_left(const struct hand *h)
{
    return h && h->left;
}

void hand_close(struct hand *h)
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
