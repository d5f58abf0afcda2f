/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the ranks of a world, over each wire that needs no device: what arrives is what was sent, in its order, counted to the byte;
 * who is gone is named; what cannot be is refused with its reason. */
#include <signal.h>
#include <time.h>

#include "core/clock.h"
#include "core/rng.h"
#include "core/wire/shm.h"
#include "tests/unit/unit.h"
#include "wire_fixture.h"

#define RANKS_MAX 8
#define MiB       ((size_t)1 << 20)

static const struct wire_ops *wires[WIRES_MAX];
static unsigned n_wires;

static struct wire_fixture pair_of(const struct wire_ops *ops, int (*fn)(struct wire_party *))
{
    return (struct wire_fixture){.ops = ops, .size = 2, .options = wire_options(2), .run = fn};
}

/* Few and many ranks, few and many messages under way, small and long ones, on a CPU each or not. */
TEST(all_sizes_between_all)
{
    static const struct {
        unsigned ranks;
        struct wire_traffic t;
        bool crowded;
    } cases[] = {
        {2, {.messages = 60, .depth = 1, .most = 3 * MiB, .seed = 1}, false},
        {3, {.messages = 30, .depth = 5, .most = 3 * MiB, .seed = 2, .wait_ns = 100000000}, false},
        {8, {20, WIRE_POSTS, 65536, .seed = 4, .wait_ns = 100000000}, true},
        {2, {5000, WIRE_POSTS, 40, .seed = 3, .wait_ns = 1000000}, false},
    };

    for (unsigned i = 0; i < n_wires; i++)
        for (unsigned k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
            struct wire_traffic t = cases[k].t;
            struct wire_fixture x = {.ops = wires[i],
                                     .size = cases[k].ranks,
                                     .options = wire_options(cases[k].ranks),
                                     .run = wire_all_to_all,
                                     .arg = &t};
            x.options.crowded |= cases[k].crowded;
            assert_string_equal(wire_fixture_fault(&x), "");
        }
}

/* Whatever the transport, a rank's own device is the one of its rank on the machine. */
static int own_device_opens(struct wire *f)
{
    static const char *const dealt[] = {"a", "b2", "a"};
    unsigned rank = world_rank(f->world);

    if (strcmp(f->options.device, dealt[rank]) != 0)
        return wire_fail(f, -EINVAL, "rank %u got '%s'", rank, f->options.device);
    *(char *)(uintptr_t)f->options.device = 0; /* it has none */
    return wire_shm.open(f);
}

TEST(devices_are_dealt_to_ranks)
{
    struct wire_ops ops = wire_shm;
    struct wire_fixture x = {.ops = &ops, .size = 3, .options = wire_options(3)};

    ops.open = own_device_opens;
    x.options.device = "a+b2";
    assert_string_equal(wire_fixture_fault(&x), "");
}

/* As many receives as may be are posted, and sends; no more are taken or counted, nor any out of bounds. */
static int post_too_many(struct wire_party *p)
{
    struct wire_link *l = wire_link_to(p, !p->rank);
    static char in[WIRE_POSTS][100], out[100];
    int err = 0;

    for (unsigned i = 0; i < WIRE_POSTS && !err; i++)
        err = wire_receive(l, in[i], 100);
    for (unsigned i = 0; i < WIRE_POSTS && !err; i++)
        err = wire_send(l, out, 100);
    if (err || wire_receive(l, in[0], 100) != -EAGAIN || wire_send(l, out, 100) != -EAGAIN)
        return wire_fault(p, -EINVAL, "posted: %d", err);
    if (l->in.posted != 100 * WIRE_POSTS || l->out.posted != 100 * WIRE_POSTS)
        return wire_fault(p, -EINVAL, "a refused post is counted");
    err = wire_until(p, l, 100 * WIRE_POSTS, 100 * WIRE_POSTS);
    if (!err && (wire_send(l, out, 0) != -EINVAL || wire_receive(l, in[0], 3 * MiB + 1) != -EINVAL))
        return wire_fault(p, -EINVAL, "a message out of bounds was taken");
    return err;
}

