/* SPDX-License-Identifier: Apache-2.0 */
/* Whole jobs of a run: see jobs.h. */
#include "harness/report/jobs.h"

#include <math.h>
#include <string.h>

#include "core/units.h"
#include "harness/report/described.h"
#include "harness/report/headline.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define JOBS_MAX  16 /* of a benchmark in a run */
#define LINES_MAX 4  /* jobs that have a line */
#define TEXT_MAX  256

/* The jobs of a benchmark in a run. */
struct look {
    struct report *r;
    const struct report_bench *b;
    size_t run;
    struct job_rows rows; /* of the cases, in their order */
};

static struct job_rows rows_of(const struct look *l)
{
    struct job_row *rows = pool_alloc(&l->r->pool, l->b->n_cases + 1, sizeof(*rows));

    for (size_t i = 0; i < l->b->n_cases; i++) {
        const struct report_case *c = &l->b->cases[i];
        const struct report_point *p = &c->points[l->run];
        bool failed = point_is_wrong(p) || point_has_failed(p);
        bool good = p->n_values && p->value > 0 && !failed;
        bool zero = p->n_values && p->value == 0; /* a share may be */
        rows[i] =
            (struct job_row){c->metric, c->unit, c->params, good || zero ? p->value : NAN, failed};
    }
    return (struct job_rows){l->b->described, l->b->params, l->b->n_params, rows, l->b->n_cases};
}

/* The ratio is turned round so that above 1 is faster. */
static double saving_of(double ratio)
{
    return 100 * (1 - 1 / ratio);
}

static void take_job(const struct look *l, struct comparisons *q, const struct job *job,
                     struct run_job *j)
{
    struct pool *pool = &l->r->pool;
    char text[TEXT_MAX];

    *j = (struct run_job){.bench = l->b,
                          .run = l->run,
                          .found = *job,
                          .c = &l->b->cases[job->row],
                          .value = l->rows.rows[job->row].value,
                          .advice = "",
                          .saving = NAN,
                          .low = NAN,
                          .high = NAN};
    j->on = pool_text(pool, "%s", job_on_text(&l->rows, job, job->row, text, sizeof(text)));
    if (job->failed < l->rows.n)
        j->failed =
            pool_text(pool, "%s", job_on_text(&l->rows, job, job->failed, text, sizeof(text)));
    j->bound = pool_text(pool, "%s", job_bound_text(job, text, sizeof(text)));
    j->unmeasured = pool_text(pool, "%s", job_unmeasured_text(&l->rows, job, text, sizeof(text)));
    j->asked = pool_alloc(pool, job->n_ways, sizeof(*j->asked));
    for (size_t w = 0; w < job->n_ways; w++)
        j->asked[w] =
            comparisons_add(q, &l->b->cases[job->ways[w].row], j->c, job->rule->gain / 100);
}

void jobs_ask(struct report *r, struct comparisons *q, struct run_jobs *out)
{
    struct job *jobs = pool_alloc(&r->pool, JOBS_MAX, sizeof(*jobs));
    struct look l = {.r = r};

    *out = (struct run_jobs){.n = 0};
    for (l.run = 0; l.run < r->n_runs; l.run++)
        for (l.b = r->benches; l.b < r->benches + r->n_benches; l.b++) {
            if (!l.b->described->jobs->label)
                continue;
            l.rows = rows_of(&l);
            comparisons_topic(q, NULL, l.b, l.run, false);
            for (size_t i = 0, n = jobs_find(&l.rows, jobs, JOBS_MAX); i < n; i++)
                take_job(&l, q, &jobs[i], POOL_ADD(&r->pool, out->all, out->n));
        }
}

