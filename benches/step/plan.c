/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and what follows from them: see plan.h. Who writes the operations: ways.c. */
#include "benches/step/plan.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

const char *const step_part_names[STEP_PART_KINDS] = {
    [PART_ALL] = "barrier",       [PART_SUM] = "gradients",      [PART_SCATTER] = "gradients",
    [PART_GATHER] = "parameters", [PART_EXPERT_SUM] = "experts", [PART_TENSOR] = "activations",
    [PART_EXCHANGE] = "tokens",   [PART_ROWS] = "tables",        [PART_FORWARD] = "pipeline",
    [PART_BACKWARD] = "pipeline"};

unsigned step_dp(const struct step_spec *s)
{
    return s->ranks / (s->tp * s->pp);
}

/* Tokens of an expert's layers: what the first takes in, what the last puts out. */
static double tokens_of(const struct model *m, size_t i, uint64_t sequence)
{
    const struct model_layer *l = &m->layers[i];
    bool first = !i || l[-1].kind != MODEL_EXPERT || l[-1].block != l->block;
    double rows = model_size_value(l->m, sequence);

    if (l->kind != MODEL_EXPERT)
        return 0;
    return rows * model_size_value(first ? l->k : l->n, sequence);
}

/* Of the last of a block's tables: a row of each. */
static double rows_of(const struct model *m, size_t i, uint64_t sequence)
{
    const struct model_layer *l = &m->layers[i];
    double rows = 0;

    if (i + 1 < m->n_layers && l[1].kind == MODEL_TABLE && l[1].block == l->block)
        return 0;
    for (size_t k = i + 1; k-- > 0;) {
        if (m->layers[k].kind != MODEL_TABLE || m->layers[k].block != l->block)
            break;
        rows += model_size_value(m->layers[k].output, sequence);
    }
    return rows;
}

void step_layers(const struct model *m, uint64_t sequence, struct step_layer *layers)
{
    for (size_t i = 0; i < m->n_layers; i++) {
        const struct model_layer *l = &m->layers[i];
        layers[i] = (struct step_layer){
            .parameters = l->parameters,
            .forward_flop = model_forward_flop(l, sequence),
            .backward_flop = model_backward_flop(l, sequence),
            .output = model_size_value(l->output, sequence),
            .sum = model_size_value(l->sum, sequence),
            .sent = l->kind == MODEL_TABLE ? rows_of(m, i, sequence) : tokens_of(m, i, sequence),
            .m = (uint64_t)model_size_value(l->m, sequence),
            .n = (uint64_t)model_size_value(l->n, sequence),
            .k = (uint64_t)model_size_value(l->k, sequence),
            .count = l->count,
            .backward = l->backward,
            .block = l->block,
            .experts = l->kind == MODEL_EXPERT ? (uint32_t)m->experts : 0,
            .kind = (uint16_t)l->kind,
            .split = (uint16_t)l->split};
    }
}

/* A cut comes before the block that is nearest to its share of the operations. */
int step_cut(const struct step_layer *layers, unsigned n_layers, unsigned pp, unsigned *cuts)
{
    double all = 0, before = 0;
    unsigned cut = 1;

    for (unsigned i = 0; i < n_layers; i++)
        all += layers[i].forward_flop + layers[i].backward_flop;
    cuts[0] = 0;
    for (unsigned i = 0; i < n_layers && cut < pp; i++) {
        bool begins = i && layers[i].block != layers[i - 1].block;
        double block = 0;
        for (unsigned k = i; begins && k < n_layers && layers[k].block == layers[i].block; k++)
            block += layers[k].forward_flop + layers[k].backward_flop;
        if (begins && before + block / 2 > all * cut / pp && i > cuts[cut - 1])
            cuts[cut++] = i;
        before += layers[i].forward_flop + layers[i].backward_flop;
    }
    cuts[pp] = n_layers;
    return cut == pp ? 0 : -EOPNOTSUPP;
}

static int refuse(char *why, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(char *why, size_t len, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, len, format, args);
    va_end(args);
    return -EOPNOTSUPP;
}

