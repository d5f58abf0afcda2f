/* SPDX-License-Identifier: Apache-2.0 */
/* The time of one training step: see step.h. */
#include "harness/forecast/step.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"

/* ---- two resources ---- */

enum work_on {
    WORK_COMPUTE,
    WORK_WAIT,
    WORK_NETWORK
}; /* a wait is for an operation between ranks */

#define WORK_NONE ((size_t)-1)

struct work {
    enum work_on on;
    double s;
    size_t after[2]; /* works before it in the list, or WORK_NONE */
    double end_s;    /* filled in */
};

static bool is_ready(const struct work *works, const struct work *w, double now)
{
    for (size_t i = 0; i < 2; i++)
        if (w->after[i] != WORK_NONE && !(works[w->after[i]].end_s <= now))
            return false;
    return true;
}

/* The first from `at` on that is on this resource. */
static size_t next_on(const struct work *works, size_t n, size_t at, bool network)
{
    while (at < n && (works[at].on == WORK_NETWORK) != network)
        at++;
    return at;
}

/* Returns when the last has ended. */
static double works_run(struct work *works, size_t n, const struct step_costs *costs)
{
    size_t at[2] = {next_on(works, n, 0, false), next_on(works, n, 0, true)};
    double left[2] = {at[0] < n ? works[at[0]].s : 0, at[1] < n ? works[at[1]].s : 0}, now = 0;

    for (size_t i = 0; i < n; i++)
        works[i].end_s = HUGE_VAL;
    while (at[0] < n || at[1] < n) {
        bool on[2] = {at[0] < n && is_ready(works, &works[at[0]], now),
                      at[1] < n && is_ready(works, &works[at[1]], now)};
        bool both = on[0] && on[1], waits = both && works[at[0]].on == WORK_WAIT;
        double link = costs->apart ? 1 : 0.5; /* two operations share it */
        const double rate[2] = {waits  ? link
                                : both ? costs->together
                                       : 1,
                                waits  ? link
                                : both ? costs->network
                                       : 1};
        double step =
            fmin(on[0] ? left[0] / rate[0] : HUGE_VAL, on[1] ? left[1] / rate[1] : HUGE_VAL);

        if (!isfinite(step))
            return NAN; /* a work waits for one behind it, or how long it takes is not known */
        now += step;
        for (int r = 0; r < 2; r++) {
            if (!on[r])
                continue;
            bool ends = left[r] / rate[r] <= step;
            left[r] -= step * rate[r];
            if (!ends)
                continue;
            works[at[r]].end_s = now;
            at[r] = next_on(works, n, at[r] + 1, r);
            left[r] = at[r] < n ? works[at[r]].s : 0;
        }
    }
    return now;
}

/* ---- what a rank keeps in memory: docs/forecast.md names the sources ---- */

static bool is_split(const struct step_job *job, const struct model_layer *l)
{
    return job->tp > 1 && l->split != MODEL_WHOLE;
}

/* Of a layer, before ZeRO shares them. */
static double parameters_of(const struct step_job *job, const struct model_layer *l)
{
    return (double)l->parameters / (is_split(job, l) ? job->tp : 1) /
           (l->kind == MODEL_EXPERT ? job->ep : 1);
}

/* How many data-parallel ranks have the same parameters, which ZeRO divides among them. */
static double job_copies(const struct step_job *job, enum model_kind kind)
{
    return kind == MODEL_EXPERT ? fmax(1, floor(job->dp / job->ep)) : job->dp;
}

struct model_memory job_memory(const struct step_job *job, size_t stage, size_t from, size_t to)
{
    double samples = job->batch / job->micro, on_way = fmin(job->micro, job->pp - (double)stage);
    double tables = 0, table = 0;
    struct model_kept kept = {
        .element_bytes = job->element_bytes, .state_bytes = job->state_bytes, .zero = job->zero};

