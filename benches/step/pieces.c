/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a plan, each a collective of its own: see run.h. */
#include "benches/step/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

struct piece {
    struct collective c;
    struct collective_point point;
};

struct pieces {
    struct collective *whole;
    const struct collective_ops *by;
    struct step_plan *plan;
    struct piece *all; /* of each part */
};

static int open_piece(struct pieces *p, unsigned number, const struct pieces_attend *attend)
{
    struct step_part *part = &p->plan->parts[number];
    struct piece *one = &p->all[number];
    char why[COLLECTIVE_ERROR_BYTES] = "";

    one->point = *p->whole->point;
    one->point.op = part->op;
    one->point.sum = COLLECTIVE_SUM;
    one->point.in_place = part->in_place;
    one->point.count = part->count;
    if (part->kind == PART_ASK || part->kind == PART_ANSWER)
        one->point.type = COLLECTIVE_I64;
    if (!part->n_calls)
        return 0;
    void *arg = attend->arg_of(attend->arg, number);
    for (unsigned i = 0; i < part->n; i++) /* from numbers of members to ranks of the world */
        part->members[i] = p->whole->members[part->members[i]];
    one->c = (struct collective){.ops = p->by,
                                 .point = &one->point,
                                 .world = p->whole->world,
                                 .topo = p->whole->topo,
                                 .members = part->members,
                                 .n = part->n,
                                 .me = part->me,
                                 .calls = part->calls,
                                 .n_calls = part->n_calls,
                                 .other_nodes = p->whole->other_nodes,
                                 .attend = attend->attend,
                                 .attend_arg = arg};
    int err = p->by->supports ? p->by->supports(&one->point, part->n, why, sizeof(why)) : 0;
    if (err)
        return collective_fail(p->whole, err, "%s", why);
    err = p->by->open(&one->c);
    memcpy(p->whole->gpu, one->c.gpu, sizeof(p->whole->gpu));
    return err ? collective_fail(p->whole, err, "%s", one->c.error) : 0;
}

int pieces_open(struct pieces **pieces, struct collective *whole, const struct collective_ops *by,
                struct step_plan *plan, const struct pieces_attend *attend)
{
    struct pieces *p = *pieces = xcalloc(1, sizeof(*p));
    int err = 0;

    *p = (struct pieces){.whole = whole, .by = by, .plan = plan};
    p->all = xcalloc(plan->n_parts, sizeof(*p->all));
    for (unsigned i = 0; i < plan->n_parts && !err; i++)
        err = open_piece(p, i, attend);
    return err;
}

struct collective *pieces_at(struct pieces *p, unsigned part)
{
    return &p->all[part].c;
}

unsigned pieces_pair(const struct pieces *p, enum step_part_kind kind, unsigned member)
{
    unsigned i = 0; /* a plan has them all */

    for (; i < p->plan->n_parts; i++) {
        const struct step_part *part = &p->plan->parts[i];
        if (part->kind == kind && part->members[!part->me] == p->whole->members[member])
            break;
    }
    return i;
}

static bool is_open(const struct pieces *p, unsigned part)
{
    return p->all && p->all[part].c.ops;
}

int pieces_peers(struct pieces *p, unsigned *peers, unsigned *n)
{
    bool seen[WORLD_RANKS_MAX] = {false};

    *n = 0;
    for (unsigned i = 0; i < p->plan->n_parts; i++) {
        unsigned its[WORLD_RANKS_MAX], n_its = 0;
        int err = is_open(p, i) && p->by->peers ? p->by->peers(&p->all[i].c, its, &n_its) : 0;
        if (err)
            return err;
        for (unsigned k = 0; k < n_its; k++) {
            unsigned rank = p->plan->parts[i].members[its[k]], member = 0;
            while (p->whole->members[member] != rank)
                member++;
            if (!seen[member])
                peers[(*n)++] = member;
            seen[member] = true;
        }
    }
    return 0;
}

struct packed {
    uint32_t id, len;
};

static int add_address(struct pieces *p, unsigned part, unsigned member,
                       struct collective_address *all)
{
    struct collective_address one = {.member = member};
    struct packed head = {.id = p->plan->parts[part].id};
    int err = p->by->address(&p->all[part].c, member, &one);

    if (err)
        return collective_fail(p->whole, err, "%s", p->all[part].c.error);
    head.len = (uint32_t)one.len;
    if (all->len + sizeof(head) + one.len > sizeof(all->bytes))
        return collective_fail(p->whole, -EMSGSIZE, "too many addresses for one rank");
    memcpy(all->bytes + all->len, &head, sizeof(head));
    memcpy(all->bytes + all->len + sizeof(head), one.bytes, one.len);
    all->len += sizeof(head) + one.len;
    return 0;
}

/* The number in this part of a member of the whole; -1: it has none. */
static int number_in(const struct pieces *p, unsigned part, unsigned member)
{
    const struct step_part *its = &p->plan->parts[part];

    for (unsigned i = 0; i < its->n; i++)
        if (its->members[i] == p->whole->members[member])
            return (int)i;
    return -1;
}

int pieces_address(struct pieces *p, unsigned peer, struct collective_address *address)
{
    int err = 0;

    address->member = peer;
    address->len = 0;
    for (unsigned i = 0; i < p->plan->n_parts && !err; i++) {
        unsigned its[WORLD_RANKS_MAX], n_its = 0;
        int number = number_in(p, i, peer);
        err = is_open(p, i) && p->by->peers ? p->by->peers(&p->all[i].c, its, &n_its) : 0;
        for (unsigned k = 0; k < n_its && !err; k++)
            if (number >= 0 && its[k] == (unsigned)number)
                err = add_address(p, i, its[k], address);
    }
    return err;
}

