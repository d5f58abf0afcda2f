/* SPDX-License-Identifier: Apache-2.0 */
/* What is timed: operations() has the clock around a backend's run(), run_times(), run_batch() or
 * start() and test(), behind a barrier; and the work beside them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/collective/data.h"
#include "core/hw/gpu_watch.h"
#include "core/session/member.h"

/* ---- Matrix products in slices ---- */

#define N           64
#define ROWS        4
#define COLUMNS     8
#define BATCHES     20
#define BATCH_UNITS 64

/* Four floats: registers of any CPU with vectors have as many, and the compiler makes plain
 * arithmetic of it elsewhere. */
typedef float vector __attribute__((vector_size(16)));

static vector load(const float *at)
{
    vector v;

    memcpy(&v, at, sizeof(v));
    return v;
}

/* ROWS x COLUMNS of C; written out, so that the sums stay in registers. */
static void block(const float *a, const float *b, float *c)
{
    vector low0 = {0}, low1 = {0}, low2 = {0}, low3 = {0};
    vector high0 = {0}, high1 = {0}, high2 = {0}, high3 = {0};

    for (int k = 0; k < N; k++) {
        vector low = load(b + k * N), high = load(b + k * N + 4);
        low0 += a[k] * low;
        high0 += a[k] * high;
        low1 += a[N + k] * low;
        high1 += a[N + k] * high;
        low2 += a[2 * N + k] * low;
        high2 += a[2 * N + k] * high;
        low3 += a[3 * N + k] * low;
        high3 += a[3 * N + k] * high;
    }
    const vector sums[ROWS][2] = {{low0, high0}, {low1, high1}, {low2, high2}, {low3, high3}};
    for (int row = 0; row < ROWS; row++)
        memcpy(c + row * N, sums[row], sizeof(sums[row]));
}

static void unit(struct overlap *o)
{
    const float *a = o->matrices + o->row * N, *b = o->matrices + N * N;
    float *c = o->matrices + 2 * N * N + o->row * N;

    for (int column = 0; column < N; column += COLUMNS)
        block(a, b + column, c + column);
    o->row = (o->row + ROWS) % N;
}

/* The fastest of some batches: what the work takes when nothing else is in its way. The first ones
 * warm up. */
static double calibrate(struct overlap *o)
{
    uint64_t best_ns = UINT64_MAX;

    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t begin_ns = clock_now_ns();
        for (int i = 0; i < BATCH_UNITS; i++)
            unit(o);
        uint64_t ns = clock_now_ns() - begin_ns;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    return fmax(1, (double)best_ns) / BATCH_UNITS;
}

void overlap_close(struct overlap *o)
{
    free(o->matrices);
    *o = (struct overlap){0};
}

/* Work that takes so long alone, cut to slices. */
struct overlap_work {
    uint64_t slices, units_each;
};

static struct overlap_work overlap_work(const struct overlap *o, uint64_t ns)
{
    double units = fmax(1, (double)ns / o->unit_ns);
    struct overlap_work work = {.slices = ns / OVERLAP_SLICE_NS ? ns / OVERLAP_SLICE_NS : 1};

    work.units_each = (uint64_t)fmax(1, round(units / (double)work.slices));
    return work;
}

static void overlap_slice(struct overlap *o, const struct overlap_work *work)
{
    for (uint64_t i = 0; i < work->units_each; i++)
        unit(o);
}

#define NAP_NS 50000000u /* a gap is slept through in naps, so that the channels are seen to */

