/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a comparison: one file that asks for nothing else. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/build_info.h"
#include "harness/compare/compare.h"
#include "harness/document/html.h"
#include "harness/report/assets.h"
#include "harness/report/show.h"

/* The forest plot of a page: positions are shares of the cell's width, so that it fits any screen
 * without a script. */

#define TICKS_MAX 12
#define TICK_WIDE 0.11 /* of the axis: a label's width on a phone */
#define TICK_LAST 0.96 /* a label further right would run into the next column's heading */

struct ticks {
    double all[TICKS_MAX];
    size_t n;
};

/* The left end of a label, in shares of the axis: within the axis, whatever the tick. */
static double label_left(double at)
{
    double left = at - TICK_WIDE / 2;

    return left < 0 ? at : left + TICK_WIDE > TICK_LAST ? at - TICK_WIDE : left;
}

/* Round ratios, the most telling first. */
static struct ticks make_ticks(const struct view_axis *axis)
{
    static const double wanted[] = {1,   0.5,  2,    0.25, 4,    0.1,  10,  0.8, 1.2,  0.9,
                                    1.1, 0.95, 1.05, 0.7,  1.5,  0.6,  3,   0.3, 1.75, 0.4,
                                    1.3, 0.85, 1.15, 0.98, 1.02, 0.15, 0.2, 5,   7};
    struct ticks t = {.n = 0};

    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted) && t.n < TICKS_MAX; i++) {
        double at = view_axis_at(axis, wanted[i]);
        bool free = at >= 0 && at <= TICK_LAST;

        for (size_t k = 0; k < t.n; k++)
            free = free &&
                   fabs(label_left(at) - label_left(view_axis_at(axis, t.all[k]))) >= TICK_WIDE;
        if (free)
            t.all[t.n++] = wanted[i];
    }
    return t;
}

static double percent_at(const struct view_axis *axis, double ratio)
{
    double at = 100 * view_axis_at(axis, ratio);

    return at < 0 ? 0 : at > 100 ? 100 : at;
}

static void write_scale(FILE *out, const struct view_axis *axis, const struct ticks *t)
{
    fputs("<svg class='scale' width='100%' height='18' aria-hidden='true'>", out);
    for (size_t i = 0; i < t->n; i++) {
        double at = view_axis_at(axis, t->all[i]), left = label_left(at);

        fprintf(out, "<text x='%.2f%%' y='13' text-anchor='%s'>%g</text>", 100 * at,
                left >= at                     ? "start"
                : left + TICK_WIDE > at + 1e-9 ? "middle"
                                               : "end",
                t->all[i]);
    }
    fputs("</svg>", out);
}

static void write_line(FILE *out, const char *style, double x1, double x2, const char *y1,
                       const char *y2)
{
    fprintf(out, "<line class='%s' x1='%.2f%%' x2='%.2f%%' y1='%s' y2='%s'/>", style, x1, x2, y1,
            y2);
}

/* An end of the interval: a short bar, or an arrow where it goes on outside of the axis. */
static void write_end(FILE *out, const struct view_axis *axis, double end)
{
    double at = view_axis_at(axis, end);

    if (at < 0)
        fputs("<svg x='0%' overflow='visible'><path d='M0,11 l8,-5 v10 z'/></svg>", out);
    else if (at > 1)
        fputs("<svg x='100%' overflow='visible'><path d='M0,11 l-8,-5 v10 z'/></svg>", out);
    else
        write_line(out, "end", 100 * at, 100 * at, "7", "15");
}

