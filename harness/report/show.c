/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and parameters as people read them: see show.h. */
#include "harness/report/show.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/units.h"
#include "harness/report/rules.h"

const char *show_number(struct pool *pool, double value)
{
    double size = fabs(value);

    if (isnan(value))
        return "";
    if (size != 0 && (size < 1e-4 || size >= 1e7))
        return pool_text(pool, "%.4g", value);
    if (size >= 1000)
        return pool_text(pool, "%.0f", value);
    return pool_text(pool, "%.*f",
                     size == 0     ? 0
                     : size >= 100 ? 1
                     : size >= 10  ? 2
                                   : 3 - (int)floor(log10(size)),
                     value);
}

const char *show_percent(struct pool *pool, double percent)
{
    if (isnan(percent))
        return "";
    return pool_text(pool, fabs(percent) < 10 ? "%.2g %%" : "%.3g %%", percent);
}

const char *show_interval(struct pool *pool, const struct report_point *p)
{
    if (isnan(p->low) || isnan(p->high))
        return "";
    return pool_text(pool, "%s to %s", show_number(pool, p->low), show_number(pool, p->high));
}

double half_width_percent(const struct report_point *p)
{
    return p->value == 0 ? NAN : 50 * (p->high - p->low) / fabs(p->value);
}

static bool is_bytes(const struct report_bench *b, size_t param)
{
    const struct plot_hint *hint = plot_hint_find(b->name);

    if (hint)
        return hint->bytes && !strcmp(b->params[param], hint->x);
    return strstr(b->params[param], "bytes") != NULL;
}

const char *show_param(struct pool *pool, const struct report_bench *b, size_t param,
                       const char *text)
{
    char size[24];
    uint64_t bytes;

    if (!is_bytes(b, param) || units_parse_u64(text, &bytes))
        return text;
    return pool_text(pool, "%s", units_format_size(bytes, size, sizeof(size)));
}

const char *show_named_param(struct pool *pool, const struct report_bench *b, size_t param,
                             const char *text)
{
    double number;

    if (!*text)
        return "";
    return units_parse_double(text, &number) ? text : show_full_param(pool, b, param, text);
}

const char *show_full_param(struct pool *pool, const struct report_bench *b, size_t param,
                            const char *text)
{
    if (!*text)
        return "";
    return pool_text(pool, "%s %s", b->params[param], show_param(pool, b, param, text));
}

const char *show_joined(struct pool *pool, const char *list, const char *item)
{
    return !*item ? list : !*list ? item : pool_text(pool, "%s, %s", list, item);
}
