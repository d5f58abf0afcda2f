/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and parameters as people read them: see show.h. */
#include "harness/report/show.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/row.h"
#include "core/units.h"
#include "harness/report/described.h"
#include "harness/text.h"

const char *show_short(struct pool *pool, double value)
{
    double size = fabs(value);
    int digits = size == 0 || size >= 99.95 ? 0
                 : size >= 9.995            ? 1
                                            : 2 - (int)floor(log10(size * 1.0005));

    return isnan(value) || digits > 6 || size >= 1e7 ? document_number(pool, value)
                                                     : pool_text(pool, "%.*f", digits, value);
}

const char *show_count(struct pool *pool, size_t n, const char *thing)
{
    return pool_text(pool, "%s", text_count(n, thing).text);
}

struct show_scale show_scale(struct pool *pool, double value, const char *unit)
{
    char name[40];
    double factor = units_scale(value, unit, name, sizeof(name));

    return (struct show_scale){factor, pool_text(pool, "%s", name)};
}

const char *show_interval(struct pool *pool, const struct report_point *p)
{
    if (isnan(p->low) || isnan(p->high))
        return "";
    return pool_text(pool, "%s to %s", document_number(pool, p->low),
                     document_number(pool, p->high));
}

const char *show_origin(struct pool *pool, const char *origin)
{
    if (!strcmp(origin, "measured"))
        return "";
    return pool_text(pool, " (%s)", *origin ? origin : "origin unknown");
}

const char *show_column(struct pool *pool, const struct report_bench *b, size_t param)
{
    const char *name = b->params[param];

    if (!described_flag(b, name, COLUMN_USED))
        return name;
    return pool_text(pool, "%.*s", (int)(strlen(name) - strlen(ROW_USED)), name);
}

const char *show_param(struct pool *pool, const struct report_bench *b, size_t param,
                       const char *text)
{
    char size[24];
    uint64_t bytes;

    if (!described_flag(b, b->params[param], COLUMN_BYTES) || units_parse_u64(text, &bytes))
        return text;
    return pool_text(pool, "%s", units_format_size(bytes, size, sizeof(size)));
}

const char *show_named_param(struct pool *pool, const struct report_bench *b, size_t param,
                             const char *text)
{
    static const char *const ends[][2] = {
        {"source", "from"}, {"destination", "to"}, {"from", "from"}, {"to", "to"}};
    double number;

    if (!*text)
        return "";
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        if (!strcmp(b->params[param], ends[i][0]))
            return pool_text(pool, "%s %s", ends[i][1], text);
    if (!strcmp(text, "yes")) /* a flag */
        return b->params[param];
    return units_parse_double(text, &number) ? text : show_full_param(pool, b, param, text);
}

const char *show_full_param(struct pool *pool, const struct report_bench *b, size_t param,
                            const char *text)
{
    if (!*text)
        return "";
    return pool_text(pool, "%s %s", b->params[param], show_param(pool, b, param, text));
}

/* Of how many cases, of all or of its metric alone, does it have another value? */
static size_t count_others(const struct report_bench *b, const struct report_case *c, size_t param,
                           bool all, size_t *cases)
{
    size_t n = 0;

    *cases = 0;
    for (size_t i = 0; i < b->n_cases; i++) {
        const struct report_case *other = &b->cases[i];

        if (!all && strcmp(other->metric, c->metric) != 0)
            continue;
        ++*cases;
        n += strcmp(other->params[param], c->params[param]) != 0;
    }
    return n;
}

bool show_tells_apart(const struct report_bench *b, const struct report_case *c, size_t param)
{
    size_t cases, others = count_others(b, c, param, false, &cases);

    if (described_flag(b, b->params[param], COLUMN_USED)) /* the option's own column shows it */
        return false;
    if (cases == 1)
        others = count_others(b, c, param, true, &cases);
    return cases == 1 || (others && !b->follows[param]);
}

bool show_lists(const char *list, const char *item)
{
    size_t len = strlen(item);

    while (*list) {
        size_t n = strcspn(list, ",");

        if (n == len && !memcmp(list, item, n))
            return true;
        list += n + strspn(list + n, ", ");
    }
    return false;
}

const char *show_joined(struct pool *pool, const char *list, const char *item)
{
    return pool_join(pool, list, ", ", item);
}

const char *show_filled(struct pool *pool, const char *form, const char *text)
{
    const char *at = strstr(form, "%s");

    return at ? pool_text(pool, "%.*s%s%s", (int)(at - form), form, text, at + 2) : form;
}

void show_list_add(struct show_list *list, const char *item)
{
    *POOL_ADD(list->pool, list->names, list->n) = item;
}

const char *show_list_text(const struct show_list *list)
{
    return pool_list(list->pool, list->names, list->n, list->max, list->parts ? list->parts : ", ");
}

/* ---- What several runs, or launches, say of one thing ---- */

#define SHARES_MAX 4 /* texts that are told one by one: a commit may differ in each of ten runs */

static size_t count_of(const char *const *texts, size_t n, const char *text)
{
    size_t same = 0;

    for (size_t i = 0; i < n; i++)
        same += !strcmp(texts[i], text);
    return same;
}

const char *shares_text(struct pool *pool, const char *const *texts, size_t n, const char *things,
                        bool *mixed)
{
    bool same = !n || count_of(texts, n, texts[0]) == n;
    size_t told = 0, others = 0, in_others = 0;
    const char *list = "";

    if (mixed)
        *mixed = !same;
    if (same)
        return n ? texts[0] : "";
    for (size_t i = 0; i < n; i++) {
        if (!*texts[i] || count_of(texts, i, texts[i]))
            continue;
        size_t many = count_of(texts, n, texts[i]);
        if (told < SHARES_MAX) {
            list = *list ? pool_text(pool, "%s, %s in %zu", list, texts[i], many)
                         : pool_text(pool, "%s in %zu of %zu %s", texts[i], many, n, things);
            told++;
        } else {
            others++;
            in_others += many;
        }
    }
    return others
               ? pool_text(pool, "%s, %s in %zu", list, text_count(others, "other").text, in_others)
               : list;
}
