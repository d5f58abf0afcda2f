/* SPDX-License-Identifier: Apache-2.0 */
/* The session when something is wrong: data, requests, replies, and ranks that refuse, hang or are gone. Who is named, and who goes on. */
/* tier: long */
/* waits: for ranks that hang */
#include <signal.h>
#include <sys/wait.h>

#include "core/group/talk.h"
#include "tests/unit/session_fixture.h"
#include "tests/unit/unit.h"

/* A peer whose answers do not come, from an echo on, until it was told to give up. So the process that stands still is
 * made by what is sent, and not by how long anything takes. */
static struct {
    struct channel *channel;
    const struct channel_ops *real;
    struct channel_ops ops;
    bool told;
    unsigned echoes; /* that it answers yet */
} late;

static int late_send(struct channel *c, uint16_t type, const void *data, size_t len,
                     uint64_t wait_ns)
{
    late.told |= type == TALK_GIVE_UP;
    if (type == TALK_ECHO && late.echoes)
        late.echoes--;
    return late.real->send(c, type, data, len, wait_ns);
}

static int late_recv(struct channel *c, uint16_t *type, void *data, size_t size, size_t *len,
                     uint64_t wait_ns)
{
    if (late.echoes || late.told)
        return late.real->recv(c, type, data, size, len, wait_ns);
    usleep((useconds_t)(wait_ns / 1000));
    return wait_ns ? -ETIMEDOUT : -EAGAIN;
}

/* It answers so many echoes yet. */
static void late_begin(struct channel *c, unsigned echoes)
{
    late.channel = c;
    late.real = c->ops;
    late.ops = *late.real;
    late.told = false;
    late.echoes = echoes;
    late.ops.send = late_send;
    late.ops.recv = late_recv;
    c->ops = &late.ops;
}

static void run_to_fault(struct fixture *f, int err)
{
    int got = run(f, 3);

    if (got != err)
        fail_msg("%d, not %d: %s", got, err, session_error(f->s));
    session_finish(f->s);
}

/* Rank 2's third run, which the check looks at first; the fresh one after it; what was right and is not any more; one call of two. */
TEST(test_wrong_data)
{
    static const struct {
        int fault, run;
    } cases[] = {{FAKE_WRONG, 2}, {FAKE_WRONG, 3}, {FAKE_LAZY, 5}};
    const struct collective_call calls[] = {{0, 100}, {100, 200}};
    struct fixture f;

    start(&f, 4);
    fake->fault_rank = 2;
    for (int i = 0; i < 3; i++) {
        fake->fault = cases[i].fault;
        fake->fault_run = cases[i].run;
        OK(begin(&f, 4));
        if (i == 2)
            OK(run(&f, 2));
        OK(session_mark(f.s));
        OK(run(&f, 3));
        assert_int_equal(session_end(f.s), -EBADMSG);
        assert_said(&f, "rank 2 (");
        assert_true(i == 2 || strstr(session_error(f.s), "element 7 of 4096"));
        session_finish(f.s);
    }
    fake->fault = FAKE_SOUND;
    f.point.inject = COLLECTIVE_CORRUPT;
    assert_int_equal(whole(&f, 4), -EBADMSG);
    assert_said(&f, "element 2048 of 4096");
    OK(session_begin(f.s, &f.point, all_ranks, 4, calls, 2));
    OK(session_mark(f.s));
    assert_int_equal(session_end(f.s), -EBADMSG);
    assert_said(&f, "call 1 of 2: element 50 of 100");
    f.point.inject = COLLECTIVE_SOUND;
    OK(whole(&f, 4));
    assert_false(session_broken(f.s));
    stop(&f);
}

/* A rank that refuses or fails is named with its reason, and others go on. */
TEST(test_refused)
{
    struct fixture f;

    start(&f, 4);
    fake->fault = FAKE_NO_OPEN;
    for (fake->fault_rank = 0; fake->fault_rank < 4; fake->fault_rank += 3) {
        assert_int_equal(begin(&f, 4), -ENODEV);
        assert_said(&f, fake->fault_rank ? "rank 3 (" : "rank 0 (");
        assert_said(&f, "no device here");
    }
    fake->fault_rank = 3;
    OK(whole(&f, 2)); /* of which it is none */
    fake->fault = FAKE_FAILS;
    fake->fault_rank = 1;
    fake->fault_run = 0;
    OK(begin(&f, 4));
    assert_int_equal(run(&f, 1), -EIO);
    assert_said(&f, "rank 1 (");
    fake->fault = FAKE_SOUND;
    strcpy(f.point.backend, "none");
    assert_int_equal(begin(&f, 4), -EOPNOTSUPP);
    assert_said(&f, "'none'");
    strcpy(f.point.backend, "fake");
    OK(whole(&f, 4));
    assert_false(session_broken(f.s));
    stop(&f);
}

