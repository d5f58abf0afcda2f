/* SPDX-License-Identifier: Apache-2.0 */
/* The first screen of a run: see summary.h. */
#include <math.h>
#include <string.h>

#include "harness/report/reference.h"
#include "harness/report/report.h"
#include "harness/report/show.h"
#include "harness/report/summary_scene.h"

#define PROBLEMS_MAX   6 /* that are told; the table has all */
#define SUSPECTS_MAX   3
#define NOT_TESTED_MAX 6
#define SUSTAINED_TOLD 0.9 /* of the median */

static void answer_suspects(const struct scene *s)
{
    struct problems p = summary_suspects(s);

    for (size_t i = 0; i < p.n && (s->notes || i < SUSPECTS_MAX); i++)
        if (i)
            document_answer_more(s->d, p.texts[i], "");
        else
            document_answer(s->d, "Not proven", "looks slow", TONE_LOW, p.texts[i]);
    if (p.n)
        document_answer_more(
            s->d,
            p.n > SUSPECTS_MAX ? pool_text(s->pool, "and %zu more; to confirm", p.n - SUSPECTS_MAX)
                               : "to confirm",
            trust_command(s->r, s->run));
}

static bool is_normal(const struct headline_run *at)
{
    return line_has_value(at) && line_is(at, VERDICT_NORMAL);
}

static bool is_unmeasured(const struct headline_run *at)
{
    return line_is(at, VERDICT_NOT_MEASURED);
}

static size_t count_where(const struct scene *s, bool (*is)(const struct headline_run *))
{
    size_t n = 0;

    for (size_t i = 0; i < s->h->n; i++)
        n += is(scene_line(s, i));
    return n;
}

static bool is_all_skipped(const struct scene *s)
{
    const struct table *plan = &s->r->runs[s->run].plan;
    size_t state = table_column(plan, "state"), n = 0;

    for (size_t i = 0; i < plan->n_rows; i++)
        n += !strcmp(table_cell(plan, i, state), "skip");
    return n && n == plan->n_rows;
}

/* "all 28 repetitions were skipped: no driver"; the notes have a reason of GPUs. */
static const char *skipped_text(const struct scene *s)
{
    size_t n = s->r->runs[s->run].plan.n_rows;
    const char *why = *s->h->no_gpu ? "no GPU" : "";

    for (size_t b = 0; !*why && b < s->r->n_benches; b++)
        for (size_t i = 0; !*why && i < s->r->benches[b].n_cases; i++)
            why = scene_shortened(s, s->r->benches[b].cases[i].points[s->run].reason);
    return pool_text(s->pool, "measured nothing: %s skipped%s%s",
                     n == 1 ? "its repetition was"
                            : pool_text(s->pool, "all %zu repetitions were", n),
                     *why ? ": " : "", why);
}

/* None is bad, and no test is judged, or the suite begins with a job: what is asked of this run is how
 * fast its jobs are. */
static bool is_of_jobs(const struct scene *s, const struct problems *p)
{
    return !p->n && (!count_where(s, line_is_judged) || jobs_lead(s->r, s->run)) &&
           *jobs_answer_text(s->r, &s->h->jobs, s->run);
}

static bool has_failed_alone(const struct headline_run *at)
{
    return line_has_failed(at) && !line_has_value(at);
}

