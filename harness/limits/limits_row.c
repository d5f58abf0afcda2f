/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of a row: see limits_row.h. */
#include "harness/limits/limits_row.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/condition.h"
#include "core/row.h"
#include "core/units.h"
#include "harness/machine/fact.h"

#define ADDRESS_BYTES 64
#define FIGURE_BYTES  64
#define GROUP_MOST    64

/* The row, and the GPUs that it names. */
struct subject {
    const json_t *limits;
    const struct table *rows;
    size_t row;
    double cores;
    char address[2][ADDRESS_BYTES]; /* "" where there is none */
    bool simulated;
};

/* A limit that was found; limit NULL: none. */
struct row_limit {
    const json_t *limit;
    double value;
    const char *link; /* for limit_link; NULL: none of those that have a word */
};

static const char *cell_of(const void *arg, const char *name, size_t len)
{
    const struct subject *s = arg;
    char column[64];

    if (len >= sizeof(column))
        return "";
    memcpy(column, name, len);
    column[len] = 0;
    return table_param(s->rows, s->row, column);
}

static bool may_take(const struct subject *s, const json_t *limit)
{
    return fact_number(limit, "value", 0) > 0 &&
           !(s->simulated && fact_is(limit, "source", "datasheet"));
}

static struct row_limit found_limit(const json_t *limit)
{
    return (struct row_limit){.limit = limit, .value = fact_number(limit, "value", 0)};
}

static struct row_limit find_key(const struct subject *s, const char *key)
{
    FACT_EACH (s->limits, limit)
        if (fact_is(limit, "key", key) && may_take(s, limit))
            return found_limit(limit);
    return (struct row_limit){0};
}

/* gpu.N.<figure> of the GPU at this address. */
static struct row_limit find_figure(const struct subject *s, const char *address,
                                    const char *figure)
{
    FACT_EACH (s->limits, limit) {
        const char *key = fact_name(limit, "key"), *dot = strrchr(key, '.');

        if (*address && !strncmp(key, "gpu.", 4) && !strcmp(dot + 1, figure) &&
            fact_is(limit, "address", address) && may_take(s, limit))
            return found_limit(limit);
    }
    return (struct row_limit){0};
}

static struct row_limit lower_of(struct row_limit a, struct row_limit b)
{
    return !a.limit || (b.limit && b.value < a.value) ? b : a;
}

/* Of several figures the highest. */
static struct row_limit find_figures(const struct subject *s, const struct bench_limit *rule)
{
    struct row_limit found = {0};
    char figure[FIGURE_BYTES];

    for (const char *at = rule->figures; at && *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");

        if (n < sizeof(figure)) {
            memcpy(figure, at, n);
            figure[n] = 0;
            struct row_limit one = rule->of == LIMIT_MACHINE
                                       ? find_key(s, figure)
                                       : find_figure(s, s->address[0], figure);
            if (!found.limit || (one.limit && one.value > found.value))
                found = one;
        }
        at += n;
    }
    return found;
}

static struct row_limit host_link(const struct subject *s, const char *address)
{
    struct row_limit chip = find_figure(s, address, "c2c_gbytes_per_s"), slot;
    char own[ADDRESS_BYTES + 32], path[ADDRESS_BYTES + 32];

    if (chip.limit)
        return chip;
    snprintf(own, sizeof(own), "pcie.%s.gbytes_per_s", address);
    snprintf(path, sizeof(path), "pcie.%s.path_gbytes_per_s", address);
    slot = lower_of(find_key(s, own), find_key(s, path));
    slot.link = LIMIT_LINK_PCIE;
    return slot;
}

/* One end that is not known may be the slower one. */
static struct row_limit host_links(const struct subject *s)
{
    struct row_limit first = host_link(s, s->address[0]), second;

    if (!*s->address[1])
        return first;
    second = host_link(s, s->address[1]);
    return first.limit && second.limit ? lower_of(first, second) : (struct row_limit){0};
}

/* NVLinks between two GPUs; no limit: none, or not known. */
static struct row_limit pair_links(const struct subject *s, const char *a, const char *b)
{
    char there[2 * ADDRESS_BYTES + 32], back[2 * ADDRESS_BYTES + 32];
    struct row_limit links;

    snprintf(there, sizeof(there), "p2p.%s+%s.nvlink_gbytes_per_s", a, b);
    snprintf(back, sizeof(back), "p2p.%s+%s.nvlink_gbytes_per_s", b, a);
    links = find_key(s, there);
    return links.limit ? links : find_key(s, back);
}

/* What a GPU can exchange with the n of `all`, itself among them: by all of its NVLinks, but no more
 * than those that lead to the others. Links to GPUs outside of the group carry nothing. */
