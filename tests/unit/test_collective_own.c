/* SPDX-License-Identifier: Apache-2.0 */
/* Our own backends from open to close, over a wire that is as awkward as can be: several calls of several lengths, and what is told of them. */
#include "core/collective/collective.h"
#include "core/group/world.h"
#include "core/wire/wires.h"
#include "tests/unit/unit.h"
#include "twisted_wire.h"

#define MEMBERS_MAX 6

/* The only wire here. */
const char *const wire_names[] = {"twisted", NULL};
const struct wire_ops *wire_find(const char *name)
{
    return strcmp(name, twisted_ops.name) ? NULL : &twisted_ops;
}
const struct collective_ops collective_mpi, collective_mpi_cuda, collective_nccl;

struct crew {
    struct twisted_net net;
    struct collective_point p;
    struct topo *topo;
    struct collective c[MEMBERS_MAX];
    unsigned ranks[MEMBERS_MAX], n; /* members are other ranks than their numbers */
};

static const struct collective_call calls[] = {{0, 1200}, {1200, 60}, {1260, 1200}, {2460, 540}};
#define CALLS 4u

static void exchange(struct crew *t)
{
    struct collective_address addresses[MEMBERS_MAX][MEMBERS_MAX];
    unsigned peers[MEMBERS_MAX], n, got[MEMBERS_MAX] = {0};

    for (unsigned m = 0; m < t->n; m++) {
        assert_int_equal(t->c[m].ops->peers(&t->c[m], peers, &n), 0);
        for (unsigned i = 0; i < n; i++) {
            struct collective_address *address = &addresses[peers[i]][got[peers[i]]++];
            assert_int_equal(t->c[m].ops->address(&t->c[m], peers[i], address), 0);
            assert_int_equal(address->member, peers[i]);
            address->member = m;
        }
    }
    for (unsigned m = 0; m < t->n; m++) {
        t->c[m].ops->join(&t->c[m], addresses[m], got[m]);
        assert_string_equal(t->c[m].error, "");
    }
}

static void crew_open(struct crew *t, const struct collective_ops *ops, unsigned n, uint32_t op)
{
    *t = (struct crew){.n = n,
                       .p = {.transport = "twisted",
                             .op = op,
                             .type = COLLECTIVE_F64,
                             .count = 3000,
                             .segment_bytes = 128,
                             .seed = n}};
    twisted_open(&t->net, n + 1, n);
    assert_int_equal(topo_open(&t->topo), 0);
    for (unsigned m = 0; m < n; m++)
        t->ranks[m] = m ? n + 1 - m : 0;
    for (unsigned m = 0; m < n; m++) {
        struct world *w = t->net.worlds[t->ranks[m]];
        for (unsigned r = 0; r <= n; r++)
            w->members[r].node = r >= 2;
        t->c[m] = (struct collective){.ops = ops,
                                      .point = &t->p,
                                      .world = w,
                                      .topo = t->topo,
                                      .members = t->ranks,
                                      .n = n,
                                      .me = m,
                                      .calls = calls,
                                      .n_calls = CALLS};
        ops->open(&t->c[m]);
        assert_string_equal(t->c[m].error, "");
    }
    exchange(t);
}

static void crew_close(struct crew *t)
{
    for (unsigned m = 0; m < t->n; m++)
        t->c[m].ops->close(&t->c[m]);
    topo_close(t->topo);
    twisted_close(&t->net);
}

/* Each at its own pace, one call after another. */
static void run(struct crew *t)
{
    unsigned call[MEMBERS_MAX] = {0}, left = t->n;

    for (unsigned m = 0; m < t->n; m++)
        assert_int_equal(t->c[m].ops->start(&t->c[m], 0), 0);
    for (unsigned steps = 0; left; steps++) {
        unsigned m = (unsigned)rng_below(&t->net.rng, t->n);
        bool done = false;
        assert_int_equal(t->c[m].ops->test(&t->c[m], &done), 0);
        assert_true(steps < 10000000 && !t->net.misused && !t->net.uneven);
        if (!done || call[m] == CALLS)
            continue;
        if (++call[m] == CALLS)
            left--;
        else
            assert_int_equal(t->c[m].ops->start(&t->c[m], call[m]), 0);
    }
}

/* Where there are blocks, those of a call lie where the call does. */
TEST(blocks_lie_where_their_call_does)
{
    struct crew t;

    crew_open(&t, &collective_ring, 3, COLLECTIVE_REDUCE_SCATTER);
    for (unsigned m = 0; m < 3; m++)
        for (unsigned i = 0; i < 3000; i++)
            ((double *)t.c[m].input)[i] = i;
    run(&t);
    for (unsigned m = 0; m < 3; m++)
        for (unsigned k = 0; k < CALLS; k++) {
            uint64_t block = calls[k].count / 3;
            for (uint64_t i = 0; i < block; i++)
                assert_true(((double *)t.c[m].result)[calls[k].first / 3 + i] ==
                            3. * (double)(calls[k].first + m * block + i));
        }
    crew_close(&t);
}

/* To 3 over wire1, to 2 over wire0, and over it to 0 on another node. */
TEST(what_went_where_is_told)
{
    struct crew t;
    struct collective_report told;
    unsigned others = 0;

    crew_open(&t, &collective_ring, 4, COLLECTIVE_ALL_TO_ALL);
    run(&t);
    t.c[1].ops->tell(&t.c[1], &told); /* rank 4 */
    assert_non_null(strstr(told.algorithm, "ring"));
    assert_int_equal(told.n_flows, 3);
    for (uint32_t i = 0; i < told.n_flows; i++) {
        const struct collective_flow *f = &told.flows[i];
        assert_true(!f->other_node || !strcmp(f->device, "wire0"));
        others += f->other_node;
        assert_int_equal(f->exact, 1);
        assert_true(f->out_bytes == 750 * 8 && f->in_bytes == f->out_bytes);
    }
    assert_int_equal(others, 1);
    crew_close(&t);
}

TEST(what_cannot_be_is_refused)
{
    static const struct {
        uint32_t op, in_place, n;
        const char *transport;
        int err;
    } cases[] = {{COLLECTIVE_ALLREDUCE, 0, 3, "twisted", 0},
                 {COLLECTIVE_REDUCE_SCATTER, 0, 5, "twisted", -EOPNOTSUPP},
                 {COLLECTIVE_ALL_TO_ALL, 0, 5, "twisted", 0},
                 {COLLECTIVE_ALL_TO_ALL, 0, 3, "twisted", -EOPNOTSUPP}, /* 10 elements */
                 {COLLECTIVE_ALL_TO_ALL, 1, 5, "twisted", -EOPNOTSUPP},
                 {COLLECTIVE_ALLREDUCE, 1, 5, "twisted", 0},
                 {COLLECTIVE_ALLREDUCE, 1, 5, "pigeon", -EOPNOTSUPP}};
    char why[160];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct collective_point p = {.backend = "doubling", .op = cases[i].op, .count = 10};
        p.in_place = (uint8_t)cases[i].in_place;
        strcpy(p.transport, cases[i].transport);
        assert_int_equal(collective_doubling.supports(&p, cases[i].n, why, sizeof(why)),
                         cases[i].err);
    }
    assert_non_null(strstr(why, "'pigeon'"));
}