    for (size_t i = from; i < to; i++) {
        const struct model_layer *l = &job->model->layers[i];
        double output = model_size_value(l->output, job->sequence);
        bool divided = is_split(job, l) && l->split == MODEL_COLUMN;

        kept.outputs += output / (divided ? job->tp : 1) * samples * on_way;
        if (l->kind == MODEL_TABLE) {
            tables += (double)l->parameters;
            table = fmax(table, (double)l->parameters);
            kept.rows += output * samples;
        } else {
            kept.parameters += parameters_of(job, l);
            kept.shared += parameters_of(job, l) / job_copies(job, l->kind);
        }
    }
    kept.tables = fmax(tables / job->dp, table);
    return model_memory(&kept);
}

/* ---- a layer on one rank ---- */

struct part {
    double forward_s, backward_s; /* of one micro-batch */
    double parallel_forward_s, parallel_backward_s;
    double sums, expert_sums; /* bytes of gradients, summed over dp, and over dp / ep ranks */
    double parameters;        /* that this rank has, before ZeRO shares them */
    double copies;            /* data-parallel ranks that have the same, which ZeRO shares */
};

struct timing {
    const struct step_job *job;
    const struct step_costs *costs;
    unsigned lacks;
};

static double known(struct timing *m, double value, enum bench_part_of what)
{
    if (isnan(value))
        m->lacks |= 1u << what;
    return value;
}

static double ask(struct timing *m, enum bench_part_of what, bool inner, double ranks, double bytes)
{
    if (ranks < 2 || !(bytes > 0))
        return 0;
    return known(m, m->costs->group(m->costs->arg, what, inner, ranks, bytes), what);
}

static double inner_s(struct timing *m, enum bench_part_of what, double ranks, double bytes)
{
    return ask(m, what, true, ranks, bytes);
}

static double micro_batch(const struct step_job *job)
{
    return job->batch / job->micro;
}

/* One product of a layer; times 1 forward, `backward` backward. Samples of a batch lie side by side
 * in one product, but for what is done for each head: those are as many products. Each expert of a
 * rank has one, of an equal part of the rows. */
static double product_s(struct timing *m, const struct model_layer *l)
{
    const struct step_job *job = m->job;
    double mm = model_size_value(l->m, job->sequence), n = model_size_value(l->n, job->sequence);
    double k = model_size_value(l->k, job->sequence), count = (double)l->count;

    if (!(mm * n * k > 0))
        return 0;
    if (is_split(job, l)) { /* the rank that has most: of 25 heads one of 4 ranks has 7 */
        if (l->count > 1)
            count = ceil(count / job->tp);
        else if (l->split == MODEL_COLUMN)
            n = ceil(n / job->tp);
        else
            k = ceil(k / job->tp);
    }
    if (l->count > 1)
        count *= micro_batch(job);
    else
        mm *= micro_batch(job);
    if (l->kind == MODEL_EXPERT && l->count <= 1) {
        double experts = fmin(ceil((double)job->model->experts / job->ep), floor(mm));
        count *= fmax(1, experts);
        mm /= fmax(1, experts);
    }
    return known(m, m->costs->product(m->costs->arg, mm, n, k, count), JOB_PRODUCT);
}

static double calls_s(const struct timing *m, double calls)
{
    return isnan(m->costs->call_s) ? 0 : calls * m->costs->call_s;
}

/* `before`: numbers that the layer before puts out. A layer that joins several has an output as
 * large as all of them. */
static void add_compute(struct timing *m, const struct model_layer *l, double before,
                        struct part *p)
{
    double product = product_s(m, l), output = model_size_value(l->output, m->job->sequence);

    if (product > 0 || isnan(product)) {
        p->forward_s = fmax(product, calls_s(m, 1));
        p->backward_s = fmax((double)l->backward * product, calls_s(m, l->backward));
    } else if (output > 0) {
        /* A layer without a product reads its input and writes its output. Backward it reads the
         * output's gradient and its input, and writes the input's gradient. */
        double input = fmax(before, output);
        double bytes = micro_batch(m->job) * m->job->element_bytes;
        double moved = known(m, m->costs->stream(m->costs->arg, bytes), JOB_STREAM);

        p->forward_s = fmax((input + output) * moved, calls_s(m, 1));
        p->backward_s = fmax((output + 2 * input) * moved, calls_s(m, 1));
    }
}