/* "no problem in 22 tests: 12 are normal by their limit"; of what was not measured here nothing is known. */
static const char *health_text(const struct scene *s, const struct problems *p)
{
    size_t judged = count_where(s, line_is_judged), measured = count_where(s, line_has_value);
    size_t failed = count_where(s, has_failed_alone);
    const char *tests = show_count(s->pool, measured + failed, "case");
    double least = INFINITY, most = 0;

    if (is_all_skipped(s))
        return skipped_text(s);
    if (is_of_jobs(s, p))
        return jobs_answer_text(s->r, &s->h->jobs, s->run);
    if (p->n)
        return pool_text(s->pool, "%s in %s", show_count(s->pool, p->n, "problem"),
                         measured + failed ? tests : show_count(s->pool, s->h->n, "case"));
    if (!measured)
        return s->h->n ? "nothing was measured on this machine"
                       : "no test is among these rows: the report lists them";
    if (!judged)
        return pool_text(s->pool,
                         "no problem seen in %s, none of which has a limit to be judged by", tests);
    for (size_t i = 0; i < s->h->n; i++)
        if (line_is_judged(scene_line(s, i))) {
            least = fmin(least, line_percent(scene_line(s, i)));
            most = fmax(most, line_percent(scene_line(s, i)));
        }
    return pool_text(s->pool, "no problem in %s; %zu with a limit reach%s %s%.0f %% of it", tests,
                     judged, judged == 1 ? "es" : "",
                     round(least) < round(most) ? pool_text(s->pool, "%.0f to ", least) : "", most);
}

static void answer_health(const struct scene *s, const struct problems *p)
{
    document_answer(s->d, "Answer", "", p->n ? TONE_BAD : TONE_NONE, health_text(s, p));
    for (size_t i = 0; i < p->n && (s->notes || i < PROBLEMS_MAX); i++)
        document_answer_more(s->d, p->texts[i], "");
    if (p->n > PROBLEMS_MAX && !s->notes)
        document_answer_more(
            s->d, pool_text(s->pool, "and %zu more: plumb report --notes", p->n - PROBLEMS_MAX),
            "");
    if (*p->command)
        document_answer_more(s->d, "look closer", p->command);
}

/* Where nothing is wrong: what is nearest to it. */
static void answer_lowest(const struct scene *s)
{
    bool *told = pool_alloc(s->pool, s->h->n + 1, sizeof(*told));
    size_t i = scene_next(s, is_normal, told);

    if (i < s->h->n && line_percent(scene_line(s, i)) < scene_line(s, i)->verdict.low_below)
        return; /* what pauses is told */

    if (i < s->h->n)
        document_answer(s->d, "Lowest", "", TONE_NONE,
                        pool_text(s->pool, "%s, %s of its limit, which is normal", scene_name(s, i),
                                  document_percent(s->pool, line_percent(scene_line(s, i)))));
}

/* Of what pauses most: the samples know nothing of pauses. */
static void answer_sustained(const struct scene *s)
{
    const struct headline_run *least = NULL;
    double least_share = SUSTAINED_TOLD;
    size_t n = 0, at = 0;

    for (size_t i = 0; i < s->h->n; i++) {
        const struct headline_run *one = scene_line(s, i);
        double share = one->point ? line_value(one) / one->point->value : NAN;

        share = share > 1 ? 1 / share : share; /* of times */
        n += share < SUSTAINED_TOLD;
        if (share < least_share) {
            least = one;
            least_share = share;
            at = i;
        }
    }
    if (least)
        document_answer(
            s->d, "Sustained", "", TONE_LOW,
            pool_text(s->pool,
                      "%s over all of the time less than %.0f %% of the median, as %s: %.0f %%%s%s",
                      show_count(s->pool, n, "case"), 100 * SUSTAINED_TOLD, scene_name(s, at),
                      100 * least_share, *least->point->sustained.cause ? ": " : "",
                      least->point->sustained.cause));
}

/* "Matrix core: 4 skipped (no such device here)": the tests of a pipe that have no value. */
static const char *skipped_of(const struct scene *s, size_t first)
{
    const char *pipe = s->h->all[first].pipe, *why = "";
    size_t n = 0;

    for (size_t i = 0; i < s->h->n; i++)
        if (!strcmp(s->h->all[i].pipe, pipe) && is_unmeasured(scene_line(s, i))) {
            if (i < first)
                return "";
            why = *why || !scene_line(s, i)->point ? why : scene_line(s, i)->point->reason;
            n++;
        }
    return pool_text(s->pool, "%s: %zu skipped%s%s%s", pipe, n, *why ? " (" : "",
                     scene_shortened(s, why), *why ? ")" : "");
}

