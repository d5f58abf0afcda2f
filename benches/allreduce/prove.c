/* SPDX-License-Identifier: Apache-2.0 */
/* What a member says at the end, and the proof of the path, taken in a node's first member for all
 * of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benches/allreduce/member.h"
#include "core/hw/nic.h"
#include "core/row_facts.h"
#include "core/units.h"

#define NOWHERE        "nowhere0"
#define SHARED         "shm"
#define LINE_GBPS_MOST 1e6
#define MTU_MOST       (1u << 20)
#define LANES_MOST     32

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
    if (m->watch)
        gpu_watch_begin(m->watch);
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
    snprintf(account->gpu_address, sizeof(account->gpu_address), "%s", m->c.gpu);
    gpu_ledger_none(&account->gpu);
    if (m->watch)
        gpu_watch_end(m->watch, &account->gpu);
    tell(m, &account->told);
    since_mark(&account->told, &m->mark);
}

_Static_assert(PATH_WIRES_MAX == NET_RAILS_MAX && NIC_NAME == sizeof(((struct net_rail *)0)->name),
               "wires are rails");

/* By which setting sockets were meant; "": by none. */
static void who_chose(struct member *m, char *text, size_t len)
{
    struct collective_told told;

    tell(m, &told);
    snprintf(text, len, "%s", told.sockets);
    if (path_is_interfaces(m->path, m->point.device))
        snprintf(text, len, "--device %.60s", m->point.device);
}

/* Before what is said already; that is left out where there is no room for it. */
static void say_first(struct path_proof *proof, const char *text)
{
    char both[2 * sizeof(proof->text)];
    size_t n = (size_t)snprintf(both, sizeof(both), "%.255s; %s", text, proof->text);

    snprintf(proof->text, sizeof(proof->text), "%.255s", n < sizeof(proof->text) ? both : text);
}

/*
 * A library that takes sockets where it could have RDMA has fallen back, unless that was asked for;
 * whether it could, other nodes' ports say, too: session_end(). In a guest an Ethernet port is up
 * with its cable, whether the host's network carries RoCE or not: there it is only told.
 */
static enum collective_fallen judge_sockets(struct member *m, const struct path_wires *wires,
                                            struct path_proof *proof)
{
    char text[sizeof(wires->sockets) + 128], by[80];

    who_chose(m, by, sizeof(by));
    if (by[0])
        snprintf(text, sizeof(text), "%s, as %s asks", wires->sockets, by);
    else if (wires->fell_back)
        snprintf(text, sizeof(text), "%s (--device %s would say that they are meant)",
                 wires->sockets, wires->carriers);
    else
        snprintf(text, sizeof(text), "%s", wires->sockets);
    say_first(proof, text);
    if (by[0] || !wires->fell_back || (wires->guest && !wires->infiniband))
        return FALLEN_NOT;
    return wires->infiniband ? FALLEN_INFINIBAND : FALLEN_ETHERNET;
}

static void find_wire(struct member *m, const struct collective_claims *claims,
                      struct path_proof *proof, struct collective_wire *wire)
{
    struct path_wires wires;

    if (!(claims->least_out_bytes > 0) && !(claims->least_in_bytes > 0))
        return;
    path_wires(m->path, claims->least_out_bytes, claims->least_in_bytes, &wires);
    memcpy(wire->why, wires.why, sizeof(wire->why));
    if (wires.n && !nic_fill_wires(NULL, (const char(*)[NIC_NAME])wires.devices, wires.n,
                                   wire->rails, wire->why, sizeof(wire->why)))
        wire->n = wires.n;
    if (wires.sockets[0])
        wire->fallen = judge_sockets(m, &wires, proof);
}

void member_prove(struct member *m, const struct collective_claims *claims,
                  struct collective_proof *proof)
{
    struct path_proof *path = &proof->proof;

    *proof = (struct collective_proof){.proof = {.verdict = PATH_UNKNOWN}};
    if (!m->path) {
        snprintf(path->text, sizeof(path->text), "the counters could not be read");
        snprintf(proof->wire.why, sizeof(proof->wire.why), "%s", path->text);
        return;
    }
    if (claims->n)
        path_end(m->path, claims->claims, claims->n, path);
    else
        path_tell(m->path, path);
    find_wire(m, claims, path, &proof->wire);
}

/* A message of its own is a packet at least; TCP, and iWARP over it, put many of a stream into
 * one. */
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

/* What comes from a member of the same node was sent by it, and is claimed there: once for each
 * byte. */
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

/* Shared memory is claimed where there is nothing else: then no device may have moved anything like
 * it. */
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

/* What a limit is made of is within what can be. */
static bool rail_sound(struct net_rail *r)
{
    END(r->name);
    END(r->kind);
    END(r->text);
    END(r->line_source);
    END(r->address);
    return r->line_gbps >= 0 && r->line_gbps <= LINE_GBPS_MOST && r->mtu_bytes <= MTU_MOST &&
           r->segment_bytes <= MTU_MOST && isfinite(r->pcie.gt_s) && r->pcie.width <= LANES_MOST &&
           r->pcie.payload_bytes <= MTU_MOST;
}

bool claims_sound(struct collective_claims *claims)
{
    bool sound = claims->n <= COLLECTIVE_CLAIMS_MAX && isfinite(claims->least_out_bytes) &&
                 isfinite(claims->least_in_bytes);

    for (uint32_t i = 0; sound && i < claims->n; i++)
        END(claims->claims[i].device);
    return sound;
}

bool proof_sound(struct collective_proof *proof)
{
    struct collective_wire *w = &proof->wire;
    bool sound = proof->proof.verdict <= PATH_UNKNOWN && proof->proof.carriers <= CARRIER_ALL &&
                 w->n <= NET_RAILS_MAX && w->fallen < FALLEN_KINDS;

    END(proof->proof.text);
    END(w->why);
    for (uint32_t i = 0; sound && i < w->n; i++)
        sound = rail_sound(&w->rails[i]);
    return sound;
}

bool account_sound(struct collective_account *account)
{
    struct collective_told *told = &account->told;
    bool sound = told->carriers <= CARRIER_ALL && told->n_flows <= COLLECTIVE_FLOWS_MAX &&
                 told->n_facts <= NET_FACTS_MAX && rail_sound(&told->rail) &&
                 gpu_ledger_sound(&account->gpu);

    END(account->gpu_address);
    END(told->algorithm);
    END(told->detail);
    END(told->sockets);
    for (uint32_t i = 0; sound && i < told->n_flows; i++)
        sound = flow_sound(&told->flows[i]);
    for (uint32_t i = 0; sound && i < told->n_facts; i++) {
        END(told->facts[i].metric);
        END(told->facts[i].unit);
        sound = units_find(told->facts[i].unit) != NULL;
    }
    return sound;
}