static bool is_last_table(const struct model *model, size_t i)
{
    const struct model_layer *l = &model->layers[i];

    return l->kind == MODEL_TABLE &&
           (i + 1 == model->n_layers || l[1].kind != MODEL_TABLE || l[1].block != l->block);
}

static void make_parts(struct timing *m, struct part *parts)
{
    const struct step_job *job = m->job;
    const struct model *model = job->model;
    double flop = 0, before = 0, rows = 0;

    for (size_t i = 0; i < model->n_layers; i++)
        flop += model_forward_flop(&model->layers[i], job->sequence) +
                model_backward_flop(&model->layers[i], job->sequence);
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct model_layer *l = &model->layers[i];
        struct part *p = &parts[i];
        double output = model_size_value(l->output, job->sequence);
        double each = micro_batch(job) * job->element_bytes;
        bool first_expert = l->kind == MODEL_EXPERT &&
                            (!i || l[-1].kind != MODEL_EXPERT || l[-1].block != l->block);

        *p = (struct part){0};
        if (isnan(job->compute_s))
            add_compute(m, l, before, p);
        else {
            /* Where the time of a step's passes is given, of the whole model on one rank, layers
             * have it as they have operations. Ranks that share a layer share its time. */
            double share = job->compute_s / job->micro / flop / (is_split(job, l) ? job->tp : 1);

            p->forward_s = share * model_forward_flop(l, job->sequence);
            p->backward_s = share * model_backward_flop(l, job->sequence);
        }
        before = output > 0 ? output : before;
        rows += l->kind == MODEL_TABLE ? output : 0;
        /* Each rank gets the rows of its samples, behind the last table of a block; their gradients
         * go back before the backward pass. `rows`: numbers of a sample, of all tables of the
         * block. */
        double rows_s =
            is_last_table(model, i) ? inner_s(m, JOB_EXCHANGE, job->dp, rows * each) : 0;

        p->parallel_forward_s += rows_s;
        p->parallel_backward_s += rows_s;
        rows = is_last_table(model, i) ? 0 : rows;
        double sum = model_size_value(l->sum, job->sequence) * each;
        double s = is_split(job, l) ? inner_s(m, JOB_SUM, job->tp, sum) : 0;

        *(l->split == MODEL_ROW ? &p->parallel_forward_s : &p->parallel_backward_s) += s;
        /* Tokens go to their experts before the first layer of a block that has experts, and back
         * behind the last; in each pass. */
        if (first_expert) {
            double tokens = model_size_value(l->m, job->sequence) *
                            model_size_value(l->k, job->sequence) * each;

            s = inner_s(m, JOB_EXCHANGE, job->ep, tokens);
            p->parallel_forward_s += 2 * s;
            p->parallel_backward_s += 2 * s;
        }
        if (l->kind != MODEL_TABLE) {
            p->parameters = parameters_of(job, l);
            p->copies = job_copies(job, l->kind);
            *(l->kind == MODEL_EXPERT ? &p->expert_sums : &p->sums) =
                p->parameters * job->element_bytes;
        }
    }
}

/* ---- stages of a pipeline ---- */

static double busy_s(const struct part *p)
{
    return p->forward_s + p->backward_s + p->parallel_forward_s + p->parallel_backward_s;
}

struct range {
    size_t from, to; /* layers */
};

/* Blocks, one after another, to stages, so that each has about as much to do: a stage ends with the
 * block in whose middle its share ends. Stage number `stage`. */
static struct range stage_of(const struct step_job *job, const struct part *parts, size_t stage)
{
    const struct model *model = job->model;
    double all = 0, done = 0;
    struct range r = {model->n_layers, model->n_layers};