static void ask(struct channel *c, uint16_t type, const void *data, size_t len, int err)
{
    char in[CHANNEL_FRAME_MAX];
    const struct talk_head *head = (const void *)in;
    uint16_t got = 0;
    size_t n = 0;

    assert_int_equal(channel_send(c, type, data, len), 0);
    assert_int_equal(channel_recv(c, &got, in, sizeof(in), &n, CHANNEL_WAIT_NS), 0);
    assert_int_equal(got, type | TALK_REPLY);
    assert_true(n >= sizeof(*head));
    assert_int_equal(head->err, err);
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
TEST(test_bad_requests)
{
    struct fixture f;
    struct {
        struct collective_order order;
        struct collective_call call;
        uint32_t members[2];
    } o = {.order = {.n = 2, .me = 1, .n_calls = 1, .cpu_ranks = 1}, .members = {0, 1}}, bad;
    static const char text[CHANNEL_FRAME_MAX];

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
    BAD(call.first = UINT64_MAX);
    BAD(call.count = f.point.count + 1);
    BAD(call.count = 0);
    channel_send(c, COLLECTIVE_ASK_OPEN | TALK_MORE, &o, 100);
    ask(c, COLLECTIVE_ASK_OPEN, (const char *)&o + 100, sizeof(o) - 101, -EPROTO);
    ask(c, COLLECTIVE_ASK_CLOSE, NULL, 0, 0);
    bad_in_a_point(c, &o, sizeof(o));
    OK(whole(&f, 2));
    stop(&f);
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

TEST(test_bad_replies)
{
    static size_t lengths[] = {sizeof(struct talk_head), 3};

    for (int i = 0; i < 2; i++) {
        struct fixture f = {0};
        char error[256];
        assert_int_equal(world_fork(&f.w, 2, lie, &lengths[i], error, sizeof(error)), 0);
        assert_int_equal(session_open(&f.s, f.w, NULL, 0), i ? -ECONNRESET : -EPROTO);
        assert_said(&f, "rank 1 (");
        stop(&f);
    }
}

/* Rank 1 stands still when all are asked, and is not to blame: its answers come when it is told to give up. */
TEST(test_absent)
{
    struct fixture f;

    start(&f, 4);
    f.point.inject = COLLECTIVE_ABSENT;
    OK(begin(&f, 4));
    late_begin(world_channel(f.w, 1), 5);
    run_to_fault(&f, -ETIMEDOUT);
    late.channel->ops = late.real;
    assert_said(&f, "rank 3 (");
    assert_null(strstr(session_error(f.s), "rank 1"));
    assert_false(session_broken(f.s));
    f.point.inject = COLLECTIVE_SOUND;
    OK(whole(&f, 4));
    stop(&f);
}

/* A rank is lost: in an operation, while all connect, or when it has done its part, and others wait for that. It is named, not those that wait; they go on. */
TEST(test_lost)
{
    static const struct {
        int fault, signal, after_s, err;
        const char *said;
    } cases[] = {
        {FAKE_KILLED, 0, 0, -ECONNRESET, "signal 9"},
        {FAKE_STOPPED, 0, 0, -ETIMEDOUT, "does not answer"},
        {FAKE_STUCK, 0, 0, -ETIMEDOUT, "does not answer"},
        {FAKE_LEAVES, SIGKILL, 1, -ECONNRESET, "signal 9"},
        /* so late that its signs of life are not missed yet when the others give up */
        {FAKE_LEAVES, SIGSTOP, 4, -ETIMEDOUT, "does not answer"},
        /* and so that they are missed while it is asked about its links */
        {FAKE_LEAVES, SIGSTOP, 3, -ETIMEDOUT, "does not answer"},
    };
    static const unsigned alive[] = {0, 1, 3};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fixture f;
        start(&f, 4);
        fake->fault = cases[i].fault;
        fake->fault_rank = 2;
        fake->fault_run = cases[i].fault == FAKE_LEAVES ? 2 : 1;
        fake->fault_signal = cases[i].signal;
        fake->fault_after_s = cases[i].after_s;
        if (cases[i].fault == FAKE_STUCK) {
            assert_int_equal(begin(&f, 4), cases[i].err);
        } else {
            OK(begin(&f, 4));
            run_to_fault(&f, cases[i].err);
        }
        assert_said(&f, "rank 2 (");
        assert_said(&f, cases[i].said);
        assert_null(strstr(session_error(f.s), "rank 3"));
        assert_true(session_broken(f.s));
        fake->fault = FAKE_SOUND;
        if (i < 2) {
            OK(begin_with(&f, alive, 3));
            OK(run(&f, 1));
            assert_int_equal(begin(&f, 4), -ECONNRESET);
            assert_said(&f, "rank 2 (");
        }
        stop(&f);
    }
}

/* Ranks that take turns on two other nodes: it is the nodes that are counted. */
TEST(test_cut_off)
{
    struct fixture f;

    start(&f, 5);
    for (unsigned i = 1; i < 5; i++)
        f.w->members[i].node = 2 - i % 2;
    f.w->nodes = 3;
    OK(begin(&f, 5));
    for (unsigned i = 1; i < 5; i++)
        kill(world_member(f.w, i)->pid, SIGSTOP);
    run_to_fault(&f, -ECONNRESET);
    assert_said(&f, "all 2 other hosts");
    stop(&f);
}

/* All answer, and nothing moves. */
TEST(test_still)
{
    struct fixture f;

    start(&f, 3);
    fake->fault = FAKE_STILL;
    fake->fault_rank = 2;
    OK(begin(&f, 3));
    run_to_fault(&f, -ETIMEDOUT);
    assert_said(&f, "nothing moves");
    assert_false(session_broken(f.s));
    fake->fault = FAKE_SOUND;
    OK(whole(&f, 3));
    stop(&f);
}
