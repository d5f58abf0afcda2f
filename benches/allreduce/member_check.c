/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs filled and results compared, whole, piece by piece: through the backend where its buffers are not in this process' memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/allreduce/order.h"
#include "core/collective/data.h"

#define PIECE_BYTES (1u << 20)
#define FRESH_SEED  1 /* more, for the operation that is checked */

/* Elements of one call's input or result, in the buffer. */
struct span {
    uint64_t first, count;
};

/* A buffer of blocks alone, or in place this member's block of the vector. */
static struct span block_of(const struct member *m, const struct collective_call *call,
                            uint64_t count)
{
    uint64_t first = m->point.in_place ? call->first + m->c.me * count : call->first / m->c.n;

    return (struct span){first, count};
}

static struct span input_of(const struct member *m, const struct collective_call *call)
{
    uint64_t count = collective_input_count(m->point.op, call->count, m->c.n);

    if (m->point.op != COLLECTIVE_ALL_GATHER)
        return (struct span){call->first, count};
    return block_of(m, call, count);
}

static struct span result_of(const struct member *m, const struct collective_call *call)
{
    uint64_t count = collective_result_count(m->point.op, call->count, m->c.n);

    if (m->point.op != COLLECTIVE_REDUCE_SCATTER)
        return (struct span){call->first, count};
    return block_of(m, call, count);
}

/* Walks over pieces of a span. */
struct piece {
    uint64_t position, count; /* elements, of the span */
    uint64_t offset;          /* bytes, of the buffer */
    size_t bytes;
};

static bool next_piece(const struct member *m, const struct span *s, struct piece *p)
{
    size_t each = collective_type_bytes(m->point.type);
    uint64_t most = PIECE_BYTES / each;

    p->position += p->count;
    p->count = s->count - p->position < most ? s->count - p->position : most;
    p->offset = (s->first + p->position) * each;
    p->bytes = p->count * each;
    return p->count > 0;
}

static int fill_call(struct member *m, const struct collective_point *p,
                     const struct collective_call *call, void *buffer)
{
    struct span s = input_of(m, call);
    int err = 0;

    for (struct piece x = {0}; !err && next_piece(m, &s, &x);) {
        void *at = m->c.ops->write ? buffer : (char *)m->c.input + x.offset;
        data_fill(at, x.count, x.position, p, m->c.n, m->c.me);
        if (m->c.ops->write)
            err = m->c.ops->write(&m->c, x.offset, buffer, x.bytes);
        if (!err)
            err = m->c.attend(&m->c, 0);
    }
    return err;
}

/* Each call is a vector of its own. */
static struct collective_point point_of(const struct member *m, unsigned call)
{
    struct collective_point p = m->point;

    p.seed = m->filled_seed;
    p.count = m->calls[call].count;
    return p;
}

int member_fill(struct member *m, uint64_t seed)
{
    void *buffer = malloc(PIECE_BYTES);
    int err = buffer ? 0 : -ENOMEM;

    m->filled_seed = seed;
    for (unsigned i = 0; i < m->c.n_calls && !err; i++) {
        struct collective_point p = point_of(m, i);
        err = fill_call(m, &p, &m->calls[i], buffer);
    }
    free(buffer);
    m->ran = false;
    return err ? collective_fail(&m->c, err, "the input cannot be filled: %s", strerror(-err)) : 0;
}

static int wrong(struct member *m, unsigned call, uint64_t place, uint64_t count, double got,
                 double wanted)
{
    char bucket[48] = "";

    if (m->c.n_calls > 1)
        snprintf(bucket, sizeof(bucket), "call %u of %u: ", call + 1, m->c.n_calls);
    return collective_fail(&m->c, -EBADMSG, "%selement %llu of %llu is %.9g, must be %.9g", bucket,
                           (unsigned long long)place, (unsigned long long)count, got, wanted);
}

static int compare_call(struct member *m, unsigned call, const struct data_expected *expected,
                        void *buffer)
{
    struct span s = result_of(m, &m->calls[call]);
    int err = 0;

    for (struct piece x = {0}; !err && next_piece(m, &s, &x);) {
        const void *at = m->c.ops->read ? buffer : (char *)m->c.result + x.offset;
        double got = 0, wanted = 0;
        if (m->c.ops->read)
            err = m->c.ops->read(&m->c, x.offset, buffer, x.bytes);
        if (err)
            break;
        uint64_t place = data_check(expected, at, x.count, x.position, &got, &wanted);
        if (place != DATA_RIGHT)
            return wrong(m, call, place, s.count, got, wanted);
        err = m->c.attend(&m->c, 0);
    }
    return err;
}

static int compare(struct member *m)
{
    void *buffer = malloc(PIECE_BYTES);
    int err = buffer ? 0 : -ENOMEM;

    for (unsigned i = 0; i < m->c.n_calls && !err; i++) {
        struct collective_point p = point_of(m, i);
        struct data_expected *expected = NULL;
        err = data_expect(&expected, &p, m->calls[i].count, m->c.n, m->c.me);
        if (!err)
            err = compare_call(m, i, expected, buffer);
        data_expect_free(expected);
    }
    free(buffer);
    return err;
}

static int run_once(struct member *m)
{
    member_watch(m, COLLECTIVE_ASK_CHECK, NULL);
    int err = m->c.ops->barrier(&m->c);
    for (unsigned call = 0; call < m->c.n_calls && !err; call++)
        err = m->c.ops->run(&m->c, call);
    watchdog_rest(m->dog);
    return err;
}

int member_check(struct member *m)
{
    int err = m->ran && !m->point.in_place ? compare(m) : 0;

    if (!err)
        err = member_fill(m, m->filled_seed + FRESH_SEED);
    if (!err)
        err = run_once(m);
    if (!err)
        err = compare(m);
    return err ? collective_fail(&m->c, err, "%s", strerror(-err)) : 0;
}
