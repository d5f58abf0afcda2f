/* SPDX-License-Identifier: Apache-2.0 */
/* The trust in a run: see summary.h. */
#include "harness/report/summary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "harness/decide/decide.h"
#include "harness/report/cases.h"
#include "harness/report/headline.h"
#include "harness/report/page.h"
#include "harness/report/show.h"
#include "harness/report/told.h"

#define COMPARE_MARGIN 0.05
#define MS_A_MINUTE    6e4
#define TICKS_A_SECOND 100 /* of a CPU in /proc/stat */
#define STEAL_TICKS    100 /* of fewer, one tick is more than 1 % */

static const struct {
    char name;
    double loss;
} grades[] = {{'A', 0.02}, {'B', 0.05}, {'C', 0.10}};

enum { GRADES = sizeof(grades) / sizeof(*grades) };

/* ---- what disturbed it */

static double number_or_0(const struct report_rows *rows, size_t row, enum row_field field)
{
    double x = row_number(rows, row, field);

    return isfinite(x) ? x : 0;
}

/* A share of few ticks is no figure. */
static void count_steal(const struct report_rows *rows, size_t row, double cpus, struct trust *t)
{
    double steal = number_or_0(rows, row, FIELD_STEAL);
    double ticks = row_number(rows, row, FIELD_ELAPSED) * cpus * TICKS_A_SECOND;

    t->stolen += steal >= 1;
    if (!(ticks < STEAL_TICKS))
        t->steal_percent = fmax(t->steal_percent, steal);
}

static void count_row(const struct report_rows *rows, size_t row, double cpus, struct trust *t)
{
    double low = number_or_0(rows, row, FIELD_MHZ_LOW);
    double high = number_or_0(rows, row, FIELD_MHZ_HIGH);

    if (strcmp(row_text(rows, row, FIELD_ORIGIN), "measured") != 0 ||
        !(number_or_0(rows, row, FIELD_SAMPLES) > 0))
        return;
    t->rows++;
    if (!*row_text(rows, row, FIELD_DISTURBED))
        return;
    t->disturbed++;
    count_steal(rows, row, cpus, t);
    t->quota_ms = fmax(t->quota_ms, number_or_0(rows, row, FIELD_QUOTA));
    t->throttled += number_or_0(rows, row, FIELD_THROTTLE) > 0;
    t->switched += number_or_0(rows, row, FIELD_INVOLUNTARY) > 0;
    if (high > 0)
        t->clock_percent = fmax(t->clock_percent, 100 * (high - low) / high);
}

static void count_rows(const struct report *r, size_t run, struct trust *t)
{
    const json_t *machine = json_object_get(r->runs[run].meta, "machine");
    const json_t *cpu = json_object_get(machine, "cpu");
    double cpus = fmax(1, json_number_value(json_object_get(cpu, "threads")));

    for (size_t b = 0; b < r->n_benches; b++) {
        const struct report_rows *rows = &r->benches[b].rows[run];

        for (size_t i = 0; rows->table && i < rows->table->n_rows; i++)
            count_row(rows, i, cpus, t);
    }
}

/* ---- the smallest loss */

struct judged {
    struct decide_case *cases;
    struct decide_run *runs; /* one a case: both sides of it */
    double *launches;        /* how many each has */
    size_t n;
};

static bool counts(const struct report *r, const struct report_bench *b,
                   const struct report_case *c, size_t run)
{
    const struct report_point *p = &c->points[run];

    return p->n_values && point_is_measured(p) && told_is_judged(r, b, c);
}

/* Held against another run like this one: against itself. */
static int add_case(struct report *r, const struct report_bench *b, const struct report_case *c,
                    size_t run, struct judged *j)
{
    const struct report_point *p = &c->points[run];
    double *values = pool_alloc(&r->pool, p->n_rows, sizeof(*values));
    struct decide_run *of = &j->runs[j->n];

    if (!values)
        return -ENOMEM;
    *of = (struct decide_run){.values = values, .n = combine_values(&b->rows[run], p, values)};
    j->launches[j->n] = (double)of->n;
    j->cases[j->n++] = (struct decide_case){.a = {of, 1},
                                            .b = {of, 1},
                                            .margin = COMPARE_MARGIN,
                                            .higher_is_better = c->more_is_better};
    return 0;
}

static int find_cases(struct report *r, size_t run, struct judged *j)
{
    size_t most = 0;
    int err = 0;

    for (size_t b = 0; b < r->n_benches; b++)
        most += r->benches[b].n_cases;
    j->cases = pool_alloc(&r->pool, most, sizeof(*j->cases));
    j->runs = pool_alloc(&r->pool, most, sizeof(*j->runs));
    j->launches = pool_alloc(&r->pool, most, sizeof(*j->launches));
    if (!j->cases || !j->runs || !j->launches)
        return -ENOMEM;
    for (size_t b = 0; b < r->n_benches; b++)
        for (size_t i = 0; !err && i < r->benches[b].n_cases; i++)
            if (counts(r, &r->benches[b], &r->benches[b].cases[i], run))
                err = add_case(r, &r->benches[b], &r->benches[b].cases[i], run, j);
    return err;
}

