/* SPDX-License-Identifier: Apache-2.0 */
/* A history as a page that holds all it shows. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/program.h"
#include "core/text.h"
#include "harness/document/document.h"
#include "harness/document/html.h"
#include "harness/history/history.h"
#include "harness/report/assets.h"

/* ---- The plot of one case's history: values, levels as lines, a mark at the run of each step
 * ---- */

#define DAY_S     86400.0
#define TICKS     5
#define DENSE     200 /* runs */
#define GAP       5.0 /* times the mean time between runs */
#define NOT_TAKEN NAN

/* Seconds since 1970; NaN where it is no time. */
static double seconds_of(const char *utc)
{
    struct tm tm = {0};

    if (!strptime(utc, "%Y-%m-%dT%H:%M:%S", &tm))
        return NAN;
    return (double)timegm(&tm);
}

/* x of run i: days since the first, or the run's number where a start is not known. */
static double *places(struct pool *pool, const struct trend *t)
{
    double *x = pool_alloc(pool, t->n, sizeof(*x)), first = seconds_of(t->runs[0]->started_utc);
    bool known = true;

    for (size_t i = 0; i < t->n; i++) {
        x[i] = (seconds_of(t->runs[i]->started_utc) - first) / DAY_S;
        known = known && !isnan(x[i]);
    }
    for (size_t i = 0; !known && i < t->n; i++)
        x[i] = (double)i;
    return x;
}

static struct plot_point *draw(struct plot_point *to, double x_begin, double begin, double x_end,
                               double end)
{
    *to++ = (struct plot_point){x_begin, begin, NOT_TAKEN, NOT_TAKEN};
    *to++ = (struct plot_point){x_end, end, NOT_TAKEN, NOT_TAKEN};
    *to++ = (struct plot_point){x_end, NAN, NOT_TAKEN, NOT_TAKEN};
    return to;
}

/* Two ends a segment, and a gap behind it; a slip leads to the level behind it. */
static void add_levels(struct pool *pool, const struct trend *t, const double *x,
                       struct plot_line *line)
{
    struct plot_point *points = pool_alloc(pool, 6 * (t->n_points + 1), sizeof(*points));
    struct plot_point *next = points;

    for (size_t s = 0; s <= t->n_points; s++) {
        const struct change_point *p = s ? &t->points[s - 1] : NULL;
        size_t begin = p ? p->end : 0, end = s < t->n_points ? t->points[s].at - 1 : t->n - 1;
        double level = trend_level(t, s);

        if (p && p->kind == CHANGE_SLIP)
            next = draw(next, x[p->at - 1], p->before, x[p->end], p->after);
        next = draw(next, x[begin < end ? begin : end], level, x[end], level);
    }
    *line = (struct plot_line){.label = "level",
                               .points = points,
                               .n = (size_t)(next - points),
                               .colour = 1,
                               .plain = true};
}

/* Runs that say nothing of this machine are shown, and hollow. */
static void add_taken(struct pool *pool, const struct trend *t, const double *x,
                      struct plot_line *line)
{
    struct plot_point *points = pool_alloc(pool, t->n, sizeof(*points));

    *line = (struct plot_line){
        .label = "others took the CPU", .points = points, .apart = true, .dashed = true};
    for (size_t i = 0; i < t->n; i++)
        if (!isnan(t->taken[i]))
            points[line->n++] = (struct plot_point){x[i], t->taken[i], NOT_TAKEN, NOT_TAKEN};
}

/* As short as tells the runs apart, so that labels do not touch: a time of day, a day of the year,
 * a month. The axis' own label has the whole days. */
static const char *date_text(struct pool *pool, const char *utc, double days)
{
    static const struct {
        double days; /* up to so many between the first run and the last */
        size_t at;   /* in 2026-01-31T02:00:00Z */
        int n;
    } shapes[] = {{1.5, 11, 5}, {365, 5, 5}, {INFINITY, 0, 7}};
    size_t i = 0;

    while (days > shapes[i].days)
        i++;
    return strlen(utc) < 16 ? utc : pool_text(pool, "%.*s", shapes[i].n, utc + shapes[i].at);
}

/* All lives in the history's pool. */
static void trend_plot(const struct trends *all, const struct trend *t, size_t number,
                       struct plot *plot)
{
    struct pool *pool = &all->history->pool;
    struct plot_line *lines = pool_alloc(pool, 3, sizeof(*lines));
    double *x = places(pool, t);
    const char *first = t->runs[0]->started_utc, *last = t->runs[t->n - 1]->started_utc;

    *plot = (struct plot){
        .name = pool_text(pool, "history-%03zu", number),
        .title = t->series->label,
        .x_label = strncmp(first, last, 10) ? pool_text(pool, "runs of %.10s to %.10s", first, last)
                                            : pool_text(pool, "runs of %.10s", first),
        .y_label = t->series->unit,
        .lines = lines,
        .n_lines = 2 + (t->n_gone > 0),
    };
    /* Many runs make a line, few are points. A line does not bridge a time without runs. */
    struct plot_line *line = &lines[0];
    struct plot_point *points = pool_alloc(pool, 2 * t->n, sizeof(*points));

