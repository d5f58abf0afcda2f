/* SPDX-License-Identifier: Apache-2.0 */
/* See wire_fixture.h. */
#include "wire_fixture.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"

#define UNTIL_NS  20000000000u
#define RANKS_MAX 8
#define WAIT_NS   60000000000u /* for a rank's outcome */

enum { ADDRESSES = 0x4601, OUTCOME, MEET };

struct slot {
    uint32_t len;
    uint8_t bytes[WIRE_ADDRESS_MAX];
};

struct wire_options wire_options(unsigned ranks)
{
    return (struct wire_options){.message_most = 3 << 20,
                                 .node = -1,
                                 .rdma = {.gid_index = -1, .inline_bytes = -1},
                                 .crowded = ranks > (unsigned)sysconf(_SC_NPROCESSORS_ONLN)};
}

int wire_fault(struct wire_party *p, int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is begun above */
    vsnprintf(p->outcome.text, sizeof(p->outcome.text), format, args);
    va_end(args);
    p->outcome.rc = err;
    return err;
}

const char *wire_first_fault(const struct wire_outcome *outcomes, unsigned size)
{
    static char text[WIRE_ERROR_BYTES + 64];

    text[0] = 0;
    for (unsigned i = 0; i < size && !text[0]; i++)
        if (outcomes[i].rc)
            snprintf(text, sizeof(text), "rank %u: %.*s (%d)", i, WIRE_ERROR_BYTES - 1,
                     outcomes[i].text, outcomes[i].rc);
    return text;
}

struct wire_link *wire_link_to(struct wire_party *p, unsigned rank)
{
    int link = wire_link(p->wire, rank, NULL);

    return link < 0 ? NULL : &p->wire->links[link];
}

int wire_until(struct wire_party *p, const struct wire_link *l, uint64_t sent, uint64_t received)
{
    uint64_t start_ns = clock_now_ns();

    while (l->out.through < sent || l->in.through < received) {
        int rc = wire_progress(p->wire->workers, WIRE_BOTH, 1000000000);
        if (rc < 0)
            return wire_fault(p, rc, "%s", p->wire->error);
        if (clock_now_ns() - start_ns > UNTIL_NS)
            return wire_fault(p, -ETIMEDOUT, "%llu of %llu sent, %llu of %llu received",
                              (unsigned long long)l->out.through, (unsigned long long)sent,
                              (unsigned long long)l->in.through, (unsigned long long)received);
    }
    return 0;
}

static int hear(struct wire_party *p, unsigned from, uint16_t want, void *data, size_t size)
{
    struct channel *c = world_channel(p->world, from);
    uint16_t type = 0;
    size_t len = 0;
    int err = channel_recv(c, &type, data, size, &len, WAIT_NS);

    if (!err && (type != want || len != size))
        err = -EPROTO;
    return err ? wire_fault(p, err, "%s", channel_error(c)) : 0;
}

int wire_barrier(struct wire_party *p)
{
    uint8_t one = 1;
    int err = 0;

    for (unsigned i = 1; i < p->size && !err && !p->rank; i++)
        err = hear(p, i, MEET, &one, 1);
    for (unsigned i = 1; i < p->size && !err && !p->rank; i++)
        err = channel_send(world_channel(p->world, i), MEET, &one, 1);
    if (p->rank) {
        err = channel_send(world_channel(p->world, 0), MEET, &one, 1);
        err = err ? err : hear(p, 0, MEET, &one, 1);
    }
    return err;
}

/* Rank 0 gathers what all made for all, and gives each what is for it. */
static int exchange(struct wire_party *p, struct slot *slots)
{
    size_t row = p->size * sizeof(*slots);
    struct slot *all = p->rank ? NULL : calloc(p->size, row), *column = calloc(1, row);
    int err = 0;

    if (p->rank) {
        err = channel_send(world_channel(p->world, 0), ADDRESSES, slots, row);
        err = err ? err : hear(p, 0, ADDRESSES, slots, row);
    } else {
        memcpy(all, slots, row);
        for (unsigned i = 1; i < p->size && !err; i++)
            err = hear(p, i, ADDRESSES, &all[i * p->size], row);
        for (unsigned to = p->size; to-- > 0 && !err;) {
            for (unsigned from = 0; from < p->size; from++)
                column[from] = all[from * p->size + to];
            if (to)
                err = channel_send(world_channel(p->world, to), ADDRESSES, column, row);
            else
                memcpy(slots, column, row);
        }
    }
    free(all);
    free(column);
    return err;
}

