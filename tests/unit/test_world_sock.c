/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds of processes that meet over sockets: who is let in, who is not, and who is told. */
/* waits: for ranks that do not come */
#include "tests/unit/world_meeting.h"

static void test_gather_out_of_order(void **state)
{
    struct meeting m = {0};
    uint8_t key[WORLD_KEY_BYTES];

    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        m = (struct meeting){0};
        add(&m, (struct joiner){.rank = 3, .size = 4});
        add(&m, (struct joiner){.rank = 1, .size = 4, .after_ns = SECOND_NS / 2});
        add(&m, (struct joiner){.rank = 2, .size = 4, .after_ns = SECOND_NS / 4});
        hold(&m, 4, 60 * SECOND_NS);
        check_world(&m, 4);
        assert_string_equal(world_group(m.world), "sock");
        assert_memory_not_equal(world_key(m.world), test_secret.bytes, WORLD_KEY_BYTES);
        if (turn)
            assert_memory_not_equal(world_key(m.world), key, WORLD_KEY_BYTES);
        memcpy(key, world_key(m.world), sizeof(key));
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(world_member(m.world, i)->address.ss_family, AF_INET);
            assert_int_equal(world_member(m.world, i)->machine_ranks, 4);
        }
        part(&m);
    }
}

static void test_gather_of_one(void **state)
{
    struct meeting m = {0};

    (void)state;
    hold(&m, 1, SECOND_NS);
    check_world(&m, 1);
    part(&m);
}

static void test_wrong_secret(void **state)
{
    struct meeting m = {0};

    (void)state;
    add(&m, (struct joiner){.rank = 1, .size = 2, .secret = &other_secret});
    add(&m, (struct joiner){.rank = 1, .size = 2, .behind = 1});
    hold(&m, 2, 60 * SECOND_NS);
    check_world(&m, 2);
    assert_int_equal(world_member(m.world, 1)->pid, m.joiners[1].pid);
    assert_int_equal(reported(&m.joiners[0])->err, -EACCES);
    assert_non_null(strstr(m.log, "does not know this session's secret"));
    part(&m);
}

/* Whichever of the two came first stays, and the other one is told of it. */
static void test_same_rank_twice(void **state)
{
    struct meeting m = {0};
    char said[64];

    (void)state;
    add(&m, (struct joiner){.rank = 1, .size = 3});
    add(&m, (struct joiner){.rank = 1, .size = 3, .after_ns = SECOND_NS / 4});
    add(&m, (struct joiner){.rank = 2, .size = 3, .behind = 1});
    hold(&m, 3, 60 * SECOND_NS);
    check_world(&m, 3);
    const pid_t in = world_member(m.world, 1)->pid;
    const struct joiner *out = &m.joiners[in == m.joiners[0].pid];
    assert_int_equal(in, m.joiners[out == &m.joiners[0]].pid);
    assert_int_equal(out->report.err, -EEXIST);
    snprintf(said, sizeof(said), "rank 1 has come already, as process %d of ", (int)in);
    assert_non_null(strstr(out->report.error, said));
    assert_non_null(strstr(m.log, said));
    part(&m);
}

static void test_numbers_that_are_wrong(void **state)
{
    struct meeting m = {0};

    (void)state;
    add(&m, (struct joiner){.rank = 1, .size = 4});
    add(&m, (struct joiner){.rank = 2, .size = 2});
    add(&m, (struct joiner){.rank = 0, .size = 2});
    add(&m, (struct joiner){.rank = 1, .size = 2, .behind = 3});
    hold(&m, 2, 60 * SECOND_NS);
    check_world(&m, 2);
    assert_int_equal(m.joiners[0].report.err, -EINVAL);
    assert_non_null(strstr(m.joiners[0].report.error, "expects 4 processes, rank 0 expects 2"));
    assert_non_null(strstr(m.log, "expects 4 processes, rank 0 expects 2"));
    assert_int_equal(m.joiners[1].report.err, -ERANGE);
    assert_non_null(strstr(m.joiners[1].report.error, "rank 2 is out of range"));
    assert_non_null(strstr(m.log, "rank 2 is out of range"));
    assert_int_equal(m.joiners[2].report.err, -EEXIST);
    assert_int_equal(m.joiners[3].report.err, 0);
    part(&m);
}

static void test_missing_are_named(void **state)
{
    static const char said[] = "ranks 1 and 3 of 4 have not come in 2 s";
    struct meeting m = {0};

    (void)state;
    add(&m, (struct joiner){.rank = 2, .size = 4});
    hold(&m, 4, 2 * SECOND_NS);
    assert_int_equal(m.err, -ETIMEDOUT);
    assert_string_equal(m.error, said);
    assert_null(m.world);
    assert_int_equal(reported(&m.joiners[0])->err, -ETIMEDOUT);
    assert_non_null(strstr(m.joiners[0].report.error, said));
    part(&m);
}

