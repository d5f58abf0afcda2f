/* SPDX-License-Identifier: Apache-2.0 */
/* Headlines: see headline.h. */
#include "harness/report/headline.h"

#include <math.h>
#include <string.h>

#include "core/units.h"
#include "harness/report/cases.h"
#include "harness/report/cases_group.h"
#include "harness/report/show.h"

/* ---- Pipes without a headline ---- */

/* One reason stands for all: there is no GPU, or none that can be used. "" where a case on one was
 * more than skipped, and where there is no such case. */
static const char *why_no_gpu(const struct report *r)
{
    const char *why = "";

    for (size_t b = 0; b < r->n_benches; b++)
        for (size_t i = 0; i < r->benches[b].n_cases; i++)
            for (size_t run = 0; run < r->n_runs; run++) {
                const struct report_case *c = &r->benches[b].cases[i];
                const struct report_point *p = &c->points[run];

                if (!p->n_rows || !case_is_gpu(&r->benches[b], c))
                    continue;
                if (strcmp(p->status, "skipped") != 0)
                    return "";
                why = *why ? why : *p->reason ? p->reason : "no reason is given";
            }
    return why;
}

static bool is_measured(const struct headlines *h, const char *pipe)
{
    for (size_t i = 0; i < h->n; i++)
        if (!strcmp(h->all[i].pipe, pipe))
            return true;
    return false;
}

/* Does a machine of these runs have one, says its probe? */
static bool has_gpu(const struct report *r)
{
    for (size_t i = 0; i < r->n_runs; i++)
        if (json_array_size(fact_at(r->runs[i].meta, "machine.gpus.devices")))
            return true;
    return false;
}

static bool has_rows(const struct report *r, const struct told_headline *h)
{
    bool gpu = h->rule->flags & HEADLINE_GPU;

    for (size_t i = 0; i < r->n_benches; i++)
        for (size_t k = 0; k < r->benches[i].n_cases; k++)
            if (!strcmp(r->benches[i].name, h->bench) &&
                case_is_gpu(&r->benches[i], &r->benches[i].cases[k]) == gpu)
                return true;
    return false;
}

/* A pipe may have rules of several benchmarks. */
static bool is_of_rows(const struct report *r, const char *pipe)
{
    for (size_t i = 0; i < r->described.n_headlines; i++)
        if (!strcmp(r->described.headlines[i].rule->pipe, pipe) &&
            has_rows(r, &r->described.headlines[i]))
            return true;
    return false;
}

/* Of GPUs only where a machine has one. */
static void list_missing(struct report *r, struct headlines *out)
{
    out->missing = out->unheaded = "";
    for (size_t i = 0; i < r->described.n_headlines; i++) {
        const struct bench_headline *rule = r->described.headlines[i].rule;

        if (!is_measured(out, rule->pipe) && !show_lists(out->missing, rule->pipe) &&
            !show_lists(out->unheaded, rule->pipe) && !(rule->flags & HEADLINE_QUIET) &&
            !(rule->flags & HEADLINE_GPU && (*out->no_gpu || !has_gpu(r)))) {
            const char **list = is_of_rows(r, rule->pipe) ? &out->unheaded : &out->missing;
            *list = show_joined(&r->pool, *list, rule->pipe);
        }
    }
}

static bool is_lost(const struct report_point *p)
{
    return point_is_wrong(p) || point_has_failed(p);
}

/* Of the cases of a run that are left, keeps those that match, where any was measured. */
static void keep_matching(struct search *s, size_t run, const char *where)
{
    bool any = false;

    for (size_t i = 0; i < s->bench->n_cases; i++) {
        const struct report_case *c = &s->bench->cases[i];
        any |= s->at_in[i] && c->points[run].n_values && described_matches(s->bench, c, where);
    }
    /* what was lost stays: nothing hides it */
    for (size_t i = 0; any && i < s->bench->n_cases; i++)
        s->at_in[i] &= is_lost(&s->bench->cases[i].points[run]) ||
                       described_matches(s->bench, &s->bench->cases[i], where);
}

/* Of the cases of a run that are left, keeps those at the largest or smallest value of a parameter:
 * "+size". */