static int connect_all(struct wire_party *p)
{
    struct slot *slots = calloc(p->size, sizeof(*slots));
    const void **addresses = calloc(p->size, sizeof(*addresses));
    size_t *lens = calloc(p->size, sizeof(*lens));
    int err = 0;

    for (unsigned i = 0; i < p->size && err >= 0; i++)
        err = i == p->rank ? 0 : wire_link(p->wire, i, NULL);
    for (unsigned i = 0; i < p->wire->n_links && err >= 0; i++) {
        struct slot *s = &slots[p->wire->links[i].peer];
        size_t len = 0;
        err = wire_address(p->wire, i, s->bytes, &len);
        s->len = (uint32_t)len;
    }
    err = err < 0 ? wire_fault(p, err, "%s", p->wire->error) : exchange(p, slots);
    for (unsigned i = 0; i < p->wire->n_links && !err; i++) {
        addresses[i] = slots[p->wire->links[i].peer].bytes;
        lens[i] = slots[p->wire->links[i].peer].len;
    }
    if (!err && (err = wire_join(p->wire, addresses, lens)))
        wire_fault(p, err, "%s", p->wire->error);
    free(slots);
    free(addresses);
    free(lens);
    return err;
}

static void take_part(const struct wire_fixture *x, struct world *w, struct wire_outcome *out)
{
    struct wire_party p = {.world = w, .rank = world_rank(w), .size = world_size(w), .arg = x->arg};
    char error[WIRE_ERROR_BYTES] = "";

    int err = wire_open(&p.wire, x->ops, w, &x->options, error, sizeof(error));
    if (err)
        wire_fault(&p, err, "%s", error);
    if (!err && x->prepare)
        err = x->prepare(&p);
    err = err ? err : connect_all(&p);
    if (!err && x->run)
        err = x->run(&p);
    p.outcome.rc = err;
    wire_close(p.wire);
    *out = p.outcome;
}

static int child(struct world *w, void *arg)
{
    struct wire_outcome outcome;
    uint16_t type;
    size_t len;

    take_part(arg, w, &outcome);
    channel_send(world_channel(w, 0), OUTCOME, &outcome, sizeof(outcome));
    channel_recv(world_channel(w, 0), &type, &outcome, sizeof(outcome), &len, WAIT_NS);
    return 0;
}

/* What a rank that failed had still to say before its outcome is passed over. */
static void collect(struct world *w, unsigned rank, struct wire_outcome *out)
{
    struct channel *c = world_channel(w, rank);
    static uint8_t frame[CHANNEL_FRAME_MAX];
    uint16_t type = 0;
    size_t len = 0;
    int err = 0;

    while (!err && type != OUTCOME)
        err = channel_recv(c, &type, frame, sizeof(frame), &len, WAIT_NS);
    if (!err)
        memcpy(out, frame, sizeof(*out));
    else
        snprintf(out->text, sizeof(out->text), "%s", channel_error(c));
    out->rc = err ? err : out->rc;
}

int wire_fixture_run(const struct wire_fixture *x, struct wire_outcome *outcomes)
{
    struct world *w = NULL;

    memset(outcomes, 0, x->size * sizeof(*outcomes));
    outcomes[0].rc = world_fork(&w, x->size, child, (void *)(uintptr_t)x, outcomes[0].text,
                                sizeof(outcomes[0].text));
    if (outcomes[0].rc)
        return outcomes[0].rc;
    take_part(x, w, &outcomes[0]);
    for (unsigned i = 1; i < x->size; i++)
        collect(w, i, &outcomes[i]);
    world_close(w);
    for (unsigned i = 0; i < x->size; i++)
        if (outcomes[i].rc)
            return outcomes[i].rc;
    return 0;
}

const char *wire_fixture_fault(const struct wire_fixture *x)
{
    static struct wire_outcome outcomes[RANKS_MAX];

    wire_fixture_run(x, outcomes);
    return wire_first_fault(outcomes, x->size);
}

/* Cross-memory attach may be refused. */
static bool is_refused(const struct wire_ops *ops)
{
    struct wire_traffic t = {.messages = 1, .depth = 1, .most = 8, .seed = 1};
    struct wire_fixture x = {
        .ops = ops, .size = 2, .options = wire_options(2), .run = wire_all_to_all, .arg = &t};
    struct wire_outcome outcomes[2];

    int err = wire_fixture_run(&x, outcomes);
    if (err == -EOPNOTSUPP)
        fprintf(stderr, "not tested: '%s' is refused here: %s\n", ops->name,
                wire_first_fault(outcomes, 2));
    return err == -EOPNOTSUPP;
}

unsigned wire_fixture_wires(const struct wire_ops *wires[WIRES_MAX])
{
    wires[0] = &wire_shm;
    wires[1] = &wire_tcp;
    wires[2] = &wire_cma;
    return is_refused(&wire_cma) ? 2 : 3;
}
