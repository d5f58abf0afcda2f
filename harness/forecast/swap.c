/* SPDX-License-Identifier: Apache-2.0 */
/* What a part is replaced by: see forecast.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/option.h"
#include "harness/forecast/forecast.h"
#include "harness/limits/limits.h"
#include "harness/plan/suite.h"

struct swap_reading {
    double memory_gb; /* of the entry that was read; NaN: none, or it tells none */
    struct pool *pool;
    const struct parts *parts;
    char *error;
    size_t len;
};

static const char *const names[SWAPS + 1] = {"network", "products", "memory", NULL};
static const char *const units[SWAPS] = {"Gb/s", "TFLOP/s", "GB/s"};
static const double scales[SWAPS] = {1, 1e-12, 1e-9}; /* of parts' figures to these units */

static int fail(struct swap_reading *in, const char *text)
{
    snprintf(in->error, in->len, "--swap: %s", text);
    return -EINVAL;
}

/* The rate of the part that was measured: of the link, or the limit of rows. NaN: not known. */
static double known_rate(const struct parts *p, enum swap_part part)
{
    double product = NAN;

    for (size_t i = 0; i < p->n_products; i++)
        product = fmax(product, p->products[i].limit);
    switch (part) {
    case SWAP_NETWORK:
        return p->laws[JOB_SUM].link_gbits;
    case SWAP_PRODUCTS:
        return scales[part] * product;
    case SWAP_MEMORY:
        return scales[part] * p->stream_limit;
    case SWAPS:
        break;
    }
    return NAN;
}

/* ---- a line of configs/hardware, or of a file ---- */

struct figure {
    const char *name;
    double times;
};

/* The figures that an entry of a kind may have for this part; the largest counts. */
static void figures_of(struct swap_reading *in, enum swap_part part, struct figure out[3])
{
    static const struct figure network[3] = {
        {"port_gbits_per_s", 1}, {"data_gbits_per_s", 1}, {"lane_data_gbits_per_s", 4}};
    const char *dtype = in->parts->dtype ? in->parts->dtype : "";

    memset(out, 0, 3 * sizeof(*out));
    if (part == SWAP_NETWORK) {
        memcpy(out, network, sizeof(network));
    } else if (part == SWAP_MEMORY) {
        out[0] = (struct figure){"memory_gbytes_per_s", 1};
    } else {
        out[0] = (struct figure){pool_text(in->pool, "%s_tflops", dtype), 1};
        if (!strcmp(dtype, "f32")) /* the faster unit, as the limits of rows have it */
            out[1] = (struct figure){"f32_matrix_tflops", 1};
    }
}

static double look_up(struct swap_reading *in, enum swap_part part, const struct limits *limits,
                      const char *entry)
{
    struct figure figures[3];
    double best = NAN, value;

    figures_of(in, part, figures);
    for (size_t i = 0; i < 3 && figures[i].name; i++)
        if (!limits_lookup(limits, pool_text(in->pool, "%s.%s", entry, figures[i].name), &value,
                           NULL, NULL))
            best = fmax(best, value * figures[i].times);
    return best;
}

static struct limits *load(const char *file, char *error, size_t len)
{
    char *configs = suite_configs_folder();
    struct limits *limits = configs ? limits_load(configs, file, error, len) : NULL;

    free(configs);
    return limits;
}

static int read_entry(struct swap_reading *in, enum swap_part part, const char *text, double *to)
{
    const char *colon = strrchr(text, ':');
    const char *file = colon ? pool_text(in->pool, "%.*s", (int)(colon - text), text) : NULL;
    const char *entry = colon ? colon + 1 : text;
    char error[400] = "configs/ is not found";
    struct limits *limits = load(file, error, sizeof(error));

    if (!limits)
        return fail(in, error);
    *to = look_up(in, part, limits, entry);
    if (part != SWAP_NETWORK) {
        double gb;
        in->memory_gb =
            limits_lookup(limits, pool_text(in->pool, "%s.memory_gb", entry), &gb, NULL, NULL) ? NAN
                                                                                               : gb;
    }
    limits_free(limits);
    return *to > 0 ? 0
                   : fail(in, pool_text(in->pool,
                                        "'%s' has no rate of %s: say a rate in %s, FROM:TO, or an "
                                        "entry of configs/hardware, such as %s",
                                        entry, names[part], units[part],
                                        part == SWAP_NETWORK ? "ethernet.400gbe" : "gpu.mi300x"));
}

/* Datasheets state rates at a lower clock than a limit that follows from the highest, or round them:
 * one of both is held against its like. NaN: no datasheet is known. */
static double datasheet_rate(struct swap_reading *in, enum swap_part part)
{
    char error[400];
    struct limits *limits = in->parts->device ? load(NULL, error, sizeof(error)) : NULL;
    const char *entry = limits ? limits_device(limits, "gpu", NULL, in->parts->device) : NULL;
    double rate = NAN;

    if (entry)
        rate = look_up(in, part, limits, entry);
    limits_free(limits);
    return rate;
}

/* Memory's datasheets state it at its highest clock, so that a GPU without one goes by its clock. */
static double from_rate(struct swap_reading *in, enum swap_part part)
{
    const struct parts *p = in->parts;

    if (part == SWAP_PRODUCTS && p->products_clocked)
        return datasheet_rate(in, part);
    double stated =
        part == SWAP_MEMORY && p->gpu && p->memory_clocked ? datasheet_rate(in, part) : NAN;
    return isnan(stated) ? known_rate(p, part) : stated;
}