    for (size_t i = 0; i < model->n_layers; i++)
        all += busy_s(&parts[i]);
    for (size_t i = 0, next; i < model->n_layers; i = next) {
        double block = 0;

        for (next = i;
             next < model->n_layers && model->layers[next].block == model->layers[i].block; next++)
            block += busy_s(&parts[next]);
        size_t of = (size_t)fmin(job->pp - 1, floor((done + block / 2) / all * job->pp));
        if (of == stage) {
            r.from = r.from == model->n_layers ? i : r.from;
            r.to = next;
        }
        done += block;
    }
    return r.from == model->n_layers ? (struct range){0, 0} : r;
}

/* What goes from a stage to the next: the largest output at the end of a stage. */
static double message_s(struct timing *m, const struct part *parts)
{
    const struct step_job *job = m->job;
    double most = 0;

    for (size_t stage = 0; stage + 1 < (size_t)job->pp; stage++) {
        struct range r = stage_of(job, parts, stage);
        const struct model_layer *last = &job->model->layers[r.to - 1];

        for (; last > &job->model->layers[r.from] && !last->output.factor; last--)
            ;
        most = fmax(most, model_size_value(last->output, job->sequence));
    }
    return inner_s(m, JOB_MESSAGE, job->pp, most * micro_batch(job) * job->element_bytes);
}

/* ---- the works of micro-batches, with the sums of gradients ---- */

struct list {
    struct timing *m;
    const struct part *parts;
    struct range range;
    struct work *works;
    size_t n;
    double sums_s;
};

static size_t add_work(struct list *l, enum work_on on, double s, size_t after, size_t also)
{
    l->works[l->n] = (struct work){.on = on, .s = s, .after = {after, also}};
    if (on == WORK_NETWORK)
        l->sums_s += s;
    return l->n++;
}

static size_t add_pass(struct list *l, size_t layer, bool backward, size_t after)
{
    const struct part *p = &l->parts[layer];
    double parallel = backward ? p->parallel_backward_s : p->parallel_forward_s;
    size_t last =
        add_work(l, WORK_COMPUTE, backward ? p->backward_s : p->forward_s, after, WORK_NONE);

    return parallel > 0 ? add_work(l, WORK_WAIT, parallel, WORK_NONE, WORK_NONE) : last;
}

struct bucket {
    double dense, expert; /* bytes */
    size_t first, last;   /* layers, in forward order: first <= last */
};

/* From the layer behind `end` down to the layer that fills the bucket. */
static struct bucket bucket_before(const struct list *l, size_t end)
{
    struct bucket b = {.last = end - 1};
    double most = l->m->job->bucket_bytes;

    for (b.first = end; b.first > l->range.from;) {
        b.first--;
        b.dense += l->parts[b.first].sums;
        b.expert += l->parts[b.first].expert_sums;
        if (most > 0 && b.dense + b.expert >= most)
            break;
    }
    return b;
}

static double bucket_s(struct list *l, enum bench_part_of what, const struct bucket *b)
{
    const struct step_job *job = l->m->job;

    return ask(l->m, what, false, job->dp, b->dense) +
           ask(l->m, what, false, job_copies(job, MODEL_EXPERT), b->expert);
}

/* ZeRO 2 and 3 keep no whole gradients: those of each micro-batch are scattered. All are listed, then;
 * else the last alone. */
#define LISTED_MOST 4096
static size_t listed(const struct step_job *job)
{
    return job->zero >= 2 ? (size_t)job->micro : 1;
}

/* All buckets, one after another, behind `after`. Returns the last. */
static size_t add_buckets(struct list *l, enum bench_part_of what, size_t after)
{
    size_t last = after;

    for (size_t end = l->range.to; end > l->range.from;) {
        struct bucket b = bucket_before(l, end);

        last = add_work(l, WORK_NETWORK, bucket_s(l, what, &b), after, WORK_NONE);
        end = b.first;
    }
    return last;
}

/* The backward pass, with a sum as soon as a bucket is full, or without overlap behind it. Returns
 * what the next pass waits for. */