static void keep_at(struct search *s, size_t run, const char *at)
{
    double best = NAN;

    if (strchr(at, '=')) {
        keep_matching(s, run, at);
        return;
    }
    for (size_t i = 0; i < s->bench->n_cases; i++) {
        double x = report_number(report_param(s->bench, &s->bench->cases[i], at + 1));

        if (s->at_in[i] && s->bench->cases[i].points[run].n_rows && !isnan(x))
            best = isnan(best) ? x : *at == '+' ? fmax(best, x) : fmin(best, x);
    }
    /* Where no case says it, as none does whose launches died before a row, it is nothing to
     * choose by. */
    for (size_t i = 0; !isnan(best) && i < s->bench->n_cases; i++)
        if (report_number(report_param(s->bench, &s->bench->cases[i], at + 1)) != best)
            s->at_in[i] = false;
}

/* Each run by itself: machines differ in what they were measured at. */
static void keep_extreme(struct search *s, size_t run)
{
    const char *at = s->rule && s->rule->at ? s->rule->at : "";

    for (size_t i = 0; i < s->bench->n_cases; i++)
        s->at_in[i] = s->in[i];
    while (*at) {
        size_t n = strcspn(at, " ");

        keep_at(s, run, pool_text(&s->r->pool, "%.*s", (int)n, at));
        at += n + (at[n] == ' ');
    }
}

static int weight_of(const struct report_point *p)
{
    return point_is_wrong(p) ? 2 : point_has_failed(p);
}

/* The best case of a run; where none was measured, the first of wrong data, else the first that
 * failed, else the first. */
static const struct report_case *best_of(const struct search *s, size_t run, size_t *candidates)
{
    const struct report_case *best = NULL, *unmeasured = NULL;

    *candidates = 0;
    for (size_t i = 0; i < s->bench->n_cases; i++) {
        const struct report_case *c = &s->bench->cases[i];
        const struct report_point *p = &c->points[run];

        if (!s->at_in[i] || !p->n_rows)
            continue;
        if (!p->n_values) {
            if (!unmeasured || weight_of(p) > weight_of(&unmeasured->points[run]))
                unmeasured = c;
            continue;
        }
        ++*candidates;
        if (!best || case_is_better(c, p->value, best->points[run].value))
            best = c;
    }
    return best ? best : unmeasured;
}

/* Where one of the cases is a job, other ways to do it are beside it, and not in its place. */
static const struct report_case *job_of(const struct search *s, size_t run,
                                        const struct run_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const struct run_job *j = &jobs->all[i];

        if (j->run == run && j->bench == s->bench && !isnan(j->value) &&
            s->at_in[j->c - s->bench->cases])
            return j->c;
    }
    return NULL;
}

/* Cases with wrong data or failed launches, the best one among them. */
static struct headline_lost count_lost(const struct search *s, size_t run,
                                       const struct report_case *best)
{
    struct headline_lost lost = {.text = ""};
    struct pool *pool = &s->r->pool;

    for (size_t i = 0; i < s->bench->n_cases; i++) {
        const struct report_case *c = &s->bench->cases[i];
        const struct report_point *p = &c->points[run];

        if (!s->at_in[i] || (!p->n_values && !is_lost(p))) /* skipped, or not there */
            continue;
        lost.cases++;
        lost.wrong += point_is_wrong(p);
        lost.failed += point_has_failed(p);
        if (c != best && is_lost(p) &&
            (!lost.first || (point_is_wrong(p) && !point_is_wrong(&lost.first->points[run]))))
            lost.first = c;
    }
    if (lost.first && lost.wrong)
        lost.text = pool_text(pool, "wrong data in %zu of %zu cases", lost.wrong, lost.cases);
    if (lost.first && lost.failed)
        lost.text = show_joined(
            pool, lost.text,
            pool_text(pool, "failed repetitions in %zu of %zu cases", lost.failed, lost.cases));
    return lost;
}

static bool varies(const struct search *s, size_t param)
{
    const char *first = NULL;

    for (size_t i = 0; i < s->bench->n_cases; i++) {
        const char *text = s->bench->cases[i].params[param];

        if (!s->in[i])
            continue;
        if (first && strcmp(first, text) != 0)
            return true;
        first = text;
    }
    return false;
}

/* "2048", or "512x2304x768". */
static const char *describe_shape(const struct search *s, const struct bench_plot *hint,
                                  const struct report_case *c)
{
    bool square = described_is_square(hint, s->bench, c);
    const char *shape = "", *value = "";

    for (size_t i = 0; i < s->bench->n_params; i++) {
        if (!word_in(hint->square, s->bench->params[i]))
            continue;
        value = c->params[i];
        shape = pool_text(&s->r->pool, "%s%s%s", shape, *shape ? "x" : "", value);
    }
    return square && *value ? value : shape;
}

