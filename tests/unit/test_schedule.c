/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules run over nothing at all: each member's list one action after another. What comes out is right, what goes over a link is matched at its other
 * end, and no link carries more than the algorithm says. */
#include "core/alloc.h"
#include "core/collective/engine.h"
#include "tests/unit/unit.h"

/* Elements that go to a peer, and that come from it. */
static uint64_t elements_sent(const struct schedule *s, unsigned peer)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->actions[i].kind == ACTION_SEND && s->actions[i].peer == peer)
            sum += s->actions[i].count;
    return sum;
}

static uint64_t elements_received(const struct schedule *s, unsigned peer)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < s->n; i++)
        if ((s->actions[i].kind == ACTION_RECEIVE || s->actions[i].kind == ACTION_REDUCE) &&
            s->actions[i].peer == peer)
            sum += s->actions[i].count;
    return sum;
}

#define POISON 0xdeadbeefdeadbeefull

struct message {
    uint64_t *elements, count;
    unsigned from, to;
    struct message *next;
};

struct member {
    struct schedule s;
    size_t at; /* the next action */
    uint64_t *space[SPACES];
};

struct group {
    enum collective_op op;
    unsigned n, root;
    uint64_t count, in, out; /* elements: of the vector, of an input, of a result */
    bool in_place;
    struct member *members;
    struct message *messages; /* on their way, in order */
};

static uint64_t value(unsigned m, uint64_t i)
{
    return (m + 1) * 0x9e3779b97f4a7c15u ^ (i + 1) * 0xd1b54a32d192ed03u;
}

static void put_out(struct group *g, unsigned m, const struct action *a)
{
    struct message *new = xcalloc(1, sizeof(*new)), **last = &g->messages;

    assert_int_not_equal(a->peer, m);
    *new = (struct message){xrealloc(NULL, a->count * 8), a->count, m, a->peer, NULL};
    memcpy(new->elements, g->members[m].space[a->source] + a->from, a->count * 8);
    while (*last)
        last = &(*last)->next;
    *last = new;
}

/* NULL: it has not come yet. */
static struct message *take_in(struct group *g, unsigned from, unsigned to)
{
    struct message **m = &g->messages;

    while (*m && ((*m)->from != from || (*m)->to != to))
        m = &(*m)->next;
    struct message *found = *m;
    if (found)
        *m = found->next;
    return found;
}

/* False: it waits for a message. */
static bool act(struct group *g, unsigned m, const struct action *a)
{
    struct member *me = &g->members[m];
    struct message *came = NULL;

    assert_true(a->count > 0);
    if (a->kind == ACTION_SEND) {
        put_out(g, m, a);
        return true;
    }
    if (a->kind != ACTION_COPY && !(came = take_in(g, a->peer, m)))
        return false;
    if (came)
        assert_int_equal(came->count, a->count);
    for (uint64_t i = 0; i < a->count; i++) {
        uint64_t x = came ? came->elements[i] : 0;
        if (a->kind != ACTION_RECEIVE)
            x += me->space[a->source][a->from + i];
        me->space[a->target][a->first + i] = x;
    }
    if (came)
        free(came->elements);
    free(came);
    return true;
}

/* Exactly as long as the operation says, so that what goes beyond is found by sanitizers. */
static void open_member(struct group *g, unsigned m)
{
    struct member *me = &g->members[m];
    uint64_t vector = g->in_place ? g->count : g->out;

    me->space[SPACE_RESULT] = xrealloc(NULL, vector * 8 + 1);
    me->space[SPACE_SCRATCH] = xrealloc(NULL, me->s.scratch * 8 + 1);
    for (uint64_t i = 0; i < vector; i++)
        me->space[SPACE_RESULT][i] = POISON;
    for (uint64_t i = 0; i < me->s.scratch; i++)
        me->space[SPACE_SCRATCH][i] = POISON;
    uint64_t at = g->in_place && (g->op == COLLECTIVE_ALL_GATHER || g->op == COLLECTIVE_GATHER)
                      ? m * g->in
                      : 0;
    uint64_t *input = g->in_place ? me->space[SPACE_RESULT] + at : xrealloc(NULL, g->in * 8 + 1);
    for (uint64_t i = 0; i < g->in; i++)
        input[i] = value(m, i);
    me->space[SPACE_INPUT] = g->in_place ? NULL : input;
}