static struct row_limit links_within(const struct subject *s, char all[][ADDRESS_BYTES], size_t n,
                                     size_t i, const char *figures)
{
    struct row_limit own = find_figure(s, all[i], figures);
    struct row_limit others = {0};

    for (size_t k = 0; k < n && own.limit; k++) {
        struct row_limit pair = k == i ? own : pair_links(s, all[i], all[k]);
        if (!pair.limit)
            return pair;
        if (k != i)
            others = (struct row_limit){n == 2 ? pair.limit : own.limit, others.value + pair.value,
                                        NULL};
    }
    return lower_of(own, others);
}

/* Where two have no NVLink between them, other links carry a part, and this one's rate limits
 * nothing. */
static struct row_limit nvlink_group(const struct subject *s, const struct bench_limit *rule)
{
    char all[GROUP_MOST][ADDRESS_BYTES];
    struct row_limit lowest = {0};
    size_t n = 0;

    for (const char *at = table_text(s->rows, s->row, "gpu_addresses"); *at; n++) {
        size_t len = strcspn(at, "+");
        if (n == GROUP_MOST || len >= ADDRESS_BYTES)
            return (struct row_limit){0};
        snprintf(all[n], ADDRESS_BYTES, "%.*s", (int)len, at);
        at += len + (at[len] == '+');
    }
    for (size_t i = 0; i < n; i++) {
        struct row_limit one = links_within(s, all, n, i, rule->figures);
        if (!one.limit)
            return one;
        lowest = lower_of(lowest, one);
    }
    lowest.link = LIMIT_LINK_NVLINK;
    return lowest;
}

static struct row_limit find_limit(const struct subject *s, const struct bench_limit *rule)
{
    uint64_t threads = 0;
    bool all_cores = s->cores > 0 &&
                     !units_parse_u64(table_param(s->rows, s->row, "threads"), &threads) &&
                     threads >= (uint64_t)s->cores;

    if (rule->of == LIMIT_MACHINE)
        return all_cores ? find_figures(s, rule) : (struct row_limit){0};
    if (rule->of == LIMIT_NVLINK_GROUP)
        return nvlink_group(s, rule);
    if (!*s->address[0])
        return (struct row_limit){0};
    if (rule->of == LIMIT_GPU)
        return find_figures(s, rule);
    struct row_limit links = {0};
    if (rule->of != LIMIT_HOST_LINK && *s->address[1])
        links = pair_links(s, s->address[0], s->address[1]);
    links.link = LIMIT_LINK_NVLINK;
    return links.limit ? links : host_links(s);
}

/* The rule's share of the figure. A value above it that noise and rounding do not explain shows that
 * the whole figure is possible: true. */
static bool raise_limit(const struct bench_limit *rule, double figure, double value,
                        struct joined_limit *out)
{
    double limit = figure * (rule->times > 0 ? rule->times : 1);

    out->value = limit;
    out->raised_from = NAN;
    if (!rule->exceeded || !(value > limit))
        return false;
    out->value = fmin(value, fmax(figure, limit));
    if (!(value > LIMIT_EXCEEDED_PERCENT / 100 * limit))
        return false;
    out->value = fmax(figure, limit);
    out->raised_from = limit;
    return true;
}

static void fill(const struct subject *s, const struct bench_limit *rule, struct row_limit found,
                 struct joined_limit *out)
{
    const char *source = fact_name(found.limit, "source"),
               *detail = fact_name(found.limit, "detail");
    double value = table_number(s->rows, s->row, "value");
    const char *remark = raise_limit(rule, found.value, value, out) ? rule->exceeded : rule->remark;

    out->kind = limit_kinds[limit_kind_of(source)];
    out->link = found.link ? found.link : "";
    out->percent = 100 * value / out->value;
    snprintf(out->source, sizeof(out->source), "%s%s%s%s%s", *source ? source : "unknown",
             remark || *detail ? ": " : "", remark ? remark : "", remark ? "; " : "", detail);
}

int limits_row(const json_t *limits, double cores, const struct bench_limit *rules,
               const struct table *rows, size_t row, struct joined_limit *out)
{
    struct subject s = {.limits = limits, .rows = rows, .row = row, .cores = cores};

    s.simulated = !strcmp(table_text(rows, row, "origin"), "simulated");
    const char *cell = table_text(rows, row, "address");
    size_t n = strcspn(cell, "+");
    const char *second = cell[n] == '+' ? cell + n + 1 : "";
    if (n < ADDRESS_BYTES && strlen(second) < ADDRESS_BYTES) {
        snprintf(s.address[0], ADDRESS_BYTES, "%.*s", (int)n, cell);
        snprintf(s.address[1], ADDRESS_BYTES, "%s", second);
    }
    for (const struct bench_limit *rule = rules; rule->where; rule++) {
        struct row_limit found = {0};

        if (condition_holds(rule->where, cell_of, &s))
            found = find_limit(&s, rule);
        found.value *= rule->by ? table_number(rows, row, rule->by) : 1;
        if (!(found.value > 0))
            continue;
        if (!found.limit ||
            strcmp(fact_name(found.limit, "unit"), table_text(rows, row, "unit")) != 0)
            continue;
        fill(&s, rule, found, out);
        return 1;
    }
    return 0;
}
