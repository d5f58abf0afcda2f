/* SPDX-License-Identifier: Apache-2.0 */
/* Teams: every thread runs once, at the same time as the others, on the CPU it was given; the time
 * of a run covers the slowest. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/hw/topo.h"

#define THREADS_MAX 8

struct machine {
    struct topo *topo;
    cpu_set_t before; /* the caller's affinity, put back after each test: a team binds its caller */
    unsigned cpus[THREADS_MAX]; /* usable ones, over again where there are fewer */
    unsigned n_cpus;
};

static int open_machine(void **state)
{
    struct machine *m = calloc(1, sizeof(*m));

    if (!m || sched_getaffinity(0, sizeof(m->before), &m->before) || topo_open(&m->topo))
        return -1;
    m->n_cpus = topo_cpus(m->topo) < THREADS_MAX ? topo_cpus(m->topo) : THREADS_MAX;
    if (topo_spread(m->topo, -1, m->n_cpus, m->cpus))
        return -1;
    for (unsigned i = m->n_cpus; i < THREADS_MAX; i++)
        m->cpus[i] = m->cpus[i % m->n_cpus];
    *state = m;
    return 0;
}

static int close_machine(void **state)
{
    struct machine *m = *state;
    int err = sched_setaffinity(0, sizeof(m->before), &m->before);

    topo_close(m->topo);
    free(m);
    return err;
}

struct record {
    _Atomic unsigned runs[THREADS_MAX];
    cpu_set_t allowed[THREADS_MAX];
    unsigned threads[THREADS_MAX];
};

static void write_down(void *arg, unsigned thread, unsigned threads)
{
    struct record *r = arg;

    atomic_fetch_add(&r->runs[thread], 1);
    r->threads[thread] = threads;
    sched_getaffinity(0, sizeof(r->allowed[thread]), &r->allowed[thread]);
}

static void check_team(const struct machine *m, unsigned n, unsigned runs)
{
    struct record *r = calloc(1, sizeof(*r));
    struct team *team;

    assert_int_equal(team_open(&team, m->topo, m->cpus, n), 0);
    assert_int_equal(team_size(team), n);
    for (unsigned i = 0; i < runs; i++) {
        uint64_t ns = 0;
        team_run(team, write_down, r, &ns, NULL);
        for (unsigned t = 0; t < n; t++)
            assert_int_equal(r->runs[t], i + 1); /* all are back when the run is */
        assert_true(ns > 0);
    }
    for (unsigned t = 0; t < n; t++) {
        assert_int_equal(r->threads[t], n);
        assert_int_equal(CPU_COUNT(&r->allowed[t]), 1);
        assert_true(CPU_ISSET(m->cpus[t], &r->allowed[t]));
    }
    team_close(team);
    free(r);
}

static void test_every_thread_runs_once_where_it_belongs(void **state)
{
    check_team(*state, 1, 50);
    check_team(*state, 2, 50);
    check_team(*state, 3, 20);
    check_team(*state, THREADS_MAX, 5); /* more than this machine has CPUs, perhaps */
}

static void test_threads_that_fell_asleep_wake(void **state)
{
    const struct machine *m = *state;
    struct record *r = calloc(1, sizeof(*r));
    struct timespec nap = {0, 20000000}; /* longer than they spin */
    struct team *team;
    uint64_t ns;

    assert_int_equal(team_open(&team, m->topo, m->cpus, 2), 0);
    for (unsigned i = 1; i <= 5; i++) {
        nanosleep(&nap, NULL);
        team_run(team, write_down, r, &ns, NULL);
        assert_int_equal(r->runs[1], i);
        assert_true(ns < 10000000000); /* of the run, not of the nap and more */
    }
    nanosleep(&nap, NULL);
    team_close(team); /* asleep ones leave too */
    free(r);
}

struct meeting {
    _Atomic unsigned here;
    _Atomic unsigned met;
};

/* Waits, for ten seconds at most, until all are here. */
static void meet(void *arg, unsigned thread, unsigned threads)
{
    struct meeting *m = arg;
    uint64_t end_ns = clock_now_ns() + 10000000000;

    (void)thread;
    atomic_fetch_add(&m->here, 1);
    while (atomic_load(&m->here) < threads && clock_now_ns() < end_ns)
        sched_yield();
    if (atomic_load(&m->here) == threads)
        atomic_fetch_add(&m->met, 1);
}

static void test_threads_run_at_the_same_time(void **state)
{
    const struct machine *m = *state;
    struct meeting meeting = {0};
    struct team *team;
    uint64_t ns;

    assert_int_equal(team_open(&team, m->topo, m->cpus, 4), 0);
    team_run(team, meet, &meeting, &ns, NULL);
    assert_int_equal(meeting.met, 4);
    team_close(team);
}

static void sleep_by_number(void *arg, unsigned thread, unsigned threads)
{
    const unsigned *sleep_ms = arg;
    struct timespec nap = {0, (long)sleep_ms[thread] * 1000000};

    (void)threads;
    nanosleep(&nap, NULL);
}

