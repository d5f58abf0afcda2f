/* SPDX-License-Identifier: Apache-2.0 */
/* A history in characters. */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/text.h"
#include "harness/compare/compare.h"
#include "harness/document/utf8.h"
#include "harness/history/history.h"
#include "harness/history/history_db.h"

#define SPARK_LEVELS 8
static const char *const blocks[SPARK_LEVELS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const plain[SPARK_LEVELS] = {"_", ".", "-", "=", "+", "*", "%", "#"};

static size_t column_of(size_t i, size_t n, size_t width)
{
    return n ? i * width / n : 0;
}

static void trend_spark(const struct trend *t, bool utf8, char *line, char *marks)
{
    size_t width = t->n < TREND_SPARK_WIDTH ? t->n : TREND_SPARK_WIDTH, begin = 0;
    double column[TREND_SPARK_WIDTH], low = INFINITY, high = -INFINITY;

    for (size_t c = 0; c < width; c++) {
        size_t end = begin;

        while (end < t->n && column_of(end, t->n, width) == c)
            end++;
        /* The mean of the values of one column; NaN: none is there. */
        double sum = 0;
        size_t n = 0;

        for (size_t i = begin; i < end; i++) {
            if (isnan(t->values[i]))
                continue;
            sum += t->values[i];
            n++;
        }
        column[c] = n ? sum / (double)n : NAN;
        low = fmin(low, column[c]);
        high = fmax(high, column[c]);
        begin = end;
    }
    *line = '\0';
    for (size_t c = 0; c < width; c++) {
        int level = high > low ? (int)((column[c] - low) / (high - low) * SPARK_LEVELS) : 3;

        level = level < SPARK_LEVELS ? level : SPARK_LEVELS - 1;
        strcat(line, isnan(column[c]) ? " " : utf8 ? blocks[level] : plain[level]);
    }
    memset(marks, ' ', width);
    marks[width] = '\0';
    for (size_t i = 0; i < t->n_points; i++) {
        size_t at = column_of(t->points[i].at, t->n, width);
        size_t end = column_of(t->points[i].end, t->n, width);

        marks[at] = '^';
        for (size_t c = at + 1; c <= end; c++)
            marks[c] = '-';
    }
    for (; width && marks[width - 1] == ' '; width--)
        marks[width - 1] = '\0';
}

void trend_levels_text(const struct trend *t, const struct change_point *p, char *text, size_t len)
{
    snprintf(text, len, "%.4g to %.4g %s", p->before, p->after, t->series->unit);
}

void trend_change_text(const struct change_point *p, char *text, size_t len)
{
    snprintf(text, len, "%+.1f %% (%+.1f to %+.1f %%)", 100 * (p->ratio - 1), 100 * (p->low - 1),
             100 * (p->high - 1));
}

/* "step"; "slip" */
static const char *trend_kind(const struct change_point *p)
{
    return p->kind == CHANGE_SLIP ? "slip" : "step";
}

void trend_a_run_text(const struct change_point *p, char *text, size_t len)
{
    *text = '\0';
    if (p->kind == CHANGE_SLIP)
        snprintf(text, len, "%+.2g %% a run (%+.2g to %+.2g %%)", 100 * (p->a_run - 1),
                 100 * (p->a_run_low - 1), 100 * (p->a_run_high - 1));
}

void trend_end_text(const struct trend *t, const struct change_point *p, char *text, size_t len)
{
    *text = '\0';
    if (p->kind == CHANGE_SLIP)
        snprintf(text, len, "to run %s (%s)%s", t->runs[p->end]->name, t->runs[p->end]->started_utc,
                 p->goes_on ? ", and may go on" : "");
}

void trend_run_text(const struct trend *t, const struct change_point *p, char *text, size_t len)
{
    const struct history_run *run = t->runs[p->at];

    snprintf(text, len, "%s (%s, plumb %s%s%s)", run->name, run->started_utc, run->version,
             *run->commit ? " " : "", run->commit);
}

void trend_put(FILE *out, const char *text)
{
    size_t n, used;

    for (; *text; text += used) {
        const char *c = utf8_printable(text, &n, &used);

        fwrite(c, 1, n, out);
    }
}

static void print_point(FILE *out, struct pool *pool, const struct trend *t, size_t point)
{
    const struct change_point *p = &t->points[point];
    const struct trend_step *step = &t->steps[point];
    char change[96], levels[96], a_run[96], run[512], end[512];
    bool slip = p->kind == CHANGE_SLIP;

    trend_change_text(p, change, sizeof(change));
    trend_levels_text(t, p, levels, sizeof(levels));
    trend_a_run_text(p, a_run, sizeof(a_run));
    trend_run_text(t, p, run, sizeof(run));
    trend_end_text(t, p, end, sizeof(end));
    fprintf(out, "    %s%s: %s, %s%s%s\n      from run ", trend_is_worse(t, p) ? "worse" : "better",
            slip ? ", a slip" : "", change, levels, slip ? ", " : "", a_run);
    trend_put(out, run);
    if (p->at_low < p->at_high)
        fprintf(out, "\n      or a run near it, %.10s to %.10s", t->runs[p->at_low]->started_utc,
                t->runs[p->at_high]->started_utc);
    fputs(slip ? "\n      " : "", out);
    trend_put(out, end);
    for (size_t i = 0; i < step->n; i++) {
        fputs("\n      ", out);
        trend_put(out, trend_differ_sentence(pool, t, &step->all[i], i == 0));
    }
    fprintf(out, "\n      could be detected %zu runs later, with that of %.10s\n", p->seen - p->at,
            t->runs[p->seen]->started_utc);
}

static void print_trend(FILE *out, struct pool *pool, const struct trend *t, bool utf8)
{
    char line[TREND_SPARK_BYTES], marks[TREND_SPARK_BYTES];

    trend_spark(t, utf8, line, marks);
    fputs("  ", out);
    trend_put(out, t->series->label);
    fprintf(out, "\n    %s", line);
    if (!t->n_points && t->n_values)
        fprintf(out, "  %.4g %s,", trend_level(t, 0), t->series->unit);
    if (!t->n_points)
        fprintf(out, "%s%zu run%s%s", t->n_values ? " " : "  ", t->n_values,
                t->n_values == 1 ? "" : "s",
                t->n_values < CHANGE_FIRST + CHANGE_SHORT ? ": too few to tell" : "");
    fprintf(out, "\n%s%s%s", t->n_points ? "    " : "", marks, t->n_points ? "\n" : "");
    if (t->n_missing) {
        fputs(t->now ? "    unit: " : "    missing: ", out);
        trend_put(out, trend_missing_text(pool, t));
        fputc('\n', out);
    }
    if (t->n_gone)
        fprintf(out, "    in %zu more run%s all launches are left out, as " STEAL_WHY "\n",
                t->n_gone, t->n_gone == 1 ? "" : "s");
    for (size_t i = 0; i < t->n_points; i++)
        print_point(out, pool, t, i);
}

void trends_count_text(const struct trends *t, char *text, size_t len)
{
    if (t->n_short == t->n && !t->n_missing) {
        size_t most = 0;

        for (size_t i = 0; i < t->n; i++)
            most = t->all[i].n_values > most ? t->all[i].n_values : most;
        snprintf(text, len, "Undecided: %zu run%s, and at least %d are needed to find a change",
                 most, most == 1 ? "" : "s", CHANGE_FIRST + CHANGE_SHORT);
        return;
    }
    snprintf(text, len, "%zu of %zu case%s changed level in %zu run%s, %.10s to %.10s",
             t->n_changed, t->n, t->n == 1 ? "" : "s", t->n_runs, t->n_runs == 1 ? "" : "s",
             t->first, t->last);
}

#define NAMED_MAX 3 /* cases, in a remark */

/* Cases without a value in the newest run, by name: of those whose unit is another one since, or of
 * the others. Since when, the case's own line says. */
static const char *missing_remark(struct pool *pool, const struct trends *t, bool unit)
{
    const char *names = "";
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct trend *one = &t->all[i];

        if (!one->n_missing || (one->now != NULL) != unit)
            continue;
        if (n++ < NAMED_MAX)
            names = pool_text(pool, "%s%s%s", names, *names ? "; " : "", one->series->label);
    }
    if (!n)
        return NULL;
    if (n > NAMED_MAX)
        names = pool_text(pool, "%s; and %zu more", names, n - NAMED_MAX);
    return pool_text(
        pool, unit ? "%zu case%s another unit: %s" : "%zu case%s no value in the newest run: %s", n,
        n == 1 ? " has" : "s have", names);
}