/* ---- PART=VALUE ---- */

/* A number, with its unit where `needs_unit`. Returns what follows; NULL: there is none. */
static const char *number(const char *text, enum swap_part part, bool needs_unit, double *value)
{
    size_t unit = strlen(units[part]);
    char *end;

    if (!*text || !strchr("0123456789.-", *text)) /* "infiniband" is no number */
        return NULL;
    *value = strtod(text, &end);
    if (end == text)
        return NULL;
    while (*end == ' ')
        end++;
    if (!strncmp(end, units[part], unit))
        return end + unit;
    return needs_unit ? NULL : end;
}

static int read_value(struct swap_reading *in, enum swap_part part, const char *text, double *from,
                      double *to)
{
    const char *rest = number(text, part, false, from);
    int err;

    if (rest && *rest == ':') {
        rest = number(rest + 1, part, false, to);
        return rest && !*rest ? 0 : fail(in, "say PART=FROM:TO, such as network=100:400");
    }
    rest = number(text, part, true, to);
    err = rest && !*rest ? 0
          : number(text, part, false, to)
              ? fail(in, pool_text(in->pool, "'%s' lacks its unit, or is in another than %s", text,
                                   units[part]))
              : read_entry(in, part, text, to);
    if (err)
        return err;
    *from = from_rate(in, part);
    return *from > 0 ? 0
                     : fail(in, pool_text(in->pool,
                                          "no run tells the rate of the measured %s: say "
                                          "%s=FROM:TO in %s",
                                          names[part], names[part], units[part]));
}

/* What the links of a node carried each way in the largest measured sums. NaN: none was measured. */
static double reached_gbits(const struct law *law)
{
    double bytes = 0, most = NAN;

    for (size_t i = 0; i < law->n; i++) {
        const struct fit_point *p = &law->points[i];
        struct fit_terms terms;

        if (p->bytes < bytes || !fit_terms(law->terms, p->ranks, &terms))
            continue;
        most = fmax(p->bytes > bytes ? NAN : most, terms.bus * p->bytes * 8e-3 / p->time_us);
        bytes = p->bytes;
    }
    return most;
}

static int read_one(struct swap_reading *in, const char *text, struct forecast_swap *swap)
{
    const char *equal = strchr(text, '=');
    int part = 0, err;
    double from, to;

    while (names[part] && (!equal || strlen(names[part]) != (size_t)(equal - text) ||
                           strncmp(text, names[part], (size_t)(equal - text)) != 0))
        part++;
    if (!names[part])
        return fail(in, pool_text(in->pool, "'%s': say network=, products= or memory=", text));
    if (swap->times[part] > 0)
        return fail(in, pool_text(in->pool, "%s stands twice", names[part]));
    in->memory_gb = NAN;
    err = read_value(in, (enum swap_part)part, equal + 1, &from, &to);
    if (err)
        return err;
    if (!(from > 0) || !(to > 0) || isinf(from) || isinf(to))
        return fail(in, "a rate is above 0");
    if (part == SWAP_NETWORK)
        swap->reached_gbits = reached_gbits(&in->parts->laws[JOB_SUM].law);
    /* A ratio of two rates hides that the first one is not the measured link's. Eight links of a node
     * may add up, and a switch that sums halves what links carry. */
    if (part == SWAP_NETWORK && swap->reached_gbits > 2 * FORECAST_LINKS * from)
        return fail(in,
                    pool_text(in->pool,
                              "the measured sums move %.3g Gb/s over the links of a node, which "
                              "no links of %g Gb/s carry: FROM is the rate of the measured link",
                              swap->reached_gbits, from));
    swap->times[part] = to / from;
    /* Another device has other memory. That of the products counts, where both are swapped. */
    bool keeps = swap->memory_bytes > 0 &&
                 ((swap->times[SWAP_PRODUCTS] > 0 && part == SWAP_MEMORY) || isnan(in->memory_gb));
    if (part != SWAP_NETWORK && !keeps)
        swap->memory_bytes = 1e9 * in->memory_gb;
    swap->text =
        pool_join(in->pool, swap->text ? swap->text : "", "; ",
                  pool_text(in->pool, "%s: %g to %g %s", names[part], from, to, units[part]));
    return 0;
}

const char *forecast_swap_text(struct pool *pool, const struct forecast_swap *swap)
{
    const char *reached =
        swap->reached_gbits > 0
            ? pool_text(pool, "; the measured sums moved %.3g Gb/s over the links of a node",
                        swap->reached_gbits)
            : "";

    return pool_text(pool, "%s: not measured%s", swap->text, reached);
}

int forecast_swap_read(struct pool *pool, const struct parts *parts, const char *text,
                       struct forecast_swap *swap, char *error, size_t len)
{
    struct swap_reading in = {.pool = pool, .parts = parts, .error = error, .len = len};
    int err = 0;

    *swap = (struct forecast_swap){.reached_gbits = NAN};
    while (!err && *text) {
        size_t n = strcspn(text, ",");

        err = read_one(&in, pool_text(pool, "%.*s", (int)n, text), swap);
        text += n + (text[n] == ',');
    }
    return err;
}
