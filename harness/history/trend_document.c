/* SPDX-License-Identifier: Apache-2.0 */
/* A history as a document, for a terminal and as a page: see history.h. */
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
#include "harness/compare/pairs.h"
#include "harness/document/document.h"
#include "harness/document/html.h"
#include "harness/history/history.h"
#include "harness/report/assets.h"
#include "harness/report/show.h"

/* ---- The chart of one case: values, levels as lines, a mark at the run of each change ---- */

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

/* The lines: runs, levels, and runs that say nothing of this machine, which are hollow. */
static void add_lines(struct pool *pool, const struct trend *t, const double *x,
                      struct plot_line *lines)
{
    struct plot_point *runs = pool_alloc(pool, 2 * t->n, sizeof(*runs));
    struct plot_point *levels = pool_alloc(pool, 3 * (t->n_points + 1), sizeof(*levels));
    struct plot_point *taken = pool_alloc(pool, t->n, sizeof(*taken)), *next = levels;

    lines[0] = (struct plot_line){.label = "runs", .points = runs, .apart = t->n <= DENSE};
    lines[1] = (struct plot_line){.label = "level", .points = levels, .colour = 1, .plain = true};
    lines[2] = (struct plot_line){
        .label = "others took the CPU", .points = taken, .apart = true, .dashed = true};
    for (size_t i = 0; i < t->n; i++) {
        /* Many runs make a line, few are points. A line does not bridge a time without runs. */
        if (!lines[0].apart && i &&
            x[i] - x[i - 1] > GAP * (x[t->n - 1] - x[0]) / (double)(t->n - 1))
            runs[lines[0].n++] = (struct plot_point){x[i - 1], NAN, NOT_TAKEN, NOT_TAKEN};
        runs[lines[0].n++] = (struct plot_point){x[i], t->values[i], NOT_TAKEN, NOT_TAKEN};
        if (!isnan(t->taken[i]))
            taken[lines[2].n++] = (struct plot_point){x[i], t->taken[i], NOT_TAKEN, NOT_TAKEN};
    }
    /* Two ends a segment, and a gap behind it. */
    for (size_t s = 0; s <= t->n_points; s++) {
        size_t begin = s ? t->points[s - 1].at : 0,
               end = s < t->n_points ? t->points[s].at - 1 : t->n - 1;
        double level = trend_level(t, s);

        *next++ = (struct plot_point){x[begin < end ? begin : end], level, NOT_TAKEN, NOT_TAKEN};
        *next++ = (struct plot_point){x[end], level, NOT_TAKEN, NOT_TAKEN};
        *next++ = (struct plot_point){x[end], NAN, NOT_TAKEN, NOT_TAKEN};
    }
    lines[1].n = (size_t)(next - levels);
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

static void make_plot(struct pool *pool, const struct trend *t, size_t number, struct plot *plot)
{
    struct plot_line *lines = pool_alloc(pool, 3, sizeof(*lines));
    struct plot_mark *marks = pool_alloc(pool, t->n_points, sizeof(*marks));
    size_t n = t->n < TICKS ? t->n : TICKS;
    struct plot_tick *ticks = pool_alloc(pool, n, sizeof(*ticks));
    const char *first = t->runs[0]->started_utc, *last = t->runs[t->n - 1]->started_utc;
    const double *x = places(pool, t);

    add_lines(pool, t, x, lines);
    for (size_t i = 0; i < t->n_points; i++) {
        const struct change_point *p = &t->points[i];
        const char *utc = t->runs[p->at]->started_utc, *date = strlen(utc) > 5 ? utc + 5 : utc;

        /* Month and day: there is little room, and the axis has the year. */
        marks[i] = (struct plot_mark){
            .at = x[p->at],
            .to = x[p->at],
            .label = pool_text(pool, "%.5s: %+.1f %%", date, 100 * (p->ratio - 1)),
            .brief = pool_text(pool, "%+.1f %%", 100 * (p->ratio - 1)),
        };
    }
    for (size_t i = 0; i < n; i++) {
        size_t run = n > 1 ? i * (t->n - 1) / (n - 1) : 0;

        ticks[i] = (struct plot_tick){
            .at = x[run], .label = date_text(pool, t->runs[run]->started_utc, x[t->n - 1] - x[0])};
    }
    *plot = (struct plot){
        .name = pool_text(pool, "history-%03zu", number),
        .title = t->series->label,
        .x_label = strncmp(first, last, 10) ? pool_text(pool, "runs of %.10s to %.10s", first, last)
                                            : pool_text(pool, "runs of %.10s", first),
        .y_label = t->series->unit,
        .in_a_row = true,
        .lines = lines,
        .n_lines = 2 + (t->n_gone > 0),
        .marks = marks,
        .n_marks = t->n_points,
        .ticks = ticks,
        .n_ticks = n,
    };
}

/* ---- What is said of a change, and of all ---- */

const char *trend_change_text(struct pool *pool, const struct trend *t, size_t point)
{
    const struct change_point *p = &t->points[point];
    const struct history_run *at = t->runs[p->at];
    const char *text = pool_text(
        pool, "%s: %+.1f %% (%+.1f to %+.1f %%), %.4g to %.4g %s, from run %s (%s, plumb %s%s%s)",
        trend_is_worse(t, p) ? "worse" : "better", 100 * (p->ratio - 1), 100 * (p->low - 1),
        100 * (p->high - 1), p->before, p->after, t->series->unit, at->name, at->started_utc,
        at->version, *at->commit ? " " : "", at->commit);

    if (p->at_low < p->at_high)
        text = pool_text(pool, "%s, or a run near it, %.10s to %.10s", text,
                         t->runs[p->at_low]->started_utc, t->runs[p->at_high]->started_utc);
    return pool_text(pool, "%s; could be detected %zu runs later, with that of %.10s", text,
                     p->seen - p->at, t->runs[p->seen]->started_utc);
}

#define NAMED_MAX 3 /* cases, in a sentence or a remark */

/* "memory triad, 128 MiB" of "memory triad, 128 MiB: bandwidth", where no other case is called so. */
static const char *name_of(struct pool *pool, const struct trends *t, const char *label)
{
    const char *colon = strstr(label, ": ");
    size_t n = colon ? (size_t)(colon - label) : strlen(label), same = 0;

    for (size_t i = 0; i < t->n; i++)
        same += !strncmp(t->all[i].series->label, label, n) && t->all[i].series->label[n] == ':';
    return same > 1 ? label : pool_text(pool, "%.*s", (int)n, label);
}

/* "10 Feb 2026" */
static const char *day_text(struct pool *pool, const char *utc)
{
    time_t seconds = (time_t)seconds_of(utc);
    char day[32];
    struct tm tm;

    if (isnan(seconds_of(utc)) || !gmtime_r(&seconds, &tm) ||
        !strftime(day, sizeof(day), "%d %b %Y", &tm))
        return utc;
    return pool_text(pool, "%s", day + (*day == '0'));
}

static int by_size(const void *x, const void *y)
{
    const struct trend *a = *(const struct trend *const *)x, *b = *(const struct trend *const *)y;
    double left = fabs(log(a->points[a->n_points - 1].ratio));
    double right = fabs(log(b->points[b->n_points - 1].ratio));

    return left != right ? (left < right) - (left > right) : (a > b) - (a < b);
}

/* ", 18.2 % slower than at first", where earlier changes make it another sentence than the newest alone. */
static const char *net_text(struct pool *pool, const struct trend *t)
{
    const struct change_point net = {.ratio = trend_level(t, t->n_points) / trend_level(t, 0)};

    if (t->n_points < 2)
        return "";
    if (fabs(net.ratio - 1) < CHANGE_LEAST)
        return ", as at first";
    return pool_text(pool, ", %.1f %% %s than at first", 100 * fabs(net.ratio - 1),
                     trend_is_worse(t, &net) ? "slower" : "faster");
}

/* "memory triad, 128 MiB is 4.5 % slower since 10 Feb 2026 (run n40); the other 2 cases are unchanged": the newest
 * change of each case, the largest first. */
static const char *opening_text(struct pool *pool, const struct trends *t)
{
    const struct trend **changed = pool_alloc(pool, t->n, sizeof(*changed));
    struct show_list list = {.pool = pool, .max = NAMED_MAX, .parts = "; "};
    size_t n = 0, most = 0;

    for (size_t i = 0; i < t->n; i++) {
        most = t->all[i].n_values > most ? t->all[i].n_values : most;
        if (t->all[i].n_points)
            changed[n++] = &t->all[i];
    }
    /* Of too few runs no change can be found, which is not that there is none. */
    if (t->n_short == t->n && !t->n_missing)
        return pool_text(pool, "inconclusive: %s, and at least %d are needed to find a change",
                         show_count(pool, most, "run"), CHANGE_FIRST + CHANGE_SHORT);
    size_t others = t->n - n;
    const char *count = show_count(pool, others, n ? "other case" : "case");
    const char *rest = !others ? ""
                       : t->n_quiet == others
                           ? pool_text(pool, "%s unchanged", count)
                           : pool_text(pool, "%zu of %s unchanged", t->n_quiet, count);

    qsort(changed, n, sizeof(*changed), by_size);
    for (size_t i = 0; i < n; i++) {
        const struct change_point *p = &changed[i]->points[changed[i]->n_points - 1];
        const struct history_run *at = changed[i]->runs[p->at];

        show_list_add(&list, pool_text(pool, "%s is %.1f %% %s since %s (run %s)%s",
                                       name_of(pool, t, changed[i]->series->label),
                                       100 * fabs(p->ratio - 1),
                                       trend_is_worse(changed[i], p) ? "slower" : "faster",
                                       day_text(pool, at->started_utc), at->name,
                                       net_text(pool, changed[i])));
    }
    return n ? pool_join(pool, show_list_text(&list), "; ", rest)
             : pool_text(pool, "no change: %s", rest);
}

/* Cases without a value in the newest run, by name: of those whose unit is another one since, or of
 * the others. Since when, the case's own line says. */
static const char *missing_remark(struct pool *pool, const struct trends *t, bool unit)
{
    const char **names = pool_alloc(pool, t->n, sizeof(*names));
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        if (t->all[i].n_missing && (t->all[i].now != NULL) == unit)
            names[n++] = t->all[i].series->label;
    if (!n)
        return NULL;
    return pool_text(pool, "%s %s: %s", show_count(pool, n, "case"),
                     unit ? "with another unit" : "without a value in the newest run",
                     pool_list(pool, names, n, NAMED_MAX, "; "));
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
    return pool_text(
        pool,
        "the newest run, %s (%.10s), is no baseline: plumb check found a slowdown, proven "
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

size_t trends_remarks(const struct trends *t, const char **remarks)
{
    struct pool *pool = &t->history->pool;
    const char *gone = t->n_gone ? pool_text(pool, "; in %s a case has none left, and no value",
                                             show_count(pool, t->n_gone, "run"))
                                 : "";
    const char *const all[TRENDS_REMARKS] = {
        missing_remark(pool, t, false),
        missing_remark(pool, t, true),
        newest_remark(pool, t),
        machines_remark(pool, t),
        !t->n_short ? NULL
                    : pool_text(pool, "%s with fewer than %d runs: too few to find a change",
                                show_count(pool, t->n_short, "case"), CHANGE_FIRST + CHANGE_SHORT),
        !t->n_bad ? NULL
                  : pool_text(pool, "%s with values that are no number above 0: these are left out",
                              show_count(pool, t->n_bad, "case")),
        !t->n_taken ? NULL
                    : pool_text(pool, "in %s launches are left out, as " STEAL_WHY "%s",
                                show_count(pool, t->n_taken, "case"), gone),
        !t->history->n_left_out
            ? NULL
            : pool_text(pool, "%s left out: damaged, or not to be read",
                        show_count(pool, t->history->n_left_out, "run folder"))};
    size_t n = 0;

    for (size_t i = 0; i < TRENDS_REMARKS; i++)
        if (all[i])
            remarks[n++] = all[i];
    return n;
}

/* ---- The document ---- */

#define DRAWN_MAX 60 /* charts of one page */

struct trends_shown {
    struct document *d;
    struct plot *plots; /* of the cases that are drawn, n of them */
    size_t n;
};

static void add_summary(struct document *d, const struct trends *t, bool all)
{
    struct pool *pool = &t->history->pool;
    const char *remarks[TRENDS_REMARKS];
    const char *text =
        pool_text(pool, "over %s, %.10s to %.10s%s", show_count(pool, t->n_runs, "run"), t->first,
                  t->last, t->n_quiet && !all ? " (--all shows unchanged cases)" : "");
    size_t n = trends_remarks(t, remarks);

    document_paragraph(d, text);
    for (size_t i = 0; i < n; i++)
        document_paragraph(d, remarks[i]);
    if (t->history->n_accepted)
        document_heading(d, 2, "Accepted levels", "accepted");
    for (size_t i = 0; i < t->history->n_accepted; i++) {
        const struct history_acceptance *a = &t->history->accepted[i];

        document_item(d, pool_text(pool, "host %s, suite %s: %s", a->host, a->suite,
                                   history_acceptance_text(pool, a)));
    }
}

static void add_case(struct document *d, struct pool *pool, const struct trend *t,
                     const struct plot *plot)
{
    const char *level =
        t->n_values ? pool_text(pool, "%.4g %s, ", trend_level(t, 0), t->series->unit) : "";

    if (plot)
        document_figure(d, plot, "");
    else
        document_paragraph(d, t->series->label);
    if (!t->n_points)
        document_item(
            d, pool_text(pool, "%s%s%s", level, show_count(pool, t->n_values, "run"),
                         t->n_values < CHANGE_FIRST + CHANGE_SHORT ? ": too few to tell" : ""));
    if (t->n_missing)
        document_item(
            d, pool_text(pool, "%s: %s", t->now ? "unit" : "missing", trend_missing_text(pool, t)));
    if (t->n_gone)
        document_item(d, pool_text(pool, "in %s all launches are left out, as " STEAL_WHY,
                                   show_count(pool, t->n_gone, "more run")));
    for (size_t i = 0; i < t->n_points; i++) {
        document_item(d, trend_change_text(pool, t, i));
        for (size_t k = 0; k < t->steps[i].n; k++)
            document_item(d, trend_differ_sentence(pool, t, &t->steps[i].all[k], k == 0));
    }
}

/* all: also cases without a change. page: with at most DRAWN_MAX charts, and what holds of all
 * first. */
static struct trends_shown show(const struct trends *t, bool all, bool page)
{
    struct pool *pool = &t->history->pool;
    struct trends_shown shown = {.d = document_new(pool)};
    const struct history_series *last = NULL;
    size_t most = page ? DRAWN_MAX : t->n, n_changed = 0, n_others = 0;

    for (size_t i = 0; i < t->n; i++)
        n_changed += t->all[i].n_points > 0;
    shown.plots = pool_alloc(pool, t->n, sizeof(*shown.plots));
    document_paragraph(shown.d, opening_text(pool, t));
    if (page)
        add_summary(shown.d, t, all);
    for (size_t i = 0; i < t->n; i++) {
        const struct trend *one = &t->all[i];
        const struct history_series *s = one->series;
        bool other = !last || strcmp(s->host, last->host) || strcmp(s->suite, last->suite);
        /* Those that changed are drawn first. */
        bool drawn =
            one->n_values && shown.n < most && (one->n_points || n_changed + n_others < most);

        if (!all && !one->n_points && !one->n_missing)
            continue;
        if (other)
            document_heading(shown.d, 2, pool_text(pool, "host %s, suite %s", s->host, s->suite),
                             "");
        if (other || strcmp(s->pipe, last->pipe))
            document_heading(shown.d, 3, s->pipe, "");
        n_others += drawn && !one->n_points;
        if (drawn)
            make_plot(pool, one, shown.n + 1, &shown.plots[shown.n]);
        add_case(shown.d, pool, one, drawn ? &shown.plots[shown.n] : NULL);
        shown.n += drawn;
        last = s;
    }
    if (!page)
        add_summary(shown.d, t, all);
    return shown;
}

#define LOG_WIDTH 100000 /* a log is searched by lines: nothing is broken */

int trends_print(FILE *out, const struct trends *t, bool all)
{
    struct document_terminal terminal = document_terminal_of(out);

    if (!isatty(fileno(out)))
        terminal.width = LOG_WIDTH;
    return document_write_terminal(show(t, all, false).d, &terminal, out);
}

int trends_html(const char *path, const struct trends *t, bool all, char *error, size_t len)
{
    struct trends_shown shown = show(t, all, true);
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    int stem = (int)(dot && dot > (slash ? slash + 1 : path) ? dot - path : (long)strlen(path));
    char *folder = xasprintf("%.*s-plots", stem, path); /* history.html has history-plots */
    char *fresh = xasprintf("%s.new", path);
    struct stat st;
    /* Written beside, then renamed: a page is whole or the old one. A device or a pipe is not to be
     * replaced. */
    bool device = !stat(path, &st) && !S_ISREG(st.st_mode);
    FILE *out = fopen(device ? path : fresh, "we");
    int err = out ? 0 : -errno;

    if (out) {
        html_page_begin(out, "Plumbline history", NULL, asset_style);
        document_write_html(shown.d, out);
        fputs("</main>\n<footer>Made by plumb " PLUMB_VERSION
              ". This page holds all that it shows.</footer>\n</body>\n</html>\n",
              out);
        err = stream_finish(out);
        if (!err && !device && rename(fresh, path))
            err = -errno;
        if (err && !device)
            unlink(fresh);
    }
    if (err)
        snprintf(error, len, "cannot write '%s': %s", path, strerror(-err));
    else if (shown.n)
        err = plot_write_files(&t->history->pool, shown.plots, shown.n, folder, error, len);
    free(folder);
    free(fresh);
    return err;
}