static void answer_unknown(const struct scene *s)
{
    struct show_list list = {
        .pool = s->pool, .max = s->notes ? 2 * s->h->n + 2 : NOT_TESTED_MAX, .parts = "; "};
    const char *missing = show_joined(s->pool, s->h->missing, s->h->unheaded);

    for (size_t i = 0; i < s->h->n; i++)
        if (is_unmeasured(scene_line(s, i)) && *skipped_of(s, i))
            show_list_add(&list, skipped_of(s, i));
    for (size_t i = 0; i < s->h->n; i++) {
        const struct headline_run *at = scene_line(s, i);

        if (at->alike && at->alike < at->n_likes && !line_has_failed(at))
            show_list_add(&list,
                          pool_text(s->pool, "%s: %zu of %zu %s", scene_name(s, i),
                                    at->n_likes - at->alike, at->n_likes, headline_places(at)));
    }
    if (*missing)
        show_list_add(&list, missing);
    if (*s->h->no_gpu) {
        const char *remedy = s->notes ? NULL : strstr(s->h->no_gpu, ": where there is one");
        int n = remedy ? (int)(remedy - s->h->no_gpu) : (int)strlen(s->h->no_gpu);

        show_list_add(&list, pool_text(s->pool, "GPUs: %.*s", n, s->h->no_gpu));
    }
    if (list.n)
        document_answer(s->d, "Not tested", "", TONE_NONE, show_list_text(&list));
}

void summary_answers(struct report *r, const struct headlines *h, size_t run, bool notes,
                     struct document *d)
{
    const struct scene s = {r, &r->pool, h, run, notes, d};
    const struct problems p = summary_problems(&s);

    answer_health(&s, &p);
    answer_suspects(&s);
    jobs_answer(r, &h->jobs, run, is_of_jobs(&s, &p), d);
    summary_machine(&s);
    summary_run(&s);
    trust_answer(r, &h->comparisons, run, notes, d);
    answer_sustained(&s);
    like_answer(r, run, d);
    if (!p.n && !is_of_jobs(&s, &p))
        answer_lowest(&s);
    answer_unknown(&s);
}

/* ---- all of it */

void summary_all(struct report *r, const struct headlines *h, bool notes, struct document *d)
{
    for (size_t run = 0; run < r->n_runs; run++) {
        if (r->n_runs > 1)
            document_heading(d, 3, r->names[run], "");
        summary_answers(r, h, run, notes, d);
    }
    summary_table(r, h, notes, d);
}

static int write_summary(FILE *out, struct report *r, const struct headlines *h, bool notes)
{
    struct document *d = document_new(&r->pool);
    struct document_terminal terminal = document_terminal_of(out);

    summary_all(r, h, notes, d);
    summary_places(r, h, d);
    fputc('\n', out);
    return document_write_terminal(d, &terminal, out);
}

int report_markdown(FILE *out, const char *const *runs, size_t n, char *error, size_t len)
{
    struct headlines headlines;
    struct report r;
    int err = report_load(&r, runs, n, error, len);

    if (err)
        return err;
    struct document *d = document_new(&r.pool);
    headlines_make(&r, &headlines);
    summary_all(&r, &headlines, false, d);
    summary_places(&r, &headlines, d);
    err = document_write_markdown(d, out);
    if (err)
        snprintf(error, len, "the Markdown could not be written: %s", strerror(-err));
    report_release(&r);
    return err;
}

int report_summary(FILE *out, const struct run_folder *run, bool notes)
{
    struct headlines headlines;
    struct report r;
    int err = report_take(&r, run);

    if (!err) {
        headlines_make(&r, &headlines);
        err = write_summary(out, &r, &headlines, notes);
    }
    report_release(&r);
    return err;
}