/* A host's and suite's newest run that plumb check did not take for a baseline. */
static const char *newest_remark(struct pool *pool, const struct trends *t)
{
    const struct history *h = t->history;
    const struct history_run *run = NULL;

    for (size_t i = 0; t->n && i < h->n_runs; i++)
        if (!strcmp(h->runs[i].host, t->all[0].series->host) &&
            !strcmp(h->runs[i].suite, t->all[0].series->suite))
            run = &h->runs[i];
    if (!h->judged || !run || run->good)
        return NULL;
    return pool_text(pool,
                     "the newest run, %s (%.10s), is no baseline: plumb check found a loss, proven "
                     "or likely, or a fault in it",
                     run->name, run->started_utc);
}

/* Levels of two machines are no changes of one. */
static const char *machines_remark(struct pool *pool, const struct trends *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const char *machines = trends_machines(t, t->all[i].series);

        if (*machines)
            return pool_text(pool,
                             "two machines have the name %s in turn (%s): what differs between "
                             "them is shown as a change; give each a name of its own",
                             t->all[i].series->host, machines);
    }
    return NULL;
}

static size_t add_remark(const char **remarks, size_t n, const char *remark)
{
    if (remark)
        remarks[n++] = remark;
    return n;
}

size_t trends_remarks(const struct trends *t, const char **remarks)
{
    struct pool *pool = &t->history->pool;
    size_t n = 0, left_out = t->history->n_left_out;

    n = add_remark(remarks, n, missing_remark(pool, t, false));
    n = add_remark(remarks, n, missing_remark(pool, t, true));
    n = add_remark(remarks, n, newest_remark(pool, t));
    n = add_remark(remarks, n, machines_remark(pool, t));
    if (t->n_short)
        remarks[n++] = pool_text(pool, "%s fewer than %d runs: too few to find a change",
                                 t->n == 1 ? "it has"
                                           : pool_text(pool, "%zu of them %s", t->n_short,
                                                       t->n_short == 1 ? "has" : "have"),
                                 CHANGE_FIRST + CHANGE_SHORT);
    if (t->n_bad)
        remarks[n++] =
            pool_text(pool, "%zu case%s values that are no number above 0: these are left out",
                      t->n_bad, t->n_bad == 1 ? " has" : "s have");
    if (t->n_taken) {
        const char *gone =
            t->n_gone ? pool_text(pool, "; in %zu run%s a case has none left, and no value",
                                  t->n_gone, t->n_gone == 1 ? "" : "s")
                      : "";

        remarks[n++] = pool_text(pool, "in %zu case%s launches are left out, as " STEAL_WHY "%s",
                                 t->n_taken, t->n_taken == 1 ? "" : "s", gone);
    }
    if (left_out)
        remarks[n++] = pool_text(pool, "%zu run folder%s damaged, or cannot be read, and left out",
                                 left_out, left_out == 1 ? " is" : "s are");
    return n;
}