static void write_interval(FILE *out, const struct view_axis *axis, const struct decide_case *c)
{
    double at = view_axis_at(axis, c->ratio);

    if (!(c->ratio > 0))
        return;
    fprintf(out, "<g class='%s'>", decision_name(c->decision));
    if (c->low > 0 && c->high > 0) {
        write_line(out, "interval", percent_at(axis, c->low), percent_at(axis, c->high), "11",
                   "11");
        write_end(out, axis, c->low);
        write_end(out, axis, c->high);
    }
    if (at >= 0 && at <= 1)
        fprintf(out, "<circle cx='%.2f%%' cy='11' r='4.5'/>", 100 * at);
    else
        write_end(out, axis, c->ratio);
    fputs("</g>", out);
}

static void write_plot(FILE *out, const struct view *v, const struct ticks *t,
                       const struct pair *pair, const char *figures)
{
    const struct view_axis *axis = &v->axis;
    const struct decide_case *c = &pair->decide;
    double low = percent_at(axis, 1 - c->margin), high = percent_at(axis, 1 / (1 - c->margin));

    html_print(out, "<svg class='forest-bar' width='100%%' height='22' role='img' aria-label='%s'>",
               figures);
    fprintf(out, "<rect class='band' x='%.2f%%' width='%.2f%%' y='0' height='22'/>", low,
            high - low);
    for (size_t i = 0; i < t->n; i++)
        write_line(out, t->all[i] == 1 ? "one" : "grid", percent_at(axis, t->all[i]),
                   percent_at(axis, t->all[i]), "0", "22");
    write_interval(out, axis, c);
    fputs("</svg>", out);
}

static const char *values_text(struct view *v, const struct pair *pair)
{
    const struct decide_case *c = &pair->decide;
    const char *text;

    if (isnan(c->a_value) || isnan(c->b_value))
        return "";
    text = pool_text(v->pool, "A %s, B %s %s", document_number(v->pool, c->a_value),
                     document_number(v->pool, c->b_value), pair->c->unit);
    return c->higher_is_better ? text : pool_text(v->pool, "%s, lower is better", text);
}

static void write_case(FILE *out, struct view *v, const struct ticks *t, const struct pair *pair)
{
    struct view_figures f = view_figures(v->pool, pair);

    html_print(out, "<tr><th scope='row'>%s<span>%s</span>", pair->label, values_text(v, pair));
    if (*pair->differs)
        html_print(out, "<span>differs: %s</span>", pair->differs);
    fputs("</th><td class='plot'>", out);
    write_plot(out, v, t, pair, f.both);
    html_print(out, "</td><td class='ratio'><b>%s</b> %s</td>", f.ratio,
               *f.interval ? pool_text(v->pool, "(%s)", f.interval) : "no interval");
    html_print(out, "<td class='decided %s'>%s</td>", decision_name(pair->decide.decision),
               f.verdict);
    html_print(out, "<td class='number' data-of='more'>%s</td>", f.more);
    html_print(out, "<td class='number' data-of='detectable'>%s</td></tr>\n", f.smallest);
}

static void write_table(FILE *out, struct view *v, const struct ticks *t,
                        const struct view_pipe *pipe, size_t from, size_t to)
{
    fputs("<table class='forest'><thead><tr><th scope='col'>case</th><th scope='col' "
          "class='plot'>",
          out);
    write_scale(out, &v->axis, t);
    fputs("</th><th scope='col' class='ratio'>B / A, 95 % interval</th><th scope='col' "
          "class='said'>verdict</th><th scope='col' class='number few'>more</th><th scope='col' "
          "class='number few'>detectable</th></tr></thead>\n<tbody>\n",
          out);
    for (size_t i = from; i < to; i++)
        write_case(out, v, t, pipe->pairs[i]);
    fputs("</tbody></table>\n", out);
}

static void write_folded(FILE *out, struct view *v, const struct ticks *t,
                         const struct view_pipe *pipe, size_t from, size_t to, const char *what)
{
    html_print(out, "<details><summary>%s</summary>\n", show_count(v->pool, to - from, what));
    write_table(out, v, t, pipe, from, to);
    fputs("</details>\n", out);
}

