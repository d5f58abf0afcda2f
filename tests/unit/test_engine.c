/* SPDX-License-Identifier: Apache-2.0 */
/* The engine over a wire that is as awkward as can be: whatever the order in which things happen, the results are right to the bit, and no memory is
 * touched that is the wire's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "core/collective/data.h"
#include "core/collective/engine.h"
#include "tests/unit/sanitized.h"
#include "twisted_wire.h"

#define STEPS_MAX 20000000 /* of a group, each a call: more is a deadlock */

struct member {
    struct collective c;
    struct schedule schedule;
    struct engine *engine;
    char *input, *result;
    void *spare;
    struct data_expected *expected;
    unsigned left; /* operations */
};

struct crew {
    struct twisted_net net;
    struct collective_point p;
    struct member *members;
    unsigned *numbers;
    size_t size; /* bytes of an element */
    uint64_t input_count, result_count;
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
    assert_int_equal(engine_open(&me->engine, &me->c, f, &me->schedule, me->spare, segment), 0);
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
        data_expect_free(m->expected);
        if (m->input != m->result)
            free(m->input);
        free(m->result);
        free(m->spare);
    }
    free(t->members);
    free(t->numbers);
    twisted_close(&t->net);
}

/* Fresh data, and a result that is wrong all over. */
static void fill(struct crew *t, unsigned m)
{
    struct member *me = &t->members[m];
    uint64_t at =
        t->p.in_place && (t->p.op == COLLECTIVE_ALL_GATHER || t->p.op == COLLECTIVE_GATHER)
            ? m * t->input_count
            : 0;

    memset(me->result, 0xee, (t->p.in_place ? t->p.count : t->result_count) * t->size);
    data_fill(me->input + at * t->size, t->input_count, 0, &t->p, t->net.n, m);
}

static void check(struct crew *t, unsigned m)
{
    struct member *me = &t->members[m];
    bool own = t->p.op == COLLECTIVE_REDUCE_SCATTER || t->p.op == COLLECTIVE_SCATTER;
    uint64_t at = t->p.in_place && own ? m * t->result_count : 0;
    double got = 0, wanted = 0;
    uint64_t wrong =
        data_check(me->expected, me->result + at * t->size, t->result_count, 0, &got, &wanted);

    if (wrong != DATA_RIGHT)
        print_error("member %u of %u, %s of %llu: element %llu is %g, not %g\n", m, t->net.n,
                    collective_ops_names[t->p.op], (unsigned long long)t->p.count,
                    (unsigned long long)wrong, got, wanted);
    assert_true(wrong == DATA_RIGHT);
}

/* Members make their moves in any order, and each begins its next operation when it has done one. */
static void run(struct crew *t, unsigned operations, bool checks)
{
    unsigned left = t->net.n;
    uint64_t steps = 0;

    for (unsigned m = 0; m < t->net.n; m++) {
        struct member *me = &t->members[m];
        me->left = operations;
        if (checks)
            fill(t, m);
        assert_int_equal(engine_begin(me->engine, me->input, me->result), 0);
    }
    while (left) {
        unsigned m = (unsigned)rng_below(&t->net.rng, t->net.n);
        struct member *me = &t->members[m];
        if (++steps > STEPS_MAX)
            fail_msg("%s of %u members stands still", collective_ops_names[t->p.op], t->net.n);
        if (!me->left) {
            if (t->net.wires[m]->n_links)
                wire_progress(t->net.wires[m]->workers, WIRE_BOTH, 0);
            continue;
        }
        int done = engine_progress(me->engine, 0);
        assert_string_equal(me->c.error, "");
        assert_true(done >= 0);
        assert_int_equal(t->net.misused, 0);
        assert_int_equal(t->net.uneven, 0);
        if (!done)
            continue;
        if (checks)
            check(t, m);
        left -= !--me->left;
        if (me->left && checks)
            fill(t, m);
        if (me->left)
            assert_int_equal(engine_begin(me->engine, me->input, me->result), 0);
    }
}

static void *must(void *p)
{
    assert_non_null(p);
    return p;
}

/* False: this algorithm has no such op. */
static bool operation(enum schedule_algorithm algorithm, const struct collective_point *p,
                      unsigned n, uint64_t segment, uint64_t seed)
{
    struct crew t = {.p = *p, .size = collective_type_bytes(p->type)};
    bool has = true;

    crew_open(&t, n, seed);
    t.input_count = collective_input_count(p->op, p->count, n);
    t.result_count = collective_result_count(p->op, p->count, n);
    for (unsigned m = 0; m < n && has; m++) {
        struct member *me = &t.members[m];
        has = !schedule_make(&me->schedule, algorithm, p, p->count, n, m);
        me->result = must(malloc((p->in_place ? p->count : t.result_count) * t.size + 1));
        me->input = p->in_place ? me->result : must(malloc(t.input_count * t.size + 1));
        if (!has)
            continue;
        assert_int_equal(data_expect(&me->expected, p, p->count, n, m), 0);
        open_engine(&t, m, segment);
    }
    if (has)
        run(&t, 2, true);
    crew_close(&t);
    return has;
}

