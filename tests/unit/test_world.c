/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds of forked processes: who is there, who has died, and that nobody is left behind. */
#include "tests/unit/worlds.h"

enum { REPORT = 1, END_WITH_3, BE_STUBBORN };

static int be_forked(struct world *w, void *arg)
{
    struct report r = {.err = *(int *)arg};
    uint16_t type = 0;
    size_t n;
    int err = 0;

    while (!err) {
        err = channel_recv(world_channel(w, 0), &type, NULL, 0, &n, 60 * SECOND_NS);
        if (!err && type == REPORT) {
            report_world(&r, w);
            err = channel_send(world_channel(w, 0), REPORT, &r, sizeof(r));
        }
        if (!err && type == END_WITH_3)
            return 3;
        for (; !err && type == BE_STUBBORN;)
            pause();
    }
    return 0;
}

static struct world *fork_world(unsigned size)
{
    static int known_to_all = 4711;
    char error[MEET_ERROR_BYTES] = "";
    struct world *w = NULL;

    int err = world_fork(&w, size, be_forked, &known_to_all, error, sizeof(error));
    if (err)
        print_message("%s\n", error);
    assert_int_equal(err, 0);
    return w;
}

static void tell(struct world *w, unsigned rank, uint16_t what)
{
    assert_int_equal(channel_send(world_channel(w, rank), what, NULL, 0), 0);
}

static void hear_report(struct world *w, unsigned rank, struct report *r)
{
    uint16_t type = 0;
    size_t n = 0;
    struct channel *c = world_channel(w, rank);

    assert_int_equal(channel_recv(c, &type, r, sizeof(*r), &n, 30 * SECOND_NS), 0);
    assert_int_equal(n, sizeof(*r));
}

static void check_forked(struct world *w, unsigned rank, const struct report *own, unsigned sockets)
{
    struct report r;

    hear_report(w, rank, &r);
    assert_int_equal(r.err, 4711);
    assert_int_equal(r.rank, rank);
    assert_int_equal(r.size, world_size(w));
    assert_int_equal(r.nodes, 1);
    assert_int_equal(r.sockets, sockets + 1); /* its own channel, and none of the others' */
    assert_memory_equal(r.key, own->key, sizeof(r.key));
    assert_memory_equal(r.members, own->members, sizeof(r.members));
}

static void test_fork_sizes(void **state)
{
    static const unsigned sizes[] = {1, 2, 5, 64};
    unsigned sockets = count_sockets(getpid());

    (void)state;
    for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
        struct world *w = fork_world(sizes[k]);
        struct report own = {0};
        report_world(&own, w);
        assert_int_equal(own.rank, 0);
        assert_int_equal(own.size, sizes[k]);
        assert_string_equal(world_group(w), "local");
        assert_null(world_channel(w, 0));
        assert_null(world_channel(w, sizes[k]));
        assert_int_equal(world_member(w, 0)->pid, getpid());
        for (unsigned i = 1; i < sizes[k]; i++)
            tell(w, i, REPORT);
        for (unsigned i = 1; i < sizes[k]; i++) {
            check_forked(w, i, &own, sockets);
            assert_int_equal(getpgid(world_member(w, i)->pid), getpgrp());
            assert_int_equal(world_member(w, i)->machine_rank, i);
            assert_int_equal(world_member(w, i)->local, i);
            assert_int_equal(world_member(w, i)->machine_ranks, sizes[k]);
            assert_int_equal(world_member(w, i)->address.ss_family, AF_INET);
        }
        world_close(w);
        assert_int_equal(count_sockets(getpid()), sockets);
    }
}

static void test_sizes_that_are_none(void **state)
{
    char error[MEET_ERROR_BYTES] = "";
    struct world *w = NULL;

    (void)state;
    assert_int_equal(world_fork(&w, 0, be_forked, NULL, error, sizeof(error)), -EINVAL);
    assert_non_null(strstr(error, "0 processes"));
    assert_int_equal(world_fork(&w, WORLD_RANKS_MAX + 1, be_forked, NULL, error, sizeof(error)),
                     -EINVAL);
    assert_null(w);
    world_close(NULL);
}

