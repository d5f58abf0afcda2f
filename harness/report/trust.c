/* SPDX-License-Identifier: Apache-2.0 */
/* The trust in a run: see summary.h. */
#include "harness/report/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "core/units.h"
#include "harness/decide/decide.h"
#include "harness/report/cases.h"
#include "harness/report/described.h"
#include "harness/report/headline.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define COMPARE_MARGIN 0.05
#define S_A_MINUTE     60
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

static bool has_samples(const struct report_rows *rows, size_t row)
{
    return !strcmp(row_text(rows, row, FIELD_ORIGIN), "measured") &&
           number_or_0(rows, row, FIELD_SAMPLES) > 0;
}

static void count_row(const struct report_rows *rows, size_t row, struct trust *t)
{
    double low = number_or_0(rows, row, FIELD_MHZ_LOW);
    double high = number_or_0(rows, row, FIELD_MHZ_HIGH);

    if (!has_samples(rows, row))
        return;
    t->rows++;
    if (!*row_text(rows, row, FIELD_DISTURBED))
        return;
    t->disturbed++;
    t->stolen += number_or_0(rows, row, FIELD_STEAL) > 1;
    t->quota_ms = fmax(t->quota_ms, number_or_0(rows, row, FIELD_QUOTA));
    t->throttled += number_or_0(rows, row, FIELD_THROTTLE) > 0;
    t->switched += number_or_0(rows, row, FIELD_INVOLUNTARY) > 0;
    if (high > 0)
        t->clock_percent = fmax(t->clock_percent, 100 * (high - low) / high);
}

/* The kernel counts steal in ticks: a share of few of them is no figure. Seconds are of one CPU: of
 * more than that there may have been no work. */
struct stolen {
    double cpu_s, steal_s;
};

static void take_steal(const struct stolen *s, struct trust *t)
{
    if (!(s->cpu_s * TICKS_A_SECOND < STEAL_TICKS))
        t->steal_percent = fmax(t->steal_percent, 100 * s->steal_s / s->cpu_s);
}

/* The metrics of one point stand in rows that follow each other, each with the same ledger. */
static bool is_same_point(const struct report_rows *rows, size_t row)
{
    static const enum row_field fields[] = {FIELD_CASE, FIELD_REPEAT, FIELD_ELAPSED};
    bool same = row > 0;

    for (size_t i = 0; same && i < sizeof(fields) / sizeof(*fields); i++)
        same = !strcmp(row_text(rows, row, fields[i]), row_text(rows, row - 1, fields[i]));
    return same;
}

static double elapsed_of(const struct report_rows *rows, size_t row)
{
    return is_same_point(rows, row) ? 0 : number_or_0(rows, row, FIELD_ELAPSED);
}

/* Launches of a case are alike: what is too short by itself is added up. */
static struct stolen steal_of_case(const struct report_rows *rows, const struct report_point *p,
                                   struct trust *t)
{
    struct stolen all = {0};

    for (size_t i = 0; i < p->n_rows; i++) {
        size_t row = p->rows[i];
        struct stolen one = {.cpu_s = elapsed_of(rows, row)};

        if (!has_samples(rows, row))
            continue;
        if (isnan(row_number(rows, row, FIELD_ELAPSED)))
            t->steal_percent = fmax(t->steal_percent, number_or_0(rows, row, FIELD_STEAL));
        one.steal_s = one.cpu_s * number_or_0(rows, row, FIELD_STEAL) / 100;
        take_steal(&one, t);
        all.cpu_s += one.cpu_s;
        all.steal_s += one.steal_s;
    }
    return all;
}

/* The cases that are too short by themselves count together. */
static void count_steal(const struct report *r, size_t run, struct trust *t)
{
    struct stolen rest = {0};

    for (size_t b = 0; b < r->n_benches; b++)
        for (size_t i = 0; i < r->benches[b].n_cases; i++) {
            struct stolen all =
                steal_of_case(&r->benches[b].rows[run], &r->benches[b].cases[i].points[run], t);

            take_steal(&all, t);
            if (all.cpu_s * TICKS_A_SECOND < STEAL_TICKS) {
                rest.cpu_s += all.cpu_s;
                rest.steal_s += all.steal_s;
            }
        }
    take_steal(&rest, t);
}