    *line = (struct plot_line){.label = "runs", .points = points, .apart = t->n <= DENSE};
    for (size_t i = 0; i < t->n; i++) {
        if (!line->apart &&
            (i && x[i] - x[i - 1] > GAP * (x[t->n - 1] - x[0]) / (double)(t->n - 1)))
            points[line->n++] = (struct plot_point){x[i - 1], NAN, NOT_TAKEN, NOT_TAKEN};
        points[line->n++] = (struct plot_point){x[i], t->values[i], NOT_TAKEN, NOT_TAKEN};
    }
    add_levels(pool, t, x, &lines[1]);
    add_taken(pool, t, x, &lines[2]);
    struct plot_mark *marks = pool_alloc(pool, t->n_points, sizeof(*marks));

    plot->marks = marks;
    plot->n_marks = t->n_points;
    for (size_t i = 0; i < plot->n_marks; i++) {
        const struct change_point *p = &t->points[i];
        const char *utc = t->runs[p->at]->started_utc, *date = strlen(utc) > 5 ? utc + 5 : utc;

        /* Month and day: there is little room, and the axis has the year. */
        marks[i] = (struct plot_mark){
            .at = x[p->at],
            .label = pool_text(pool, "%.5s: %+.1f %%", date, 100 * (p->ratio - 1)),
            .brief = pool_text(pool, "%+.1f %%", 100 * (p->ratio - 1)),
        };
    }
    size_t n = t->n < TICKS ? t->n : TICKS;
    struct plot_tick *ticks = pool_alloc(pool, n, sizeof(*ticks));

    plot->ticks = ticks;
    plot->n_ticks = n;
    for (size_t i = 0; i < plot->n_ticks; i++) {
        size_t run = n > 1 ? i * (t->n - 1) / (n - 1) : 0;

        ticks[i] = (struct plot_tick){
            .at = x[run], .label = date_text(pool, t->runs[run]->started_utc, x[t->n - 1] - x[0])};
    }
}

#define DRAWN_MAX 60 /* plots of one page */

struct drawn {
    const struct trends *t;
    const struct trend *trends[DRAWN_MAX];
    struct plot plots[DRAWN_MAX];
    size_t n, left_out;
    char *folder, *fresh;
};

static void choose_those(struct drawn *d, bool changed)
{
    for (size_t i = 0; i < d->t->n; i++) {
        const struct trend *t = &d->t->all[i];

        if ((t->n_points > 0) != changed || !t->n_values)
            continue;
        if (d->n == DRAWN_MAX) {
            d->left_out++;
            continue;
        }
        d->trends[d->n] = t;
        trend_plot(d->t, t, d->n + 1, &d->plots[d->n]);
        d->n++;
    }
}

static void write_head(FILE *out)
{
    fputs("<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
          "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
          "<meta name='color-scheme' content='light dark'>\n"
          "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src "
          "'unsafe-inline'; img-src data:\">\n<link rel='icon' href='data:,'>\n"
          "<title>Plumbline history</title>\n<style>\n",
          out);
    fputs(asset_style, out);
    fputs(document_style, out);
    fputs("</style>\n</head>\n<body>\n", out);
}

/* ---- what the page says, as a document */

static const struct document_column change_columns[] = {
    {"Case", COLUMN_STAYS, false},          {"Direction", COLUMN_STAYS, false},
    {"Change (95 %)", COLUMN_STAYS, false}, {"Level", COLUMN_STAYS, false},
    {"From run", COLUMN_STAYS, false},      {"Begins (95 %)", COLUMN_STAYS, false},
    {"Host, suite", COLUMN_STAYS, false}};

static void add_change(struct document *d, struct document_table *table, struct pool *pool,
                       const struct trend *t, size_t point)
{
    const struct change_point *p = &t->points[point];
    const struct trend_step *step = &t->steps[point];
    char change[96], levels[96], a_run[96], run[512], end[512];
    bool worse = trend_is_worse(t, p), slip = p->kind == CHANGE_SLIP;
    struct cell *cells = document_row(table);

    trend_change_text(p, change, sizeof(change));
    trend_levels_text(t, p, levels, sizeof(levels));
    trend_a_run_text(p, a_run, sizeof(a_run));
    trend_run_text(t, p, run, sizeof(run));
    trend_end_text(t, p, end, sizeof(end));
    cells[0] = cell_text(t->series->label);
    cells[1] = cell_word(worse ? "worse" : "better", worse ? TONE_BAD : TONE_NONE);
    cells[2] = cell_text(pool_text(pool, "%s%s%s", change, slip ? ", a slip: " : "", a_run));
    cells[3] = cell_text(pool_text(pool, "%s", levels));
    cells[4] = cell_text(pool_text(pool, "%s%s%s", run, slip ? " " : "", end));
    cells[5] = cell_text(pool_text(pool, "between %s and %s", t->runs[p->at_low]->started_utc,
                                   t->runs[p->at_high]->started_utc));
    cells[6] = cell_text(pool_text(pool, "%s, %s", t->series->host, t->series->suite));
    for (size_t i = 0; i < step->n; i++)
        cell_note(&cells[4],
                  document_note(d, trend_differ_sentence(pool, t, &step->all[i], i == 0)));
}

