/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of rows on GPUs: see join_gpu.h. */
#include "harness/run/join_gpu.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ADDRESS_BYTES 64

/* The row, and the GPUs that it names. */
struct subject {
    const json_t *limits;
    const struct table *rows;
    size_t row;
    char address[2][ADDRESS_BYTES]; /* "" where there is none */
    bool simulated;
};

/* A limit that was found; limit NULL: none. */
struct found {
    const json_t *limit;
    double value;       /* of the row, which may be a part or a multiple of the limit's own */
    const char *remark; /* what was made of it, or "" */
};

static const char *text_of(const struct subject *s, const char *column)
{
    return table_text(s->rows, s->row, column);
}

static const char *string_of(const json_t *limit, const char *key)
{
    const char *text = json_string_value(json_object_get(limit, key));

    return text ? text : "";
}

static bool may_take(const struct subject *s, const json_t *limit)
{
    return json_number_value(json_object_get(limit, "value")) > 0 &&
           !(s->simulated && !strcmp(string_of(limit, "source"), "datasheet"));
}

static struct found found_limit(const json_t *limit)
{
    return (struct found){limit, json_number_value(json_object_get(limit, "value")), ""};
}

static struct found find_key(const struct subject *s, const char *key)
{
    const json_t *limit;
    size_t i;

    json_array_foreach (s->limits, i, limit)
        if (!strcmp(string_of(limit, "key"), key) && may_take(s, limit))
            return found_limit(limit);
    return (struct found){0};
}

/* gpu.N.<figure> of the GPU at this address. */
static struct found find_figure(const struct subject *s, const char *address, const char *figure)
{
    const json_t *limit;
    size_t i;

    json_array_foreach (s->limits, i, limit) {
        const char *key = string_of(limit, "key"), *dot = strrchr(key, '.');

        if (*address && !strncmp(key, "gpu.", 4) && !strcmp(dot + 1, figure) &&
            !strcmp(string_of(limit, "address"), address) && may_take(s, limit))
            return found_limit(limit);
    }
    return (struct found){0};
}

static struct found lower_of(struct found a, struct found b)
{
    return !a.limit || (b.limit && b.value < a.value) ? b : a;
}

static struct found higher_of(struct found a, struct found b)
{
    return !a.limit || (b.limit && b.value > a.value) ? b : a;
}

/* ---- matrix products */

struct gemm_rule {
    const char *dtype, *figures[2]; /* the higher one counts: the library takes the faster unit */
    const char *narrow;             /* instead, with narrow sums, where the GPU has it; or NULL */
};

static const struct gemm_rule gemm_rules[] = {
    {"f64", {"f64_tensor_tflops", "f64_tflops"}, NULL},
    {"f32", {"f32_matrix_tflops", "f32_tflops"}, NULL},
    {"tf32", {"tf32_tflops", NULL}, NULL},
    {"f16", {"f16_tflops", NULL}, "f16_f16acc_tflops"},
    {"bf16", {"bf16_tflops", NULL}, NULL},
    {"e4m3", {"fp8_tflops", NULL}, "fp8_f16acc_tflops"},
    {"e5m2", {"fp8_tflops", NULL}, "fp8_f16acc_tflops"},
    {"int8", {"int8_tops", NULL}, NULL},
};

static bool has_narrow_sums(const struct subject *s)
{
    const char *sums = text_of(s, "accumulate");

    return strcmp(sums, "f16") == 0 || strstr(sums, "fast") != NULL;
}

static struct found gemm_limit(const struct subject *s)
{
    struct found found = {0};

    for (size_t i = 0; i < sizeof(gemm_rules) / sizeof(*gemm_rules); i++) {
        const struct gemm_rule *r = &gemm_rules[i];

        if (strcmp(r->dtype, text_of(s, "dtype")) != 0)
            continue;
        for (size_t k = 0; k < 2 && r->figures[k]; k++)
            found = higher_of(found, find_figure(s, s->address[0], r->figures[k]));
        if (r->narrow && has_narrow_sums(s))
            found = higher_of(found, find_figure(s, s->address[0], r->narrow));
    }
    return found;
}

/* ---- memory */