/* Of several ways the one that saves most. */
static void take_advice(struct report *r, const struct comparisons *q, struct run_job *j)
{
    const struct look l = {.r = r, .b = j->bench, .run = j->run};

    for (size_t w = 0; w < j->found.n_ways; w++) {
        const struct comparison *k = comparison_of(q, j->asked[w]);
        char text[TEXT_MAX];

        if (!k || k->decision != DECISION_BETTER || !(k->low > 1) ||
            (j->way && saving_of(k->ratio) <= j->saving))
            continue;
        j->way = &l.b->cases[j->found.ways[w].row];
        j->saving = saving_of(k->ratio);
        j->low = saving_of(k->low);
        j->high = saving_of(k->high);
        const struct job_rows rows = rows_of(&l);
        j->advice =
            pool_text(&r->pool, "%s", job_way_text(&rows, &j->found.ways[w], text, sizeof(text)));
    }
}

void jobs_judge(struct report *r, const struct comparisons *q, struct run_jobs *all)
{
    for (size_t i = 0; i < all->n; i++)
        take_advice(r, q, &all->all[i]);
}

/* ---- The first lines ---- */

/* "buckets of 1 MiB would save 9 % of the time (8 % to 10 %)"; "" where nothing is advised. */
static const char *advice_text(struct report *r, const struct run_job *j)
{
    if (!j->way)
        return "";
    int digits = j->high - j->low < 3; /* else the interval has none of them */
    return pool_text(&r->pool, "%s would save %.*f %% of the time (%.*f %% to %.*f %%)", j->advice,
                     digits, j->saving, digits, j->low, digits, j->high);
}

const char *jobs_answer_text(struct report *r, const struct run_jobs *jobs, size_t run)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const struct run_job *j = &jobs->all[i];
        if (j->run != run || !*j->bound)
            continue;
        const struct bench_bound *b = j->found.bound;
        const char *more = j->way ? advice_text(r, j) : b && b->todo ? b->todo : "";
        return pool_text(&r->pool, "%s is %s%s%s", j->found.name, j->bound, *more ? "; " : "",
                         more);
    }
    return "";
}

static const char *job_name(struct pool *pool, const struct run_job *j)
{
    return pool_text(pool, "%s%s%s", j->found.name, *j->on ? " on " : "", j->on);
}

/* "resnet50 on 2 ranks: 272 samples/s, 47 % of perfect scaling" */
static const char *rate_text(struct report *r, const struct run_job *j)
{
    struct pool *pool = &r->pool;
    const struct report_point *p = &j->c->points[j->run];
    struct show_scale scale = show_scale(pool, p->value, j->c->unit);
    const char *rate =
        pool_text(pool, "%s %s", show_short(pool, p->value * scale.factor), scale.unit);
    const char *text = pool_text(pool, "%s: %s", job_name(pool, j), rate);

    if (j->failed) {
        const char *lost =
            pool_text(pool, "%s%s%s: failed", j->found.name, *j->failed ? " on " : "", j->failed);
        if (isnan(j->value))
            return lost;
        text = pool_text(pool, "%s; on %s: %s", lost, j->on, rate);
    }
    if (!isnan(j->found.scaled))
        text = pool_text(pool, "%s, %.0f %% of perfect scaling", text, j->found.scaled);
    return text;
}

/* "compute is stated, not measured"; "" of a rate that was measured. */
static const char *origin_of(const struct run_job *j)
{
    const char *origin = j->c->points[j->run].origin;

    if (!strcmp(origin, "measured"))
        return "";
    if (j->found.stated && !strcmp(origin, "simulated"))
        return j->found.rule->stated;
    return *origin ? origin : "origin unknown";
}

/* Was such a part of a job measured? between_nodes: over the links between them, for what one node
 * does in its memory tells nothing of more nodes. */
static bool has_part(const struct report *r, size_t run, enum bench_part_of what,
                     bool between_nodes)
{
    for (const struct report_bench *b = r->benches; b < r->benches + r->n_benches; b++)
        for (const struct bench_part *p = b->described->parts; p->where; p++)
            for (size_t i = 0; p->of == what && i < b->n_cases; i++) {
                const struct report_case *c = &b->cases[i];

                if (c->points[run].n_values && described_matches(b, c, p->where) &&
                    (!between_nodes || report_number(report_param(b, c, "nodes")) > 1))
                    return true;
            }
    return false;
}