static void add_head(struct document *d, const struct trends *t)
{
    struct pool *pool = &t->history->pool;
    const char *remarks[TRENDS_REMARKS];
    size_t n = trends_remarks(t, remarks);
    char text[256];

    trends_count_text(t, text, sizeof(text));
    document_paragraph(d, pool_text(pool, "%s", text));
    if (t->n_quiet)
        document_paragraph(
            d,
            pool_text(pool, "In %zu no change was found, which does not mean that there is none.",
                      t->n_quiet));
    for (size_t i = 0; i < n; i++)
        document_paragraph(d, pool_text(pool, "Note: %s.", remarks[i]));
    for (size_t i = 0; i < t->n; i++)
        if (t->all[i].n_missing)
            document_item(d, pool_text(pool, "%s: %s", t->all[i].series->label,
                                       trend_missing_text(pool, &t->all[i])));
}

static struct document *page_document(const struct trends *t)
{
    struct document *d = document_new(&t->history->pool);

    add_head(d, t);
    if (t->n_changed) {
        document_heading(d, 2, "Changes", "changes");
        struct document_table *table =
            document_table(d, change_columns, sizeof(change_columns) / sizeof(*change_columns));

        for (size_t i = 0; i < t->n; i++)
            for (size_t k = 0; k < t->all[i].n_points; k++)
                add_change(d, table, &t->history->pool, &t->all[i], k);
        document_notes(d);
    }
    if (t->history->n_accepted)
        document_heading(d, 2, "Accepted levels", "accepted");
    for (size_t i = 0; i < t->history->n_accepted; i++)
        document_item(
            d, pool_text(&t->history->pool, "host %s, suite %s: %s", t->history->accepted[i].host,
                         t->history->accepted[i].suite,
                         history_acceptance_text(&t->history->pool, &t->history->accepted[i])));
    return d;
}

static void write_page(FILE *out, const struct drawn *d)
{
    write_head(out);
    fputs("<header>\n<h1>Plumbline history</h1>\n</header>\n<main>\n", out);
    document_write_html(page_document(d->t), out);
    fputs("<section id='plots'>\n", out);
    if (d->n)
        fputs("<h2>Plots</h2>\n<div class='figures'>\n", out);
    for (size_t i = 0; i < d->n; i++) {
        const struct history_series *s = d->trends[i]->series;

        html_print(out, "<figure>\n<figcaption><b>%s</b> <span>%s, %s</span></figcaption>\n",
                   s->label, s->host, s->suite);
        plot_write_html(&d->t->history->pool, &d->plots[i], out);
        fprintf(
            out,
            "<p class='note'>Points: the geometric mean of a run's launches. Lines: the levels and "
            "slips.%s</p></figure>\n",
            d->trends[i]->n_gone
                ? " Hollow points: runs in all of whose launches other guests took "
                  "the CPU; they are in no level."
                : "");
    }
    if (d->n)
        fputs("</div>\n", out);
    if (d->left_out)
        html_print(out, "<p class='missing'>%zu more cases are not drawn: --case picks them.</p>\n",
                   d->left_out);
    fputs("</section>\n</main>\n<footer>Made by plumb " PLUMB_VERSION
          ". This page holds all that it shows.</footer>\n</body>\n</html>\n",
          out);
}

static int cannot(const char *path, int err, char *error, size_t len)
{
    snprintf(error, len, "cannot write '%s': %s", path, strerror(-err));
    return err;
}

/* Written beside, then renamed: a page is whole or the old one. */
static int replace_page(const char *path, const struct drawn *d, char *error, size_t len)
{
    struct stat st;
    bool device = !stat(path, &st) && !S_ISREG(st.st_mode); /* or a pipe: not to be replaced */
    FILE *out = fopen(device ? path : d->fresh, "we");

    if (!out)
        return cannot(path, -errno, error, len);
    write_page(out, d);
    int err = stream_finish(out);
    if (!err && !device && rename(d->fresh, path))
        err = -errno;
    if (err && !device)
        unlink(d->fresh);
    return err ? cannot(path, err, error, len) : 0;
}

int trends_html(const char *path, const struct trends *t, bool all, char *error, size_t len)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    int stem = (int)(dot && dot > (slash ? slash + 1 : path) ? dot - path : (long)strlen(path));
    struct drawn *d = xcalloc(1, sizeof(*d));

    d->t = t;
    d->folder = xasprintf("%.*s-plots", stem, path); /* history.html has history-plots */
    d->fresh = xasprintf("%s.new", path);
    choose_those(d, true);
    if (all)
        choose_those(d, false);
    int err = replace_page(path, d, error, len);
    if (!err && d->n)
        err = plot_write_files(&t->history->pool, d->plots, d->n, d->folder, error, len);
    free(d->folder);
    free(d->fresh);
    free(d);
    return err;
}