/* What cannot be told could have hidden anything. */
static int take_smallest(struct report *r, const struct judged *j, struct trust *t)
{
    double *losses = pool_alloc(&r->pool, j->n, sizeof(*losses));

    if (!losses)
        return -ENOMEM;
    for (size_t i = 0; i < j->n; i++)
        losses[i] = isnan(j->cases[i].smallest) ? 1 : j->cases[i].smallest;
    t->smallest = stats_median(losses, j->n);
    t->launches = t->most_launches = (size_t)stats_median(j->launches, j->n);
    t->fewest_launches = t->launches;
    for (size_t i = 0; i < j->n; i++) {
        t->single += j->runs[i].n == 1;
        t->fewest_launches = j->runs[i].n < t->fewest_launches ? j->runs[i].n : t->fewest_launches;
        t->most_launches = j->runs[i].n > t->most_launches ? j->runs[i].n : t->most_launches;
    }
    return 0;
}

/* ---- the grade, and what would be the next */

static double minutes_of(const struct report *r, size_t run)
{
    const json_t *cost = json_object_get(r->runs[run].meta, "harness_cost");
    double ms = json_number_value(json_object_get(cost, "benchmarks_ms"));

    return ms > 0 ? ms / MS_A_MINUTE : NAN;
}

/* How many launches of each planned case were run. Each case has a first one. */
static double launches_a_case(const struct table *plan)
{
    size_t state = table_column(plan, "state"), repeat = table_column(plan, "repeat");
    size_t cases = 0, done = 0;

    for (size_t i = 0; i < plan->n_rows; i++) {
        cases += !strcmp(table_cell(plan, i, repeat), "1");
        done += strcmp(table_cell(plan, i, state), "todo") != 0;
    }
    return cases && done ? (double)done / (double)cases : NAN;
}

static void take_advice(const struct report *r, size_t run, struct trust *t)
{
    double repeats = DECIDE_FEW_LAUNCHES, shrink;

    if (isnan(t->next))
        return;
    if (t->launches >= DECIDE_FEW_LAUNCHES && t->smallest < 1) {
        shrink = log1p(-t->smallest) / log1p(-t->next);
        repeats = fmax(repeats, ceil((double)t->launches * shrink * shrink));
    }
    if (!(repeats <= TRUST_REPEATS_MAX) || repeats <= (double)t->launches)
        return;
    t->repeats = (size_t)repeats;
    t->minutes = minutes_of(r, run) * repeats / launches_a_case(&r->runs[run].plan);
}

static void take_grade(struct trust *t)
{
    t->grade = 'D';
    t->next = grades[GRADES - 1].loss;
    for (size_t i = GRADES; i-- > 0;)
        if (t->smallest <= grades[i].loss) {
            t->grade = grades[i].name;
            t->next = i ? grades[i - 1].loss : NAN;
        }
}

int trust_make(struct report *r, size_t run, struct trust *out)
{
    struct judged j = {0};
    struct decide_overall overall;
    const struct decide_options options = {0};
    int err;

    *out = (struct trust){.smallest = NAN, .next = NAN, .minutes = NAN};
    count_rows(r, run, out);
    err = find_cases(r, run, &j);
    out->cases = j.n;
    if (err || !j.n)
        return err;
    err = decide_suite(j.cases, j.n, &options, &overall);
    if (!err)
        err = take_smallest(r, &j, out);
    if (err)
        return -ENOMEM;
    take_grade(out);
    take_advice(r, run, out);
    return 0;
}

/* ---- in words */

struct answer {
    struct report *r;
    struct pool *pool;
    size_t run;
    struct document *d;
};

static const char *disturbed_text(const struct answer *s, const struct trust *t)
{
    const char *by = "";

    if (t->steal_percent >= 1)
        by = show_joined(s->pool, by, pool_text(s->pool, "steal %.0f %%", t->steal_percent));
    else if (t->stolen)
        by = "steal";
    if (t->clock_percent >= 5)
        by = show_joined(s->pool, by, pool_text(s->pool, "clock %.0f %%", t->clock_percent));
    if (t->quota_ms > 0)
        by = show_joined(s->pool, by, "a CPU quota held it");
    if (t->throttled)
        by = show_joined(s->pool, by, "heat throttled it");
    if (!*by && t->switched)
        by = "other processes ran in between";
    return pool_text(s->pool, "disturbed: %zu of %zu rows%s%s%s", t->disturbed, t->rows,
                     *by ? " (" : "", by, *by ? ")" : "");
}

