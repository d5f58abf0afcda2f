/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each rank does in one step of training: a list of operations. Pure: no clock, no network, no
 * memory of the data.
 *
 * An operation is a piece of compute (the forward or backward pass of some layers), or a call of a
 * part: a communicator with its vectors. Each has a lane, a thread that does its operations in
 * the order of the list; before it begins, the operations that it waits for have ended. Everything
 * else goes on at the same time. Calls of one part come in the same order in all of its members.
 *
 * Ranks are numbered with tensor parallelism innermost and data parallelism outermost:
 * (data * pp + stage) * tp + tensor.
 *
 *   data       gradients are summed in buckets, in the reverse order of the forward pass. A bucket
 *              takes tensors until it holds `bucket_bytes`, and is summed as soon as it is whole
 *              (overlap), or when the backward pass is over
 *   zero 1     (S. Rajbhandari and others, ZeRO, arXiv:1910.02054): a bucket is reduce-scattered, of
 *              all micro-batches together; parameters are all-gathered when all gradients are there
 *   zero 2     a rank keeps its part of the gradients alone: each micro-batch's are scattered
 *   zero 3     before each group of layers, its parameters are all-gathered, in the forward and in
 *              the backward pass of each micro-batch, `prefetch` groups ahead; gradients as of 2
 *   bytes      of M micro-batches, in (n-1)/n of all parameters: 2, 2, M + 1, 3 M of zero 0 to 3
 *   tensor     layers are split; activations are summed after a `row` layer's forward pass and after
 *              a `column` layer's backward pass
 *   pipeline   stages of blocks pass activations on, and gradients back, for each micro-batch
 *   expert     tokens go to the rank of their expert, and back: an all-to-all before and after the
 *              experts of a block, in both passes. An expert's gradients are summed over the ranks
 *              that have it
 *   tables     each lies on one of the data-parallel ranks: an all-to-all brings each rank the rows of
 *              its samples, before what follows the tables, and takes their gradients back (M. Naumov
 *              and others, DLRM, arXiv:1906.00091, section 3)
 */
#ifndef PLUMB_BENCHES_STEP_PLAN_H
#define PLUMB_BENCHES_STEP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/collective/collective.h"
#include "core/model.h"

enum step_lane {
    LANE_COMPUTE,
    LANE_DATA,   /* sums, scatters and gathers of gradients and parameters */
    LANE_TENSOR, /* sums of activations */
    LANE_EXCHANGE,
    LANE_TO_NEXT,
    LANE_FROM_PREVIOUS,
    LANE_TO_PREVIOUS,
    LANE_FROM_NEXT,
    STEP_LANES
};

enum step_kind { STEP_FORWARD, STEP_BACKWARD, STEP_CALL, STEP_UPDATE };
enum step_order { STEP_GPIPE, STEP_1F1B };
enum step_compute { STEP_TIMED, STEP_PRODUCT };

enum step_part_kind {
    PART_ALL, /* of all ranks: nothing but the barrier before a step */
    PART_SUM,
    PART_SCATTER,
    PART_GATHER,
    PART_EXPERT_SUM,
    PART_TENSOR,
    PART_EXCHANGE,
    PART_ROWS, /* looked-up rows of tables, to all data-parallel ranks, and their gradients back */
    PART_FORWARD, /* activations, from its first member to the other */
    PART_BACKWARD,
    STEP_PART_KINDS
};

/* A layer, with what a step needs of it: as model.h, of one sample. */
struct step_layer {
    uint64_t parameters;
    double forward_flop, backward_flop, output, sum;
    /* of experts: elements of the tokens that come in, or go out of the last; of the last of a block's
     * tables: elements of all their rows */
    double sent;
    /* its product of one sample, `count` of them, and as many more as `backward` says in the backward
     * pass; 0: none */
    uint64_t m, n, k, count;
    uint32_t backward, block, experts; /* experts: that share m; of one that is none 0 */
    uint16_t kind, split;              /* enum model_kind, model_split */
};

