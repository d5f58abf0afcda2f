/* SPDX-License-Identifier: Apache-2.0 */
/* The session when something is wrong: data, requests, replies, and ranks that refuse, hang or are gone. Who is named, and who goes on. */
/* waits: for ranks that hang */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/late_channel.h"
#include "tests/unit/session_fixture.h"

/* With what a machine may take that others use, to come to its readings, and to end. */
#define FAULT_NS (BEAT_NAMED_NS + 50000000000u)
#define SEEN_NS  6000000000u /* by those who look, before anything has stood still for too long */

static void run_to_fault(struct fixture *f, int err, uint64_t most_ns)
{
    uint64_t begin_ns = clock_now_ns();
    int got = run(f, 3);

    assert_true(clock_now_ns() - begin_ns < most_ns);
    if (got != err)
        fail_msg("%d, not %d: %s", got, err, session_error(f->s));
    session_finish(f->s);
    assert_true(clock_now_ns() - begin_ns < FAULT_NS);
}

/* The third run of rank 2, which the check looks at first; and the fresh one, which comes after it. */
static void test_wrong_data(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 4);
    for (fake->fault_run = 2; fake->fault_run < 4; fake->fault_run++) {
        fake->fault = FAKE_WRONG;
        fake->fault_rank = 2;
        OK(begin(&f, 4));
        OK(session_mark(f.s));
        OK(run(&f, 3));
        assert_int_equal(session_end(f.s), -EBADMSG);
        assert_said(&f, "rank 2 (");
        assert_said(&f, ": element 7 of 4096 is ");
        assert_said(&f, ", must be ");
        assert_non_null(session_report(f.s, 0));
        session_finish(f.s);
        assert_said(&f, "rank 2 (");
    }
    fake->fault = FAKE_LAZY; /* what it had was right, and is not any more */
    fake->fault_run = 5;
    assert_int_equal(whole(&f, 4), -EBADMSG);
    assert_said(&f, "rank 2 (");
    fake->fault = FAKE_SOUND;
    f.point.inject = COLLECTIVE_CORRUPT;
    assert_int_equal(whole(&f, 4), -EBADMSG);
    assert_said(&f, "element 2048 of 4096");
    const struct collective_call calls[] = {{0, 100}, {100, 200}};
    OK(session_begin(f.s, &f.point, all_ranks, 4, calls, 2));
    OK(session_mark(f.s));
    assert_int_equal(session_end(f.s), -EBADMSG);
    assert_said(&f, "call 1 of 2: element 50 of 100 is ");
    f.point.inject = COLLECTIVE_SOUND;
    assert_false(session_broken(f.s));
    OK(whole(&f, 4));
    stop(&f);
}

static void test_refused(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 4);
    fake->fault = FAKE_NO_OPEN;
    fake->fault_rank = 3;
    assert_int_equal(begin(&f, 4), -ENODEV);
    assert_said(&f, "rank 3 (");
    assert_said(&f, "): fake: no device here");
    OK(whole(&f, 2)); /* of which it is none */
    fake->fault_rank = 0;
    assert_int_equal(begin(&f, 4), -ENODEV);
    assert_said(&f, "rank 0 (");
    fake->fault = FAKE_FAILS;
    fake->fault_rank = 1;
    fake->fault_run = 0;
    OK(begin(&f, 4));
    assert_int_equal(run(&f, 1), -EIO);
    assert_said(&f, "rank 1 (");
    assert_said(&f, "): fake: the cable is out");
    fake->fault = FAKE_SOUND;
    strcpy(f.point.backend, "none");
    assert_int_equal(begin(&f, 4), -EOPNOTSUPP);
    assert_said(&f, "knows no backend 'none'");
    strcpy(f.point.backend, "fake");
    assert_false(session_broken(f.s));
    OK(whole(&f, 4));
    stop(&f);
}

static void await(struct channel *c, uint16_t type, int err)
{
    char in[CHANNEL_FRAME_MAX];
    const struct talk_head *head = (const void *)in;
    uint16_t got = 0;
    size_t n = 0;

    assert_int_equal(channel_recv(c, &got, in, sizeof(in), &n, CHANNEL_WAIT_NS), 0);
    assert_int_equal(got, type | TALK_REPLY);
    assert_true(n >= sizeof(*head));
    assert_int_equal(head->err, err);
}

static void ask(struct channel *c, uint16_t type, const void *data, size_t len, int err)
{
    assert_int_equal(channel_send(c, type, data, len), 0);
    await(c, type, err);
}

