/* SPDX-License-Identifier: Apache-2.0 */
/* The engine over a wire that is as awkward as can be: whatever the order in which things happen, the results are right to the bit, and no memory is
 * touched that is the wire's. */
#include <time.h>

#include "core/alloc.h"
#include "core/collective/engine.h"
#include "tests/unit/unit.h"
#include "twisted_wire.h"

#define STEPS_MAX 20000000 /* of a group, each a call: more is a deadlock */

struct member {
    struct collective c;
    struct schedule schedule;
    struct engine *engine;
    char *input, *result;
    void *spare;
    bool at_work;
};

struct crew {
    struct twisted_net net;
    struct collective_point p;
    struct member *members;
    unsigned *numbers;
    size_t size; /* bytes of an element */
};

static void open_engine(struct crew *t, unsigned m, uint64_t segment)
{
    struct member *me = &t->members[m];
    struct wire *f = t->net.wires[m];

    me->c = (struct collective){
        .point = &t->p, .world = t->net.worlds[m], .members = t->numbers, .n = t->net.n, .me = m};
    size_t spare = (engine_spare_bytes(&me->c, &me->schedule, segment) + 64) / 64 * 64;
    me->spare = aligned_alloc(64, spare);
    memset(me->spare, 0x5a, spare);
    me->engine = engine_open(&me->c, f, &me->schedule, me->spare, segment);
    assert_int_equal(engine_link(me->engine), 0);
}

static void crew_open(struct crew *t, unsigned n, uint64_t seed)
{
    twisted_open(&t->net, n, seed);
    t->members = calloc(n, sizeof(*t->members));
    t->numbers = calloc(n, sizeof(*t->numbers));
    for (unsigned i = 0; i < n; i++)
        t->numbers[i] = i;
}

static void crew_close(struct crew *t)
{
    for (unsigned i = 0; i < t->net.n; i++) {
        struct member *m = &t->members[i];
        engine_close(m->engine);
        schedule_release(&m->schedule);
        free(m->input);
        free(m->result);
        free(m->spare);
    }
    free(t->members);
    free(t->numbers);
    twisted_close(&t->net);
}

/* Members make their moves in any order. */
static void run(struct crew *t)
{
    unsigned left = t->net.n;
    uint64_t steps = 0;

    for (unsigned m = 0; m < t->net.n; m++) {
        t->members[m].at_work = true;
        assert_int_equal(
            engine_begin(t->members[m].engine, t->members[m].input, t->members[m].result), 0);
    }
    while (left) {
        unsigned m = (unsigned)rng_below(&t->net.rng, t->net.n);
        struct member *me = &t->members[m];
        assert_true(++steps < STEPS_MAX);
        if (!me->at_work) {
            if (t->net.wires[m]->n_links)
                wire_progress(t->net.wires[m]->workers, WIRE_BOTH, 0);
            continue;
        }
        int done = engine_progress(me->engine, 0);
        assert_string_equal(me->c.error, "");
        assert_true(done >= 0);
        assert_int_equal(t->net.misused, 0);
        assert_int_equal(t->net.uneven, 0);
        me->at_work = !done;
        left -= !me->at_work;
    }
}

/* Schedules that no algorithm would make: ranges that overlap in any way. */

#define SPACE_ELEMENTS 200u

struct reference {
    uint32_t space[SPACES][SPACE_ELEMENTS];
};

static void push(struct schedule *s, struct action a)
{
    s->actions = xrealloc(s->actions, (s->n + 1) * sizeof(a));
    s->actions[s->n++] = a;
}

static struct action any_action(struct rng *rng, uint64_t count)
{
    struct action a = {.source = (uint8_t)rng_below(rng, SPACES),
                       .target = (uint8_t)(1 + rng_below(rng, 2)),
                       .from = rng_below(rng, SPACE_ELEMENTS - count + 1),
                       .first = rng_below(rng, SPACE_ELEMENTS - count + 1),
                       .count = count};

    if (a.source == a.target) /* what an action reads and writes is one or apart */
        a.from = a.first;
    return a;
}

static void transfer(struct crew *t, struct reference *r, unsigned from, unsigned to)
{
    struct rng *rng = &t->net.rng;
    uint64_t count = 1 + rng_below(rng, 80);
    struct action out = any_action(rng, count), in = any_action(rng, count);

    out.kind = ACTION_SEND;
    out.peer = to;
    in.kind = rng_below(rng, 2) ? ACTION_RECEIVE : ACTION_REDUCE;
    in.peer = from;
    push(&t->members[from].schedule, out);
    push(&t->members[to].schedule, in);
    uint32_t came[SPACE_ELEMENTS];
    memcpy(came, &r[from].space[out.source][out.from], count * 4);
    for (uint64_t i = 0; i < count; i++)
        r[to].space[in.target][in.first + i] =
            came[i] + (in.kind == ACTION_REDUCE ? r[to].space[in.source][in.from + i] : 0);
}

static void copy(struct crew *t, struct reference *r, unsigned m)
{
    struct action a = any_action(&t->net.rng, 1 + rng_below(&t->net.rng, 80));

    a.kind = ACTION_COPY;
    if (a.source == a.target)
        return;
    push(&t->members[m].schedule, a);
    memcpy(&r[m].space[a.target][a.first], &r[m].space[a.source][a.from], a.count * 4);
}