/* ---- the smallest loss */

struct judged {
    struct decide_case *cases;
    struct decide_run *runs; /* one a case: both sides of it */
    double *launches;        /* how many each has */
    size_t n;
};

#define TRUST_MARGIN 1e-4 /* a loss counts where it is proven, within any margin */
#define ALIKE_LEAST  4    /* fewer do not tell how places that are alike differ */

static bool counts(const struct report *r, const struct report_bench *b,
                   const struct report_case *c, size_t run)
{
    const struct report_point *p = &c->points[run];

    return p->n_values && point_is_measured(p) && described_is_judged(r, b, c);
}

/* Held against another run like this one: against itself. */
static void add_case(struct report *r, const struct report_bench *b, const struct report_case *c,
                     size_t run, struct judged *j)
{
    struct decide_run *of = &j->runs[j->n];
    const struct report_point *p = &c->points[run];
    double *values = pool_alloc(&r->pool, p->n_rows, sizeof(*values));

    *of = (struct decide_run){.values = values, .n = combine_values(&b->rows[run], p, values)};
    j->launches[j->n] = (double)of->n;
    j->cases[j->n++] = (struct decide_case){
        .a = {of, 1}, .b = {of, 1}, .margin = TRUST_MARGIN, .higher_is_better = c->more_is_better};
}

/* Those of a single launch that are held against others like them, as GPUs and pairs, are left out,
 * unless there are no others: it is by these that they are judged. */
static void find_cases(struct report *r, const struct comparisons *q, size_t run, struct judged *j,
                       struct trust *t)
{
    size_t most = 0;

    for (size_t b = 0; b < r->n_benches; b++)
        most += r->benches[b].n_cases;
    j->cases = pool_alloc(&r->pool, most, sizeof(*j->cases));
    j->runs = pool_alloc(&r->pool, most, sizeof(*j->runs));
    j->launches = pool_alloc(&r->pool, most, sizeof(*j->launches));
    for (int alike = 0; alike < 2 && !j->n; alike++)
        for (size_t b = 0; b < r->n_benches; b++)
            for (size_t i = 0; i < r->benches[b].n_cases; i++) {
                const struct report_bench *bench = &r->benches[b];
                const struct report_case *c = &bench->cases[i];
                bool left = c->points[run].n_values == 1 &&
                            comparisons_alike(q, bench, run, c) + 1 >= ALIKE_LEAST;

                if (!counts(r, bench, c, run))
                    continue;
                t->alike += left && !alike;
                if (!left || alike)
                    add_case(r, bench, c, run, j);
            }
}

/* What cannot be told could have hidden anything. */
static void take_smallest(struct report *r, const struct judged *j, struct trust *t)
{
    double *losses = pool_alloc(&r->pool, j->n, sizeof(*losses));

    for (size_t i = 0; i < j->n; i++)
        losses[i] = isnan(j->cases[i].detectable) ? 1 : j->cases[i].detectable;
    t->smallest = stats_median(losses, j->n);
    t->launches = t->most_launches = (size_t)stats_median(j->launches, j->n);
    t->fewest_launches = t->launches;
    for (size_t i = 0; i < j->n; i++) {
        t->single += j->runs[i].n == 1;
        t->fewest_launches = j->runs[i].n < t->fewest_launches ? j->runs[i].n : t->fewest_launches;
        t->most_launches = j->runs[i].n > t->most_launches ? j->runs[i].n : t->most_launches;
    }
}

/* ---- the grade, and what would be the next */

/* What the launches of a case of the plan took. */
struct spent {
    double seconds; /* in its rows */
    size_t launches;
    bool planned;
};