static void bad_in_a_point(struct channel *c, const void *order, size_t len)
{
    static const struct session_run nothing;
    const struct {
        uint32_t member, len;
    } far = {2, 0}; /* of two */

    ask(c, COLLECTIVE_ASK_OPEN, order, len, 0);
    ask(c, COLLECTIVE_ASK_HELLO, NULL, 0, -EPROTO);
    ask(c, COLLECTIVE_ASK_HELLO, &(struct collective_hello){0}, sizeof(struct collective_hello),
        -EPROTO);
    ask(c, COLLECTIVE_ASK_OPEN, order, len, -EPROTO);
    ask(c, COLLECTIVE_ASK_RUN, &nothing, sizeof(nothing), -EPROTO);
    ask(c, COLLECTIVE_ASK_JOIN, &far, sizeof(far), -EPROTO);
    ask(c, COLLECTIVE_ASK_JOIN, "no address", 7, -EPROTO);
    ask(c, COLLECTIVE_ASK_CLOSE, NULL, 0, 0);
}

/* What no leader sends is refused, and harms nobody. */
static void test_bad_requests(void **state)
{
    struct fixture f;
    struct {
        struct collective_order order;
        struct collective_call call;
        uint32_t members[2];
    } o = {.order = {.n = 2, .me = 1, .n_calls = 1, .cpu_ranks = 1}, .members = {0, 1}}, bad;
    static const char text[CHANNEL_FRAME_MAX];

    (void)state;
    start(&f, 2);
    struct channel *c = world_channel(f.w, 1);
    o.order.point = f.point;
    o.call.count = f.point.count;
    for (int type = COLLECTIVE_ASK_OPEN; type <= COLLECTIVE_ASK_PROVE; type++)
        ask(c, (uint16_t)type, text, 0, -EPROTO); /* nothing is open */
    ask(c, 99, NULL, 0, -EPROTO);
    ask(c, COLLECTIVE_ASK_HELLO, text, sizeof(text), -EPROTO);
    ask(c, COLLECTIVE_ASK_OPEN, text, sizeof(text), -EPROTO);
    channel_send(c, COLLECTIVE_ASK_RUN | TALK_MORE, text, 1000); /* in pieces, it is no better */
    ask(c, COLLECTIVE_ASK_RUN, text, 1000, -EPROTO);
#define BAD(change)                                                                                \
    bad = o;                                                                                       \
    bad.change;                                                                                    \
    ask(c, COLLECTIVE_ASK_OPEN, &bad, sizeof(bad), -EPROTO)
    BAD(order.n = 3);
    BAD(order.me = 0);
    BAD(order.me = 2);
    BAD(order.n_calls = 0);
    BAD(order.n_calls = COLLECTIVE_CALLS_MAX + 1);
    BAD(order.point.op = COLLECTIVE_OPS);
    BAD(order.point.type = COLLECTIVE_TYPES);
    BAD(order.point.count = UINT64_MAX);
    BAD(order.cpu_rank = 1);
    BAD(members[0] = 1);
    BAD(members[1] = 7);
    ask(c, COLLECTIVE_ASK_OPEN, &o, sizeof(o) - 1, -EPROTO);
    BAD(call.first = 1); /* it lies beyond the vector */
    channel_send(c, COLLECTIVE_ASK_OPEN | TALK_MORE, &o, 100);
    ask(c, COLLECTIVE_ASK_OPEN, (const char *)&o + 100, sizeof(o) - 101, -EPROTO);
    ask(c, COLLECTIVE_ASK_CLOSE, NULL, 0, 0);
    bad_in_a_point(c, &o, sizeof(o));
    OK(whole(&f, 2));
    stop(&f);
}

static void test_sound(void **state)
{
    struct collective_call calls[] = {{0, 10}, {10, 6}};
    struct collective_point p = {.count = 16};

    (void)state;
    assert_true(calls_sound(&p, calls, 2));
    calls[1].count = 7;
    assert_false(calls_sound(&p, calls, 2));
    calls[1] = (struct collective_call){UINT64_MAX, 2};
    assert_false(calls_sound(&p, calls, 2));
    calls[1] = (struct collective_call){4, 0};
    assert_false(calls_sound(&p, calls, 2));
}

/* A rank that answers nonsense. */
static int lie(struct world *w, void *arg)
{
    const struct talk_head reply = {.err = 0};
    struct channel *c = world_channel(w, 0);
    static char in[CHANNEL_FRAME_MAX];
    uint16_t type;
    size_t n;

    while (!channel_recv(c, &type, in, sizeof(in), &n, CHANNEL_WAIT_NS) && type != TALK_BYE)
        channel_send(c, (uint16_t)(type | TALK_REPLY), &reply, *(size_t *)arg);
    return 0;
}