static void any_schedule(uint64_t seed)
{
    struct crew t = {.p = {.type = COLLECTIVE_I32}, .size = 4};
    struct rng rng;

    rng_seed(&rng, seed);
    unsigned n = 2 + (unsigned)rng_below(&rng, 3), actions = 1 + (unsigned)rng_below(&rng, 60);
    struct reference *r = xcalloc(n, sizeof(*r));
    crew_open(&t, n, seed);
    for (unsigned m = 0; m < n; m++) {
        struct member *me = &t.members[m];
        me->schedule = (struct schedule){.members = n, .me = m, .scratch = SPACE_ELEMENTS};
        me->input = xrealloc(NULL, sizeof(r->space[0]));
        me->result = xrealloc(NULL, sizeof(r->space[0]));
        for (unsigned i = 0; i < SPACE_ELEMENTS; i++)
            r[m].space[SPACE_INPUT][i] = (uint32_t)rng_u64(&rng);
        memcpy(me->input, r[m].space[SPACE_INPUT], sizeof(r->space[0]));
        memset(me->result, 0x5a, sizeof(r->space[0]));
        memset(r[m].space[SPACE_RESULT], 0x5a, 2 * sizeof(r->space[0]));
    }
    for (unsigned i = 0; i < actions; i++) {
        unsigned from = (unsigned)rng_below(&rng, n), to = (unsigned)rng_below(&rng, n);
        if (from == to)
            copy(&t, r, from);
        else
            transfer(&t, r, from, to);
    }
    for (unsigned m = 0; m < n; m++)
        open_engine(&t, m, 64 * (1 + seed % 2));
    run(&t);
    for (unsigned m = 0; m < n; m++) {
        assert_memory_equal(t.members[m].result, r[m].space[SPACE_RESULT], sizeof(r->space[0]));
        assert_memory_equal(t.members[m].spare, r[m].space[SPACE_SCRATCH], sizeof(r->space[0]));
    }
    free(r);
    crew_close(&t);
}

TEST(any_schedule_does_what_its_list_says)
{
    for (uint64_t seed = 0; seed < 1500; seed++)
        any_schedule(seed);
}

/* --- waiting */

struct visits {
    unsigned n, last;
    uint64_t still_ns;
};

static int count_visits(struct collective *c, uint64_t still_ns)
{
    struct visits *v = c->attend_arg;

    v->still_ns = still_ns;
    return ++v->n == v->last ? -ECANCELED : 0;
}

static void wait_one_ms(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static int dead_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    (void)k;
    (void)sides;
    if (wait_ns)
        wait_one_ms();
    return 0;
}

static int easy_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    struct wire_flow *out = &k->links[0].out;
    bool moved = out->through < out->posted;

    out->through = out->posted;
    return moved ? 1 : dead_progress(k, sides, wait_ns);
}

/* One of two members, whose peer does nothing. Returns how long it has seen nothing move. */
typedef int progress_fn(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns);

static uint64_t lonely(progress_fn *progress, uint64_t segment, struct collective *of)
{
    struct crew t = {.p = {.count = 100}, .size = 4};
    struct visits v = {.last = 4};

    crew_open(&t, 2, 1);
    struct member *me = &t.members[0];
    assert_int_equal(
        schedule_make(&me->schedule, SCHEDULE_RING, &(struct collective_point){0}, 100, 2, 0), 0);
    me->input = xcalloc(100, 4);
    me->result = xcalloc(100, 4);
    open_engine(&t, 0, segment);
    const struct wire_ops *real = t.net.wires[0]->ops;
    struct wire_ops ops = *real;
    ops.progress = progress;
    t.net.wires[0]->ops = &ops;
    me->c.attend = count_visits;
    me->c.attend_arg = &v;
    assert_int_equal(engine_run(me->engine, me->input, me->result), -ECANCELED);
    assert_int_equal(v.n, v.last);
    *of = me->c;
    t.net.wires[0]->ops = real;
    crew_close(&t);
    return v.still_ns;
}

/* Who waits for another, or for the link, is told apart; a long message counts when it is whole, and takes its time. */
TEST(waits_are_counted_and_attended_to)
{
    struct collective c;

    assert_true(lonely(easy_progress, 256, &c) >= 100000000); /* all that can go is gone */
    assert_true(c.waited_ns >= 50000000);
    assert_int_equal(c.blocked_ns, 0);
    assert_true(lonely(dead_progress, 256, &c) >= 100000000);
    assert_true(c.blocked_ns >= 50000000);
    assert_int_equal(c.waited_ns, 0);
    assert_int_equal(lonely(dead_progress, 64 << 20, &c), 0); /* 2.7 s of one each way */
}

/* Whole units, no longer than the vector; for a chain short enough to fill it soon, where there is a line. */
TEST(segments_are_the_same_for_all)
{
    static const struct {
        const struct wire_ops *wire;
        uint64_t bytes;
        unsigned hops;
        uint64_t asked, want;
    } cases[] = {{&wire_tcp, 1 << 30, 1, 100, 128},
                 {&wire_tcp, 100, 1, 1 << 20, 128},
                 {&wire_tcp, 0, 1, 0, 64},
                 {&wire_tcp, 8 << 20, 6, 0, 32 << 10},
                 {&wire_rdma, 8 << 20, 6, 0, 32 << 10},
                 {&wire_tcp, 8 << 20, 6, 256 << 10, 256 << 10},
                 {&wire_shm, 8 << 20, 6, 0, 256 << 10}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(
            engine_segment(cases[i].wire, cases[i].bytes, cases[i].hops, cases[i].asked),
            cases[i].want);
    for (uint64_t bytes = 1; bytes < 1u << 30; bytes = bytes * 3 + 1)
        for (unsigned hops = 1; hops < 16; hops += 7) {
            uint64_t segment = engine_segment(&wire_shm, bytes, 1, 0);
            uint64_t chain = engine_segment(&wire_tcp, bytes, hops, 0);
            assert_true(segment % 64 == 0 && segment > 0 && segment < bytes + 64);
            assert_true(bytes < 1 << 20 || (chain >= 32 << 10 && chain <= 256 << 10));
        }
}