TEST(a_post_too_many_is_told)
{
    for (unsigned i = 0; i < n_wires; i++) {
        struct wire_fixture x = pair_of(wires[i], post_too_many);
        assert_string_equal(wire_fixture_fault(&x), "");
    }
}

/* What is received so far is counted and in its place, and the rest, which rank 1 sends later, is not there. */
static int in_steps(struct wire_party *p)
{
    struct wire_link *l = wire_link_to(p, !p->rank);
    static char data[2 * MiB];
    unsigned between = 0;
    int err = 0;

    memset(data, 0, sizeof(data));
    for (unsigned i = 0; i < 2 && p->rank && !err; i++) {
        pattern_fill(data, MiB, 7 + i);
        err = wire_send(l, data, MiB);
        err = err ? err : wire_until(p, l, (i + 1) * MiB, 0);
        err = err || i ? err : wire_barrier(p);
    }
    if (p->rank)
        return err;
    for (unsigned i = 0; i < 2 && !err; i++)
        err = wire_receive(l, data + i * MiB, MiB);
    while (!err && l->in.through < MiB) {
        err = wire_progress(p->wire->workers, WIRE_BOTH, 100000000);
        err = err < 0 ? wire_fault(p, err, "%s", p->wire->error) : 0;
        between += l->in.through > 0 && l->in.through < MiB;
    }
    if (!err && (!between || l->in.through != MiB || l->in.messages != 1 ||
                 pattern_check(data, MiB, 7) != PATTERN_RIGHT || data[MiB] || data[2 * MiB - 1]))
        err = wire_fault(p, -ERANGE, "%llu bytes, %u times between",
                         (unsigned long long)l->in.through, between);
    err = err ? err : wire_barrier(p);
    err = err ? err : wire_until(p, l, 0, 2 * MiB);
    if (!err && (pattern_check(data + MiB, MiB, 8) != PATTERN_RIGHT || l->in.messages != 2))
        err = wire_fault(p, -EBADMSG, "the second message is wrong");
    return err;
}

TEST(bytes_get_through_bit_by_bit)
{
    for (unsigned i = 0; i < n_wires; i++) {
        struct wire_fixture x = pair_of(wires[i], in_steps);
        x.options.tcp.buffer_bytes = x.options.ring_bytes = 65536;
        if (wires[i]->streams)
            assert_string_equal(wire_fixture_fault(&x), "");
    }
}

enum how { KILLED, CLOSED, KILLED_WAITED_FOR_BY_SENDER, HOWS };

/* Rank 1 goes; the others wait for it, or send to it. */
static int lose_a_peer(struct wire_party *p)
{
    enum how how = *(enum how *)p->arg;
    static char data[3 * MiB];
    uint64_t start_ns = clock_now_ns();
    int err = wire_barrier(p), rc = 0;

    if (err || (p->rank == 1 && how == CLOSED))
        return err; /* the fixture closes its wire */
    if (p->rank == 1)
        raise(SIGKILL);
    struct wire_link *l = wire_link_to(p, 1);
    for (unsigned i = 0; i < 10; i++)
        if (how == KILLED_WAITED_FOR_BY_SENDER)
            wire_send(l, data, sizeof(data));
        else if (!i)
            wire_receive(l, data, sizeof(data));
    while (rc >= 0 && clock_now_ns() - start_ns < 60000000000)
        rc = wire_progress(p->wire->workers, WIRE_BOTH, p->rank ? 1000000000 : 0);
    if (rc == -ECONNRESET && strstr(p->wire->error, "rank 1 ("))
        return 0;
    return wire_fault(p, -EINVAL, "progress said %d: %s", rc, p->wire->error);
}

TEST(who_is_gone_is_named)
{
    struct wire_outcome outcomes[3];

    for (unsigned i = 0; i < n_wires; i++)
        for (enum how how = KILLED; how < HOWS; how++) {
            struct wire_fixture x = {.ops = wires[i],
                                     .size = 3,
                                     .options = wire_options(3),
                                     .run = lose_a_peer,
                                     .arg = &how};
            wire_fixture_run(&x, outcomes);
            assert_string_equal(outcomes[0].text, "");
            assert_int_equal(outcomes[0].rc, 0);
            assert_string_equal(outcomes[2].text, "");
            assert_int_equal(outcomes[1].rc, how == CLOSED ? 0 : -ECONNRESET);
        }
}