static void write_pipe(FILE *out, struct view *v, const struct ticks *t,
                       const struct view_pipe *pipe)
{
    html_print(out, "<h3>%s</h3>\n", pipe->name);
    if (pipe->n_first)
        write_table(out, v, t, pipe, 0, pipe->n_first);
    for (size_t i = 0; i < pipe->n_causes; i++)
        html_print(out, "<p class='cause'>may weigh on it: %s</p>\n", pipe->causes[i]);
    if (pipe->n_shown > pipe->n_first)
        write_folded(out, v, t, pipe, pipe->n_first, pipe->n_shown, "more case");
    if (pipe->n > pipe->n_shown)
        write_folded(out, v, t, pipe, pipe->n_shown, pipe->n, "equivalent case");
}

/* The forest by pipe: a table each, with the intervals drawn as SVG; equivalent cases are
 * folded. */
static void html_forest(FILE *out, struct view *v)
{
    struct ticks t = make_ticks(&v->axis);

    for (size_t i = 0; i < v->n_pipes; i++)
        write_pipe(out, v, &t, &v->pipes[i]);
    if (v->n_pipes)
        fputs("<p class='note'>Plots: the point is the ratio, the bar its 95 % interval, the band "
              "the margin, the line at 1 no change; an arrow goes on outside of the plot. The axis "
              "is logarithmic, and the same for all.</p>\n",
              out);
}

/* ---- The verdicts as a section of a page: of the comparison's own, or of a report's ---- */

#define NAMED_MAX                                                                                  \
    8 /* cases that are named of those left out for one reason; the others are folded */

static void write_head(FILE *out, struct view *v)
{
    const char *name = v->name;

    html_print(out, "<p class='decision'><b class='decided %s'>%s</b> %s.</p>\n", name, name,
               v->verdict);
    html_print(out,
               "<dl class='sides'><dt>A</dt><dd>%s</dd><dt>B</dt><dd>%s</dd>"
               "<dt>rests on</dt><dd>%s</dd></dl>\n",
               v->a, v->b, v->basis);
    for (size_t i = 0; i < v->n_remarks; i++)
        html_print(out, "<p class='banner'>%s</p>\n", v->remarks[i]);
}

static void write_count(FILE *out, const char *of, size_t n, const char *style)
{
    html_print(out, "<td class='number %s' data-of='%s'>%zu</td>", n ? style : "none", of, n);
}

static void write_pipe_section(FILE *out, struct view *v, const struct view_pipe *pipe)
{
    html_print(out, "<tr><th scope='row'>%s</th>", pipe->name);
    write_count(out, "cases", pipe->n, "");
    write_count(out, "worse", pipe->counts[DECISION_WORSE], "decided worse");
    write_count(out, "inconclusive", pipe->counts[DECISION_INCONCLUSIVE], "decided inconclusive");
    write_count(out, "better", pipe->counts[DECISION_BETTER], "decided better");
    write_count(out, "equivalent", pipe->counts[DECISION_EQUIVALENT], "decided equivalent");
    fputs("<td class='worst'>", out);
    if (pipe->worst) {
        struct view_figures f = view_figures(v->pool, pipe->worst);

        html_print(out, "<b>%s</b> %s, <span class='decided %s'>%s</span>: %s", f.ratio,
                   *f.interval ? pool_text(v->pool, "(%s)", f.interval) : "(no interval)",
                   decision_name(pipe->worst->decide.decision), f.verdict, pipe->worst->label);
    }
    fputs("</td></tr>\n", out);
}

static void write_pipes(FILE *out, struct view *v)
{
    if (!v->n_pipes)
        return;
    fputs("<table class='pipes'><thead><tr><th scope='col'>pipe</th>"
          "<th scope='col' class='number'>cases</th><th scope='col' class='number'>worse</th>"
          "<th scope='col' class='number'>inconclusive</th>"
          "<th scope='col' class='number'>better</th>"
          "<th scope='col' class='number'>equivalent</th>"
          "<th scope='col'>worst case: B / A, 95 % interval</th></tr></thead>\n<tbody>\n",
          out);
    for (size_t i = 0; i < v->n_pipes; i++)
        write_pipe_section(out, v, &v->pipes[i]);
    fputs("</tbody></table>\n", out);
}