static size_t list_backward(struct list *l, size_t before)
{
    enum bench_part_of what = l->m->job->zero ? JOB_SCATTER : JOB_SUM;
    size_t last = before;

    for (size_t end = l->range.to; end > l->range.from;) {
        struct bucket b = bucket_before(l, end);

        for (size_t i = end; i-- > b.first;)
            last = add_pass(l, i, true, last);
        if (l->m->job->overlap)
            add_work(l, WORK_NETWORK, bucket_s(l, what, &b), last, WORK_NONE);
        end = b.first;
    }
    return l->m->job->overlap ? last : add_buckets(l, what, last);
}

/* ---- ZeRO 3: a group's parameters are gathered before each pass over its layers ---- */

struct sharded {
    struct bucket *groups;
    size_t n, turns;          /* a turn is a pass over a group */
    size_t *gathers, *passes; /* the works of each turn: the gather, and the last of the pass */
    size_t gathered, last, scatter; /* turns that have their gather; works, or WORK_NONE */
};

/* From the first layer on, each until it is full. */
static size_t make_groups(const struct list *l, struct bucket *groups)
{
    size_t n = 0;
    double most = l->m->job->bucket_bytes;
    struct bucket b = {.first = l->range.from};

    for (size_t i = l->range.from; i < l->range.to; i++) {
        b.last = i;
        b.dense += l->parts[i].sums;
        b.expert += l->parts[i].expert_sums;
        if (i + 1 < l->range.to && !(most > 0 && b.dense + b.expert >= most))
            continue;
        bool none = n && !(b.dense + b.expert > 0); /* layers without parameters: the last one's */
        if (none)
            groups[n - 1].last = i;
        else
            groups[n++] = b;
        b = (struct bucket){.first = i + 1};
    }
    return n;
}

static const struct bucket *group_at(const struct sharded *s, size_t turn)
{
    size_t at = turn % s->n;

    return &s->groups[turn / s->n % 2 ? s->n - 1 - at : at];
}

/* A bucket of gradients is scattered when it is full, or without overlap behind the pass. */
static void list_turn(struct list *l, struct sharded *s, size_t turn, struct bucket *bucket)
{
    const struct bucket *group = group_at(s, turn);
    bool backward = turn / s->n % 2, overlap = l->m->job->overlap;
    size_t layers = group->last + 1 - group->first, after = s->gathers[turn];

    for (size_t i = 0; i < layers; i++) {
        size_t layer = backward ? group->last - i : group->first + i;
        s->last = add_pass(l, layer, backward, after);
        after = WORK_NONE;
        if (!backward || layer != bucket->first)
            continue;
        if (overlap)
            add_work(l, WORK_NETWORK, bucket_s(l, JOB_SCATTER, bucket), s->last, WORK_NONE);
        if (layer > l->range.from)
            *bucket = bucket_before(l, layer);
    }
    s->passes[turn] = s->last;
}

static void list_sharded(struct list *l)
{
    size_t layers = l->range.to - l->range.from, most = 2 * (layers + 1) * listed(l->m->job);
    struct sharded s = {.groups = xcalloc(layers + 1, sizeof(*s.groups)),
                        .gathers = xcalloc(most, sizeof(*s.gathers)),
                        .passes = xcalloc(most, sizeof(*s.passes)),
                        .scatter = WORK_NONE};
    struct bucket bucket = {0};

    s.n = make_groups(l, s.groups);
    s.turns = 2 * s.n * listed(l->m->job);
    for (size_t turn = 0; turn < s.turns; turn++) {
        /* Gathers of the turns up to `ahead` later may begin when the turn before this one is done.
         * Without overlap the scatters are done, too. */
        const struct step_job *job = l->m->job;
        size_t ahead = job->overlap ? (size_t)job->prefetch : 0;

        for (; s.gathered < s.turns && s.gathered <= turn + ahead; s.gathered++)
            s.gathers[s.gathered] = add_work(
                l, WORK_NETWORK, bucket_s(l, JOB_GATHER, group_at(&s, s.gathered)),
                turn ? s.passes[turn - 1] : WORK_NONE, job->overlap ? WORK_NONE : s.scatter);
        if (turn / s.n % 2 && !(turn % s.n))
            bucket = bucket_before(l, l->range.to);
        list_turn(l, &s, turn, &bucket);
        if (turn / s.n % 2 == 0 || turn % s.n + 1 < s.n || l->m->job->overlap)
            continue;
        s.scatter = add_buckets(l, JOB_SCATTER, s.last);
    }
    free(s.groups);
    free(s.gathers);
    free(s.passes);
}