/* By the number of the case, up to n; the others' launches are counted under 0. */
static void add_rows(const struct report_rows *rows, struct spent *spent, size_t n)
{
    for (size_t i = 0; rows->table && i < rows->table->n_rows; i++) {
        uint64_t id;

        if (!units_parse_u64(row_text(rows, i, FIELD_CASE), &id) && id <= n)
            spent[id].seconds += elapsed_of(rows, i);
    }
}

static size_t add_launches(const struct table *plan, struct spent *spent)
{
    size_t state = table_column(plan, "state"), column = table_column(plan, "case"), done = 0;

    for (size_t i = 0; i < plan->n_rows; i++) {
        uint64_t id;

        if (units_parse_u64(table_cell(plan, i, column), &id) || id > plan->n_rows)
            id = 0;
        spent[id].planned = true;
        if (strcmp(table_cell(plan, i, state), "todo") != 0) {
            spent[id].launches++;
            done++;
        }
    }
    return done;
}

/* Some cases have fewer launches than others. What the rows do not have, such as the start of a
 * process, is spread over all launches. */
double trust_minutes(struct report *r, size_t run, double repeats)
{
    const struct table *plan = &r->runs[run].plan;
    struct spent *spent = pool_alloc(&r->pool, plan->n_rows + 1, sizeof(*spent));
    const json_t *cost = json_object_get(r->runs[run].meta, "harness_cost");
    double all = json_number_value(json_object_get(cost, "benchmarks_ms")) / 1000;
    double in_rows = 0, start, forecast = 0;
    size_t done;

    if (!(all > 0))
        return NAN;
    for (size_t b = 0; b < r->n_benches; b++)
        add_rows(&r->benches[b].rows[run], spent, plan->n_rows);
    done = add_launches(plan, spent);
    for (size_t i = 0; i <= plan->n_rows; i++)
        in_rows += spent[i].launches ? spent[i].seconds : 0;
    start = fmax(0, all - in_rows) / (double)done;
    for (size_t i = 0; i <= plan->n_rows; i++) {
        double own = spent[i].launches ? spent[i].seconds / (double)spent[i].launches : 0;

        forecast += spent[i].planned ? repeats * (start + own) : 0;
    }
    return done ? forecast / S_A_MINUTE : NAN;
}

static void take_advice(struct report *r, size_t run, struct trust *t)
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
    t->minutes = trust_minutes(r, run, repeats);
}

struct trust trust_make(struct report *r, const struct comparisons *q, size_t run)
{
    struct judged j = {0};
    struct decide_overall overall;
    const struct decide_options options = {0};
    struct trust t = {.smallest = NAN, .next = NAN, .minutes = NAN};

    for (size_t b = 0; b < r->n_benches; b++) {
        const struct report_rows *rows = &r->benches[b].rows[run];

        for (size_t i = 0; rows->table && i < rows->table->n_rows; i++)
            count_row(rows, i, &t);
    }
    count_steal(r, run, &t);
    find_cases(r, q, run, &j, &t);
    t.cases = j.n;
    if (!j.n)
        return t;
    decide_suite(j.cases, j.n, &options, &overall);
    take_smallest(r, &j, &t);
    t.grade = 'D';
    t.next = grades[GRADES - 1].loss;
    for (size_t i = GRADES; i-- > 0;)
        if (t.smallest <= grades[i].loss) {
            t.grade = grades[i].name;
            t.next = i ? grades[i - 1].loss : NAN;
        }
    take_advice(r, run, &t);
    return t;
}

/* ---- in words */

struct answer {
    struct report *r;
    struct pool *pool;
    size_t run;
    bool notes;
    struct document *d;
};