/* What this peer sent of the part: 1 with the address, 0: nothing; -EPROTO. */
static int find_address(const struct collective_address *from, uint32_t id,
                        struct collective_address *to)
{
    struct packed head;

    for (size_t at = 0; at < from->len; at += sizeof(head) + head.len) {
        if (from->len - at < sizeof(head))
            return -EPROTO;
        memcpy(&head, from->bytes + at, sizeof(head));
        if (head.len > from->len - at - sizeof(head))
            return -EPROTO;
        if (head.id != id)
            continue;
        to->len = head.len;
        memcpy(to->bytes, from->bytes + at + sizeof(head), head.len);
        return 1;
    }
    return 0;
}

static int join_piece(struct pieces *p, unsigned part, const struct collective_address *addresses,
                      unsigned n, struct collective_address *its)
{
    unsigned n_its = 0;

    if (!is_open(p, part))
        return 0;
    for (unsigned i = 0; i < n; i++) {
        int number = number_in(p, part, addresses[i].member);
        int found =
            number < 0 ? 0 : find_address(&addresses[i], p->plan->parts[part].id, &its[n_its]);
        if (found < 0)
            return collective_fail(p->whole, found, "an address that is none");
        if (found)
            its[n_its++].member = (unsigned)number;
    }
    struct collective *c = &p->all[part].c;
    int err = p->by->join(c, its, n_its);
    return err ? collective_fail(p->whole, err, "%s: %s",
                                 step_part_names[p->plan->parts[part].kind], c->error)
               : 0;
}

int pieces_join(struct pieces *p, const struct collective_address *addresses, unsigned n)
{
    struct collective_address *its = xcalloc(n, sizeof(*its));
    int err = 0;

    for (unsigned i = 0; i < p->plan->n_parts && !err; i++)
        err = join_piece(p, i, addresses, n, its);
    free(its);
    return err;
}

/* The part of all ranks is the first. */
int pieces_barrier(struct pieces *p)
{
    int err = p->by->barrier(&p->all[0].c);

    return err ? collective_fail(p->whole, err, "%s", p->all[0].c.error) : 0;
}

/* Each part has data of its own. */
int pieces_data(struct pieces *p, uint64_t seed, int (*each)(struct collective *c, uint64_t seed))
{
    int err = 0;

    for (unsigned i = 0; i < p->plan->n_parts && !err; i++) {
        uint32_t kind = p->plan->parts[i].kind;
        if (!is_open(p, i) || kind == PART_ALL || kind == PART_ASK || kind == PART_ANSWER)
            continue;
        err = each(&p->all[i].c, seed + p->plan->parts[i].id);
        if (err)
            collective_fail(p->whole, err, "%s: %s", step_part_names[p->plan->parts[i].kind],
                            p->all[i].c.error[0] ? p->all[i].c.error : strerror(-err));
    }
    return err;
}

int pieces_unheard(struct pieces *p, uint64_t for_ns)
{
    for (unsigned i = 0; i < p->plan->n_parts && p->all && p->by->unheard; i++) {
        const struct collective *c = &p->all[i].c;
        /* What does not change while a lane works on it: that writes its counts and its error. */
        struct collective seen = {.ops = c->ops, .world = c->world, .state = c->state};

        int err = seen.ops ? p->by->unheard(&seen, for_ns) : 0;
        if (err)
            return collective_fail(p->whole, err, "%s", seen.error);
    }
    return 0;
}

static void add_flow(struct collective_report *told, const struct collective_flow *f)
{
    struct collective_flow *to = told->flows;

    for (uint32_t i = 0; i < told->n_flows; i++, to++)
        if (!strcmp(to->device, f->device) && to->other_node == f->other_node) {
            to->out_bytes += f->out_bytes;
            to->in_bytes += f->in_bytes;
            to->exact &= f->exact;
            return;
        }
    if (told->n_flows < COLLECTIVE_FLOWS_MAX)
        told->flows[told->n_flows++] = *f;
}

static void add_facts(struct collective_report *told, const struct collective_report *more)
{
    for (uint32_t i = 0; i < more->n_facts; i++)
        for (uint32_t k = 0; k < told->n_facts; k++)
            if (!strcmp(told->facts[k].metric, more->facts[i].metric) &&
                !strcmp(told->facts[k].unit, "count"))
                told->facts[k].value += more->facts[i].value;
}

void pieces_tell(struct pieces *p, struct collective_report *told)
{
    struct collective_report one;
    bool any = false;

    *told = (struct collective_report){0};
    for (unsigned i = 0; i < p->plan->n_parts; i++) {
        if (!is_open(p, i) || !p->by->tell)
            continue;
        one = (struct collective_report){0};
        p->by->tell(&p->all[i].c, &one);
        if (!any)
            *told = one;
        else
            add_facts(told, &one);
        for (uint32_t k = 0; any && k < one.n_flows; k++)
            add_flow(told, &one.flows[k]);
        told->carriers |= one.carriers;
        told->simulated |= one.simulated;
        any = true;
    }
}

void pieces_close(struct pieces *p)
{
    if (!p)
        return;
    for (unsigned i = p->plan->n_parts; i-- > 0;)
        if (is_open(p, i))
            p->by->close(&p->all[i].c);
    free(p->all);
    free(p);
}