static void list_works(struct list *l)
{
    size_t last = WORK_NONE;

    if (l->m->job->zero == 3) {
        list_sharded(l);
        return;
    }
    for (size_t pass = 0; pass < listed(l->m->job); pass++) {
        for (size_t i = l->range.from; i < l->range.to; i++)
            last = add_pass(l, i, false, last);
        last = list_backward(l, last);
    }
}

/* ---- the step ---- */

/* ZeRO 1 and 2: every rank updates its share, and all of them gather the parameters. */
static double regather_s(struct list *l)
{
    const struct step_job *job = l->m->job;
    double s = 0;

    if (job->zero != 1 && job->zero != 2)
        return 0;
    for (size_t end = l->range.to; end > l->range.from;) {
        struct bucket b = bucket_before(l, end);

        s += bucket_s(l, JOB_GATHER, &b);
        end = b.first;
    }
    return s;
}

static double update_s(struct timing *m, const struct list *l)
{
    double parameters = 0;

    if (m->job->update_s > 0)
        return m->job->update_s;
    for (size_t i = l->range.from; i < l->range.to; i++)
        if (l->parts[i].parameters > 0)
            parameters += l->parts[i].parameters / (m->job->zero ? l->parts[i].copies : 1);
    double bytes = parameters * m->job->update_bytes;
    return bytes > 0 ? known(m, m->costs->stream(m->costs->arg, bytes), JOB_STREAM) : 0;
}

/* A stage of the pipeline: its layers, and the time of its passes of a micro-batch. */
struct stage {
    struct range range;
    double forward_s, backward_s, parallel_s; /* parallel_s is in both */
    double end_s, bare_s; /* of its last backward pass; the same if messages took no time */
};

static double slot_s(const struct stage *s)
{
    return s->forward_s + s->backward_s;
}

static bool make_stages(const struct step_job *job, const struct part *parts, struct stage *stages)
{
    for (size_t at = 0; at < (size_t)job->pp; at++) {
        struct stage *s = &stages[at];

        *s = (struct stage){.range = stage_of(job, parts, at)};
        if (s->range.from == s->range.to)
            return false;
        for (size_t i = s->range.from; i < s->range.to; i++) {
            s->forward_s += parts[i].forward_s + parts[i].parallel_forward_s;
            s->backward_s += parts[i].backward_s + parts[i].parallel_backward_s;
            s->parallel_s += parts[i].parallel_forward_s + parts[i].parallel_backward_s;
        }
    }
    return true;
}

/* When stages end their passes, with messages and without. */
static void run_stages(struct timing *m, const struct part *parts, struct stage *stages)
{
    size_t n = (size_t)m->job->pp;
    double *all = xcalloc(4 * n, sizeof(*all));
    struct pipeline p = {.stages = n,
                         .micro = (size_t)m->job->micro,
                         .forward_s = all,
                         .backward_s = all + n,
                         .waits = m->costs->waits};

    for (size_t at = 0; at < n; at++) {
        all[at] = stages[at].forward_s;
        all[n + at] = stages[at].backward_s;
    }
    pipeline_run(&p, all + 2 * n);
    p.message_s = n > 1 ? message_s(m, parts) : 0;
    pipeline_run(&p, all + 3 * n);
    for (size_t at = 0; at < n; at++) {
        stages[at].bare_s = all[2 * n + at];
        stages[at].end_s = all[3 * n + at];
    }
    free(all);
}

