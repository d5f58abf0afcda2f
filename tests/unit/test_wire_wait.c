/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for messages, over each wire that needs no device: it sleeps, and is woken when there is something to do. */
/* waits: for messages */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/wire/shm.h"
#include "wire_fixture.h"

static const struct wire_ops *wires[WIRES_MAX];
static unsigned n_wires;

static void run(struct wire_fixture *x, struct wire_outcome *outcomes)
{
    wire_fixture_run(x, outcomes);
    assert_string_equal(wire_first_fault(outcomes, x->size), "");
}

static struct wire_fixture pair_of(const struct wire_ops *ops, int (*fn)(struct wire_party *))
{
    return (struct wire_fixture){.ops = ops, .size = 2, .options = wire_options(2), .run = fn};
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

static void who_waits_sleeps(void **state)
{
    struct wire_outcome outcomes[2];

    (void)state;
    for (unsigned i = 0; i < 2 * n_wires; i++) {
        struct wire_fixture x = pair_of(wires[i / 2], wait_for_it);
        x.options.crowded = i % 2;
        run(&x, outcomes);
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

/* Each sleeps until the other has answered. */
static int play(struct wire_party *p)
{
    struct wire_link *l = wire_link_to(p, !p->rank);
    uint64_t turns = 300;
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
    uint64_t messages = 1000;
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

static void who_sleeps_is_woken(void **state)
{
    struct wire_outcome outcomes[2];

    (void)state;
    for (unsigned i = 0; i < 4 * n_wires; i++) {
        struct wire_fixture x = pair_of(wires[i / 4], i & 2 ? play : pour);
        x.options.crowded = i & 1;
        x.options.message_most = 8192;
        run(&x, outcomes);
    }
}

/* A join in which rank 1 does not do its part: rank 0 is called back, and can end it. */
#define CALLS 5

static const struct wire_ops *joined;
static unsigned calls;
static uint64_t called_ns, apart_ns; /* the last call; of two calls, the least */

static int end_it(void *arg)
{
    uint64_t now_ns = clock_now_ns();

    (void)arg;
    if (calls && now_ns - called_ns < apart_ns)
        apart_ns = now_ns - called_ns;
    called_ns = now_ns;
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
    if (apart_ns > 300000000)
        return wire_fail(f, -ETIME, "it was called too seldom");
    return 0;
}

static void who_joins_is_called_back(void **state)
{
    struct wire_outcome outcomes[2];

    (void)state;
    for (unsigned i = 0; i < n_wires; i++) {
        struct wire_ops alone = *wires[i];
        struct wire_fixture x = pair_of(&alone, NULL);
        joined = wires[i];
        calls = 0;
        apart_ns = UINT64_MAX;
        alone.join = join_alone;
        x.prepare = keep_world;
        x.options.attend = end_it;
        run(&x, outcomes);
    }
}

/* In place of the system's, for the wires, too. */
static unsigned yields, looked;
static uint64_t others_ns; /* what others take when they are given way */

int sched_yield(void)
{
    const struct timespec pause = {.tv_nsec = (long)others_ns};

    yields++;
    return others_ns ? nanosleep(&pause, NULL) : (int)syscall(SYS_sched_yield);
}

#define THIRD 3

static int third_time(struct wire_worker *k, enum wire_side sides)
{
    (void)k;
    (void)sides;
    return ++looked == THIRD;
}

static int never(struct wire_worker *k, enum wire_side sides)
{
    (void)k;
    (void)sides;
    looked++;
    return 0;
}

static int spin_once(struct wire_worker *k, wire_look_fn *look, uint64_t wait_ns)
{
    yields = looked = 0;
    return wire_spin(k, WIRE_BOTH, look, 2, clock_now_ns(), wait_ns);
}

/* What came first: the third look, or the end of a spin, of which a machine with other work may leave little: then again. */
static void spin_to_third(bool crowded, unsigned expected_yields)
{
    struct wire f = {0};
    struct wire_worker k = {.wire = &f};
    int rc = 0;

    for (unsigned i = 0; i < 100000 && !rc; i++) {
        f.options.crowded = crowded;
        k = (struct wire_worker){.wire = &f};
        rc = spin_once(&k, third_time, 1000000000);
    }
    assert_int_equal(rc, 1);
    assert_int_equal(looked, THIRD);
    assert_int_equal(yields, expected_yields);
}

static void who_shares_a_cpu_gives_way(void **state)
{
    (void)state;
    spin_to_third(true, THIRD);
    spin_to_third(false, 1); /* two looks, and one that follows it */
}

static void no_way_is_given_to_strangers(void **state)
{
    struct wire f = {.options.crowded = true};
    struct wire_worker k = {.wire = &f};

    (void)state;
    others_ns = 1000000;
    assert_int_equal(spin_once(&k, never, 1000000000), 0);
    others_ns = 0;
    assert_int_equal(yields, 1);
    assert_true(k.out.yield_ns != 0);
    k.out.yield_ns = clock_now_ns() + 60000000000u;
    assert_int_equal(spin_once(&k, never, 1000000000), 0); /* it is to sleep at once */
    assert_int_equal(yields + looked, 0);
    f.options.crowded = false;
    assert_int_equal(spin_once(&k, never, 1000000000), 0);
    assert_int_equal(yields, 0);
    assert_true(looked >= 2);
    k.out.yield_ns = 1;
    assert_int_equal(spin_once(&k, never, 1000000000), 0);
    assert_true(yields >= 1);
}

/* A CPU that was away for a millisecond is not given away for twenty. */
static void strangers_cost_a_twentieth(void **state)
{
    struct wire f = {.options.crowded = true};
    struct wire_worker k = {.wire = &f};
    uint64_t begin_ns = clock_now_ns(), given_ns;

    (void)state;
    others_ns = 1000000;
    spin_once(&k, never, 1000000000);
    given_ns = clock_now_ns() - begin_ns;
    others_ns = 0;
    assert_true(k.out.yield_ns >= begin_ns + 20 * 1000000);
    assert_true(k.out.yield_ns <= begin_ns + 21 * given_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_joins_is_called_back),
        cmocka_unit_test(who_waits_sleeps),
        cmocka_unit_test(who_sleeps_is_woken),
        cmocka_unit_test(who_shares_a_cpu_gives_way),
        cmocka_unit_test(no_way_is_given_to_strangers),
        cmocka_unit_test(strangers_cost_a_twentieth),
    };

    n_wires = wire_fixture_wires(wires);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
