/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds of processes that meet over sockets: who is let in, who is not, and who is told. */
/* waits: for ranks that do not come */
#include "tests/unit/world_meeting.h"

static void test_gather_out_of_order(void **state)
{
    uint8_t key[WORLD_KEY_BYTES];

    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        struct meeting m = {0};
        add(&m, (struct joiner){.rank = 3, .size = 4});
        add(&m, (struct joiner){.rank = 1, .size = 4, .after_ns = SECOND_NS / 2});
        add(&m, (struct joiner){.rank = 2, .size = 4, .after_ns = SECOND_NS / 4});
        hold(&m, 4, 60 * SECOND_NS);
        check_world(&m, 4);
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
    snprintf(said, sizeof(said), "process %d of ", (int)in);
    assert_non_null(strstr(out->report.error, said));
    assert_non_null(strstr(m.log, said));
    part(&m);
}

/* Another number of ranks, no such rank, rank 0 itself, another secret: each is told so, and the right one gets in. */
static void test_numbers_that_are_wrong(void **state)
{
    struct meeting m = {0};

    (void)state;
    add(&m, (struct joiner){.rank = 1, .size = 4});
    add(&m, (struct joiner){.rank = 2, .size = 2});
    add(&m, (struct joiner){.rank = 0, .size = 2});
    add(&m, (struct joiner){.rank = 1, .size = 2, .secret = &other_secret});
    add(&m, (struct joiner){.rank = 1, .size = 2, .behind = 4});
    hold(&m, 2, 60 * SECOND_NS);
    check_world(&m, 2);
    assert_int_equal(m.joiners[0].report.err, -EINVAL);
    assert_non_null(strstr(m.log, "4 processes"));
    assert_int_equal(m.joiners[1].report.err, -ERANGE);
    assert_non_null(strstr(m.log, "rank 2"));
    assert_int_equal(m.joiners[2].report.err, -EEXIST);
    assert_int_equal(reported(&m.joiners[3])->err, -EACCES);
    assert_int_equal(m.joiners[4].report.err, 0);
    part(&m);
}

static void test_missing_are_named(void **state)
{
    struct meeting m = {0};

    (void)state;
    add(&m, (struct joiner){.rank = 2, .size = 4});
    hold(&m, 4, 2 * SECOND_NS);
    assert_int_equal(m.err, -ETIMEDOUT);
    assert_non_null(strstr(m.error, "1 and 3 of 4"));
    assert_null(m.world);
    assert_int_equal(reported(&m.joiners[0])->err, -ETIMEDOUT);
    assert_non_null(strstr(m.joiners[0].report.error, "1 and 3 of 4"));
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
        if (s > 16 || !strstr(m.error, "1 and 2 of 3"))
            break;
        part(&m);
    }
    assert_non_null(strstr(m.error, "rank 2 of 3"));
    assert_int_equal(reported(&m.joiners[0])->err, -ECANCELED); /* -EINTR: who was told to stop */
    part(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gather_out_of_order),
        cmocka_unit_test(test_same_rank_twice),
        cmocka_unit_test(test_numbers_that_are_wrong),
        cmocka_unit_test(test_missing_are_named),
        cmocka_unit_test(test_one_that_left_may_come_again),
        cmocka_unit_test(test_another_program_is_turned_away),
        cmocka_unit_test(test_cancelled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