/* What all ranks must know: sent as it is, with the layers behind it. */
struct step_spec {
    uint32_t ranks, tp, pp, ep, zero, prefetch, order, micro, overlap, type, n_layers;
    uint32_t compute;   /* enum step_compute: waits, or as many operations on one core */
    uint32_t update;    /* enum model_update */
    uint32_t slow_rank; /* its compute takes slow_times as long; slow_times 1: none */
    uint64_t batch;     /* samples of a data-parallel rank in a step */
    uint64_t bucket_bytes;
    double ns_per_flop; /* of a rank */
    double ns_per_byte; /* of its update, where compute is stated */
    double slow_times;
};

struct step_op {
    uint8_t lane, kind;
    uint32_t first_dep, n_deps; /* in plan.deps: operations that have ended before */
    uint32_t part, call;        /* STEP_CALL */
    uint32_t micro;             /* compute: of layers first .. first + n - 1 */
    uint32_t first_layer, n_layers;
    double flop;
    double bytes; /* STEP_UPDATE: to and from memory */
};

struct step_part {
    uint32_t kind, op, lane;
    uint32_t id; /* the same in all members, and of no other part */
    bool in_place;
    unsigned *members, n, me; /* ranks; me: which of them this is */
    struct collective_call *calls;
    unsigned n_calls;
    uint64_t count; /* elements of all calls */
};

struct step_plan {
    struct step_op *ops;
    struct step_part *parts; /* by id */
    uint32_t *deps;
    size_t n_ops, n_deps;
    unsigned n_parts;
};

/* Data-parallel ranks. */
unsigned step_dp(const struct step_spec *s);
/* Whether these ways go together, for this model: 0, or -EOPNOTSUPP with why. */
int step_supports(const struct step_spec *s, const struct step_layer *layers, char *why,
                  size_t len);
/* From the bytes that hold a spec and its layers: those are to be freed in any case, if *layers was
 * NULL. 0; -EPROTO: they make no sense for so many ranks; or as step_supports(). */
int step_spec_take(struct step_spec *s, struct step_layer **layers, unsigned ranks,
                   const void *bytes, size_t n, char *why, size_t len);
/* Layers of a model at this length of sequences; as many as m->n_layers. */
void step_layers(const struct model *m, uint64_t sequence, struct step_layer *layers);
/* The first layer of each stage, and behind the last: cuts[0..pp]. 0; -EOPNOTSUPP: it has fewer
 * blocks than stages. */
int step_cut(const struct step_layer *layers, unsigned n_layers, unsigned pp, unsigned *cuts);

/* ---- The plan ---- */

/* Of a spec that step_supports(). 0, or -E2BIG: more than COLLECTIVE_CALLS_MAX calls. Release it in
 * any case. */
int step_plan_make(struct step_plan *p, const struct step_spec *s, const struct step_layer *layers,
                   unsigned rank);
void step_plan_release(struct step_plan *p);

/* Parameters of a layer that a data-parallel rank has, before ZeRO divides them. Of a table 0: it
 * lies on one of these ranks. */
uint64_t step_parameters(const struct step_spec *s, const struct step_layer *l);

/* How long a rank computes in its passes, alone, and updates, where that is stated: each, and all of it. */
struct step_stated {
    double forward_ns, backward_ns, update_ns;
};
struct step_stated step_stated(const struct step_plan *p, const struct step_spec *s, unsigned rank);
/* No step is shorter, even if no byte took any time. `all`: of each rank. Beside its own compute a stage
 * waits for those before it: for a micro-batch's forward pass at the begin. With GPipe also for those
 * behind it, in the middle. Behind its last backward pass those before it have theirs, one after
 * another, and each updates its parameters when its own is over. Where all stages are equal, these are (m + p - 1) / m
 * of a stage's compute and an update, and both orders take no longer. */
double step_least_ns(const struct step_spec *s, const struct step_stated *all);
double step_op_ns(const struct step_op *op, const struct step_spec *s, unsigned rank);
/* Bytes that this rank must send in a step, if no byte goes twice over a wire. */
double step_bytes(const struct step_plan *p, const struct step_spec *s);

/* As model_memory(). */
struct model_memory step_memory(const struct step_spec *s, const struct step_layer *layers,
                                unsigned rank);

extern const char *const step_part_names[STEP_PART_KINDS];

#endif