/* The columns of a step that are options of a forecast, where they have not the forecast's default. */
static const struct {
    const char *column, *option, *usual;
} told[] = {{"batch", "--batch", "1"},     {"seq", "--seq", "0"},
            {"tp", "--tp", "1"},           {"pp", "--pp", "1"},
            {"ep", "--ep", "1"},           {"micro_batches", "--micro", "1"},
            {"zero", "--zero", "0"},       {"bucket", "--bucket", "26214400"},
            {"update", "--update", "adam"}};

/* The command that forecasts this job on more nodes, with its own compute and from the sums of the run; "": it has
 * none. */
static const char *forecast_of(struct report *r, const struct run_job *j)
{
    struct pool *pool = &r->pool;
    double compute_ms;

    if (!has_part(r, j->run, JOB_STEP, false) || !has_part(r, j->run, JOB_SUM, true))
        return "";
    const char *text =
        pool_text(pool, "plumb forecast %s --model %s", shell_word(pool, r->runs[j->run].path),
                  shell_word(pool, j->found.name));
    for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++) {
        const char *value = report_param(j->bench, j->c, told[i].column);
        if (*value && strcmp(value, told[i].usual) != 0)
            text = pool_text(pool, "%s %s %s", text, told[i].option, shell_word(pool, value));
    }
    if (!strcmp(report_param(j->bench, j->c, "overlap"), "none"))
        text = pool_text(pool, "%s --no-overlap", text);
    if (!units_parse_double(report_param(j->bench, j->c, "compute_ms"), &compute_ms))
        text = pool_text(pool, "%s --compute %.4gms", text, compute_ms);
    return text;
}

/* answered: its bound is the run's answer, and so is what to do. */
static void answer_job(struct report *r, const struct run_job *j, bool first, bool answered,
                       struct document *d)
{
    struct pool *pool = &r->pool;
    bool brief = !answered && *j->bound && !j->failed && isnan(j->found.scaled);
    const char *text = brief ? job_name(pool, j) : rate_text(r, j); /* the table has the rate */
    const char *origin = isnan(j->value) ? "" : origin_of(j);

    if (*origin)
        text = pool_text(pool, "%s (%s)", text, origin);
    if (!answered && *j->bound)
        text = pool_text(pool, "%s%s %s%s%s", text, brief ? ":" : ",", j->bound, j->way ? "; " : "",
                         advice_text(r, j));
    document_answer(d, j->found.rule->label, "", TONE_NONE, text);
    if (answered && *j->unmeasured)
        document_answer_more(d, "not measured, and perhaps faster", j->unmeasured);
    if (first && *forecast_of(r, j))
        document_answer_more(d, "on more nodes", forecast_of(r, j));
}

bool jobs_lead(const struct report *r, size_t run)
{
    const struct table *plan = &r->runs[run].plan;
    size_t of = table_column(plan, "case"), bench = table_column(plan, "bench");

    for (size_t i = 0; i < plan->n_rows; i++) {
        const char *name = table_cell(plan, i, bench);
        if (!strcmp(table_cell(plan, i, of), "1"))
            return described_of(&r->described, name)->jobs->label != NULL;
    }
    return false;
}

void jobs_answer(struct report *r, const struct run_jobs *jobs, size_t run, bool answered,
                 struct document *d)
{
    size_t n = 0;

    for (size_t i = 0; i < jobs->n; i++) {
        if (jobs->all[i].run != run || n++ >= LINES_MAX)
            continue;
        answer_job(r, &jobs->all[i], n == 1, answered && n == 1, d);
    }
    if (n > LINES_MAX)
        document_answer_more(d, pool_text(&r->pool, "and %zu more: see the rows", n - LINES_MAX),
                             "");
}
