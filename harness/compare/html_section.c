/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts as a section of a page: of the comparison's own, or of a report's. */
#include <string.h>

#include "harness/compare/html.h"
#include "harness/report/html.h"
#include "harness/report/show.h"

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

static void write_pipe(FILE *out, struct view *v, const struct view_pipe *pipe)
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
        write_pipe(out, v, &v->pipes[i]);
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
