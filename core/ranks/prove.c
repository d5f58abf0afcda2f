/* SPDX-License-Identifier: Apache-2.0 */
/* What a member says at the end, and the proof of the path, taken in a node's first member for all of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ranks/order.h"
#include "core/units.h"

#define NOWHERE "nowhere0"
#define SHARED  "shm"

static void tell(struct member *m, struct collective_told *told)
{
    *told = (struct collective_told){0};
    if (m->c.ops->tell)
        m->c.ops->tell(&m->c, told);
}

/* Where the kernel's counters cannot be read there is no proof, and the row says so. */
int member_mark(struct member *m)
{
    tell(m, &m->mark);
    m->cpu_known = m->first_of_machine && !cpu_read(&m->cpu_mark);
    path_close(m->path);
    m->path = NULL;
    if (m->first_of_node && path_begin(&m->path))
        m->path = NULL;
    return 0;
}

static const struct collective_flow *find_flow(const struct collective_told *told,
                                               const struct collective_flow *like)
{
    for (uint32_t i = 0; i < told->n_flows; i++)
        if (!strcmp(told->flows[i].device, like->device) &&
            told->flows[i].other_node == like->other_node)
            return &told->flows[i];
    return NULL;
}

static void less_flow(struct collective_flow *f, const struct collective_flow *mark)
{
    f->out_bytes -= mark->out_bytes;
    f->in_bytes -= mark->in_bytes;
    f->out_messages -= mark->out_messages;
    f->in_messages -= mark->in_messages;
}

static void less_fact(struct net_fact *fact, const struct collective_told *mark)
{
    for (uint32_t i = 0; i < mark->n_facts && !strcmp(fact->unit, "count"); i++)
        if (!strcmp(fact->metric, mark->facts[i].metric)) {
            fact->value -= mark->facts[i].value;
            return;
        }
}

static void since_mark(struct collective_told *told, const struct collective_told *mark)
{
    for (uint32_t i = 0; i < told->n_flows; i++) {
        const struct collective_flow *before = find_flow(mark, &told->flows[i]);
        if (before)
            less_flow(&told->flows[i], before);
    }
    for (uint32_t i = 0; i < told->n_facts; i++)
        less_fact(&told->facts[i], mark);
}

void member_tell(struct member *m, struct collective_account *account)
{
    struct cpu_reading now;

    *account = (struct collective_account){.busy_cores = NAN, .softirq_cores = NAN};
    if (m->cpu_known && !cpu_read(&now)) {
        account->busy_cores = cpu_busy(&m->cpu_mark, &now);
        account->softirq_cores = cpu_softirq(&m->cpu_mark, &now);
    }
    tell(m, &account->told);
    since_mark(&account->told, &m->mark);
}

void member_prove(struct member *m, const struct collective_claims *claims,
                  struct path_proof *proof)
{
    *proof = (struct path_proof){.verdict = PATH_UNKNOWN};
    if (!m->path)
        snprintf(proof->text, sizeof(proof->text), "the counters could not be read");
    else if (claims->n)
        path_end(m->path, claims->claims, claims->n, proof);
    else
        path_tell(m->path, proof);
}

/* A message of its own is a packet at least; TCP, and iWARP over it, put many of a stream into one. */
static bool has_packets(const struct collective_told *told, const struct collective_flow *f)
{
    return f->exact && told->has_rail && strncmp(told->rail.kind, "tcp", 3) != 0 &&
           strncmp(told->rail.kind, "iwarp", 5) != 0;
}

static struct path_claim *claim_of(struct collective_claims *claims, const char *device)
{
    for (uint32_t i = 0; i < claims->n; i++)
        if (!strcmp(claims->claims[i].device, device))
            return &claims->claims[i];
    if (claims->n == COLLECTIVE_CLAIMS_MAX)
        return NULL;
    struct path_claim *c = &claims->claims[claims->n++];
    *c = (struct path_claim){0};
    snprintf(c->device, sizeof(c->device), "%s", device);
    return c;
}

/* What comes from a member of the same node was sent by it, and is claimed there: once for each byte. */
void claims_add(struct collective_claims *claims, const struct collective_told *told)
{
    for (uint32_t i = 0; i < told->n_flows; i++) {
        const struct collective_flow *f = &told->flows[i];
        struct path_claim *c = f->device[0] ? claim_of(claims, f->device) : NULL;
        if (!c)
            continue;
        c->at_least |= !f->exact;
        c->out_bytes += f->out_bytes;
        c->in_bytes += f->other_node ? f->in_bytes : 0;
        c->message_bytes = f->message_bytes;
        c->mtu_bytes = told->has_rail ? told->rail.mtu_bytes : 0;
        c->out_messages += has_packets(told, f) ? f->out_messages : 0;
        c->in_messages += has_packets(told, f) && f->other_node ? f->in_messages : 0;
    }
}

/* Shared memory is claimed where there is nothing else: then no device may have moved anything like it. */
void claims_settle(struct collective_claims *claims, bool elsewhere)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < claims->n; i++)
        if (claims->n == 1 || strcmp(claims->claims[i].device, SHARED) != 0)
            claims->claims[n++] = claims->claims[i];
    claims->n = n;
    for (uint32_t i = 0; i < n && elsewhere; i++)
        snprintf(claims->claims[i].device, sizeof(claims->claims[i].device), "%s", NOWHERE);
}

void claims_line(const struct collective_told *told, double *out_bytes, double *in_bytes)
{
    for (uint32_t i = 0; i < told->n_flows; i++) {
        const struct collective_flow *f = &told->flows[i];
        if (!f->other_node)
            continue;
        *out_bytes += f->exact ? f->out_bytes : NAN;
        *in_bytes += f->exact ? f->in_bytes : NAN;
    }
}

#define END(text) ((text)[sizeof(text) - 1] = 0)

static bool flow_sound(struct collective_flow *f)
{
    END(f->device);
    return isfinite(f->out_bytes) && isfinite(f->in_bytes) && isfinite(f->out_messages) &&
           isfinite(f->in_messages);
}

bool account_sound(struct collective_account *account)
{
    struct collective_told *told = &account->told;
    bool sound = told->n_flows <= COLLECTIVE_FLOWS_MAX && told->n_facts <= NET_FACTS_MAX;

    END(told->algorithm);
    END(told->detail);
    END(told->rail.name);
    END(told->rail.kind);
    END(told->rail.text);
    END(told->rail.line_source);
    for (uint32_t i = 0; sound && i < told->n_flows; i++)
        sound = flow_sound(&told->flows[i]);
    for (uint32_t i = 0; sound && i < told->n_facts; i++) {
        END(told->facts[i].metric);
        END(told->facts[i].unit);
        sound = units_find(told->facts[i].unit) != NULL;
    }
    return sound;
}