static void test_bad_replies(void **state)
{
    static size_t lengths[] = {sizeof(struct talk_head), 3};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fixture f = {0};
        char error[256];
        assert_int_equal(world_fork(&f.w, 2, lie, &lengths[i], error, sizeof(error)), 0);
        assert_int_equal(session_open(&f.s, f.w, NULL, 0), i ? -ECONNRESET : -EPROTO);
        assert_said(&f, "rank 1 (");
        assert_said(&f, i ? ") answered something else than was asked" : "answered what cannot be");
        stop(&f);
    }
}

/* Of a library nothing is known while it waits: a watchdog is there, and its bytes are not told exactly. */
static void test_library(void **state)
{
    const struct session_node *nodes;
    struct fixture f;

    (void)state;
    start(&f, 4);
    strcpy(f.point.backend, "fake-library");
    OK(whole(&f, 4));
    session_nodes(f.s, &nodes);
    assert_true(nodes[0].line_out_bytes == 0);
    make_two_nodes(&f);
    OK(whole(&f, 4));
    assert_int_equal(session_nodes(f.s, &nodes), 2);
    assert_true(isnan(nodes[0].line_out_bytes) && isnan(nodes[1].line_in_bytes));
    fake->fault = FAKE_KILLED;
    fake->fault_rank = 3;
    OK(begin(&f, 4));
    run_to_fault(&f, -ECONNRESET, SEEN_NS);
    assert_said(&f, "'rank 3 (");
    stop(&f);
}

/* Rank 1 stands still when all are asked, and is not to blame: its answers come when it is told to give
 * up. */
static void test_absent(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 4);
    f.point.inject = COLLECTIVE_ABSENT;
    OK(begin(&f, 4));
    late_begin(world_channel(f.w, 1), true, 5);
    run_to_fault(&f, -ETIMEDOUT, FAULT_NS);
    late_end();
    assert_said(&f, "rank 3 (");
    assert_said(&f, ") does not answer: it hangs or was cut off");
    assert_null(strstr(session_error(f.s), "rank 1"));
    assert_false(session_broken(f.s));
    f.point.inject = COLLECTIVE_SOUND;
    OK(whole(&f, 4));
    stop(&f);
}

static void test_killed(void **state)
{
    static const unsigned alive[] = {0, 2, 3};
    struct fixture f;

    (void)state;
    start(&f, 4);
    fake->fault = FAKE_KILLED;
    fake->fault_rank = 1;
    fake->fault_run = 1;
    OK(begin(&f, 4));
    run_to_fault(&f, -ECONNRESET, SEEN_NS);
    assert_said(&f, "rank 1 (");
    assert_said(&f, "was killed by signal 9");
    assert_true(session_broken(f.s));
    OK(begin_with(&f, alive, 3));
    OK(run(&f, 1));
    assert_int_equal(begin(&f, 4), -ECONNRESET);
    assert_said(&f, "rank 1 (");
    stop(&f);
}

static void test_stopped(void **state)
{
    static const unsigned alive[] = {0, 1, 3};
    struct fixture f;

    (void)state;
    start(&f, 4);
    fake->fault = FAKE_STOPPED;
    fake->fault_rank = 2;
    fake->fault_run = 1;
    OK(begin(&f, 4));
    run_to_fault(&f, -ETIMEDOUT, FAULT_NS);
    assert_said(&f, "rank 2 (");
    assert_said(&f, "does not answer: it hangs or was cut off");
    assert_null(strstr(session_error(f.s), "rank 3"));
    assert_true(session_broken(f.s));
    OK(begin_with(&f, alive, 3));
    OK(run(&f, 1));
    assert_int_equal(begin(&f, 4), -ECONNRESET);
    assert_said(&f, "rank 2 (");
    assert_said(&f, "answer: it hangs or was cut off");
    stop(&f);
}

/* Ranks that take turns on two other nodes: it is the nodes that are counted. */
static void test_cut_off(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 5);
    for (unsigned i = 1; i < 5; i++)
        f.w->members[i].node = 2 - i % 2;
    f.w->nodes = 3;
    OK(begin(&f, 5));
    for (unsigned i = 1; i < 5; i++)
        kill(world_member(f.w, i)->pid, SIGSTOP);
    run_to_fault(&f, -ECONNRESET, FAULT_NS);
    assert_said(&f, "which leads, has lost all 2 other hosts at once");
    stop(&f);
}

/* Stopped while the ranks connect, which all of them look up from. */
static void test_stuck(void **state)
{
    uint64_t begin_ns;
    struct fixture f;
    int err;

    (void)state;
    start(&f, 4);
    fake->fault = FAKE_STUCK;
    fake->fault_rank = 2;
    begin_ns = clock_now_ns();
    err = begin(&f, 4);
    if (err != -ETIMEDOUT)
        fail_msg("%d, not %d: %s", err, -ETIMEDOUT, session_error(f.s));
    assert_true(clock_now_ns() - begin_ns < FAULT_NS);
    assert_said(&f, "rank 2 (");
    assert_said(&f, "does not answer: it hangs or was cut off");
    assert_true(session_broken(f.s));
    stop(&f);
}