static void write_differences(FILE *out, const struct view *v)
{
    if (!v->n_differences)
        return;
    fputs("<h3>What differs between the two sides</h3>\n<div class='across'><table class='plain "
          "beside'><thead><tr><th scope='col'>what</th><th scope='col'>A</th><th "
          "scope='col'>B</th><th scope='col'>may weigh on</th></tr></thead>\n<tbody>\n",
          out);
    for (size_t i = 0; i < v->n_differences; i++) {
        const struct machine_difference *d = &v->differences[i];

        html_print(out,
                   "<tr><th scope='row' class='text'>%s</th><td>%s</td><td>%s</td><td>%s</td>"
                   "</tr>\n",
                   d->what, *d->a ? d->a : "not known", *d->b ? d->b : "not known",
                   *d->pipes ? d->pipes : "all");
    }
    fputs("</tbody></table></div>\n", out);
}

static void write_names(FILE *out, const struct view_left *left, size_t from, size_t to)
{
    fputs("<ul>", out);
    for (size_t i = from; i < to; i++)
        html_print(out, "<li>%s</li>", left->pairs[i]->label);
    fputs("</ul>\n", out);
}

static void write_left(FILE *out, struct view *v)
{
    if (v->n_left)
        fputs("<h3>Not compared</h3>\n", out);
    for (size_t i = 0; i < v->n_left; i++) {
        const struct view_left *left = &v->left[i];

        html_print(out, "<p><b class='%s'>%s</b>: %s</p>\n", left->failed_b ? "bad" : "",
                   show_count(v->pool, left->n, "case"), view_left_text(v->pool, left));
        write_names(out, left, 0, left->n < NAMED_MAX ? left->n : NAMED_MAX);
        if (left->n <= NAMED_MAX)
            continue;
        html_print(out, "<details><summary>%zu more</summary>\n", left->n - NAMED_MAX);
        write_names(out, left, NAMED_MAX, left->n);
        fputs("</details>\n", out);
    }
}

void view_print_html_section(FILE *out, struct view *v)
{
    fputs("<section id='verdicts'>\n<h2>Verdicts</h2>\n", out);
    write_head(out, v);
    write_pipes(out, v);
    html_forest(out, v);
    for (size_t i = 0; i < v->n_obstacles; i++)
        html_print(out, "<p>%s.</p>\n", v->obstacles[i].text);
    write_differences(out, v);
    write_left(out, v);
    if (v->n_ready)
        html_print(out, "<p class='note'>%s</p>\n", view_explain(v));
    fputs("</section>\n", out);
}

int view_print_html(FILE *out, struct view *v)
{
    fputs("<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
          "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
          "<meta name='color-scheme' content='light dark'>\n"
          "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src "
          "'unsafe-inline'; img-src data:\">\n"
          "<link rel='icon' href='data:,'>\n<title>",
          out);
    html_print(out, "%s: %s against %s - Plumbline", v->name, v->name_b, v->name_a);
    fputs("</title>\n<style>\n", out);
    fputs(asset_style, out);
    fputs("</style>\n</head>\n<body>\n<header>\n<h1>Plumbline comparison: ", out);
    html_print(out, "%s against %s", v->name_b, v->name_a);
    fputs("</h1>\n</header>\n<main>\n", out);
    view_print_html_section(out, v);
    fputs("</main>\n<footer>Made by plumb " PLUMB_VERSION
          ". This page holds all that it shows and asks for nothing else.</footer>\n</body>\n"
          "</html>\n",
          out);
    return ferror(out) ? -EIO : 0;
}
