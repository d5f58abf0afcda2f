/* SPDX-License-Identifier: Apache-2.0 */
/* A history in characters. */
#include <math.h>
#include <string.h>

#include "harness/compare/pairs.h"
#include "harness/history/trend.h"
#include "harness/report/utf8.h"

#define SPARK_LEVELS 8
static const char *const blocks[SPARK_LEVELS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const plain[SPARK_LEVELS] = {"_", ".", "-", "=", "+", "*", "%", "#"};

/* The mean of the values of one column; NaN: none is there. */
static double column_mean(const struct trend *t, size_t begin, size_t end)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = begin; i < end; i++) {
        if (isnan(t->values[i]))
            continue;
        sum += t->values[i];
        n++;
    }
    return n ? sum / (double)n : NAN;
}

static size_t column_of(size_t i, size_t n, size_t width)
{
    return n ? i * width / n : 0;
}

void trend_spark(const struct trend *t, bool utf8, char *line, char *marks)
{
    size_t width = t->n < TREND_SPARK_WIDTH ? t->n : TREND_SPARK_WIDTH, begin = 0;
    double column[TREND_SPARK_WIDTH], low = INFINITY, high = -INFINITY;

    for (size_t c = 0; c < width; c++) {
        size_t end = begin;

        while (end < t->n && column_of(end, t->n, width) == c)
            end++;
        column[c] = column_mean(t, begin, end);
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

const char *trend_kind(const struct change_point *p)
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
    fprintf(out, "\n      could be told %zu runs later, with that of %.10s\n", p->seen - p->at,
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
    if (t->n_gone)
        fprintf(out, "    in %zu more run%s all launches are left out, as " STEAL_WHY "\n",
                t->n_gone, t->n_gone == 1 ? "" : "s");
    for (size_t i = 0; i < t->n_points; i++)
        print_point(out, pool, t, i);
}

/* A host and suite of its own begins. */
static void print_place(FILE *out, const struct history_series *now,
                        const struct history_series *last)
{
    bool other = !last || strcmp(now->host, last->host) || strcmp(now->suite, last->suite);

    if (other) {
        fputs("\nhost ", out);
        trend_put(out, now->host);
        fputs(", suite ", out);
        trend_put(out, now->suite);
        fputc('\n', out);
    }
    if (other || strcmp(now->pipe, last->pipe)) {
        fputc('\n', out);
        trend_put(out, now->pipe);
        fputc('\n', out);
    }
}

void trends_count_text(const struct trends *t, char *text, size_t len)
{
    snprintf(text, len, "%zu of %zu case%s changed level in %zu run%s, %.10s to %.10s",
             t->n_changed, t->n, t->n == 1 ? "" : "s", t->n_runs, t->n_runs == 1 ? "" : "s",
             t->first, t->last);
}

const char *trends_of_them(const struct trends *t, size_t n, char *text, size_t len)
{
    snprintf(text, len, "%zu of them %s", n, n == 1 ? "has" : "have");
    return t->n == 1 ? "it has" : text;
}

const char *trends_taken_text(const struct trends *t, char *text, size_t len)
{
    int n = snprintf(text, len, "in %zu case%s launches are left out, as " STEAL_WHY, t->n_taken,
                     t->n_taken == 1 ? "" : "s");

    if (t->n_gone && (size_t)n < len)
        snprintf(text + n, len - (size_t)n, "; in %zu run%s a case has none left, and no value",
                 t->n_gone, t->n_gone == 1 ? "" : "s");
    return text;
}

const char *trends_left_out_text(const struct trends *t, char *text, size_t len)
{
    size_t n = t->history->n_left_out;

    snprintf(text, len, "%zu run folder%s damaged, or cannot be read, and left out", n,
             n == 1 ? " is" : "s are");
    return text;
}

static void print_end(FILE *out, const struct trends *t, bool all)
{
    size_t unchanged = t->n - t->n_changed;
    char text[256];

    trends_count_text(t, text, sizeof(text));
    fprintf(out, "\n%s", text);
    if (unchanged)
        fprintf(out, "; in %zu no change was found%s", unchanged, all ? "" : " (--all shows them)");
    fputc('\n', out);
    if (t->n_short)
        fprintf(out, "%s fewer than %d runs, in which no change can be told\n",
                trends_of_them(t, t->n_short, text, sizeof(text)), CHANGE_FIRST + CHANGE_SHORT);
    if (t->n_bad)
        fprintf(out, "%zu case%s values that are no number above 0: these are left out\n", t->n_bad,
                t->n_bad == 1 ? " has" : "s have");
    if (t->n_taken)
        fprintf(out, "%s\n", trends_taken_text(t, text, sizeof(text)));
    if (t->history->n_left_out)
        fprintf(out, "%s\n", trends_left_out_text(t, text, sizeof(text)));
}

void trends_print(FILE *out, const struct trends *t, bool all, bool utf8)
{
    const struct history_series *last = NULL;

    for (size_t i = 0; i < t->n; i++) {
        if (!all && !t->all[i].n_points)
            continue;
        print_place(out, t->all[i].series, last);
        print_trend(out, &t->history->pool, &t->all[i], utf8);
        last = t->all[i].series;
    }
    print_end(out, t, all);
}