/* Places that are alike are not told one by one; nor are the ways of links between them. */
static bool is_place(const char *name, const char *value)
{
    return word_in("device source destination from to node", name) ||
           word_in("forward reverse", value);
}

/* Several, of which a test may be of one alone. */
static bool has_gpus(const struct report *r, size_t run)
{
    return json_array_size(fact_at(r->runs[run].meta, "machine.gpus.devices")) > 1;
}

/* "1 GiB" */
static const char *size_text(struct pool *pool, const char *value)
{
    char text[32];
    uint64_t bytes;

    return units_parse_u64(value, &bytes)
               ? value
               : pool_text(pool, "%s", units_format_bytes(bytes, text, sizeof(text)));
}

/* "1 GiB, threads 2": of values that are words the name goes without saying. */
static const char *describe(const struct search *s, const struct report_case *c, bool places)
{
    const struct bench_plot *hint = described_plot_of(s->bench, c);
    const char *shape = hint && hint->square ? describe_shape(s, hint, c) : "", *text = shape;

    for (size_t i = 0; i < s->bench->n_params; i++) {
        const char *name = s->bench->params[i];
        bool is_size = hint && hint->flags & PLOT_BYTES &&
                       !strcmp(name, hint->x); /* a cache's, or the memory's? */

        if ((is_size && !case_is_made_by(s->bench, c, i)) || /* its level is told */
            described_ignores(s->bench, hint, name) || (!is_size && !varies(s, i)) ||
            (hint && hint->square && word_in(hint->square, name)) ||
            (!places && is_place(name, c->params[i])))
            continue;
        text = is_size ? show_joined(&s->r->pool, size_text(&s->r->pool, c->params[i]), text)
                       : show_joined(&s->r->pool, text,
                                     show_named_param(&s->r->pool, s->bench, i, c->params[i]));
    }
    return text;
}

/* "over eth0"; of the sum over several devices, all as they were asked for. */
static const char *over_device(const struct search *s, const struct report_case *c, size_t run)
{
    const char *device = c->points[run].carrier_device;
    const char *several = report_param(s->bench, c, "device");

    if (!s->rule || !(s->rule->flags & HEADLINE_OVER) || (!*device && !*several))
        return "";
    if (*several && described_matches(s->bench, c, "rail=all"))
        return pool_text(&s->r->pool, "over %s", several);
    const char *by = s->rule->by ? report_param(s->bench, c, s->rule->by) : "";
    return *device && strcmp(device, by) != 0 /* "shm over shm" */
               ? pool_text(&s->r->pool, "over %s", device)
               : "";
}

const char *headline_places(const struct headline_run *h)
{
    return !h->of_pairs ? "GPUs" : strstr(h->likes->place, "cuda:") ? "pairs" : "links";
}

const char *headline_name(struct pool *pool, const struct headline *h, size_t run)
{
    const struct headline_run *at = &h->runs[run];
    const char *name = pool_text(pool, "%s%s%s", h->label, *at->what ? " " : "", at->what);

    if (at->n_likes < 2 || !at->alike)
        return name;
    return pool_text(pool, "%s, %s%zu %s", name,
                     at->alike < at->n_likes ? pool_text(pool, "%zu of ", at->alike) : "",
                     at->n_likes, headline_places(at));
}

const char *headline_matrix_name(struct pool *pool, const struct headlines *h,
                                 const struct matrix *m)
{
    for (size_t i = 0; i < h->n; i++) {
        const struct headline_run *at = &h->all[i].runs[m->run];

        if (at->of_pairs && matrix_holds(m, at->best, m->run))
            return pool_text(pool, "%s%s%s", h->all[i].label, *at->what ? " " : "", at->what);
    }
    return pool_text(pool, "%s, %s", m->metric, m->title);
}

/* The places that do the same as the best case. */
static void find_likes(const struct search *s, const struct headlines *out, size_t run,
                       struct headline_run *h)
{
    enum { GPUS_MAX = 128 };