static uint64_t wanted(const struct group *g, unsigned m, uint64_t i)
{
    uint64_t sum = 0, block = g->count / g->n;
    uint64_t at = g->op == COLLECTIVE_REDUCE_SCATTER ? m * block + i : i; /* of a sum */

    switch (g->op) {
    case COLLECTIVE_SCATTER:
        return value(g->root, m * block + i);
    case COLLECTIVE_GATHER:
    case COLLECTIVE_ALL_GATHER:
        return value((unsigned)(i / block), i % block);
    case COLLECTIVE_BROADCAST:
        return value(g->root, i);
    case COLLECTIVE_ALL_TO_ALL:
        return value((unsigned)(i / block), m * block + i % block);
    case COLLECTIVE_SEND_RECEIVE:
        return value((m + g->n - 1) % g->n, i);
    default:
        for (unsigned k = 0; k < g->n; k++)
            sum += value(k, at);
        return sum;
    }
}

static void right(const struct group *g, unsigned m)
{
    const uint64_t *result = g->members[m].space[SPACE_RESULT];
    bool own = g->op == COLLECTIVE_REDUCE_SCATTER || g->op == COLLECTIVE_SCATTER;
    uint64_t at = g->in_place && own ? m * g->out : 0;

    if (m != g->root && (g->op == COLLECTIVE_REDUCE || g->op == COLLECTIVE_GATHER))
        return; /* the root's alone */

    for (uint64_t i = 0; i < g->out; i++)
        if (result[at + i] != wanted(g, m, i))
            fail_msg("%s of %llu in %u members, root %u: element %llu of member %u is wrong",
                     collective_ops_names[g->op], (unsigned long long)g->count, g->n, g->root,
                     (unsigned long long)i, m);
}

static void execute(struct group *g)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (unsigned m = 0; m < g->n; m++) {
            struct member *me = &g->members[m];
            for (; me->at < me->s.n && act(g, m, &me->s.actions[me->at]); moved = true)
                me->at++;
        }
    }
    for (unsigned m = 0; m < g->n; m++)
        assert_int_equal(g->members[m].at, g->members[m].s.n);
    assert_null(g->messages);
}

static void release(struct group *g)
{
    for (unsigned m = 0; m < g->n; m++) {
        schedule_release(&g->members[m].s);
        for (int i = 0; i < SPACES; i++)
            free(g->members[m].space[i]);
    }
    free(g->members);
}

static uint64_t most(const struct schedule *s)
{
    uint64_t longest = 0;

    for (size_t i = 0; i < s->n; i++)
        if (s->actions[i].kind != ACTION_COPY && s->actions[i].count > longest)
            longest = s->actions[i].count;
    return longest;
}

static void operation(enum schedule_algorithm algorithm, const struct collective_point *p,
                      uint64_t count, unsigned n)
{
    enum collective_op op = (enum collective_op)p->op;
    bool in_place = p->in_place;
    struct group g = {.op = op,
                      .n = n,
                      .root = p->root,
                      .count = count,
                      .in = collective_input_count(op, count, n),
                      .out = collective_result_count(op, count, n),
                      .in_place = in_place,
                      .members = xcalloc(n, sizeof(struct member))};

    for (unsigned m = 0; m < n; m++) {
        struct schedule *s = &g.members[m].s;
        int err = schedule_make(s, algorithm, p, count, n, m);
        if (err) {
            assert_int_equal(err, -EOPNOTSUPP);
            assert_true(in_place ||
                        (algorithm == SCHEDULE_DOUBLING && op == COLLECTIVE_REDUCE_SCATTER));
            assert_int_equal(m, 0);
            goto release;
        }
        assert_int_equal(s->longest, g.members[0].s.longest);
        assert_true(most(s) <= s->longest);
        open_member(&g, m);
    }
    execute(&g);
    for (unsigned m = 0; m < n; m++) {
        right(&g, m);
        for (unsigned k = 0; k < n; k++)
            assert_int_equal(elements_sent(&g.members[m].s, k),
                             elements_received(&g.members[k].s, m));
    }
release:
    release(&g);
}

