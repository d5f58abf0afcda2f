/* SPDX-License-Identifier: Apache-2.0 */
/* A history as a page that holds all it shows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/version.h"
#include "harness/history/trend_plot.h"
#include "harness/report/assets.h"
#include "harness/report/html.h"

#define DRAWN_MAX 60 /* plots of one page */

/* A table of seven columns, of which the texts are long: all of it is to be seen without scrolling. Where there is no room
 * for that each row is a list, with the columns' names before what needs one. */
static const char wrapped_changes[] =
    "#changes td,#changes th{white-space:normal;min-width:0}"
    "#changes th.text,#changes td.text{min-width:8rem;overflow-wrap:anywhere}"
    "#changes .status,#changes .whole{white-space:nowrap}\n"
    "@media screen and (max-width:52rem){#changes thead{display:none}"
    "#changes tbody,#changes tr,#changes th,#changes td{display:block;text-align:left}"
    "#changes th,#changes td{border:0;padding:.1rem 0}"
    "#changes tr{border-bottom:1px solid var(--grid);padding:.5rem 0}"
    "#changes td:nth-child(3)::before{content:'change (95 %): '}"
    "#changes td:nth-child(4)::before{content:'level: '}"
    "#changes td:nth-child(5)::before{content:'from run '}"
    "#changes td:nth-child(6)::before{content:'somewhere in (95 %): '}}\n";

struct drawn {
    const struct trends *t;
    const struct trend *trends[DRAWN_MAX];
    struct plot plots[DRAWN_MAX];
    struct plot_picture pictures[DRAWN_MAX];
    size_t n, left_out;
    char *folder, *fresh;
    char plots_error[512];
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

/* Those that changed; the rest, where asked for, behind them. */
static void choose(struct drawn *d, bool all)
{
    choose_those(d, true);
    if (all)
        choose_those(d, false);
}

static void write_colours(FILE *out, const char *const *colours)
{
    for (size_t i = 0; i < PLOT_COLOURS; i++)
        fprintf(out, "--series-%zu:%s;", i, colours[i]);
}

static void write_head(FILE *out)
{
    fputs("<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
          "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
          "<meta name='color-scheme' content='light dark'>\n"
          "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src "
          "'unsafe-inline'; img-src data:\">\n<link rel='icon' href='data:,'>\n"
          "<title>Plumbline history</title>\n<style>\n:root{",
          out);
    write_colours(out, plot_colours_light);
    fputs("}\n@media screen and (prefers-color-scheme:dark){:root{", out);
    write_colours(out, plot_colours_dark);
    fputs("}}\n", out);
    fputs(asset_style, out);
    fputs(wrapped_changes, out);
    fputs("</style>\n</head>\n<body>\n", out);
    fputs(plot_svg_definitions, out);
}

static void write_row(FILE *out, struct pool *pool, const struct trend *t, size_t point)
{
    const struct change_point *p = &t->points[point];
    const struct trend_step *step = &t->steps[point];
    char change[96], levels[96], a_run[96], run[512], end[512];
    bool worse = trend_is_worse(t, p), slip = p->kind == CHANGE_SLIP;

    trend_change_text(p, change, sizeof(change));
    trend_levels_text(t, p, levels, sizeof(levels));
    trend_a_run_text(p, a_run, sizeof(a_run));
    trend_run_text(t, p, run, sizeof(run));
    trend_end_text(t, p, end, sizeof(end));
    html_print(out,
               "<tr><th scope='row' class='text'>%s</th><td><span class='status %s'>%s</span></td>"
               "<td>%s%s%s</td><td>%s</td><td class='text'>%s%s%s",
               t->series->label, worse ? "bad" : "good", worse ? "worse" : "better", change,
               slip ? ", a slip: " : "", a_run, levels, run, slip ? " " : "", end);
    for (size_t i = 0; i < step->n; i++)
        html_print(out, "<p class='note'>%s</p>",
                   trend_differ_sentence(pool, t, &step->all[i], i == 0));
    html_print(
        out,
        "</td><td><span class='whole'>%s</span> to <span class='whole'>%s</span></td><td>%s, "
        "%s</td></tr>\n",
        t->runs[p->at_low]->started_utc, t->runs[p->at_high]->started_utc, t->series->host,
        t->series->suite);
}

static void write_table(FILE *out, const struct trends *t)
{
    if (!t->n_changed)
        return;
    fputs(
        "<section id='changes'>\n<h2>Changes</h2>\n<div class='across'><table "
        "class='plain'>\n<thead><tr><th scope='col'>case</th><th scope='col'>direction</th><th "
        "scope='col'>change (95 %)</th><th scope='col'>level</th><th scope='col'>from run</th><th "
        "scope='col'>somewhere in (95 %)</th><th scope='col'>host, suite</th></tr></thead>\n"
        "<tbody>\n",
        out);
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = 0; k < t->all[i].n_points; k++)
            write_row(out, &t->history->pool, &t->all[i], k);
    fputs("</tbody></table></div>\n</section>\n", out);
}