/* Killed while nothing is asked of it. */
static void test_killed_between(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 3);
    OK(whole(&f, 3));
    kill(world_member(f.w, 2)->pid, SIGKILL);
    siginfo_t dead; /* and still to be reaped */
    assert_int_equal(waitid(P_PID, (id_t)world_member(f.w, 2)->pid, &dead, WEXITED | WNOWAIT), 0);
    usleep(300000);
    assert_string_equal(session_loss(f.s), "");
    OK(whole(&f, 2)); /* of which it is none */
    assert_true(session_broken(f.s));
    assert_string_equal(session_error(f.s), "");
    assert_non_null(strstr(session_loss(f.s), "rank 2 ("));
    assert_int_equal(begin(&f, 3), -ECONNRESET);
    assert_said(&f, "rank 2 (");
    OK(whole(&f, 2));
    stop(&f);
}

static double still_said(const struct fixture *f)
{
    const char *at = strstr(session_error(f->s), "nothing has moved for ");
    double s;

    return at && sscanf(at, "nothing has moved for %lf s", &s) == 1 ? s : 0;
}

static void test_still(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 3);
    fake->fault = FAKE_STILL;
    fake->fault_rank = 2;
    OK(begin(&f, 3));
    run_to_fault(&f, -ETIMEDOUT, FAULT_NS);
    assert_said(&f, "nothing moves, though all ranks answer; rank ");
    assert_true(still_said(&f) >= 6 && still_said(&f) <= FAULT_NS / 1e9);
    assert_false(session_broken(f.s));
    fake->fault = FAKE_SOUND;
    OK(whole(&f, 3));
    stop(&f);
}

/* A rank has answered, and is lost while others wait for what it has sent: it is named, and not those
 * that wait. The last is stopped so late that its signs of life are not missed yet when these give up:
 * it does not answer when all are asked. */
static void test_lost_after_its_part(void **state)
{
    static const struct {
        int signal, after_s, err;
        const char *said;
    } cases[] = {
        {SIGKILL, 1, -ECONNRESET, "was killed by signal 9"},
        {SIGSTOP, 1, -ETIMEDOUT, "does not answer: it hangs or was cut off"},
        {SIGSTOP, 4, -ETIMEDOUT, "does not answer: it hangs or was cut off"},
    };
    struct fixture f;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        start(&f, 4);
        fake->fault = FAKE_LEAVES;
        fake->fault_rank = 2;
        fake->fault_run = 2;
        fake->fault_signal = cases[i].signal;
        fake->fault_after_s = cases[i].after_s;
        OK(begin(&f, 4));
        run_to_fault(&f, cases[i].err, FAULT_NS);
        assert_said(&f, "rank 2 (");
        assert_said(&f, cases[i].said);
        assert_null(strstr(session_error(f.s), "rank 3"));
        assert_true(session_broken(f.s));
        stop(&f);
    }
}

/* A rank may answer an echo after the reply to what was asked. */
static void test_late_echo(void **state)
{
    uint32_t number = 1;
    struct fixture f;

    (void)state;
    start(&f, 3);
    assert_int_equal(channel_send(world_channel(f.w, 2), TALK_ECHO, &number, sizeof(number)), 0);
    usleep(600000); /* ranks that are asked nothing are looked at twice a second */
    OK(whole(&f, 2));
    assert_string_equal(session_loss(f.s), "");
    OK(whole(&f, 3));
    stop(&f);
}

/* An operation takes longer than anything may stand still, of another rank and of rank 0: while
 * bytes move in one rank, those that wait for it are not lost, and it is not. */
static void test_slow(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 3);
    fake->fault = FAKE_SLOW;
    for (fake->fault_rank = 0; fake->fault_rank < 3; fake->fault_rank += 2) {
        uint64_t begin_ns = clock_now_ns();
        OK(whole(&f, 3));
        assert_true(clock_now_ns() - begin_ns >= FAKE_SLOW_NS);
        assert_false(session_broken(f.s));
    }
    stop(&f);
}

/* With a name, or a pattern of them: these tests alone. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_data),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bad_requests), cmocka_unit_test(test_sound),
        cmocka_unit_test(test_bad_replies),  cmocka_unit_test(test_library),
        cmocka_unit_test(test_absent),       cmocka_unit_test(test_killed),
        cmocka_unit_test(test_stopped),      cmocka_unit_test(test_killed_between),
        cmocka_unit_test(test_still),        cmocka_unit_test(test_stuck),
        cmocka_unit_test(test_cut_off),      cmocka_unit_test(test_slow),
        cmocka_unit_test(test_late_echo),    cmocka_unit_test(test_lost_after_its_part),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