/* Does the thread that sleeps longest take longest? */
static bool run_naps(struct team *team, const unsigned *naps)
{
    uint64_t ns = 0, each[3] = {0}, slowest = 0;
    bool own = true;

    team_run(team, sleep_by_number, (void *)naps, &ns, each);
    for (unsigned t = 0; t < 3; t++) {
        assert_true(each[t] >= naps[t] * UINT64_C(1000000));
        slowest = each[t] > slowest ? each[t] : slowest;
    }
    assert_true(slowest >= 30000000);
    assert_true(ns >= slowest);
    for (unsigned t = 0; t < 3; t++)
        own &= naps[t] == 30 || each[t] < slowest;
    return own;
}

static void test_time_covers_the_slowest(void **state)
{
    static const unsigned naps[][3] = {{1, 2, 30}, {30, 2, 1}, {2, 30, 1}};
    const struct machine *m = *state;
    struct team *team;

    assert_int_equal(team_open(&team, m->topo, m->cpus, 3), 0);
    for (size_t i = 0; i < sizeof(naps) / sizeof(naps[0]); i++) {
        bool own = false;
        for (unsigned go = 0; go < 20 && !own;
             go++) /* other work may keep a short sleeper waiting */
            own = run_naps(team, naps[i]);
        assert_true(own); /* each has its own time */
    }
    team_close(team);
}

/* A thread that ends last though it took no longer, since it began late, is in the time too: the
 * time is from the first start to the last end, not the longest of the threads' own. */
static void test_time_is_from_first_start_to_last_end(void **state)
{
    static const unsigned naps[] = {5, 5};
    const struct machine *m = *state;
    struct team *team;
    uint64_t ns = 0, each[2] = {0};

    assert_int_equal(team_open(&team, m->topo, m->cpus, 2), 0);
    uint64_t begin = clock_now_ns();
    team_run(team, sleep_by_number, (void *)naps, &ns, each);
    uint64_t outside = clock_now_ns() - begin;
    assert_true(ns >= each[0] && ns >= each[1]);
    assert_true(ns <= outside); /* and nothing of before or after */
    team_close(team);
}

static void do_nothing(void *arg, unsigned thread, unsigned threads)
{
    (void)arg;
    (void)thread;
    (void)threads;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Waking a sleeping thread takes much longer than to do nothing; that it woke late is not in the
 * time, since all start together. Other work on the machine lengthens the one or the other: the
 * best quarter of the runs is looked at, each by itself. */
static void test_common_start(void **state)
{
    enum { RUNS = 101 };
    const struct machine *m = *state;
    struct timespec nap = {0, 3000000};
    double shares[RUNS];
    struct team *team;

    if (m->n_cpus < 2) {
        print_message("one CPU: its threads take turns\n");
        skip();
    }
    assert_int_equal(team_open(&team, m->topo, m->cpus, 2), 0);
    for (int i = 0; i < RUNS; i++) {
        nanosleep(&nap, NULL);
        uint64_t ns, begin_ns = clock_now_ns();
        team_run(team, do_nothing, NULL, &ns, NULL);
        shares[i] = (double)ns / (double)(clock_now_ns() - begin_ns);
    }
    team_close(team);
    qsort(shares, RUNS, sizeof(*shares), by_value);
    if (!(shares[RUNS / 4] < 1. / 3))
        fail_msg("what is timed is %.3g of a run", shares[RUNS / 4]);
}

/* The threads of this process; each has an entry in task/. */
static unsigned count_threads(void)
{
    unsigned n = 0;
    DIR *tasks = opendir("/proc/self/task");

    assert_non_null(tasks);
    for (const struct dirent *task; (task = readdir(tasks)) != NULL;)
        n += task->d_name[0] != '.';
    closedir(tasks);
    return n;
}

static void test_errors_leave_nothing_behind(void **state)
{
    const struct machine *m = *state;
    struct team *team = NULL;
    unsigned first_bad[] = {1000000, m->cpus[0]};
    unsigned later_bad[] = {m->cpus[0], m->cpus[0], 1000000, m->cpus[0]};
    unsigned before = count_threads();

    assert_int_equal(team_open(&team, m->topo, m->cpus, 0), -EINVAL);
    assert_true(team_open(&team, m->topo, first_bad, 2) < 0);
    assert_true(team_open(&team, m->topo, later_bad, 4) < 0);
    assert_null(team);
    /* A joined thread may still be listed for a moment. */
    for (int tries = 0; tries < 1000 && count_threads() != before; tries++)
        usleep(1000);
    assert_int_equal(count_threads(), before);
    team_close(NULL);
}

#define test(name) cmocka_unit_test_setup_teardown(name, open_machine, close_machine)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_every_thread_runs_once_where_it_belongs),
        test(test_threads_that_fell_asleep_wake),
        test(test_threads_run_at_the_same_time),
        test(test_time_covers_the_slowest),
        test(test_time_is_from_first_start_to_last_end),
        test(test_common_start),
        test(test_errors_leave_nothing_behind),
    };

    alarm(240); /* threads that wait for one another for ever */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
