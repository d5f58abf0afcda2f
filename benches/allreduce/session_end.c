/* SPDX-License-Identifier: Apache-2.0 */
/* From the mark to the end: what all members say, their data, and the proof of the path. See
 * session.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "benches/allreduce/session_state.h"
#include "core/clock.h"
#include "core/collective/library.h"
#include "core/hw/machine.h"

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

    return session_fail(s, -EPROTO, "%s told what cannot be",
                        world_name(s->world, s->members[member], name, sizeof(name)));
}

static int tell_all(struct session *s, struct collective_account *accounts)
{
    int err = session_post_all(s, COLLECTIVE_ASK_TELL, NULL, 0);

    if (!err)
        member_tell(&s->own, &accounts[0]);
    err = session_settle(s, err ? -ECANCELED : 0, COLLECTIVE_ASK_TELL, NULL);
    for (unsigned i = 1; i < s->n && !err; i++) {
        accounts[i] = session_peer(s, i)->body.account;
        if (!account_sound(&accounts[i]))
            err = cannot_be(s, i);
    }
    return err;
}

static int check_all(struct session *s)
{
    int err = session_post_all(s, COLLECTIVE_ASK_CHECK, NULL, 0);

    err = err ? -ECANCELED : member_do(&s->own, &(struct member_job){.what = COLLECTIVE_ASK_CHECK});
    s->operations++;
    return session_settle(s, err, COLLECTIVE_ASK_CHECK, NULL);
}

static const struct world_member *info(const struct session *s, unsigned member)
{
    return world_member(s->world, s->members[member]);
}

static struct session_node *node_of(struct session *s, unsigned member)
{
    for (unsigned i = 0; i < s->n_nodes; i++)
        if (info(s, s->nodes[i].member)->node == info(s, member)->node)
            return &s->nodes[i];
    return NULL;
}

/* What the machine spends when nothing runs: of the rank that watched it. */
static const struct collective_hello *idle_of(const struct session *s, unsigned member)
{
    for (unsigned rank = 0; rank < s->size; rank++) {
        const struct world_member *a = world_member(s->world, rank), *b = info(s, member);
        bool same = a->node == b->node || machine_same(a->machine, b->machine);
        if (same && !isnan(s->peers[rank].hello.idle_cores))
            return &s->peers[rank].hello;
    }
    return NULL;
}

/* A machine may be less busy than when it was watched; it does not work for less than nothing. NAN
 * stays. */
static double beyond(double busy, double idle)
{
    return busy < idle ? 0 : busy - idle;
}

static void add_node(struct session *s, unsigned member)
{
    const struct collective_account *a = &s->accounts[member];
    const struct collective_hello *idle = idle_of(s, member);
    struct session_node *node = &s->nodes[s->n_nodes++];

    *node = (struct session_node){.member = member, .proof = {.verdict = PATH_UNKNOWN}};
    memcpy(node->host, info(s, member)->host, sizeof(node->host));
    node->busy_cores = beyond(a->busy_cores, idle ? idle->idle_cores : NAN);
    node->softirq_cores = beyond(a->softirq_cores, idle ? idle->idle_softirq : NAN);
}

/* A library does not say what it moves: where it must have moved something, that is not known
 * exactly. */
static void find_nodes(struct session *s)
{
    const struct member *own = &s->own;

    s->n_nodes = 0;
    for (unsigned i = 0; i < s->n; i++) {
        if (!node_of(s, i))
            add_node(s, i);
        struct session_node *node = node_of(s, i);
        claims_line(&s->accounts[i].told, &node->line_out_bytes, &node->line_in_bytes);
        if (own->c.other_nodes && !own->c.ops->own)
            node->line_out_bytes = node->line_in_bytes = NAN;
    }
    s->told = true;
}

/* What the ranks of a node tell rank 0, and it them, at each run: at rank 0's node of all. */
static double steering_bytes(const struct session *s, const struct session_node *node)
{
    unsigned members = 0;

    for (unsigned i = 0; i < s->n; i++)
        members += !node->member || info(s, i)->node == info(s, node->member)->node;
    return (double)members * (double)s->runs * STEERING_BYTES;
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
    if (c.ops->own)
        return;
    struct library_least least = library_least(&c, bytes * (double)s->operations);
    if (least.out_bytes + least.in_bytes < steering_bytes(s, node)) {
        snprintf(node->wire.why, sizeof(node->wire.why),
                 "vectors of %.0f bytes are too small to be told from what steers the ranks",
                 bytes);
        return;
    }
    claims->least_out_bytes = least.out_bytes;
    claims->least_in_bytes = least.in_bytes;
}

static void claim(struct session *s, struct session_node *node, struct collective_claims *claims)
{
    unsigned at = info(s, node->member)->node;

    *claims = (struct collective_claims){0};
    for (unsigned i = 0; i < s->n; i++)
        if (info(s, i)->node == at)
            claims_add(claims, &s->all[i].told);
    claims_settle(claims, s->own.point.inject == COLLECTIVE_ELSEWHERE);
    claim_least(s, node, claims);
}

static int take_proof(struct session *s, struct session_node *node, struct collective_proof *proof)
{
    if (!proof_sound(proof))
        return cannot_be(s, node->member);
    node->proof = proof->proof;
    if (proof->wire.n || proof->wire.why[0] || proof->wire.fallen)
        node->wire = proof->wire;
    return 0;
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
        err = session_post(s, s->members[s->nodes[i].member], COLLECTIVE_ASK_PROVE, &claims,
                           sizeof(claims));
    }
    if (!err)
        member_prove(&s->own, &own, &proof);
    err = session_settle(s, err ? -ECANCELED : 0, COLLECTIVE_ASK_PROVE, NULL);
    for (unsigned i = 0; i < s->n_nodes && !err; i++)
        err = take_proof(s, &s->nodes[i],
                         i ? &session_peer(s, s->nodes[i].member)->body.proof : &proof);
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
    err = check_all(s);
    if (!err)
        err = tell_all(s, s->all);
    if (!err)
        err = prove_all(s);
    return err ? err : judge_path(s);
}

const struct collective_told *session_told(const struct session *s, unsigned member)
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

unsigned session_nodes(const struct session *s, const struct session_node **nodes)
{
    *nodes = s->nodes;
    return s->told ? s->n_nodes : 0;
}

double session_seconds(const struct session *s)
{
    return s->seconds;
}
