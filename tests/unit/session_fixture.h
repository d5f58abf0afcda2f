/* SPDX-License-Identifier: Apache-2.0 */
/* A world of forked ranks, the session that leads them over the fake backend, and a point. */
#ifndef PLUMB_TESTS_SESSION_FIXTURE_H
#define PLUMB_TESTS_SESSION_FIXTURE_H

#include <sys/wait.h>

#include "core/clock.h"
#include "core/group/channel.h"
#include "core/group/world.h"
#include "core/session/member.h"
#include "tests/unit/fake_collective.h"
#include "tests/unit/unit.h"

struct fixture {
    struct world *w;
    struct topo *topo;
    struct session *s;
    struct collective_point point;
    struct collective_call call;
};

static const unsigned all_ranks[FAKE_RANKS] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

static inline void fork_ranks(struct fixture *f, unsigned size, world_fn *serve,
                              collective_find_fn *find)
{
    struct session_service service = {.find = find};
    char error[256] = "";

    memset(f, 0, sizeof(*f));
    fake_setup();
    if (world_fork(&f->w, size, serve, &service, error, sizeof(error)))
        fail_msg("%s", error);
    assert_int_equal(topo_open(&f->topo), 0);
}

static inline void open_session(struct fixture *f, collective_find_fn *find)
{
    assert_int_equal(session_open(&f->s, f->w, f->topo, 0), 0);
    session_find(f->s, find);
    f->point = (struct collective_point){.backend = "fake",
                                         .op = COLLECTIVE_ALLREDUCE,
                                         .type = COLLECTIVE_F32,
                                         .count = 4096,
                                         .seed = 17};
}

static inline void start(struct fixture *f, unsigned size)
{
    fork_ranks(f, size, session_serve, fake_find);
    open_session(f, fake_find);
}

static inline void stop(struct fixture *f)
{
    session_close(f->s);
    world_close(f->w);
    topo_close(f->topo);
}

static inline int begin_with(struct fixture *f, const unsigned *members, unsigned n)
{
    f->call = (struct collective_call){.count = f->point.count};
    return session_begin(f->s, &f->point, members, n, &f->call, 1);
}

static inline int begin(struct fixture *f, unsigned n)
{
    return begin_with(f, all_ranks, n);
}

static inline int run(struct fixture *f, uint64_t operations)
{
    const struct collective_times *times;
    struct session_run what = {.operations = operations};
    uint64_t slowest;

    return session_run(f->s, &what, &times, &slowest);
}

static inline void ok(const struct fixture *f, int err)
{
    if (err)
        fail_msg("%s", session_error(f->s));
}

#define OK(call) ok(&f, call)

static inline void assert_said(const struct fixture *f, const char *text)
{
    assert_says(session_error(f->s), text);
}

/* A whole point that is right. */
static inline int whole(struct fixture *f, unsigned n)
{
    int err = begin(f, n);

    if (!err)
        err = run(f, 2);
    if (!err)
        err = session_mark(f->s);
    if (!err)
        err = run(f, 3);
    if (!err)
        err = session_end(f->s);
    session_finish(f->s);
    return err;
}

/* Two nodes on one machine, as the world might have found them. */
static inline void make_two_nodes(struct fixture *f)
{
    for (unsigned i = 2; i < 4; i++) {
        f->w->members[i].node = 1;
        strcpy(f->w->members[i].host, "node2");
    }
    f->w->nodes = 2;
}

/* A world that a launcher of MPI started. */
static inline void start_beside(struct fixture *f, unsigned size)
{
    fork_ranks(f, size, session_serve, fake_find);
    f->w->group = "mpi";
    open_session(f, fake_find);
    strcpy(f->point.backend, "fake-deaf");
}

/* In a child: who has abandoned a helper ends in a way of its own. */
static inline int status_in_child(unsigned size, void (*test)(struct fixture *f))
{
    int status = 0;
    pid_t child = fork();

    if (!child) {
        struct fixture f;
        start_beside(&f, size);
        test(&f);
        exit(0);
    }
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static inline void in_child(unsigned size, void (*test)(struct fixture *f))
{
    assert_int_equal(status_in_child(size, test), 0);
}

static inline void need(const struct fixture *f, bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "%s: '%s'\n", what, session_error(f->s));
    exit(1);
}

#endif
