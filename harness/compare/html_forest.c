/* SPDX-License-Identifier: Apache-2.0 */
/* The forest plot of a page: positions are shares of the cell's width, so that it fits any screen without a script. */
#include <math.h>
#include <string.h>

#include "harness/compare/html.h"
#include "harness/report/html.h"
#include "harness/report/show.h"

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
    text = pool_text(v->pool, "A %s, B %s %s", show_number(v->pool, c->a_value),
                     show_number(v->pool, c->b_value), pair->c->unit);
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
    html_print(out, "<td class='number' data-of='would show'>%s</td></tr>\n", f.smallest);
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
          "class='number few'>would show</th></tr></thead>\n<tbody>\n",
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

void html_forest(FILE *out, struct view *v)
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
