/* SPDX-License-Identifier: Apache-2.0 */
/* Cases that differ in one thing, side by side. */
#include <string.h>

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

static struct cell side(const struct page *page, const struct contrast *at,
                        const struct report_case *c)
{
    const struct report_point *p = &c->points[at->run];
    struct pool *pool = &page->r->pool;
    const char *side = "";

    for (size_t i = 0; i < at->bench->n_params; i++)
        if (!strcmp(at->bench->params[i], at->rule->column))
            side = show_param(pool, at->bench, i, c->params[i]);
    return cell_text(pool_text(pool, "%s %s %s%s", side, document_number(pool, p->value), c->unit,
                               show_origin(pool, p->origin)));
}

void page_contrasts(const struct page *page)
{
    static const struct document_column columns[] = {
        {.name = "what"},    {.name = "run"},   {.name = "of"},
        {.name = "one"},     {.name = "other"}, {.name = "change", .number = true},
        {.name = "in words"}};
    const struct contrasts *all = &page->headlines->contrasts;
    struct pool *pool = &page->r->pool;
    struct document *d = document_new(pool);

    if (!all->n)
        return;
    document_paragraph(d, "Cases that differ in one thing alone, for the best case of each kind.");
    struct document_table *t = document_table(d, columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < all->n && i < LISTED_MAX; i++) {
        const struct contrast *at = &all->all[i];
        struct cell *cells = document_row(t);

        cells[0] = cell_text(at->rule->title);
        cells[1] = cell_text(page->r->n_runs > 1 ? page->r->names[at->run] : "");
        cells[2] = cell_text(shared(page, at));
        cells[3] = side(page, at, at->base);
        cells[4] = side(page, at, at->other);
        cells[5] = cell_text(pool_text(pool, "%+.1f %%", 100 * at->change));
        cells[6] = cell_text(at->sentence);
    }
    if (all->n > LISTED_MAX)
        document_paragraph(d, pool_text(pool, "%zu more are left out.", all->n - LISTED_MAX));
    fputs("<section id='beside'>\n<h2>Side by side</h2>\n", page->out);
    document_write_html(d, page->out);
    fputs("</section>\n", page->out);
}
