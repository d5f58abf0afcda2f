/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a chart: see plot_parts.h. */
#include <math.h>

#include "harness/document/document.h"
#include "harness/document/plot_parts.h"

#define LINES_DESCRIBED 12

/* The tick's label, where the place is a tick. */
static const char *place_text(struct pool *pool, const struct plot *plot, double at)
{
    for (size_t i = 0; i < plot->n_ticks; i++)
        if (plot->ticks[i].at == at)
            return plot->ticks[i].label;
    return document_number(pool, at);
}

static const char *value_text(struct pool *pool, const struct plot *plot, double value)
{
    if (isinf(value))
        return "unbounded";
    return plot->ratio ? pool_text(pool, "%+.1f %%", 100 * (value - 1))
                       : document_number(pool, value);
}

const char *plot_point_text(struct pool *pool, const struct plot *plot,
                            const struct plot_line *line, const struct plot_point *point)
{
    const char *at = place_text(pool, plot, point->x), *text;

    text = plot->categories ? pool_text(pool, "%s: ", at)
                            : pool_text(pool, "%s %s: ", plot->x_label, at);
    if (plot->n_lines > 1)
        text = pool_text(pool, "%s, %s", line->label, text);
    text = pool_text(pool, "%s%s", text, value_text(pool, plot, point->y));
    if (isnan(point->low) || isnan(point->high))
        return text;
    return pool_text(pool, "%s (%s to %s)", text, value_text(pool, plot, point->low),
                     value_text(pool, plot, point->high));
}

const char *plot_range_text(struct pool *pool, const struct plot *plot,
                            const struct plot_line *line)
{
    double low = INFINITY, high = -INFINITY, from = INFINITY, to = -INFINITY;
    size_t n = 0;

    for (size_t i = 0; i < line->n; i++) {
        const struct plot_point *p = &line->points[i];

        if (isnan(p->y))
            continue;
        low = fmin(low, p->y);
        high = fmax(high, p->y);
        from = fmin(from, p->x);
        to = fmax(to, p->x);
        n++;
    }
    if (!n)
        return "";
    const char *range = n == 1 || low == high
                            ? value_text(pool, plot, low)
                            : pool_text(pool, "%s to %s", value_text(pool, plot, low),
                                        value_text(pool, plot, high));
    const char *points = pool_text(pool, "%zu point%s", n, n == 1 ? "" : "s");
    if (plot->categories || n == 1)
        return pool_text(pool, "%s, %s", range, points);
    return pool_text(pool, "%s over %s to %s, %s", range, place_text(pool, plot, from),
                     place_text(pool, plot, to), points);
}

const char *plot_description(struct pool *pool, const struct plot *plot)
{
    const char *text = plot->categories
                           ? plot->x_label
                           : pool_text(pool, "%s over %s", plot->y_label, plot->x_label);

    if (plot->watermark)
        text = pool_text(pool, "%s (%s)", text, plot->watermark);
    for (size_t i = 0; i < plot->n_lines && i < LINES_DESCRIBED; i++) {
        const char *range = plot_range_text(pool, plot, &plot->lines[i]);

        if (*range)
            text = pool_text(pool, "%s. %s%s%s", text, plot->lines[i].label,
                             *plot->lines[i].label ? ": " : "", range);
    }
    return text;
}