static void write_figure(FILE *out, const struct drawn *d, size_t i)
{
    const struct history_series *s = d->trends[i]->series;
    const struct plot_picture *picture = &d->pictures[i];

    if (!picture->wide || !picture->narrow)
        return;
    html_print(out, "<figure>\n<figcaption><b>%s</b> <span>%s, %s</span></figcaption>\n", s->label,
               s->host, s->suite);
    fprintf(out,
            "<div class='wide'>%s</div><div class='narrow'>%s</div>\n<p class='note'>Points: the "
            "geometric mean of a run's launches. Lines: the levels and slips.%s</p></figure>\n",
            picture->wide, picture->narrow,
            d->trends[i]->n_gone
                ? " Hollow points: runs in all of whose launches other guests took "
                  "the CPU; they are in no level."
                : "");
}

static void write_page(FILE *out, const struct drawn *d)
{
    const struct trends *t = d->t;
    char text[256];

    write_head(out);
    trends_count_text(t, text, sizeof(text));
    html_print(out, "<header>\n<h1>Plumbline history</h1>\n<p>%s.", text);
    if (t->n > t->n_changed)
        html_print(out, " In %zu no change was found, which does not mean that there is none.",
                   t->n - t->n_changed);
    if (t->n_short)
        html_print(out, " Note: %s fewer than %d runs, in which none can be told.",
                   trends_of_them(t, t->n_short, text, sizeof(text)), CHANGE_FIRST + CHANGE_SHORT);
    if (t->n_taken)
        html_print(out, " Note: %s.", trends_taken_text(t, text, sizeof(text)));
    if (t->history->n_left_out)
        html_print(out, " Note: %s.", trends_left_out_text(t, text, sizeof(text)));
    fputs("</p>\n</header>\n<main>\n", out);
    write_table(out, t);
    fputs("<section id='plots'>\n<h2>Plots</h2>\n<div class='figures'>\n", out);
    for (size_t i = 0; i < d->n; i++)
        write_figure(out, d, i);
    fputs("</div>\n", out);
    if (*d->plots_error)
        html_print(out, "<p class='missing'>No plots: %s.</p>\n", d->plots_error);
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
    FILE *out = fopen(d->fresh, "we");
    int err = 0;

    if (!out)
        return cannot(path, -errno, error, len);
    write_page(out, d);
    if (fflush(out) || ferror(out))
        err = errno ? -errno : -EIO;
    if (fclose(out) && !err)
        err = -errno;
    if (!err && d->t->history->pool.failed)
        err = -ENOMEM;
    if (!err && rename(d->fresh, path))
        err = -errno;
    if (err)
        unlink(d->fresh);
    return err ? cannot(path, err, error, len) : 0;
}

/* A page without plots is better than none: what went wrong stands in it, and on stderr. */
static int draw(struct drawn *d, char *error, size_t len)
{
    if (!d->n)
        return 0;
    if (mkdir(d->folder, 0777) && errno != EEXIST)
        return cannot(d->folder, -errno, error, len);
    if (plot_draw(d->plots, d->n, d->folder, d->pictures, d->plots_error, sizeof(d->plots_error)))
        fprintf(stderr, "plumb history: no plots: %s\n", d->plots_error);
    return 0;
}

/* history.html has its plots in history-plots. */
static int name_files(struct drawn *d, const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    int stem = (int)(dot && dot > (slash ? slash + 1 : path) ? dot - path : (long)strlen(path));

    if (asprintf(&d->folder, "%.*s-plots", stem, path) < 0)
        d->folder = NULL;
    if (asprintf(&d->fresh, "%s.new", path) < 0)
        d->fresh = NULL;
    return d->folder && d->fresh ? 0 : -ENOMEM;
}

int trends_html(const char *path, const struct trends *t, bool all, char *error, size_t len)
{
    struct drawn *d = calloc(1, sizeof(*d));
    int err = -ENOMEM;

    if (!d)
        return err;
    d->t = t;
    err = name_files(d, path);
    if (!err) {
        choose(d, all);
        err = draw(d, error, len);
    }
    if (!err)
        err = replace_page(path, d, error, len);
    for (size_t i = 0; i < d->n; i++)
        plot_picture_release(&d->pictures[i]);
    free(d->folder);
    free(d->fresh);
    free(d);
    return err;
}