static void answer_noise(const struct answer *s, const struct trust *t)
{
    const char *by = "";

    if (!t->disturbed)
        return;
    if (t->steal_percent >= 1)
        by = show_joined(s->pool, by,
                         pool_text(s->pool, "CPU steal up to %.0f %%", t->steal_percent));
    else if (t->stolen)
        by = "CPU steal";
    if (t->clock_percent >= 5)
        by = show_joined(s->pool, by,
                         pool_text(s->pool, "clock varies by %.0f %%", t->clock_percent));
    if (t->quota_ms > 0)
        by = show_joined(s->pool, by, "a CPU quota held it");
    if (t->throttled)
        by = show_joined(s->pool, by, "heat throttled it");
    if (!*by)
        by = t->switched ? "other processes ran in between" : "disturbed";
    document_answer(s->d, "Noise", "", TONE_NONE,
                    pool_text(s->pool, "%s, in %zu of %zu rows", by, t->disturbed, t->rows));
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
    const char *suite = fact_name(meta, "suite"), *text = "plumb";

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

const char *trust_command(struct report *r, size_t run)
{
    const struct answer s = {r, &r->pool, run, false, NULL};
    const char *command = run_again(&s);

    return pool_text(&r->pool, "%s --repeat %d", *command ? command : "plumb run",
                     2 * DECIDE_FEW_LAUNCHES);
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

/* "; 5 %: --repeat 11, 10 min": what detects more, of the same command; with `notes` all of it. */
static const char *advice_text(const struct answer *s, const struct trust *t)
{
    const char *gain = is_of_single(t) ? "for any"
                       : is_of_few(t)  ? "for less"
                                       : pool_text(s->pool, "%.0f %%", 100 * t->next);
    const char *command = s->notes ? run_again(s) : "", *how;

    if (isnan(t->next))
        return "";
    if (!t->repeats)
        return t->disturbed
                   ? "; measure again when it is quiet"
                   : pool_text(s->pool, "; %s: more than %d repetitions", gain, TRUST_REPEATS_MAX);
    how = pool_text(s->pool, "%s%s--repeat %zu", command, *command ? " " : "", t->repeats);
    return isnan(t->minutes)
               ? pool_text(s->pool, "; %s: %s", gain, how)
               : pool_text(s->pool, "; %s: %s, %.0f min", gain, how, fmax(1, ceil(t->minutes)));
}

static const char *launch_count(const struct answer *s, const struct trust *t)
{
    return t->fewest_launches < t->most_launches
               ? pool_text(s->pool, "%zu to %zu repetitions", t->fewest_launches, t->most_launches)
               : pool_text(s->pool, "%zu repetitions", t->launches);
}

/* To two digits. A loss beyond a grade's bound never reads as that bound. */
static double rounded_up(double percent)
{
    double step = percent > 10 ? 1 : percent > 1 ? 0.1 : 0.01;

    return step * ceil(percent / step - 1e-6);
}

/* One of a single repetition detects nothing. */
static const char *trust_text(const struct answer *s, const struct trust *t)
{
    const char *cases = show_count(s->pool, t->cases, "case");

    if (t->single == t->cases)
        return pool_text(s->pool, "one repetition of each case detects no slowdown");
    if (is_of_single(t))
        return pool_text(s->pool, "%zu of %s have one repetition, which detects no slowdown",
                         t->single, cases);
    return pool_text(s->pool, "detects a slowdown of %.3g %% (median)",
                     rounded_up(100 * t->smallest));
}

void trust_answer(struct report *r, const struct comparisons *q, size_t run, bool notes,
                  struct document *d)
{
    const struct answer in = {r, &r->pool, run, notes, d}, *s = &in;
    const struct trust t = trust_make(r, q, run);

    if (!t.grade) {
        document_answer(s->d, "Sensitivity", "none", TONE_LOW,
                        "no case of this machine was measured");
        return;
    }
    document_answer(s->d, "Sensitivity", pool_text(s->pool, "%c", t.grade),
                    t.grade == 'D' ? TONE_LOW : TONE_NONE,
                    pool_text(s->pool, "%s%s", trust_text(s, &t), advice_text(s, &t)));
    if (notes)
        document_answer_more(s->d,
                             pool_text(s->pool, "it is that of the median case of %zu, %s", t.cases,
                                       launch_count(s, &t)),
                             "");
    if (notes && t.alike && t.alike != t.cases)
        document_answer_more(
            s->d,
            pool_text(s->pool, "%s of one repetition are compared only with their like in this run",
                      show_count(s->pool, t.alike, "case")),
            "");
    answer_noise(s, &t);
}