/* What was sent before the sender went arrives all the same. */
static int send_and_go(struct wire_party *p)
{
    struct wire_link *l = wire_link_to(p, !p->rank);
    static char data[16384];
    struct timespec pause = {.tv_nsec = 200000000};

    if (p->rank) {
        pattern_fill(data, sizeof(data), 9);
        wire_send(l, data, sizeof(data));
        return wire_until(p, l, sizeof(data), 0);
    }
    nanosleep(&pause, NULL);
    wire_receive(l, data, sizeof(data));
    int err = wire_until(p, l, 0, sizeof(data));
    if (!err && pattern_check(data, sizeof(data), 9) != PATTERN_RIGHT)
        err = wire_fault(p, -EBADMSG, "it is not what was sent");
    return err;
}

TEST(what_was_sent_outlives_its_sender)
{
    for (unsigned i = 0; i < n_wires; i++) {
        struct wire_fixture x = pair_of(wires[i], send_and_go);
        assert_string_equal(wire_fixture_fault(&x), "");
    }
}

static int rank_of_itself(struct wire_party *p)
{
    if (wire_link(p->wire, p->rank, NULL) != -EINVAL || wire_link(p->wire, 2, NULL) != -EINVAL)
        return wire_fault(p, -EINVAL, "a link to itself, or to nobody");
    return wire_link(p->wire, !p->rank, NULL) == 0 ? 0 : wire_fault(p, -EINVAL, "a second link");
}

TEST(links_lead_to_other_ranks)
{
    struct wire_outcome outcomes[2];

    for (unsigned i = 0; i < n_wires; i++) {
        struct wire_fixture x = pair_of(wires[i], rank_of_itself);
        assert_string_equal(wire_fixture_fault(&x), "");
        x.options.message_most = 0;
        assert_int_equal(wire_fixture_run(&x, outcomes), -EINVAL);
    }
}

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Rank 0 waits for what rank 1 does not send; then for what it does. */
static int wait_for_it(struct wire_party *p)
{
    struct wire_link *l = wire_link_to(p, !p->rank);
    char byte = 1;
    int err = 0, rc = 0;

    if (p->rank) {
        err = wire_barrier(p);
        err = err ? err : wire_send(l, &byte, 1);
        return err ? err : wire_until(p, l, 1, 0);
    }
    if (wire_progress(p->wire->workers, WIRE_BOTH, 1000000) != 0)
        return wire_fault(p, -EINVAL, "something moved that was not posted");
    wire_receive(l, &byte, 1);
    uint64_t start_ns = clock_now_ns(), cpu = cpu_ns();
    while (!rc && clock_now_ns() - start_ns < 400000000)
        rc = wire_progress(p->wire->workers, WIRE_BOTH, 400000000);
    cpu = cpu_ns() - cpu;
    if (rc || cpu > 100000000)
        return wire_fault(p, -ETIME, "progress said %d, with %llu us of CPU", rc,
                          (unsigned long long)cpu / 1000);
    err = wire_barrier(p);
    return err ? err : wire_until(p, l, 0, 1);
}

TEST(who_waits_sleeps)
{
    for (unsigned i = 0; i < 2 * n_wires; i++) {
        struct wire_fixture x = pair_of(wires[i / 2], wait_for_it);
        x.options.crowded = i % 2;
        assert_string_equal(wire_fixture_fault(&x), "");
    }
}

/* Who is not woken sleeps for a whole look, again and again; who is may wait that long for a CPU, now and then. */
#define SLOW_NS (WIRE_SHM_LOOK_NS / 5 * 4)

static int all_but_few(struct wire_party *p, unsigned slow, uint64_t turns)
{
    if (slow <= turns / 10)
        return 0;
    return wire_fault(p, -ETIME, "%u of %llu turns took more than %u ms: nobody is woken", slow,
                      (unsigned long long)turns, SLOW_NS / 1000000);
}

