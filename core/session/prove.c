/* SPDX-License-Identifier: Apache-2.0 */
/* What a member says at the end, and the proof of the path, taken in a node's first member for all
 * of them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/collective/library.h"
#include "core/hw/gpu_watch.h"
#include "core/hw/machine.h"
#include "core/hw/nic.h"
#include "core/row.h"
#include "core/session/member.h"
#include "core/session/session_state.h"
#include "core/units.h"

#define SHARED         "shm"
#define LINE_GBPS_MOST 1e6
#define MTU_MOST       (1u << 20)
#define LANES_MOST     32

static void tell(struct member *m, struct collective_report *told)
{
    *told = (struct collective_report){0};
    if (m->c.ops->tell)
        m->c.ops->tell(&m->c, told);
}

int member_mark(struct member *m)
{
    tell(m, &m->mark);
    m->cpu_known = m->first_of_machine && !cpu_read(&m->cpu_mark);
    if (m->watch)
        gpu_watch_begin(m->watch);
    path_close(m->path);
    m->path = m->first_of_node ? path_begin() : NULL;
    return 0;
}

static void since_mark(struct collective_report *told, const struct collective_report *mark)
{
    for (uint32_t i = 0; i < told->n_flows; i++) {
        struct collective_flow *f = &told->flows[i];
        for (uint32_t k = 0; k < mark->n_flows; k++) {
            const struct collective_flow *before = &mark->flows[k];
            if (strcmp(before->device, f->device) != 0 || before->other_node != f->other_node)
                continue;
            f->out_bytes -= before->out_bytes;
            f->in_bytes -= before->in_bytes;
            break;
        }
    }
    wire_facts_less(told->facts, told->n_facts, mark->facts, mark->n_facts);
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
    snprintf(account->pages, sizeof(account->pages), "%s", collective_host_pages(&m->c));
    gpu_ledger_none(&account->gpu);
    if (m->watch)
        gpu_watch_end(m->watch, &account->gpu);
    tell(m, &account->told);
    since_mark(&account->told, &m->mark);
}

_Static_assert(PATH_WIRES_MAX == NIC_RAILS_MAX && NIC_NAME == sizeof(((struct nic_rail *)0)->name),
               "wires are rails");

/*
 * A library that takes sockets where it could have RDMA has fallen back, unless that was asked for;
 * whether it could, other nodes' ports say, too: session_end(). In a guest an Ethernet port is up
 * with its cable, whether the host's network carries RoCE or not: there it is only told.
 */
static enum collective_fallen judge_sockets(struct member *m, const struct path_wires *wires,
                                            struct path_proof *proof)
{
    char text[sizeof(wires->sockets) + 128], by[80];