static void counts_of(unsigned n, uint64_t seed, struct collective_point *p, uint64_t segment)
{
    bool parts = p->op == COLLECTIVE_ALLREDUCE || p->op == COLLECTIVE_BROADCAST ||
                 p->op == COLLECTIVE_SEND_RECEIVE || p->op == COLLECTIVE_REDUCE;
    uint64_t few[] = {1, n > 1 ? n - 1 : 1, 37, 40 * n + 3}, whole[] = {n, 5 * n, 71 * n};

    for (size_t i = 0; i < (parts ? 4 : 3); i++)
        for (int a = SCHEDULE_RING; a <= SCHEDULE_DOUBLING; a++) {
            p->count = parts ? few[i] : whole[i];
            bool has = operation((enum schedule_algorithm)a, p, n, segment, seed + i);
            bool none = (p->in_place &&
                         (p->op == COLLECTIVE_ALL_TO_ALL || p->op == COLLECTIVE_SEND_RECEIVE)) ||
                        (a == SCHEDULE_DOUBLING && p->op == COLLECTIVE_REDUCE_SCATTER);
            assert_int_equal(has, !none);
        }
}

static void every_operation_of_so_many(unsigned n, uint64_t seed)
{
    for (uint32_t op = 0; op < COLLECTIVE_OPS; op++)
        for (uint8_t in_place = 0; in_place < 2; in_place++) {
            struct collective_point p = {.op = op,
                                         .in_place = in_place,
                                         .root = (uint32_t)(seed / 1000 + 5 * op) % n,
                                         .seed = seed,
                                         .sum = (op + n + in_place) % COLLECTIVE_AVG,
                                         .type = (op + n) % COLLECTIVE_E4M3};
            counts_of(n, seed + op, &p, 64);
        }
}

static void every_operation_is_right_in_any_order(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 17; n += sanitized() && n >= 5 ? 4 : 1)
        every_operation_of_so_many(n, 1000 * n);
}

static void so_it_is_for_many_members(void **state)
{
    struct collective_point p = {.type = COLLECTIVE_F32, .seed = 7, .count = 64 * 20};

    (void)state;
    for (uint32_t op = 0; op < COLLECTIVE_OPS; op++) {
        p.op = op;
        for (int a = SCHEDULE_RING; a <= SCHEDULE_DOUBLING; a++)
            operation((enum schedule_algorithm)a, &p, 64, 128, op);
    }
}

/* A segment has 16 elements here, so that parts are of many segments, more than there are slots and posts. */
static void long_ones_go_through_few_slots(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < (sanitized() ? 2 : 6); seed++)
        for (unsigned n = 2; n <= 5; n++)
            for (uint8_t in_place = 0; in_place < 2; in_place++)
                for (int a = SCHEDULE_RING; a <= SCHEDULE_DOUBLING; a++) {
                    struct collective_point p = {
                        .in_place = in_place, .seed = seed, .count = 2999, .type = COLLECTIVE_F32};
                    assert_true(operation((enum schedule_algorithm)a, &p, n, 64, seed * 99 + n));
                }
}

/* --- schedules that no algorithm would make: ranges that overlap in any way */

#define SPACE_ELEMENTS 200u

struct reference {
    uint32_t space[SPACES][SPACE_ELEMENTS];
};

static void push(struct schedule *s, struct action a)
{
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 64;
        s->actions = must(realloc(s->actions, s->room * sizeof(a)));
    }
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
    struct reference *r = must(calloc(n, sizeof(*r)));
    crew_open(&t, n, seed);
    for (unsigned m = 0; m < n; m++) {
        struct member *me = &t.members[m];
        me->schedule = (struct schedule){.members = n, .me = m, .scratch = SPACE_ELEMENTS};
        me->input = must(malloc(sizeof(r->space[0])));
        me->result = must(malloc(sizeof(r->space[0])));
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
    run(&t, 1, false);
    for (unsigned m = 0; m < n; m++) {
        assert_memory_equal(t.members[m].result, r[m].space[SPACE_RESULT], sizeof(r->space[0]));
        assert_memory_equal(t.members[m].spare, r[m].space[SPACE_SCRATCH], sizeof(r->space[0]));
    }
    free(r);
    crew_close(&t);
}

static void any_schedule_does_what_its_list_says(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < (sanitized() ? 300 : 1500); seed++)
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

static uint64_t one_more(uint64_t through, uint64_t posted)
{
    return through + 4 < posted ? through + 4 : posted;
}