    h->likes = pool_alloc(&s->r->pool, GPUS_MAX, sizeof(*h->likes));
    h->n_likes = gpus_likes(&out->comparisons, s->bench, run, h->best, h->likes, GPUS_MAX);
    for (size_t i = 0; h->n_likes < 2 && i < out->matrices.n; i++)
        if (matrix_holds(&out->matrices.all[i], h->best, run)) {
            h->likes = matrix_likes(s->r, &out->matrices.all[i], h->best, &h->n_likes);
            h->of_pairs = true;
        }
    for (size_t i = 0; i < h->n_likes; i++)
        h->alike += case_has_value(h->likes[i].c, run);
}

/* The best of them says nothing of the others: half of them are better than the median, or as good. */
static const struct report_case *median_of(const struct headline_run *h, size_t run)
{
    for (size_t i = 0; h->alike > 1 && i < h->n_likes; i++) {
        const struct report_case *c = h->likes[i].c;
        size_t worse = 0, same = 0;

        for (size_t k = 0; case_has_value(c, run) && k < h->n_likes; k++) {
            double value = c->points[run].value, other = h->likes[k].c->points[run].value;

            worse += case_has_value(h->likes[k].c, run) && case_is_better(c, value, other);
            same += value == other;
        }
        if (same && worse <= h->alike / 2 && worse + same > h->alike / 2)
            return c;
    }
    return h->best;
}

/* What the limit says of the others and not of the median. What is slow beside its like is told. */
static const char *find_outside(const struct search *s, size_t run, const struct headline_run *h)
{
    struct show_list names = {.pool = &s->r->pool, .max = 2};

    for (size_t i = 0; h->alike > 1 && i < h->n_likes; i++) {
        const struct like *at = &h->likes[i];
        struct verdict v;

        if (at->c == h->best || !case_has_value(at->c, run) || (at->on && at->on->slow))
            continue;
        v = verdict_make(s->r, run, s->bench, at->c, s->rule);
        if ((v.kind == VERDICT_ABOVE || v.kind == VERDICT_LOW) && v.kind != h->verdict.kind)
            show_list_add(&names,
                          pool_text(&s->r->pool, "%s at %s of its limit", at->place,
                                    document_percent(&s->r->pool, at->c->points[run].percent)));
    }
    return show_list_text(&names);
}

/* Nothing but skipped launches, of what a machine may well lack. */
static bool is_quiet(const struct search *s)
{
    for (size_t i = 0; i < s->bench->n_cases; i++)
        for (size_t run = 0; s->in[i] && run < s->r->n_runs; run++) {
            const struct report_point *p = &s->bench->cases[i].points[run];

            if (p->n_rows && strcmp(p->status, "skipped") != 0)
                return false;
        }
    return s->rule && s->rule->flags & HEADLINE_QUIET;
}

static void add_line(struct search *s, struct headlines *out, const char *pipe, const char *label)
{
    if (is_quiet(s))
        return;
    struct headline line = {0}, *h = &line;
    h->runs = pool_alloc(&s->r->pool, s->r->n_runs, sizeof(*h->runs));
    h->pipe = pipe;
    h->label = label;
    h->component = pipe;
    h->bench = s->bench;
    h->rule = s->rule;
    for (size_t i = 0; i < s->r->n_runs; i++) {
        struct headline_run *run = &h->runs[i];

        keep_extreme(s, i);
        run->what = "";
        run->verdict = verdict_no_case(&s->r->pool);
        run->best = best_of(s, i, &run->candidates);
        const struct report_case *job = job_of(s, i, &out->jobs);
        run->is_job = job != NULL;
        run->slow = run->outside = "";
        if (job)
            run->best = job;
        else if (run->best && run->best->points[i].n_values) {
            find_likes(s, out, i, run);
            run->best = median_of(run, i);
        }
        run->lost = count_lost(s, i, run->best);
        if (!run->best)
            continue;
        run->point = &run->best->points[i];
        if (s->rule)
            h->component = described_pipe(s->r, s->bench, run->best);
        run->what = show_joined(&s->r->pool, over_device(s, run->best, i),
                                describe(s, run->best, run->alike < 2));
        if (run->alike < 2 && has_gpus(s->r, i) && !strstr(run->what, "cuda:"))
            run->what = show_joined(&s->r->pool, run->what, case_gpu(s->bench, run->best));
        run->verdict = verdict_make(s->r, i, s->bench, run->best, s->rule);
        run->outside = find_outside(s, i, run);
        headline_remarks(s, out, i, run);
        verdict_lost_cases(&s->r->pool, &run->verdict, &run->lost);
    }
    *POOL_ADD(&s->r->pool, out->all, out->n) = line;
}