static bool has_split(const struct step_layer *l)
{
    return l->split != MODEL_WHOLE;
}

static bool is_expert(const struct step_layer *l)
{
    return l->kind == MODEL_EXPERT;
}

static bool has(const struct step_spec *s, const struct step_layer *layers,
                bool (*is)(const struct step_layer *l))
{
    for (unsigned i = 0; i < s->n_layers; i++)
        if (is(&layers[i]))
            return true;
    return false;
}

int step_supports(const struct step_spec *s, const struct step_layer *layers, char *why, size_t len)
{
    unsigned cuts[WORLD_RANKS_MAX + 1];

    if (!s->ranks || !s->tp || !s->pp || s->ranks % (s->tp * s->pp))
        return refuse(why, len, "%u ranks cannot be divided into %u stages of %u tensor ranks",
                      s->ranks, s->pp, s->tp);
    if (!s->ep || step_dp(s) % s->ep)
        return refuse(why, len, "%u data-parallel ranks are no multiple of --ep %u", step_dp(s),
                      s->ep);
    if (!s->micro || !s->batch || s->batch % s->micro)
        return refuse(why, len, "a batch of %llu cannot be cut into %u equal micro-batches",
                      (unsigned long long)s->batch, s->micro);
    if (s->tp > 1 && !has(s, layers, has_split))
        return refuse(why, len, "the model says of no layer how it is split: leave --tp out");
    if (s->ep > 1 && !has(s, layers, is_expert))
        return refuse(why, len, "the model has no experts: leave --ep out");
    if (s->ep > 1 && s->zero)
        return refuse(why, len,
                      "experts' gradients are not partitioned: with --ep leave --zero "
                      "out");
    if (s->zero && step_dp(s) < 2 && s->ranks > 1)
        return refuse(why, len, "--zero partitions over data-parallel ranks, and there is one");
    if (s->pp > 1 && step_cut(layers, s->n_layers, s->pp, cuts))
        return refuse(why, len, "the model has too few blocks for %u stages: give a lower --pp",
                      s->pp);
    if (s->pp > 1 && s->zero == 3)
        return refuse(why, len,
                      "a pipeline would gather the parameters again for each micro-batch: with "
                      "--pp give --zero 0, 1 or 2");
    return 0;
}

int step_spec_take(struct step_spec *s, struct step_layer **layers, unsigned ranks,
                   const void *bytes, size_t n, char *why, size_t len)
{
    if (n < sizeof(*s))
        return -EPROTO;
    memcpy(s, bytes, sizeof(*s));
    if (s->ranks != ranks || !s->n_layers || s->n_layers > MODEL_LAYERS_MAX ||
        s->type >= COLLECTIVE_TYPES || s->compute > STEP_PRODUCT || s->micro > 4096 ||
        s->zero > 3 || s->update >= UPDATE_KINDS || !(s->ns_per_flop >= 0) ||
        !(s->ns_per_byte >= 0) || n != sizeof(*s) + s->n_layers * sizeof(**layers))
        return -EPROTO;
    *layers = xmemdup((const char *)bytes + sizeof(*s), s->n_layers * sizeof(**layers));
    return step_supports(s, *layers, why, len);
}

uint64_t step_parameters(const struct step_spec *s, const struct step_layer *l)
{
    uint64_t count = l->parameters;

    if (l->kind == MODEL_TABLE)
        return 0;
    if (l->split != MODEL_WHOLE)
        count = (count + s->tp - 1) / s->tp;
    if (l->kind == MODEL_EXPERT)
        count = (count + s->ep - 1) / s->ep;
    return count;
}

double step_op_ns(const struct step_op *op, const struct step_spec *s, unsigned rank)
{
    return (op->flop * s->ns_per_flop + op->bytes * s->ns_per_byte) *
           (rank == s->slow_rank ? s->slow_times : 1);
}

struct step_stated step_stated(const struct step_plan *p, const struct step_spec *s, unsigned rank)
{
    struct step_stated its = {0};