static void test_keys_differ(void **state)
{
    struct world *a = fork_world(1), *b = fork_world(1);

    (void)state;
    assert_memory_not_equal(world_key(a), world_key(b), WORLD_KEY_BYTES);
    world_close(a);
    world_close(b);
}

static void test_dead_child_is_named(void **state)
{
    char error[MEET_ERROR_BYTES] = "", name[100];
    struct world *w = fork_world(5);
    unsigned rank = 99;
    uint16_t type;
    size_t n;

    (void)state;
    assert_int_equal(world_alive(w, &rank, error, sizeof(error)), 0);
    assert_true(world_member(w, 3)->pid > 1); /* or more than it is killed */
    kill(world_member(w, 3)->pid, SIGKILL);
    assert_int_equal(missed(w, &rank, error), -ECONNRESET);
    assert_int_equal(rank, 3);
    assert_non_null(strstr(error, "signal 9"));
    world_name(w, 3, name, sizeof(name));
    assert_int_equal(strncmp(name, "rank 3 (", 8), 0);
    assert_non_null(strstr(error, name));
    struct channel *c = world_channel(w, 3);
    assert_int_equal(channel_recv(c, &type, NULL, 0, &n, 10 * SECOND_NS), -ECONNRESET);
    assert_non_null(strstr(channel_error(c), name));
    tell(w, 4, REPORT); /* the others live on */
    struct report r;
    hear_report(w, 4, &r);
    world_close(w);
}

static void test_ended_child_is_named(void **state)
{
    char error[MEET_ERROR_BYTES] = "";
    struct world *w = fork_world(3);
    unsigned rank = 99;

    (void)state;
    tell(w, 1, END_WITH_3);
    assert_int_equal(missed(w, &rank, error), -ECONNRESET);
    assert_int_equal(rank, 1);
    assert_non_null(strstr(error, "rank 1 ("));
    assert_non_null(strstr(error, "exit status 3"));
    world_close(w);
}

/* Those that do not end by themselves are killed, all in the time of one: one after the other would take them 60 s. */
#define STUBBORN 61

static void test_close_ends_the_stubborn(void **state)
{
    struct world *w = fork_world(STUBBORN);
    pid_t pids[STUBBORN];

    (void)state;
    for (unsigned i = 1; i < STUBBORN; i++) {
        pids[i] = world_member(w, i)->pid;
        tell(w, i, BE_STUBBORN);
    }
    usleep(200000);
    uint64_t begin_ns = clock_now_ns();
    world_close(w);
    assert_true(clock_now_ns() - begin_ns < 45 * SECOND_NS);
    for (unsigned i = 1; i < STUBBORN; i++)
        assert_int_equal(kill(pids[i], 0), -1);
}

/* A process with a world of its own tells who they are, then stands still. */
static void lead_and_wait(int fd)
{
    struct world *w = fork_world(5);
    pid_t pids[5];

    for (unsigned i = 0; i < 5; i++)
        pids[i] = world_member(w, i)->pid;
    tell(w, 4, BE_STUBBORN);
    if (write(fd, pids, sizeof(pids)) == sizeof(pids))
        for (;;)
            pause();
    _exit(1);
}

static void test_no_orphans(void **state)
{
    pid_t pids[5];
    int fds[2];

    (void)state;
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t leader = test_fork();
    if (leader == 0)
        lead_and_wait(fds[1]);
    close(fds[1]);
    assert_int_equal(read(fds[0], pids, sizeof(pids)), sizeof(pids));
    assert_int_equal(pids[0], leader);
    kill(leader, SIGKILL);
    waitpid(leader, NULL, 0);
    for (unsigned i = 1; i < 5; i++)
        assert_true(is_gone(pids[i]));
    close(fds[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_sizes),           cmocka_unit_test(test_sizes_that_are_none),
        cmocka_unit_test(test_keys_differ),          cmocka_unit_test(test_dead_child_is_named),
        cmocka_unit_test(test_ended_child_is_named), cmocka_unit_test(test_close_ends_the_stubborn),
        cmocka_unit_test(test_no_orphans),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