    /* By which setting sockets were meant; "": by none. */
    struct collective_report told;
    tell(m, &told);
    snprintf(by, sizeof(by), "%s", told.sockets);
    if (path_is_interfaces(m->path, m->point.device))
        snprintf(by, sizeof(by), "--device %.60s", m->point.device);
    if (by[0])
        snprintf(text, sizeof(text), "%s, as %s asks", wires->sockets, by);
    else if (wires->fell_back)
        snprintf(text, sizeof(text), "%s (--device %s would say that they are meant)",
                 wires->sockets, wires->carriers);
    else
        snprintf(text, sizeof(text), "%s", wires->sockets);
    /* Before what is said already; that is left out where there is no room for it. */
    char both[2 * sizeof(proof->text)];
    size_t n = (size_t)snprintf(both, sizeof(both), "%.255s; %s", text, proof->text);
    snprintf(proof->text, sizeof(proof->text), "%.255s", n < sizeof(proof->text) ? both : text);
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

/* What comes from a member of the same node is claimed by who sent it, once for each byte, as lo counts
 * it; an RDMA port counts it where it goes out and where it comes in. */
void claims_add(struct collective_claims *claims, const struct collective_report *told)
{
    for (uint32_t i = 0; i < told->n_flows; i++) {
        const struct collective_flow *f = &told->flows[i];
        struct path_claim *c = f->device[0] ? claim_of(claims, f->device) : NULL;
        if (!c)
            continue;
        c->out_bytes += f->out_bytes;
        c->in_bytes += f->other_node || strchr(f->device, ':') ? f->in_bytes : 0;
    }
}

#define END(text) ((text)[sizeof(text) - 1] = 0)

/* What a limit is made of is within what can be. */
static bool rail_sound(struct nic_rail *r)
{
    END(r->name);
    END(r->text);
    END(r->line_source);
    END(r->address);
    return r->protocol < NIC_PROTOCOLS && r->line_gbps >= 0 && r->line_gbps <= LINE_GBPS_MOST &&
           r->mtu_bytes <= MTU_MOST && r->segment_bytes <= MTU_MOST && isfinite(r->pcie.gt_s) &&
           r->pcie.width <= LANES_MOST && r->pcie.payload_bytes <= MTU_MOST;
}

bool claims_sound(struct collective_claims *claims)
{
    bool sound = claims->n <= COLLECTIVE_CLAIMS_MAX && isfinite(claims->least_out_bytes) &&
                 isfinite(claims->least_in_bytes);

    for (uint32_t i = 0; sound && i < claims->n; i++)
        END(claims->claims[i].device);
    return sound;
}

static bool proof_sound(struct collective_proof *proof)
{
    struct collective_wire *w = &proof->wire;
    bool sound = proof->proof.verdict <= PATH_UNKNOWN && proof->proof.carriers <= CARRIER_ALL &&
                 w->n <= NIC_RAILS_MAX && w->fallen < FALLEN_KINDS;

    END(proof->proof.text);
    END(w->why);
    for (uint32_t i = 0; sound && i < w->n; i++)
        sound = rail_sound(&w->rails[i]);
    return sound;
}

static bool account_sound(struct collective_account *account)
{
    struct collective_report *told = &account->told;
    bool sound = told->carriers <= CARRIER_ALL && told->n_flows <= COLLECTIVE_FLOWS_MAX &&
                 told->n_facts <= WIRE_FACTS_MAX && rail_sound(&told->rail) &&
                 gpu_ledger_sound(&account->gpu);

    END(account->gpu_address);
    END(account->pages);
    END(told->algorithm);
    END(told->detail);
    END(told->sockets);
    for (uint32_t i = 0; sound && i < told->n_flows; i++) {
        END(told->flows[i].device);
        sound = isfinite(told->flows[i].out_bytes) && isfinite(told->flows[i].in_bytes);
    }
    for (uint32_t i = 0; sound && i < told->n_facts; i++) {
        END(told->facts[i].metric);
        END(told->facts[i].unit);
        sound = units_find(told->facts[i].unit) != NULL;
    }
    return sound;
}

/* From the mark to the end: what all members say, their data, and the proof of the path. See
 * session.h. */

/* A request of one rank, its reply and all that is around them: less than that. */
#define STEERING_BYTES 4096.0

int session_mark(struct session *s)
{
    int err = session_post_all(s, COLLECTIVE_ASK_MARK, NULL, 0);

    err = err ? -ECANCELED : member_mark(&s->own);
    err = session_settle(s, err, COLLECTIVE_ASK_MARK, NULL);
    s->mark_ns = clock_now_ns();
    s->operations = s->runs = 0;
    return err;
}

static int cannot_be(struct session *s, unsigned member)
{
    char name[WORLD_NAME_MAX + 32];

    return session_fail(s, -EPROTO, "%s reported impossible values",
                        world_name(s->world, s->members[member], name, sizeof(name)));
}

static int tell_all(struct session *s, struct collective_account *accounts)
{
    int err = session_post_all(s, COLLECTIVE_ASK_TELL, NULL, 0);

    if (!err)
        member_tell(&s->own, &accounts[0]);
    err = session_settle(s, err ? -ECANCELED : 0, COLLECTIVE_ASK_TELL, NULL);
    for (unsigned i = 1; i < s->n && !err; i++) {
        memcpy(&accounts[i], session_reply(s, i), sizeof(accounts[i]));
        if (!account_sound(&accounts[i]))
            err = cannot_be(s, i);
    }
    return err;
}

static const struct world_member *info(const struct session *s, unsigned member)
{
    return world_member(s->world, s->members[member]);
}

/* What the machine spends when nothing runs: of the rank that watched it. */
static const struct collective_hello *idle_of(const struct session *s, unsigned member)
{
    for (unsigned rank = 0; rank < s->size; rank++) {
        const struct world_member *a = world_member(s->world, rank), *b = info(s, member);
        bool same = a->node == b->node || machine_same(a->machine, b->machine);
        if (same && !isnan(s->ranks[rank].hello.idle_cores))
            return &s->ranks[rank].hello;
    }
    return NULL;
}

/* A machine may be less busy than when it was watched; it does not work for less than nothing. NAN
 * stays. */
static double beyond(double busy, double idle)
{
    return busy < idle ? 0 : busy - idle;
}

static void find_nodes(struct session *s)
{
    s->n_nodes = 0;
    for (unsigned i = 0; i < s->n; i++) {
        const struct collective_account *a = &s->accounts[i];
        const struct collective_hello *idle = idle_of(s, i);
        struct session_node *node = &s->nodes[s->n_nodes];
        bool seen = false;
        for (unsigned k = 0; k < s->n_nodes; k++)
            seen |= info(s, s->nodes[k].member)->node == info(s, i)->node;
        if (seen)
            continue;
        s->n_nodes++;
        *node = (struct session_node){.member = i, .proof = {.verdict = PATH_UNKNOWN}};
        memcpy(node->host, info(s, i)->host, sizeof(node->host));
        node->busy_cores = beyond(a->busy_cores, idle ? idle->idle_cores : NAN);
        node->softirq_cores = beyond(a->softirq_cores, idle ? idle->idle_softirq : NAN);
    }
    s->told = true;
}

/*
 * What a library must have sent from node to node: a link that moved less did not carry it. Where
 * that is no more than what steers the ranks, that may be all that a link moved, and the links are
 * not asked. Our own backends tell themselves which link they take.
 */
static void claim_least(struct session *s, struct session_node *node,
                        struct collective_claims *claims)
{
    struct collective c = s->own.c; /* as the node's first member sees the world */
    double bytes = 0;