/* Ours are done by this thread alone; libraries have threads of their own that move data. */
static uint64_t cpu_now_ns(const struct member *m)
{
    struct timespec t;

    if (clock_gettime(m->c.ops->own ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID, &t))
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What the readings around an operation add to its CPU time: it is measured beside each, as caches
 * and clocks differ. */
static uint64_t reading_ns(const struct member *m)
{
    uint64_t before_ns = cpu_now_ns(m);

    clock_now_ns();
    clock_now_ns();
    return cpu_now_ns(m) - before_ns;
}

static int blocking(struct member *m, bool batch)
{
    int err = 0;

    if (batch && !m->c.ops->run_batch)
        return collective_fail(&m->c, -EOPNOTSUPP,
                               "'%s' waits for each operation: leave --pipelined, --aggregate and "
                               "--graph out",
                               m->c.ops->name);
    if (batch)
        return m->c.ops->run_batch(&m->c);

    for (unsigned call = 0; call < m->c.n_calls && !err; call++)
        err = m->c.ops->run(&m->c, call);
    return err;
}

/* The calls that are on their way, one after another. */
struct flight {
    struct member *m;
    unsigned call;
    bool landed;
};

static int move_on(struct flight *f)
{
    const struct collective_ops *ops = f->m->c.ops;
    bool done = false;
    int err = f->landed ? 0 : ops->test(&f->m->c, &done);

    if (err || !done)
        return err;
    f->landed = ++f->call == f->m->c.n_calls;
    return f->landed ? 0 : ops->start(&f->m->c, f->call);
}

/* What stands still is told by the backend's test(); this only sees to the channels. The watchdog,
 * or the leader, ends what never lands. */
static int land(struct flight *f, uint64_t patience_ns)
{
    uint64_t begin_ns = clock_now_ns();
    int err = 0;

    while (!err && !f->landed) {
        err = move_on(f);
        if (!err && !f->landed && !f->m->c.ops->own) /* ours attend by themselves */
            err = f->m->c.attend(&f->m->c, 0);
        if (!err && clock_now_ns() - begin_ns > patience_ns)
            err = collective_fail(&f->m->c, -ETIMEDOUT, "an operation has not ended after %.0f s",
                                  (double)patience_ns / 1e9);
    }
    return err;
}

static int overlapped(struct member *m, const struct overlap_work *work, uint64_t patience_ns)
{
    struct flight f = {.m = m};
    int err = m->c.ops->start(&m->c, 0);

    for (uint64_t i = 0; i < work->slices && !err; i++) {
        overlap_slice(&m->overlap, work);
        err = move_on(&f);
        if (!err)
            err = m->c.attend(&m->c, 0);
    }
    return err ? err : land(&f, patience_ns);
}

static int sleep_through(struct member *m, uint64_t gap_ns)
{
    uint64_t begin_ns = clock_now_ns(), gone_ns = 0;
    int err = 0;

    for (; !err && gone_ns < gap_ns; gone_ns = clock_now_ns() - begin_ns) {
        uint64_t nap_ns = gap_ns - gone_ns < NAP_NS ? gap_ns - gone_ns : NAP_NS;
        nanosleep(&(struct timespec){.tv_nsec = (long)nap_ns}, NULL);
        err = m->c.attend(&m->c, 0);
    }
    return err;
}

static int open_overlap(struct member *m)
{
    if (!m->c.ops->start || !m->c.ops->test)
        return collective_fail(&m->c, -EOPNOTSUPP,
                               "'%s' has no operations that do not block: leave --overlap out",
                               m->c.ops->name);
    if (!m->overlap.matrices) {
        size_t floats = 3 * N * N;
        m->overlap = (struct overlap){.matrices = xaligned(64, floats * sizeof(float))};
        for (size_t i = 0; i < floats; i++)
            m->overlap.matrices[i] = (float)(i % 7) / 8;
        m->overlap.unit_ns = calibrate(&m->overlap); /* some milliseconds */
    }
    return 0;
}

/* Between two operations that are timed each by itself: none of it counts. */
static int part(struct member *m, const struct session_run *run, struct collective_times *times)
{
    uint64_t waited_ns = m->c.waited_ns, blocked_ns = m->c.blocked_ns;
    int err = run->gap_ns ? sleep_through(m, run->gap_ns) : 0;

    times->reading_ns += reading_ns(m);
    if (!err)
        err = m->c.ops->barrier(&m->c);
    m->c.waited_ns = waited_ns;
    m->c.blocked_ns = blocked_ns;
    return err;
}

static int operations(struct member *m, const struct session_run *run,
                      const struct overlap_work *work, struct collective_times *times)
{
    uint64_t patience_ns = member_patience_ns(m, COLLECTIVE_ASK_RUN, run);
    uint64_t first_ns = 0, from_ns = 0, to_ns = 0, batch = collective_batch(&m->point);
    /* A broadcast's root is done before the others have begun: one after another without a pause
     * they would tell a rate, not the time that one takes. */
    bool apart = run->gap_ns || collective_has_root(m->point.op);
    bool at_once = !apart && !run->overlap_ns && batch == 1 && m->c.ops->run_times;
    uint64_t each = at_once ? run->operations : batch;
    int err = 0;

    for (uint64_t i = 0; i < run->operations && !err; i += each) {
        bool first = !i || apart, last = i + each >= run->operations || apart;
        err = i && apart ? part(m, run, times) : 0;
        if (err)
            break;
        /* The clock is read inside of the CPU's, which costs more. */
        from_ns = first ? cpu_now_ns(m) : from_ns;
        first_ns = i ? first_ns : from_ns;
        times->ns -= first ? clock_now_ns() : 0;
        err = run->overlap_ns ? overlapped(m, work, patience_ns)
              : at_once       ? m->c.ops->run_times(&m->c, each)
                              : blocking(m, batch > 1);
        times->ns += last ? clock_now_ns() : 0;
        to_ns = last ? cpu_now_ns(m) : to_ns;
        times->cpu_ns += last ? to_ns - from_ns : 0;
    }
    times->span_cpu_ns = to_ns - first_ns;
    return err;
}

static int after_barrier(struct member *m, const struct session_run *run,
                         struct collective_times *times)
{
    struct overlap_work work = {0};
    int err = run->gap_ns ? sleep_through(m, run->gap_ns) : 0;

    if (err)
        return err;
    if (run->overlap_ns)
        work = overlap_work(&m->overlap, run->overlap_ns);
    times->reading_ns = reading_ns(m);
    uint64_t begin_ns = clock_now_ns();
    err = m->c.ops->barrier(&m->c);
    times->begin_ns = clock_now_ns();
    times->slack_ns = times->begin_ns - begin_ns;
    m->c.waited_ns = m->c.blocked_ns = 0;
    memset(m->c.own_ns, 0, sizeof(m->c.own_ns));
    if (!err)
        err = operations(m, run, &work, times);
    times->end_ns = clock_now_ns();
    times->waited_ns = m->c.waited_ns;
    times->blocked_ns = m->c.blocked_ns;
    memcpy(times->own_ns, m->c.own_ns, sizeof(times->own_ns));
    return err;
}

int member_run(struct member *m, const struct session_run *run, struct collective_times *times)
{
    *times = (struct collective_times){0};
    int err = run->overlap_ns ? open_overlap(m) : 0;
    if (err)
        return err;
    member_watch(m, COLLECTIVE_ASK_RUN, run);
    err = after_barrier(m, run, times);
    watchdog_rest(m->dog);
    if (err)
        return collective_fail(&m->c, err, "%s", strerror(-err));
    if (m->watch)
        gpu_watch_look(m->watch); /* between samples */
    m->ran = true;
    m->operation_ns = times->ns / run->operations + 1;
    return 0;
}

int member_overlap_alone(struct member *m, uint64_t overlap_ns, uint64_t *ns)
{
    if (m->c.ops->alone)
        return m->c.ops->alone(&m->c, ns);
    int err = open_overlap(m);
    if (err)
        return err;
    struct overlap_work work = overlap_work(&m->overlap, overlap_ns);
    uint64_t begin_ns = clock_now_ns();
    for (uint64_t i = 0; i < work.slices && !err; i++) {
        overlap_slice(&m->overlap, &work);
        err = m->c.attend(&m->c, 0);
    }
    *ns = clock_now_ns() - begin_ns;
    return err;
}

#define FRESH_SEED 1 /* more, for the operation that is checked */

int member_fill(struct member *m, uint64_t seed)
{
    int err = collective_fill(&m->c, seed);

    m->filled_seed = seed;
    m->ran = false;
    return err ? collective_fail(&m->c, err, "the input cannot be filled: %s", strerror(-err)) : 0;
}

int member_check(struct member *m)
{
    int err = m->ran && !m->point.in_place ? collective_compare(&m->c, m->filled_seed) : 0;

    if (!err)
        err = member_fill(m, m->filled_seed + FRESH_SEED);
    if (!err) {
        member_watch(m, COLLECTIVE_ASK_CHECK, NULL);
        err = m->c.ops->barrier(&m->c);
        /* In place, each operation of a batch takes the result of the one before. */
        if (!err)
            err = blocking(m, collective_batch(&m->point) > 1 && !m->point.in_place);
        watchdog_rest(m->dog);
    }
    if (!err)
        err = collective_compare(&m->c, m->filled_seed);
    return err ? collective_fail(&m->c, err, "%s", strerror(-err)) : 0;
}