void trends_print(FILE *out, const struct trends *t, bool all, bool utf8)
{
    const struct history_series *last = NULL;

    for (size_t i = 0; i < t->n; i++) {
        if (!all && !t->all[i].n_points && !t->all[i].n_missing)
            continue;
        /* A host and suite of its own begins. */
        bool other = !last || strcmp(t->all[i].series->host, last->host) ||
                     strcmp(t->all[i].series->suite, last->suite);

        if (other) {
            fputs("\nhost ", out);
            trend_put(out, t->all[i].series->host);
            fputs(", suite ", out);
            trend_put(out, t->all[i].series->suite);
            fputc('\n', out);
        }
        if (other || strcmp(t->all[i].series->pipe, last->pipe)) {
            fputc('\n', out);
            trend_put(out, t->all[i].series->pipe);
            fputc('\n', out);
        }
        print_trend(out, &t->history->pool, &t->all[i], utf8);
        last = t->all[i].series;
    }
    const char *remarks[TRENDS_REMARKS];
    size_t n = trends_remarks(t, remarks);
    char text[256];

    trends_count_text(t, text, sizeof(text));
    fprintf(out, "\n%s", text);
    if (t->n_quiet)
        fprintf(out, "; in %zu no change was found%s", t->n_quiet,
                all ? "" : " (--all shows them)");
    fputc('\n', out);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s\n", remarks[i]);
}