static void test_one_that_left_may_come_again(void **state)
{
    struct meeting m = {0};

    (void)state;
    add(&m, (struct joiner){.rank = 1, .size = 3, .leaves = true});
    add(&m, (struct joiner){.rank = 1, .size = 3, .behind = 1, .after_ns = SECOND_NS});
    add(&m, (struct joiner){.rank = 2, .size = 3, .behind = 1, .after_ns = SECOND_NS * 2});
    hold(&m, 3, 60 * SECOND_NS);
    check_world(&m, 3);
    assert_int_equal(world_member(m.world, 1)->pid, m.joiners[1].pid);
    assert_non_null(strstr(m.log, "has left: rank 1 ("));
    part(&m);
}

/* Each would have its place for 2 s: all of them, 18 s. */
static void test_strangers_do_not_keep_ranks_out(void **state)
{
    struct meeting m = {.strangers = 600};

    (void)state;
    add(&m, (struct joiner){.rank = 2, .size = 3, .after_ns = SECOND_NS / 5});
    add(&m, (struct joiner){.rank = 1, .size = 3, .after_ns = SECOND_NS / 2});
    unsigned sockets = count_sockets(getpid());
    hold(&m, 3, 12 * SECOND_NS);
    check_world(&m, 3);
    assert_int_equal(count_sockets(getpid()), sockets + 2);
    part(&m);
}

/* One that knows the secret and is another program, or says nothing of its rank. */
static void be_another_program(uint16_t port)
{
    struct meet_connect to = {.host = "127.0.0.1",
                              .port = port,
                              .secret = &test_secret,
                              .protocol = TEST_PROTOCOL,
                              .wait_ns = SECOND_NS};
    char error[MEET_ERROR_BYTES];
    struct channel *c;

    close_files_but(-1);
    if (!meet_connect(&to, &c, error, sizeof(error)))
        channel_send(c, WORLD_HELLO, "what is this", 12);
    pause();
    _exit(0);
}

static void start_with_another_program(void *arg, const char *address, uint16_t port)
{
    if (test_fork() == 0)
        be_another_program(port);
    start_all(arg, address, port);
}

static void test_another_program_is_turned_away(void **state)
{
    struct meeting m = {.ready = start_with_another_program};

    (void)state;
    add(&m, (struct joiner){.rank = 1, .size = 2, .after_ns = SECOND_NS});
    hold(&m, 2, 60 * SECOND_NS);
    check_world(&m, 2);
    assert_non_null(strstr(m.log, "spoke out of turn"));
    part(&m);
}

static void test_cancelled(void **state)
{
    struct meeting m;

    (void)state;
    signal(SIGALRM, on_term);
    for (unsigned s = 1;; s *= 2) { /* on a busy machine rank 1 may take longer to come */
        m = (struct meeting){0};
        alarm(s);
        add(&m, (struct joiner){.rank = 1, .size = 3});
        hold(&m, 3, 60 * SECOND_NS);
        assert_int_equal(m.err, -EINTR);
        if (s > 16 || strcmp(m.error, "stopped while waiting for ranks 1 and 2 of 3") != 0)
            break;
        part(&m);
    }
    assert_string_equal(m.error, "stopped while waiting for rank 2 of 3");
    assert_int_equal(reported(&m.joiners[0])->err, -ECANCELED); /* -EINTR: who was told to stop */
    part(&m);
}

/* While nobody listens, and while others are still to come. */
static void test_joiner_cancelled(void **state)
{
    struct meeting m = {0};

    (void)state;
    need_library();
    add(&m, (struct joiner){.rank = 1, .size = 2});
    start_joiner(&m, 0, 1); /* nobody listens there */
    usleep(500000);
    kill(m.joiners[0].pid, SIGTERM);
    assert_int_equal(reported(&m.joiners[0])->err, -EINTR);
    waitpid(m.joiners[0].pid, NULL, 0);

    m = (struct meeting){0};
    add(&m, (struct joiner){.rank = 1, .size = 3, .stops = true});
    hold(&m, 3, 3 * SECOND_NS);
    assert_string_equal(m.error, "ranks 1 and 2 of 3 have not come in 3 s");
    assert_int_equal(reported(&m.joiners[0])->err, -EINTR);
    part(&m);
}

static void test_dead_rank_is_named(void **state)
{
    struct meeting m = {0};
    unsigned rank = 99;

    (void)state;
    add(&m, (struct joiner){.rank = 1, .size = 3});
    add(&m, (struct joiner){.rank = 2, .size = 3});
    hold(&m, 3, 60 * SECOND_NS);
    check_world(&m, 3);
    assert_int_equal(world_alive(m.world, &rank, m.error, sizeof(m.error)), 0);
    kill(m.joiners[1].pid, SIGKILL);
    assert_int_equal(missed(m.world, &rank, m.error), -ECONNRESET);
    assert_int_equal(rank, 2);
    assert_non_null(strstr(m.error, "rank 2 ("));
    part(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather_out_of_order),
        cmocka_unit_test(test_gather_of_one),
        cmocka_unit_test(test_wrong_secret),
        cmocka_unit_test(test_same_rank_twice),
        cmocka_unit_test(test_numbers_that_are_wrong),
        cmocka_unit_test(test_missing_are_named),
        cmocka_unit_test(test_one_that_left_may_come_again),
        cmocka_unit_test(test_strangers_do_not_keep_ranks_out),
        cmocka_unit_test(test_another_program_is_turned_away),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_joiner_cancelled),
        cmocka_unit_test(test_dead_rank_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