static struct found memory_limit(const struct subject *s)
{
    const char *level = text_of(s, "level");

    if (strcmp(level, "HBM") != 0 && strcmp(level, "DRAM") != 0)
        return (struct found){0};
    return find_figure(s, s->address[0], "memory_gbytes_per_s");
}

/* ---- copies */

static struct found host_link(const struct subject *s, const char *address)
{
    struct found chip = find_figure(s, address, "c2c_gbytes_per_s");
    char own[ADDRESS_BYTES + 32], path[ADDRESS_BYTES + 32];

    if (chip.limit)
        return chip;
    snprintf(own, sizeof(own), "pcie.%s.gbytes_per_s", address);
    snprintf(path, sizeof(path), "pcie.%s.path_gbytes_per_s", address);
    return lower_of(find_key(s, own), find_key(s, path));
}

static struct found peer_link(const struct subject *s)
{
    const char *a = s->address[0], *b = s->address[1];
    char there[2 * ADDRESS_BYTES + 32], back[2 * ADDRESS_BYTES + 32];
    struct found links;

    snprintf(there, sizeof(there), "p2p.%s+%s.nvlink_gbytes_per_s", a, b);
    snprintf(back, sizeof(back), "p2p.%s+%s.nvlink_gbytes_per_s", b, a);
    links = find_key(s, there);
    links = links.limit ? links : find_key(s, back);
    if (links.limit && strcmp(text_of(s, "access"), "off") != 0)
        return links;
    struct found first = host_link(s, a), second = host_link(s, b);
    /* One end that is not known may be the slower one. */
    return first.limit && second.limit ? lower_of(first, second) : (struct found){0};
}

/* Within a GPU no link is crossed, and how much of it L2 serves the row does not tell: no limit. */
static struct found copy_limit(const struct subject *s)
{
    if (!strcmp(text_of(s, "path"), "within the GPU"))
        return (struct found){0};
    struct found found = *s->address[1] ? peer_link(s) : host_link(s, s->address[0]);

    if (!strcmp(text_of(s, "direction"), "sum")) {
        found.value *= 2;
        found.remark = "both directions; ";
    }
    return found;
}

static const struct {
    const char *bench, *units;
    struct found (*find)(const struct subject *s);
} finders[] = {
    {"gemm", "TFLOP/s TOP/s", gemm_limit},
    {"memory", "GB/s", memory_limit},
    {"copy", "GB/s", copy_limit},
};

static void read_addresses(struct subject *s)
{
    const char *cell = text_of(s, "address");
    size_t n = strcspn(cell, "+");
    bool two = cell[n] == '+';

    if (n >= ADDRESS_BYTES || (two && strlen(cell + n + 1) >= ADDRESS_BYTES))
        return;
    snprintf(s->address[0], ADDRESS_BYTES, "%.*s", (int)n, cell);
    snprintf(s->address[1], ADDRESS_BYTES, "%s", two ? cell + n + 1 : "");
}

static bool has_unit(const char *units, const char *unit)
{
    const char *at = *unit ? strstr(units, unit) : NULL;

    return at && (at == units || at[-1] == ' ') && (!at[strlen(unit)] || at[strlen(unit)] == ' ');
}

int join_gpu_limit(const json_t *limits, const char *bench, const struct table *rows, size_t row,
                   struct joined_limit *out)
{
    struct subject s = {.limits = limits, .rows = rows, .row = row};
    struct found found = {0};
    const char *unit = table_text(rows, row, "unit");

    s.simulated = !strcmp(text_of(&s, "origin"), "simulated");
    read_addresses(&s);
    for (size_t i = 0; *s.address[0] && i < sizeof(finders) / sizeof(*finders); i++)
        if (!strcmp(finders[i].bench, bench) && has_unit(finders[i].units, unit))
            found = finders[i].find(&s);
    if (!found.limit || strcmp(string_of(found.limit, "unit"), unit) != 0)
        return 0;
    out->value = found.value;
    out->percent = 100 * table_number(rows, row, "value") / found.value;
    snprintf(out->source, sizeof(out->source), "%s: %s%s", string_of(found.limit, "source"),
             found.remark, string_of(found.limit, "detail"));
    return 1;
}