/* ---- A history for programs: CSV with a line a change, and JSON with every case ---- */

#define JSON_SCHEMA 1
#define DIGITS      12 /* of a figure: 0.05, and not 0.050000000000000003 */

static void csv_change(FILE *out, struct pool *pool, const struct trend *t, size_t point)
{
    const struct change_point *p = &t->points[point];
    const struct trend_differ *d = &t->steps[point].all[0];
    const char *texts[] = {t->series->host,
                           t->series->suite,
                           t->series->pipe,
                           t->series->key,
                           t->series->label,
                           t->series->unit,
                           trend_is_worse(t, p) ? "worse" : "better",
                           t->runs[p->at]->name,
                           t->runs[p->at]->started_utc,
                           t->runs[p->at]->version,
                           t->runs[p->at]->commit,
                           t->runs[p->at_low]->started_utc,
                           t->runs[p->at_high]->started_utc,
                           t->runs[p->seen]->name};
    const double numbers[] = {p->before, p->after, p->ratio, p->low, p->high, p->p};

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        csv_print(out, texts[i]);
        fputc(',', out);
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        csv_print_number(out, numbers[i]);
        fputc(',', out);
    }
    csv_print(out, trend_differ_text(pool, d, SIZE_MAX));
    /* What a step has not is empty. */
    const double rates[] = {p->a_run, p->a_run_low, p->a_run_high};
    bool slip = p->kind == CHANGE_SLIP;
    const char *slip_texts[] = {trend_kind(p), slip ? t->runs[p->end]->name : "",
                                slip ? t->runs[p->end]->started_utc : "",
                                !slip        ? ""
                                : p->goes_on ? "yes"
                                             : "no"};

    for (size_t k = 0; k < sizeof(slip_texts) / sizeof(*slip_texts); k++) {
        fputc(',', out);
        csv_print(out, slip_texts[k]);
    }
    for (size_t k = 0; k < sizeof(rates) / sizeof(*rates); k++) {
        fputc(',', out);
        if (slip)
            csv_print_number(out, rates[k]);
    }
    fputc('\n', out);
}

void trends_csv(FILE *out, const struct trends *t)
{
    fputs("host,suite,pipe,key,label,unit,direction,run,started_utc,version,commit,earliest_utc,"
          "latest_utc,seen_run,before,after,ratio,ratio_low,ratio_high,p,differences,kind,end_run,"
          "end_utc,goes_on,ratio_a_run,ratio_a_run_low,ratio_a_run_high\n",
          out);
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->all[i].n_points; k++)
            csv_change(out, &t->history->pool, &t->all[i], k);
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Bytes that are no UTF-8 would be refused by jansson. */
static json_t *text(struct pool *pool, const char *from)
{
    return json_string(view_printable(pool, from));
}

static json_t *run_json(struct pool *pool, const struct history_run *run)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "name", text(pool, run->name), "started_utc",
                     text(pool, run->started_utc), "version", text(pool, run->version), "commit",
                     text(pool, run->commit));
}

/* null: a step. */
static json_t *slip_json(struct pool *pool, const struct trend *t, const struct change_point *p)
{
    if (p->kind != CHANGE_SLIP)
        return json_null();
    return json_pack("{s:o, s:b, s:i, s:o, s:o, s:o}", "end", run_json(pool, t->runs[p->end]),
                     "goes_on", p->goes_on, "runs", (int)(p->end - p->at + 1), "ratio_a_run",
                     number(p->a_run), "ratio_a_run_low", number(p->a_run_low), "ratio_a_run_high",
                     number(p->a_run_high));
}