/* Each sleeps until the other has answered; or the receiver pauses, so that the sender sleeps until there is room. */
static int play(struct wire_party *p)
{
    struct wire_link *l = wire_link_to(p, !p->rank);
    uint64_t turns = 100;
    char in[8], out[8] = "ball";
    unsigned slow = 0;
    int err = 0;

    for (uint64_t i = 1; i <= turns && !err; i++) {
        uint64_t start_ns = clock_now_ns();
        err = wire_receive(l, in, 8);
        if (p->rank && !err)
            err = wire_until(p, l, 8 * (i - 1), 8 * i);
        err = err ? err : wire_send(l, out, 8);
        err = err ? err : wire_until(p, l, 8 * i, 8 * i);
        slow += clock_now_ns() - start_ns > SLOW_NS;
    }
    return err ? err : all_but_few(p, slow, turns);
}

/* The receiver pauses, so that the sender sleeps until there is room, again and again. */
static int pour(struct wire_party *p)
{
    struct wire_link *l = wire_link_to(p, !p->rank);
    uint64_t messages = 200;
    static char data[8192];
    unsigned slow = 0;
    int err = 0;

    for (uint64_t i = 0; i < messages && !err; i++) {
        uint64_t start_ns = clock_now_ns();
        const struct timespec pause = {.tv_nsec = 200000};
        uint64_t before = i < 4 ? 0 : 8192 * (i - 4);
        if (!p->rank && i % 8 == 0)
            nanosleep(&pause, NULL);
        err = p->rank ? wire_send(l, data, 8192) : wire_receive(l, data, 8192);
        err = err ? err : wire_until(p, l, p->rank ? before : 0, p->rank ? 0 : before);
        slow += clock_now_ns() - start_ns > SLOW_NS;
    }
    err = err ? err : wire_until(p, l, p->rank * 8192 * messages, !p->rank * 8192 * messages);
    return err ? err : all_but_few(p, slow, messages);
}

TEST(who_sleeps_is_woken)
{
    for (unsigned i = 0; i < 4 * n_wires; i++) {
        struct wire_fixture x = pair_of(wires[i / 4], i & 2 ? play : pour);
        x.options.crowded = i & 1;
        x.options.message_most = 8192;
        assert_string_equal(wire_fixture_fault(&x), "");
    }
}

/* A join in which rank 1 does not do its part: rank 0 is called back, and can end it. */
#define CALLS 5

static const struct wire_ops *joined;
static unsigned calls;
static int end_it(void *arg)
{
    (void)arg;
    return ++calls < CALLS ? 0 : -ECANCELED;
}

static struct world *both_ranks;

static int keep_world(struct wire_party *p)
{
    both_ranks = p->world;
    return 0;
}

static int join_alone(struct wire *f, const void *const *addresses, const size_t *lens)
{
    uint16_t type;
    size_t len;

    if (world_rank(f->world)) /* until rank 0 has had enough */
        return channel_recv(world_channel(both_ranks, 0), &type, NULL, 0, &len, 60000000000u);
    int err = joined->join(f, addresses, lens);
    channel_send(world_channel(both_ranks, 1), 1, NULL, 0);
    if (err != -ECANCELED || calls != CALLS)
        return wire_fail(f, -EINVAL, "join said %d (%s) after %u calls", err, f->error, calls);
    return 0;
}

TEST(who_joins_is_called_back)
{
    for (unsigned i = 0; i < n_wires; i++) {
        struct wire_ops alone = *wires[i];
        struct wire_fixture x = pair_of(&alone, NULL);
        joined = wires[i];
        calls = 0;
        alone.join = join_alone;
        x.prepare = keep_world;
        x.options.attend = end_it;
        assert_string_equal(wire_fixture_fault(&x), "");
    }
}

static int find_wires(void **state)
{
    (void)state;
    n_wires = wire_fixture_wires(wires);
    return 0;
}
TESTS_WITH(find_wires, NULL);