    for (size_t i = 0; i < p->n_ops; i++) {
        double ns = p->ops[i].lane == LANE_COMPUTE ? step_op_ns(&p->ops[i], s, rank) : 0;
        if (p->ops[i].kind == STEP_UPDATE)
            its.update_ns += ns;
        else if (p->ops[i].kind == STEP_BACKWARD)
            its.backward_ns += ns;
        else
            its.forward_ns += ns;
    }
    return its;
}

static double passes_ns(const struct step_stated *a)
{
    return a->forward_ns + a->backward_ns;
}

double step_least_ns(const struct step_spec *s, const struct step_stated *all)
{
    double least = 0;

    for (unsigned rank = 0; rank < s->ranks; rank++) {
        unsigned stage = rank / s->tp % s->pp, first = rank - stage * s->tp;
        double ns = passes_ns(&all[rank]);
        for (unsigned i = 0; i < s->pp; i++) {
            const struct step_stated *other = &all[first + i * s->tp];
            if (i < stage)
                ns += other->forward_ns / s->micro;
            else if (i > stage && s->order == STEP_GPIPE)
                ns += passes_ns(other) / s->micro;
        }
        for (unsigned i = stage + 1; i-- > 0;) { /* the last backward pass comes to it */
            const struct step_stated *other = &all[first + i * s->tp];
            ns += i < stage ? other->backward_ns / s->micro : 0;
            least = fmax(least, ns + other->update_ns);
        }
    }
    return least;
}

/* A broadcast between two is sent by the first alone. */
double step_bytes(const struct step_plan *p, const struct step_spec *s)
{
    double bytes = 0;

    for (size_t i = 0; i < p->n_ops; i++) {
        const struct step_op *op = &p->ops[i];
        const struct step_part *part = &p->parts[op->part];
        if (op->kind != STEP_CALL)
            continue;
        bool sends = part->op != COLLECTIVE_BROADCAST || !part->me;
        bytes += sends * collective_bus_factor((enum collective_op)part->op, part->n) *
                 (double)part->calls[op->call].count *
                 (double)collective_type_bytes((enum collective_type)s->type);
    }
    return bytes;
}

struct model_memory step_memory(const struct step_spec *s, const struct step_layer *layers,
                                unsigned rank)
{
    unsigned cuts[WORLD_RANKS_MAX + 1], stage = rank / s->tp % s->pp;
    double n = step_dp(s), samples = (double)s->batch / s->micro, tables = 0, table = 0;
    struct model_kept kept = {.element_bytes =
                                  (double)collective_type_bytes((enum collective_type)s->type),
                              .zero = s->zero};

    if (step_cut(layers, s->n_layers, s->pp, cuts))
        return (struct model_memory){0};
    /* Micro-batches whose activations are kept at once. */
    unsigned in_flight =
        s->order == STEP_1F1B && s->pp - stage < s->micro ? s->pp - stage : s->micro;
    for (unsigned i = cuts[stage]; i < cuts[stage + 1]; i++) {
        const struct step_layer *l = &layers[i];
        kept.parameters += (double)step_parameters(s, l);
        if (l->kind == MODEL_TABLE) {
            tables += (double)l->parameters / n; /* as a mean */
            table = fmax(table, (double)l->parameters);
            kept.rows += l->output * samples;
        }
        kept.outputs += l->output / (l->split == MODEL_COLUMN ? s->tp : 1) * samples * in_flight;
    }
    kept.shared = kept.parameters / n;
    kept.tables = fmax(tables, table);
    kept.state_bytes = model_state_bytes((enum model_update)s->update, kept.element_bytes);
    return model_memory(&kept);
}

void step_plan_release(struct step_plan *p)
{
    for (unsigned i = 0; i < p->n_parts; i++) {
        free(p->parts[i].members);
        free(p->parts[i].calls);
    }
    free(p->parts);
    free(p->ops);
    free(p->deps);
    *p = (struct step_plan){0};
}