static json_t *change_json(struct pool *pool, const struct trend *t, size_t point)
{
    const struct change_point *p = &t->points[point];
    json_t *steps = json_array();

    for (size_t i = 0; i < t->steps[point].n; i++) {
        const struct trend_differ *d = &t->steps[point].all[i];
        json_t *all = json_array();

        for (size_t k = 0; k < d->n; k++)
            json_array_append_new(
                all, json_pack("{s:o, s:o, s:o, s:o, s:b}", "what", text(pool, d->all[k].what),
                               "before", text(pool, d->all[k].a), "after", text(pool, d->all[k].b),
                               "pipes", text(pool, d->all[k].pipes), "may_weigh", k < d->n_near));
        json_array_append_new(
            steps,
            json_pack("{s:o, s:o, s:o, s:o}", "run", run_json(pool, t->runs[d->at]), "run_before",
                      d->before == SIZE_MAX ? json_null() : run_json(pool, t->runs[d->before]),
                      "unsteady", text(pool, d->unsteady), "differences", all));
    }
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                     "kind", trend_kind(p), "direction", trend_is_worse(t, p) ? "worse" : "better",
                     "run", run_json(pool, t->runs[p->at]), "earliest",
                     run_json(pool, t->runs[p->at_low]), "latest",
                     run_json(pool, t->runs[p->at_high]), "seen", run_json(pool, t->runs[p->seen]),
                     "before", number(p->before), "after", number(p->after), "ratio",
                     number(p->ratio), "ratio_low", number(p->low), "ratio_high", number(p->high),
                     "p", number(p->p), "runs_later", json_integer((json_int_t)(p->seen - p->at)),
                     "slip", slip_json(pool, t, p), "differing", steps);
}

int trends_json(FILE *out, const struct trends *t)
{
    const struct history *h = t->history;
    json_t *cases = json_array(), *left = json_array(), *said = json_array(), *all;
    const char *remarks[TRENDS_REMARKS];
    size_t n_remarks = trends_remarks(t, remarks);
    bool whole = true;

    for (size_t i = 0; i < n_remarks; i++)
        json_array_append_new(said, text(&t->history->pool, remarks[i]));

    for (size_t i = 0; i < h->n_left_out; i++)
        json_array_append_new(left, text(&t->history->pool, h->left_out[i]));
    for (size_t i = 0; i < t->n; i++) {
        const struct history_series *s = t->all[i].series;
        json_t *changes = json_array(), *values = json_array();

        for (size_t k = 0; k < t->all[i].n_points; k++)
            json_array_append_new(changes, change_json(&t->history->pool, &t->all[i], k));
        for (size_t k = 0; k < t->all[i].n; k++)
            json_array_append_new(values,
                                  json_pack("{s:o, s:o, s:o, s:o}", "run",
                                            text(&t->history->pool, t->all[i].runs[k]->name),
                                            "value", number(t->all[i].values[k]), "taken_launches",
                                            json_integer((json_int_t)t->all[i].n_taken[k]),
                                            "taken_value", number(t->all[i].taken[k])));
        whole = !json_array_append_new(
                    cases,
                    json_pack(
                        "{s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:I, s:o, s:o, s:o}", "host",
                        text(&t->history->pool, s->host), "suite",
                        text(&t->history->pool, s->suite), "pipe", text(&t->history->pool, s->pipe),
                        "key", text(&t->history->pool, s->key), "label",
                        text(&t->history->pool, s->label), "unit", text(&t->history->pool, s->unit),
                        "higher_is_better", s->higher_is_better, "too_few_runs",
                        t->all[i].n_values < CHANGE_FIRST + CHANGE_SHORT,
                        "newest_runs_without_value", (json_int_t)t->all[i].n_missing, "unit_since",
                        t->all[i].now ? text(&t->history->pool, t->all[i].now->unit) : json_null(),
                        "changes", changes, "values", values)) &&
                whole;
    }
    all = json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "schema", JSON_SCHEMA,
                    "runs", (json_int_t)t->n_runs, "cases_changed", (json_int_t)t->n_changed,
                    "cases_with_too_few_runs", (json_int_t)t->n_short, "cases_with_taken_launches",
                    (json_int_t)t->n_taken, "runs_with_taken_cases", (json_int_t)t->n_gone,
                    "cases_without_value_in_the_newest_run", (json_int_t)t->n_missing,
                    "runs_left_out", left, "remarks", said, "cases", cases);
    whole = whole && !json_object_set_new(all, "accepted", history_accepted_json(t->history)) &&
            !json_dumpf(all, out, JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS)) &&
            fputc('\n', out) != EOF;
    json_decref(all);
    return whole ? 0 : -EIO;
}