/* Bytes never cease to move, and are slow. */
static int steady_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    struct wire_link *l = &k->links[0];

    (void)sides;
    (void)wait_ns;
    for (int i = 0; i < 5; i++)
        wait_one_ms();
    l->out.through = one_more(l->out.through, l->out.posted);
    l->in.through = one_more(l->in.through, l->in.posted);
    return 1;
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
    me->input = must(calloc(100, 4));
    me->result = must(calloc(100, 4));
    open_engine(&t, 0, segment);
    struct wire_ops ops = *t.net.wires[0]->ops;
    ops.progress = progress;
    const struct wire_ops *real = t.net.wires[0]->ops;
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

static void waits_are_counted_and_attended_to(void **state)
{
    struct collective c;

    (void)state;
    assert_true(lonely(easy_progress, 256, &c) >= 100000000); /* all that can go is gone */
    assert_true(c.waited_ns >= 50000000);
    assert_int_equal(c.blocked_ns, 0);
    assert_true(lonely(dead_progress, 256, &c) >= 100000000);
    assert_true(c.blocked_ns >= 50000000);
    assert_int_equal(c.waited_ns, 0);
}

/* Who asks is answered, and told that bytes move; a message that counts when it is whole takes its
 * time. */
static void long_work_is_attended_to(void **state)
{
    struct collective c;

    (void)state;
    assert_int_equal(lonely(steady_progress, 256, &c), 0);
    assert_int_equal(c.waited_ns + c.blocked_ns, 0);
    assert_int_equal(lonely(dead_progress, 64 << 20, &c), 0); /* 2.7 s of one each way */
}

static void segments_are_the_same_for_all(void **state)
{
    (void)state;
    assert_int_equal(engine_segment("tcp", 1 << 30, 1, 100), 128);
    assert_int_equal(engine_segment("tcp", 100, 1, 1 << 20), 128);
    assert_int_equal(engine_segment("tcp", 0, 1, 0), 64);
    for (uint64_t bytes = 1; bytes < 1u << 30; bytes = bytes * 3 + 1) {
        uint64_t segment = engine_segment("shm", bytes, 1, 0);
        assert_int_equal(segment % 64, 0);
        assert_true(segment > 0 && segment < bytes + 64);
    }
}

/* When the last of n members in a chain has all of it, if a link carries a byte in each unit of time and a segment goes on once it has come whole. */
static uint64_t chain_time(uint64_t bytes, unsigned n, uint64_t segment)
{
    uint64_t through[16] = {0}; /* of each link, its last segment so far */

    for (uint64_t at = 0; at < bytes; at += segment) {
        uint64_t length = bytes - at < segment ? bytes - at : segment, came = 0;
        for (unsigned link = 0; link + 1 < n; link++) {
            uint64_t begin = came > through[link] ? came : through[link];
            came = through[link] = begin + length;
        }
    }
    return through[n - 2];
}

static void a_chain_is_filled_soon(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 16; n++)
        for (uint64_t bytes = 1 << 20; bytes <= 1u << 30; bytes *= 2) {
            uint64_t segment = engine_segment("tcp", bytes, n - 1, 0);
            uint64_t time = chain_time(bytes, n, segment), least = (n - 2) * (32u << 10);
            assert_true(segment >= 32 << 10 && segment <= 256 << 10);
            assert_true(time <= bytes + bytes / 64 + least);
            assert_int_equal(engine_segment("rdma", bytes, n - 1, 0), segment);
        }
    assert_int_equal(engine_segment("tcp", 8 << 20, 6, 0), 32 << 10);
    assert_int_equal(engine_segment("tcp", 8 << 20, 6, 256 << 10), 256 << 10);
    assert_int_equal(engine_segment("shm", 8 << 20, 6, 0), 256 << 10); /* there is no line */
}

static void a_large_ring_opens(void **state)
{
    struct schedule s;
    struct crew t = {.p = {.count = 1024}, .size = 4};

    (void)state;
    assert_int_equal(schedule_make(&s, SCHEDULE_RING, &(struct collective_point){0}, 1024, 1024, 3),
                     0);
    assert_int_equal(s.n, 4 * 1023);
    crew_open(&t, 2, 1);
    for (size_t i = 0; i < s.n; i++)
        s.actions[i].peer = 1;
    s.members = 2;
    t.members[0].schedule = s;
    open_engine(&t, 0, 64);
    crew_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_is_right_in_any_order),
        cmocka_unit_test(so_it_is_for_many_members),
        cmocka_unit_test(long_ones_go_through_few_slots),
        cmocka_unit_test(any_schedule_does_what_its_list_says),
        cmocka_unit_test(waits_are_counted_and_attended_to),
        cmocka_unit_test(long_work_is_attended_to),
        cmocka_unit_test(segments_are_the_same_for_all),
        cmocka_unit_test(a_chain_is_filled_soon),
        cmocka_unit_test(a_large_ring_opens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