/* What only says where the rows go, and how often each case is launched. */
static bool is_left_out(const char *word)
{
    static const char *const names[] = {"--out", "-o", "--repeat"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        size_t n = strlen(names[i]);

        if (!strncmp(word, names[i], n) && (!word[n] || word[n] == '='))
            return true;
    }
    return false;
}

/* The run's command, to be typed again without these; "" where it is not known. */
static const char *run_again(const struct answer *s)
{
    const json_t *meta = s->r->runs[s->run].meta, *command = json_object_get(meta, "command");
    const char *suite = meta_text(meta, "suite"), *text = "plumb";

    if (json_array_size(command) < 3)
        return *suite ? pool_text(s->pool, "plumb run %s", shell_word(s->pool, suite)) : "";
    for (size_t i = 1; i < json_array_size(command); i++) {
        const char *word = json_string_value(json_array_get(command, i));

        if (!word || !strcmp(word, "--resume")) /* it names a folder, and no suite */
            return "";
        if (!is_left_out(word))
            text = pool_text(s->pool, "%s %s", text, shell_word(s->pool, word));
        else if (!strchr(word, '='))
            i++;
    }
    return text;
}

/* The median is that of cases which show no loss. */
static bool is_of_single(const struct trust *t)
{
    return 2 * t->single >= t->cases;
}

/* The widest spread of any case decides all of them. */
static bool is_of_few(const struct trust *t)
{
    return t->launches < DECIDE_FEW_LAUNCHES;
}

static const char *no_advice_text(const struct answer *s, const struct trust *t)
{
    return t->disturbed ? "measure again when quieter: at night, no neighbours"
                        : pool_text(s->pool, "for %.0f %% each case needs more than %d launches",
                                    100 * t->next, TRUST_REPEATS_MAX);
}

static void advise(const struct answer *s, const struct trust *t)
{
    const char *gain = "to see any loss", *command = run_again(s);

    if (isnan(t->next))
        return;
    if (!t->repeats) {
        document_answer_more(s->d, no_advice_text(s, t), "");
        return;
    }
    if (!is_of_single(t))
        gain = is_of_few(t) ? "to see smaller losses"
                            : pool_text(s->pool, "for %.0f %%", 100 * t->next);
    if (!isnan(t->minutes))
        gain = pool_text(s->pool, "%s in about %.0f min", gain, fmax(1, ceil(t->minutes)));
    document_answer_more(
        s->d,
        *command ? gain : pool_text(s->pool, "%s: %zu launches of each case", gain, t->repeats),
        *command ? pool_text(s->pool, "%s --repeat %zu", command, t->repeats) : "");
}

static const char *launch_count(const struct answer *s, const struct trust *t)
{
    return t->fewest_launches < t->most_launches
               ? pool_text(s->pool, "%zu to %zu launches", t->fewest_launches, t->most_launches)
               : pool_text(s->pool, "%zu launches", t->launches);
}

/* To two digits. A loss beyond a grade's bound never reads as that bound. */
static double rounded_up(double percent)
{
    double step = percent > 10 ? 1 : percent > 1 ? 0.1 : 0.01;

    return step * ceil(percent / step - 1e-6);
}

/* A case of a single launch shows nothing. */
static const char *trust_text(const struct answer *s, const struct trust *t)
{
    if (t->single == t->cases)
        return "a single launch of each case shows no loss";
    if (is_of_single(t))
        return pool_text(s->pool, "%zu of %s have a single launch, which shows no loss", t->single,
                         show_count(s->pool, t->cases, "case"));
    return pool_text(s->pool, "smallest detectable loss %.3g %%", rounded_up(100 * t->smallest));
}

/* The cases that the grade rests on. */
static const char *trust_cases(const struct answer *s, const struct trust *t)
{
    const char *cases = show_count(s->pool, t->cases, "case");

    if (t->single == t->cases)
        return cases;
    return is_of_single(t) ? ""
                           : pool_text(s->pool, "%s%s of %s", is_of_few(t) ? "" : "median of ",
                                       cases, launch_count(s, t));
}

int trust_answer(struct report *r, size_t run, struct document *d)
{
    const struct answer in = {r, &r->pool, run, d}, *s = &in;
    struct trust t;
    char grade[2] = "";

    if (trust_make(s->r, s->run, &t))
        return -ENOMEM;
    if (!t.grade) {
        document_answer(s->d, "Trust", "none", TONE_LOW,
                        "no judged case was measured on this machine");
        return 0;
    }
    grade[0] = t.grade;
    document_answer(s->d, "Trust", pool_text(s->pool, "%s", grade),
                    t.grade == 'D' ? TONE_LOW : TONE_NONE, trust_text(s, &t));
    document_answer_aside(s->d, " (", trust_cases(s, &t), ")");
    if (t.disturbed)
        document_answer_more(s->d, disturbed_text(s, &t), "");
    advise(s, &t);
    return 0;
}