static bool is_of_rule(const struct report_bench *b, size_t run, const struct report_case *c,
                       const void *arg)
{
    const struct bench_headline *rule = arg;

    (void)run;
    return !rule || (case_is_gpu(b, c) == ((rule->flags & HEADLINE_GPU) != 0) &&
                     described_matches(b, c, rule->where));
}

/* A line for each value of the rule's `by`, or without a rule of each metric, in the order of the
 * suite. */
static void add_lines(struct search *s, struct headlines *out)
{
    struct case_groups groups = cases_group(&s->r->pool, s->bench, 0, is_of_rule, s->rule, cases_by,
                                            s->rule ? s->rule->by : "metric");

    for (size_t i = 0; i < groups.n; i++) {
        const struct report_case *first = groups.all[i].cases[0];
        const char *value =
            s->rule && s->rule->by ? report_param(s->bench, first, s->rule->by) : NULL;

        if (value && !*value)
            continue;
        memset(s->in, 0, s->bench->n_cases * sizeof(*s->in));
        for (size_t k = 0; k < groups.all[i].n; k++)
            s->in[groups.all[i].cases[k] - s->bench->cases] = true;
        add_line(s, out, s->rule ? s->rule->pipe : s->bench->name,
                 !s->rule ? *first->metric ? first->metric : "launches without a row"
                 : !value ? s->rule->label
                 : strcmp(s->rule->label, "%s") != 0
                     ? pool_text(&s->r->pool, "%s %s", s->rule->label, value)
                     : value);
    }
}

static void make_all(struct report *r, struct headlines *out, struct search *s)
{
    for (size_t i = 0; i < r->described.n_headlines; i++) {
        s->rule = r->described.headlines[i].rule;
        s->bench = report_bench(r, r->described.headlines[i].bench);
        if (s->bench && !(*out->no_gpu && s->rule->flags & HEADLINE_GPU))
            add_lines(s, out);
    }
    s->rule = NULL;
    for (size_t i = 0; i < r->n_benches; i++) {
        s->bench = &r->benches[i];
        if (!s->bench->described->headlines->pipe)
            add_lines(s, out);
    }
}

/* The lines of a component stand together, in the place of its first one, though several rules make
 * them. */
static void keep_components_together(struct headlines *h)
{
    for (size_t i = 0; i < h->n;) {
        const char *component = h->all[i].component;

        for (size_t k = i; k < h->n; k++) {
            struct headline line = h->all[k];

            if (strcmp(line.component, component) != 0)
                continue;
            memmove(&h->all[i + 1], &h->all[i], (k - i) * sizeof(line));
            h->all[i++] = line;
        }
    }
}

/* All that is asked of cases beside each other, before any of it is judged: one alarm level holds for
 * all. One number of ranks is no curve. */
static void compare(struct report *r, struct headlines *out)
{
    struct comparisons *q = &out->comparisons;

    *q = (struct comparisons){.r = r};
    matrices_make(r, &out->matrices);
    scalings_make(r, 2, &out->scalings);
    contrasts_ask(r, q, &out->contrasts);
    gpus_ask(r, q);
    matrices_ask(q, &out->matrices);
    siblings_ask(r, q);
    scalings_ask(q, &out->scalings);
    jobs_ask(r, q, &out->jobs);
    comparisons_decide(q);
    contrasts_judge(r, q, &out->contrasts);
    matrices_judge(q, &out->matrices);
    siblings_judge(q, &out->siblings);
    scalings_judge(q, &out->scalings);
    jobs_judge(r, q, &out->jobs);
}

void headlines_make(struct report *r, struct headlines *out)
{
    size_t most_cases = 0;

    for (size_t i = 0; i < r->n_benches; i++)
        most_cases = r->benches[i].n_cases > most_cases ? r->benches[i].n_cases : most_cases;
    struct search s = {.r = r,
                       .in = pool_alloc(&r->pool, most_cases, sizeof(*s.in)),
                       .at_in = pool_alloc(&r->pool, most_cases, sizeof(*s.at_in))};
    *out = (struct headlines){.missing = "", .no_gpu = why_no_gpu(r)};
    compare(r, out);
    stragglers_make(r, &out->stragglers);
    make_all(r, out, &s);
    keep_components_together(out);
    list_missing(r, out);
}
