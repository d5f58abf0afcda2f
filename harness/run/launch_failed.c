/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a launch that gave none: see launch_parts.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/row.h"
#include "core/text.h"
#include "harness/plan/places.h"
#include "harness/run/launch_parts.h"

const char **launch_column_names(const struct bench_info *b)
{
    const char **names = calloc(b->n_columns + 1, sizeof(*names));

    for (size_t i = 0; names && i < b->n_columns; i++)
        names[i] = b->columns[i];
    return names;
}

const char *launch_host_columns(const struct launching *g)
{
    if (!g->c->hosts || !g->c->hosts->launcher)
        return "";
    return bench_needs(g->bench, "peer")    ? "from,to,"
           : bench_needs(g->bench, "group") ? "hosts,"
                                            : "";
}

void launch_print_between(const struct launching *g, FILE *out)
{
    const char *columns = launch_host_columns(g);

    if (!*columns)
        return;
    if (!strcmp(columns, "hosts,")) {
        csv_print(out, g->l->hosts);
    } else {
        csv_print(out, g->l->from);
        fputc(',', out);
        csv_print(out, g->l->to);
    }
    fputc(',', out);
}

/* The value of one parameter in the launch's arguments ("--size 4096"); "" when it is not there. */
static const char *given_value(const struct launching *g, const char *option)
{
    size_t n = strlen(option);

    for (size_t i = 1; g->argv[i]; i++) {
        const char *word = g->argv[i];
        if (strncmp(word, "--", 2) || strncmp(word + 2, option, n))
            continue;
        if (word[2 + n] == '=')
            return word + 3 + n;
        if (!word[2 + n] && g->argv[i + 1])
            return g->argv[i + 1];
    }
    return "";
}

/* A parameter's value in this launch: as given, else the benchmark's one default; "" for a column
 * that is an outcome. */
static const char *parameter_value(const struct launching *g, const char *column)
{
    char option[64];

    snprintf(option, sizeof(option), "%s", column);
    for (char *at = option; (at = strchr(at, '_')) != NULL;)
        *at = '-';
    const char *value = given_value(g, option);
    for (size_t i = 0; !*value && i < g->bench->n_own; i++)
        if (!strcmp(g->bench->options[i].name, option) && !strchr(g->bench->defaults[i], ','))
            value = g->bench->defaults[i];
    return value;
}

/* A launch on a simulated device is one of these even where it died before it could say so. */
static const char *origin_of(const struct launching *g)
{
    for (size_t i = 1; g->argv[i]; i++)
        if (places_gpu_is_simulated(g->bench, g->argv[i]))
            return "simulated";
    return g->bench->origin ? g->bench->origin : "measured";
}

int launch_failed_row(struct launching *g, const char *reason, FILE *out)
{
    const struct bench_info *b = g->bench;
    const char **names = launch_column_names(b);
    char number[16], utc[24], host[256] = "unknown";
    struct row row;

    if (!names || b->n_columns > ROW_PARAMS_MAX) {
        free(names);
        return -ENOMEM;
    }
    row_init(&row);
    row.param_names = names;
    row.n_params = b->n_columns;
    for (size_t i = 0; i < b->n_columns; i++)
        row.params[i] = parameter_value(g, names[i]);
    if (launch_has_pair(g->l))
        snprintf(host, sizeof(host), "%s", g->l->from);
    else if (launch_has_group(g->l))
        snprintf(host, sizeof(host), "%.*s", (int)strcspn(g->l->hosts, ";"), g->l->hosts);
    else
        gethostname(host, sizeof(host) - 1);
    snprintf(number, sizeof(number), "%u", g->l->case_number);
    row.origin = origin_of(g);
    row.status = "failed";
    row.reason = reason;
    row.run = g->c->run;
    row.case_id = number;
    row.repeat = g->l->repeat;
    row.host = host;
    row.time_utc = clock_utc(utc, sizeof(utc));
    launch_print_between(g, out);
    row_print_csv(out, &row);
    free(names);
    return 0;
}
