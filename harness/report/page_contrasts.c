/* SPDX-License-Identifier: Apache-2.0 */
/* Cases that differ in one thing, side by side. */
#include <math.h>
#include <string.h>

#include "harness/document/html.h"
#include "harness/report/page.h"
#include "harness/report/show.h"

#define LISTED_MAX 60

/* What both cases share, in few words: the parameters that the rule groups by. */
static const char *shared(const struct page *page, const struct contrast *at)
{
    const char *text = "";

    for (size_t i = 0; i < at->bench->n_params; i++)
        if (word_in(at->rule->by, at->bench->params[i]) &&
            strcmp(at->bench->params[i], at->rule->column) != 0)
            text = show_joined(&page->r->pool, text,
                               show_named_param(&page->r->pool, at->bench, i, at->base->params[i]));
    return text;
}

static void write_side(const struct page *page, const struct contrast *at,
                       const struct report_case *c)
{
    const struct report_point *p = &c->points[at->run];
    const char *side = "";

    for (size_t i = 0; i < at->bench->n_params; i++)
        if (!strcmp(at->bench->params[i], at->rule->column))
            side = show_param(&page->r->pool, at->bench, i, c->params[i]);
    html_print(page->out, "<td>%s <b>%s</b> %s", side, document_number(&page->r->pool, p->value),
               c->unit);
    if (strcmp(p->origin, "measured") != 0)
        html_print(page->out, " <span class='badge'>%s</span>",
                   *p->origin ? p->origin : "origin unknown");
    fputs("</td>", page->out);
}

static void write_line(const struct page *page, const struct contrast *at, bool first)
{
    FILE *out = page->out;

    fputs("<tr>", out);
    html_print(out, "<th scope='row' class='text'>%s</th>", first ? at->rule->title : "");
    if (page->r->n_runs > 1)
        html_print(out, "<td>%s</td>", page->r->names[at->run]);
    html_print(out, "<td class='text'>%s</td>", shared(page, at));
    write_side(page, at, at->base);
    write_side(page, at, at->other);
    fprintf(out, "<td class='change'>%+.1f %%</td>", 100 * at->change);
    html_print(out, "<td class='text'>%s</td></tr>\n", at->sentence);
}

void page_contrasts(const struct page *page)
{
    const struct contrasts *all = &page->headlines->contrasts;
    FILE *out = page->out;

    if (!all->n)
        return;
    fputs("<section id='beside'>\n<h2>Side by side</h2>\n<p>Cases that differ in one thing alone, "
          "for the best case of each kind.</p>\n<div class='across'><table class='plain "
          "beside'><thead>"
          "<tr><th scope='col'>what</th>",
          out);
    fputs(page->r->n_runs > 1 ? "<th scope='col'>run</th>" : "", out);
    fputs("<th scope='col'>of</th><th scope='col'>one</th><th scope='col'>other</th>"
          "<th scope='col'>change</th><th scope='col'>in words</th></tr></thead>\n<tbody>\n",
          out);
    for (size_t i = 0; i < all->n && i < LISTED_MAX; i++)
        write_line(page, &all->all[i], !i || all->all[i - 1].rule != all->all[i].rule);
    fputs("</tbody></table></div>\n", out);
    if (all->n > LISTED_MAX)
        html_print(out, "<p class='missing'>%zu more are left out.</p>\n", all->n - LISTED_MAX);
    fputs("</section>\n", out);
}