/* Of any root, in place or not, for numbers of members that are powers of two and others; of many members some roots. */
TEST(every_operation_is_right)
{
    static const unsigned sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 31};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (int a = SCHEDULE_RING; a <= SCHEDULE_DOUBLING; a++)
            for (uint32_t op = 0; op < COLLECTIVE_OPS; op++)
                for (int k = 0; k < 8; k++) {
                    unsigned n = sizes[i], step = n > 9 ? n / 3 : 1;
                    bool parts = op == COLLECTIVE_ALLREDUCE || op == COLLECTIVE_BROADCAST ||
                                 op == COLLECTIVE_SEND_RECEIVE || op == COLLECTIVE_REDUCE;
                    uint64_t counts[] = {5 * n, 1, n + 1, 3 * n - 1};
                    struct collective_point p = {.op = op, .in_place = k % 2};
                    if (k / 2 && !parts)
                        break;
                    for (p.root = 0; p.root < (collective_has_root(op) ? n : 1); p.root += step)
                        operation((enum schedule_algorithm)a, &p, counts[k / 2], n);
                }
}

static uint64_t sent_by(enum schedule_algorithm algorithm, enum collective_op op, uint64_t count,
                        unsigned n, unsigned m)
{
    struct schedule s;
    uint64_t sum = 0;

    assert_int_equal(
        schedule_make(&s, algorithm, &(struct collective_point){.op = op}, count, n, m), 0);
    for (unsigned k = 0; k < n; k++)
        sum += elements_sent(&s, k);
    for (size_t i = 0; i < s.n && algorithm == SCHEDULE_RING && op == COLLECTIVE_ALLREDUCE; i++)
        assert_int_equal(s.actions[i].peer,
                         (m + (s.actions[i].kind == ACTION_SEND ? 1 : n - 1)) % n);
    schedule_release(&s);
    return sum;
}

/* What busbw stands for; a ring's members send to one neighbour alone. */
TEST(links_carry_what_the_formula_says)
{
    static const struct {
        enum schedule_algorithm algorithm;
        enum collective_op op;
        unsigned parts; /* of 2 (n-1)/n: halves; 0: the vector, log2 n times */
    } cases[] = {{SCHEDULE_RING, COLLECTIVE_ALLREDUCE, 2},
                 {SCHEDULE_RING, COLLECTIVE_REDUCE_SCATTER, 1},
                 {SCHEDULE_RING, COLLECTIVE_ALL_GATHER, 1},
                 {SCHEDULE_RING, COLLECTIVE_ALL_TO_ALL, 1},
                 {SCHEDULE_HALVING, COLLECTIVE_ALLREDUCE, 2},
                 {SCHEDULE_HALVING, COLLECTIVE_REDUCE_SCATTER, 1},
                 {SCHEDULE_DOUBLING, COLLECTIVE_ALL_GATHER, 1},
                 {SCHEDULE_DOUBLING, COLLECTIVE_ALLREDUCE, 0}};

    for (unsigned n = 2; n <= 16; n++)
        for (size_t i = 0; i < 8; i++) {
            uint64_t count = 240240ull * n, half = count / n * (n - 1);
            if (cases[i].algorithm != SCHEDULE_RING && (n & (n - 1)))
                continue;
            for (unsigned m = 0; m < n; m++)
                assert_int_equal(sent_by(cases[i].algorithm, cases[i].op, count, n, m),
                                 cases[i].parts ? cases[i].parts * half
                                                : count * (unsigned)__builtin_ctz(n));
        }
}

/* All members know how many hops a chain makes from its root on; other operations have one. */
TEST(a_chain_tells_its_hops)
{
    for (unsigned n = 2; n <= 9; n++)
        for (unsigned m = 0; m < n; m++)
            for (int k = 0; k < 2; k++) {
                struct collective_point p = {.op = k ? COLLECTIVE_ALLREDUCE : COLLECTIVE_BROADCAST};
                struct schedule s;
                assert_int_equal(schedule_make(&s, SCHEDULE_RING, &p, 100, n, m), 0);
                assert_int_equal(s.hops, k ? 1 : n - 1);
                schedule_release(&s);
            }
}

/* Who is through has something from everyone: so all have come. */
TEST(a_barrier_hears_of_everyone)
{
    for (unsigned n = 1; n <= 33; n++) {
        struct group g = {.n = n, .members = xcalloc(n, sizeof(struct member))};
        for (unsigned m = 0; m < n; m++) {
            struct member *me = &g.members[m];
            schedule_barrier(&me->s, n, m);
            assert_true(most(&me->s) <= me->s.longest);
            me->space[SPACE_RESULT] = xcalloc(n, 8);
            me->space[SPACE_RESULT][0] = m + 1;
        }
        execute(&g);
        for (unsigned m = 0; m < n; m++)
            for (unsigned i = 0; i < n; i++)
                assert_int_equal(g.members[m].space[SPACE_RESULT][i], (m + i) % n + 1);
        release(&g);
    }
}