/* What a stage does behind its passes: its sums and its update. */
static void add_tail(struct timing *m, struct list *l, const struct stage *s, struct step_time *t)
{
    l->n = 0;
    l->sums_s = 0;
    l->range = s->range;
    list_works(l);
    if (m->lacks)
        return;
    double last = works_run(l->works, l->n, m->costs), again = regather_s(l),
           alone = slot_s(s) * (double)listed(m->job), exposed = fmax(0, last - alone) + again,
           update = update_s(m, l);

    if (exposed < 1e-9 * last) /* sums of the same times in another order */
        exposed = 0;
    if (m->lacks || s->end_s + exposed + update < t->step_s)
        return;
    t->step_s = s->end_s + exposed + update;
    t->update_s = update;
    t->sums_s = l->sums_s + again;
    t->sum_bytes = 0;
    for (size_t i = l->range.from; i < l->range.to; i++)
        t->sum_bytes += l->parts[i].sums + l->parts[i].expert_sums;
}

/* The step ends with the stage that ends last: another than the busiest may have more gradients. */
static void add_up(struct timing *m, struct list *l, struct stage *stages, struct step_time *t)
{
    const struct step_job *job = m->job;
    const struct stage *busiest = &stages[0];
    double end = 0, bare = 0;

    run_stages(m, l->parts, stages);
    t->step_s = 0;
    for (size_t at = 0; at < (size_t)job->pp; at++) {
        const struct stage *s = &stages[at];

        busiest = slot_s(s) > slot_s(busiest) ? s : busiest;
        end = fmax(end, s->end_s);
        bare = fmax(bare, s->bare_s);
        add_tail(m, l, s, t);
    }
    double alone = slot_s(busiest) * job->micro;
    t->compute_s = alone - busiest->parallel_s * job->micro;
    t->parallel_s = busiest->parallel_s * job->micro + end - bare;
    t->bubble_s = bare - alone > 1e-9 * alone ? bare - alone : 0;
    t->update_s = fmin(t->update_s, t->step_s - end);
    t->exposed_s = fmax(0, t->step_s - t->update_s - end);
    if (t->exposed_s < 1e-9 * t->step_s)
        t->exposed_s = 0;
    t->lacks = m->lacks;
    if (m->lacks)
        t->step_s = NAN;
}

static int time_of(struct timing *m, struct list *l, struct step_time *time)
{
    if (m->job->pp > (double)m->job->model->n_layers)
        return -EINVAL;
    struct stage *stages = xcalloc((size_t)m->job->pp, sizeof(*stages));
    bool divided = make_stages(m->job, l->parts, stages);
    if (divided) {
        for (size_t at = 0; at < (size_t)m->job->pp; at++) {
            struct model_memory needed =
                job_memory(m->job, at, stages[at].range.from, stages[at].range.to);

            if (model_memory_all(&needed) > model_memory_all(&time->memory))
                time->memory = needed;
        }
        add_up(m, l, stages, time);
    }
    free(stages);
    return divided ? 0 : -EINVAL;
}

int step_time(const struct step_job *job, const struct step_costs *costs, struct step_time *time)
{
    struct timing m = {.job = job, .costs = costs};
    size_t layers = job->model->n_layers;
    int err = 0;

    *time = (struct step_time){.step_s = NAN};
    if (!(job->model->n_layers && job->batch > 0 && job->dp >= 1 && job->tp >= 1 && job->pp >= 1 &&
          job->ep >= 1 && job->ep <= job->dp && job->micro >= 1 && job->zero <= 3 &&
          !(job->zero >= 2 && job->micro > 1 && job->pp > 1) && listed(job) <= LISTED_MOST))
        return -EINVAL;
    struct part *parts = xcalloc(layers + 1, sizeof(*parts));
    /* of a layer at most two works in each pass, and with a bucket of its own three sums */
    struct list l = {.m = &m,
                     .parts = parts,
                     .works = xcalloc((7 * layers + 2) * listed(job), sizeof(*l.works))};
    make_parts(&m, parts);
    if (m.lacks) {
        l.range = (struct range){0, layers};
        list_works(&l); /* so that all is named that is not known */
        regather_s(&l);
        update_s(&m, &l);
        time->lacks = m.lacks;
    } else {
        err = time_of(&m, &l, time);
    }
    free(parts);
    free(l.works);
    return err;
}