    for (unsigned i = 0; i < c.n_calls; i++)
        bytes += (double)c.calls[i].count * (double)collective_type_bytes(s->own.point.type);
    c.me = node->member;
    if (c.ops->own || c.ops->alone) /* what its op moves is not the point's */
        return;
    struct collective_load least = library_least(&c, bytes * (double)s->operations);
    /* What the ranks of a node tell rank 0, and it them, at each run: at rank 0's node of all. */
    unsigned members = 0;
    for (unsigned i = 0; i < s->n; i++)
        members += !node->member || info(s, i)->node == info(s, node->member)->node;
    if (least.out + least.in < (double)members * (double)s->runs * STEERING_BYTES) {
        snprintf(node->wire.why, sizeof(node->wire.why),
                 "vectors of %.0f bytes are too small to be distinguished from the ranks' control "
                 "messages",
                 bytes);
        return;
    }
    claims->least_out_bytes = least.out;
    claims->least_in_bytes = least.in;
}

static void claim(struct session *s, struct session_node *node, struct collective_claims *claims)
{
    unsigned at = info(s, node->member)->node;

    *claims = (struct collective_claims){0};
    for (unsigned i = 0; i < s->n; i++)
        if (info(s, i)->node == at)
            claims_add(claims, &s->all[i].told);
    /* Shared memory is claimed where there is nothing else: then no device may have moved anything
     * like it. */
    uint32_t n = 0;
    for (uint32_t i = 0; i < claims->n; i++)
        if (claims->n == 1 || strcmp(claims->claims[i].device, SHARED) != 0)
            claims->claims[n++] = claims->claims[i];
    claims->n = n;
    for (uint32_t i = 0; i < n && s->own.point.inject == COLLECTIVE_ELSEWHERE; i++)
        snprintf(claims->claims[i].device, sizeof(claims->claims[i].device), "%s", PATH_NOWHERE);
    claim_least(s, node, claims);
}

/* In the first member of each node, for all that are on it. */
static int prove_all(struct session *s)
{
    struct collective_claims own, claims;
    struct collective_proof proof = {0};
    int err = 0;

    claim(s, &s->nodes[0], &own);
    for (unsigned i = 1; i < s->n_nodes && !err; i++) {
        claim(s, &s->nodes[i], &claims);
        err = talk_post(&s->talk, s->members[s->nodes[i].member], COLLECTIVE_ASK_PROVE, &claims,
                        sizeof(claims));
    }
    if (!err)
        member_prove(&s->own, &own, &proof);
    err = session_settle(s, err ? -ECANCELED : 0, COLLECTIVE_ASK_PROVE, NULL);
    for (unsigned i = 0; i < s->n_nodes && !err; i++) {
        if (i)
            memcpy(&proof, session_reply(s, s->nodes[i].member), sizeof(proof));
        if (!proof_sound(&proof))
            return cannot_be(s, s->nodes[i].member);
        s->nodes[i].proof = proof.proof;
        if (proof.wire.n || proof.wire.why[0] || proof.wire.fallen)
            s->nodes[i].wire = proof.wire;
    }
    return err;
}

void session_judge_fallen(struct session *s)
{
    unsigned n[FALLEN_KINDS] = {0};

    for (unsigned i = 0; i < s->n_nodes; i++)
        n[s->nodes[i].wire.fallen]++;
    for (unsigned i = 0; i < s->n_nodes; i++)
        if (s->nodes[i].wire.fallen != FALLEN_NOT && n[s->nodes[i].wire.fallen] > 1)
            s->nodes[i].proof.verdict = PATH_ELSEWHERE;
}

static int judge_path(struct session *s)
{
    char name[WORLD_NAME_MAX + 32];

    session_judge_fallen(s);
    for (unsigned i = 0; i < s->n_nodes; i++) {
        const struct session_node *node = &s->nodes[i];
        if (node->proof.verdict == PATH_ELSEWHERE)
            return session_fail(s, -EBADMSG, "the bytes went another way: at %s, %s",
                                world_name(s->world, s->members[node->member], name, sizeof(name)),
                                node->proof.text);
    }
    return 0;
}

/* What is told is of the operations that were measured; what is proved has the one that is checked
 * in it, too. */
int session_end(struct session *s)
{
    double seconds = (double)(clock_now_ns() - s->mark_ns) / 1e9;
    int err = tell_all(s, s->accounts);

    if (err)
        return err;
    s->seconds = seconds;
    find_nodes(s);
    err = session_post_all(s, COLLECTIVE_ASK_CHECK, NULL, 0);
    err = err ? -ECANCELED : member_do(&s->own, &(struct member_job){.what = COLLECTIVE_ASK_CHECK});
    s->operations++;
    err = session_settle(s, err, COLLECTIVE_ASK_CHECK, NULL);
    if (!err)
        err = tell_all(s, s->all);
    if (!err)
        err = prove_all(s);
    return err ? err : judge_path(s);
}

const struct collective_report *session_report(const struct session *s, unsigned member)
{
    return s->told && member < s->n ? &s->accounts[member].told : NULL;
}

const struct gpu_ledger *session_gpu(const struct session *s, unsigned member)
{
    return s->told && member < s->n ? &s->accounts[member].gpu : NULL;
}

const char *session_gpu_address(const struct session *s, unsigned member)
{
    return s->told && member < s->n ? s->accounts[member].gpu_address : "";
}

const char *session_pages(const struct session *s)
{
    const char *pages = s->told && s->n ? s->accounts[0].pages : "";

    for (unsigned i = 1; s->told && i < s->n; i++)
        if (strcmp(s->accounts[i].pages, pages) != 0)
            return *pages && *s->accounts[i].pages ? "base+thp" : "";
    return pages;
}

unsigned session_nodes(const struct session *s, const struct session_node **nodes)
{
    *nodes = s->nodes;
    return s->told ? s->n_nodes : 0;
}

double session_seconds(const struct session *s)
{
    return s->seconds;
}
