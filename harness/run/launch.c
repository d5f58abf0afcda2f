/* SPDX-License-Identifier: Apache-2.0 */
/* Launching one case: see launch.h. */
#include "harness/run/launch.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/csv.h"
#include "core/limit_remark.h"
#include "core/row.h"
#include "core/units.h"
#include "harness/plan/places.h"
#include "harness/run/join.h"
#include "harness/store/table.h"
#include "harness/text.h"

#define ARGUMENTS_MAX 128

struct launching {
    const struct launch_context *c;
    const struct launch *l;
    const struct bench_info *bench;
    struct launched *out;
    char *words; /* the arguments, split in place */
    const char *argv[ARGUMENTS_MAX + 12];
    char seed[24];
};

/* A launch has a seed of its own, made from the run's: two launches of one case do not see the same
 * data. */
static uint64_t seed_of(uint64_t seed, const struct launch *l)
{
    return (seed * 1000003 + l->case_number) * 1000003 + l->repeat;
}

static int make_arguments(struct launching *g)
{
    size_t n = 0;

    g->words = strdup(g->l->arguments);
    if (!g->words)
        return -ENOMEM;
    g->argv[n++] = g->bench->path;
    for (char *save = g->words, *word; (word = strsep(&save, " ")) != NULL;) {
        if (n > ARGUMENTS_MAX)
            return -E2BIG;
        if (*word)
            g->argv[n++] = word;
    }
    snprintf(g->seed, sizeof(g->seed), "%llu", (unsigned long long)seed_of(g->c->seed, g->l));
    static const char *const ours[] = {"--csv", "--samples", "/dev/fd/3", "--seed"};
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        g->argv[n++] = ours[i];
    g->argv[n++] = g->seed;
    g->argv[n] = NULL;
    return 0;
}

static const char **column_names(const struct bench_info *b)
{
    const char **names = calloc(b->n_columns + 1, sizeof(*names));

    for (size_t i = 0; names && i < b->n_columns; i++)
        names[i] = b->columns[i];
    return names;
}

static char *make_header(const struct bench_info *b)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    const char **names = column_names(b);

    if (out && names)
        row_print_csv_header(out, names, b->n_columns);
    if (out)
        fclose(out);
    free(names);
    return text;
}

static bool is_rate(const struct table *t, size_t row)
{
    const struct unit *unit = units_find(table_text(t, row, "unit"));

    return unit && unit->higher_is_better;
}

/* What the harness fills in for a column of a row; NULL: the benchmark's own value stays. `limit`
 * is NULL where none was joined. */
static const char *filled(const struct launching *g, const struct joined_limit *limit,
                          const struct table *t, size_t row, const char *column, char *text,
                          size_t len)
{
    text[0] = 0;
    if (!strcmp(column, "run"))
        return g->c->run;
    if (!strcmp(column, "case"))
        snprintf(text, len, "%u", g->l->case_number);
    else if (!strcmp(column, "repeat"))
        snprintf(text, len, "%u", g->l->repeat);
    else if (limit && !strcmp(column, "limit_source"))
        return limit->source;
    else if (limit && !strcmp(column, "limit"))
        snprintf(text, len, "%.9g", limit->value);
    else if (limit && !strcmp(column, "percent_of_limit") && !isnan(limit->percent))
        snprintf(text, len, "%.9g", limit->percent);
    else if (limit && !strcmp(column, "reason") && is_rate(t, row))
        return limit_remark_renew(table_text(t, row, "reason"),
                                  table_number(t, row, "percent_of_limit"), limit->percent, text,
                                  len);
    return text[0] ? text : NULL;
}

static void print_rows(struct launching *g, const struct table *t, FILE *out)
{
    for (size_t row = 0; row < t->n_rows; row++) {
        struct joined_limit limit;
        int joined = join_limit(g->c->limits, g->c->cores, g->l->bench, t, row, &limit);
        for (size_t i = 0; i < t->n_columns; i++) {
            char text[1024];
            const char *ours =
                filled(g, joined ? &limit : NULL, t, row, t->columns[i], text, sizeof(text));
            csv_print(out, ours ? ours : table_cell(t, row, i));
            fputc(i + 1 < t->n_columns ? ',' : '\n', out);
        }
    }
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

/* The row of a launch that gave none: its parameters, status failed and why. */
static int make_failed_row(struct launching *g, const char *reason, FILE *out)
{
    const struct bench_info *b = g->bench;
    const char **names = column_names(b);
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
    row_print_csv(out, &row);
    free(names);
    return 0;
}

static const char *last_line(const char *text, char *line, size_t len)
{
    size_t end = strlen(text), begin;

    while (end && (text[end - 1] == '\n' || text[end - 1] == '\r'))
        end--;
    for (begin = end; begin && text[begin - 1] != '\n'; begin--)
        ;
    snprintf(line, len, "%.*s", (int)(end - begin), text + begin);
    return line;
}

/* Why the launch cannot stand, as far as its end tells; "" when it ended well. */
static void judge_end(const struct launching *g, char *reason, size_t len)
{
    const struct child_result *r = &g->out->child;
    char line[160];

    last_line(r->err.text, line, sizeof(line));
    const char *colon = *line ? ": " : "";
    reason[0] = 0;
    if (r->timed_out)
        snprintf(reason, len, "over its time-out of %.3g s", (double)g->l->timeout_ns * 1e-9);
    else if (r->flooded)
        snprintf(reason, len, "stopped: its rows, messages or samples were over %u MiB",
                 CHILD_OUTPUT_MAX >> 20);
    else if (r->signal)
        snprintf(reason, len, "killed by signal %d (%s)%s%s", r->signal, strsignal(r->signal),
                 colon, line);
    else if (r->status != 0 && r->status != 1 && r->status != 4)
        snprintf(reason, len, "ended with status %d%s%s", r->status, colon, line);
}

static enum launch_state state_of(const struct launching *g, const struct table *t)
{
    size_t skipped = 0, bad = 0;

    for (size_t row = 0; row < t->n_rows; row++) {
        const char *status = table_text(t, row, "status");
        if (!strcmp(status, "wrong"))
            g->out->wrong = true;
        if (!strcmp(status, "wrong") || !strcmp(status, "failed")) {
            snprintf(g->out->summary, sizeof(g->out->summary), "%.16s: %.200s", status,
                     table_text(t, row, "reason"));
            bad++;
        }
        skipped += !strcmp(status, "skipped");
    }
    if (bad)
        return LAUNCH_FAIL;
    return skipped == t->n_rows ? LAUNCH_SKIP : LAUNCH_DONE;
}

/* Lines of the child's samples ("repeat,row,value,origin,disturbed") with case and repeat as in the
 * plan. A child that tells no more than the value leaves the rest empty. */
static int take_samples(struct launching *g)
{
    static const char values_only[] = "repeat,row,value\n";
    const char *text = g->out->child.samples.text, *at = strchr(text, '\n');
    const char *rest = strncmp(text, values_only, strlen(values_only)) ? "" : ",,";
    size_t size = 0;
    FILE *out = open_memstream(&g->out->samples, &size);

    if (!out)
        return -ENOMEM;
    while (at && at[1]) {
        const char *line = at + 1, *end = strchr(line, '\n'), *comma = strchr(line, ',');
        if (!end || !comma || comma > end)
            break; /* a torn last line: the child was stopped */
        fprintf(out, "%u,%u%.*s%s\n", g->l->case_number, g->l->repeat, (int)(end - comma), comma,
                rest);
        at = end;
    }
    fclose(out);
    return 0;
}

/* Turns the output into rows; `reason` says why it cannot, or stays as it is. */
static int take_rows(struct launching *g, char *reason, size_t len)
{
    struct launched *o = g->out;
    struct table t = {0};
    char error[256] = "";
    size_t size = 0;
    int err =
        table_parse("its output", o->child.out.text, o->child.out.size, &t, error, sizeof(error));

    if (!*reason && err)
        snprintf(reason, len, "its output is not rows: %s", error);
    else if (!*reason && strncmp(o->child.out.text, o->header, strlen(o->header)) != 0)
        snprintf(reason, len,
                 "its columns are not those it described: was it rebuilt while this run went on?");
    else if (!*reason && (t.n_rows == 0 || t.n_rows > PLAN_ROWS_MAX))
        snprintf(reason, len, "it printed %zu rows, which must be 1 to %d", t.n_rows,
                 PLAN_ROWS_MAX);
    FILE *out = open_memstream(&o->rows, &size);
    err = out ? 0 : -ENOMEM;
    if (!err && *reason) {
        err = make_failed_row(g, reason, out);
        o->record.n_rows = 1;
        o->record.state = o->child.timed_out ? LAUNCH_LATE : LAUNCH_FAIL;
        snprintf(o->summary, sizeof(o->summary), "%.250s", reason);
    } else if (!err) {
        print_rows(g, &t, out);
        o->record.n_rows = (unsigned)t.n_rows;
        o->record.state = state_of(g, &t);
        err = take_samples(g);
    }
    if (out)
        fclose(out);
    table_release(&t);
    return err;
}

static int launch_found(struct launching *g)
{
    struct launched *o = g->out;
    char reason[512];
    int err = make_arguments(g);

    if (err)
        return err;
    struct child_spec spec = {.argv = g->argv,
                              .timeout_ns = g->l->timeout_ns,
                              .samples = true,
                              .cancel = g->c->cancel,
                              .tick = g->c->tick,
                              .tick_arg = g->c->tick_arg};
    err = child_run(&spec, &o->child);
    o->child_ns = o->child.elapsed_ns;
    if (err)
        return err;
    o->cancelled = o->child.cancelled;
    if (o->cancelled)
        return 0;
    o->header = make_header(g->bench);
    if (!o->header)
        return -ENOMEM;
    judge_end(g, reason, sizeof(reason));
    err = take_rows(g, reason, sizeof(reason));
    o->record.header = o->header;
    o->record.rows = o->rows ? o->rows : "";
    o->record.samples = o->samples ? o->samples : "";
    o->record.log = o->child.err.text;
    return err;
}

int launch_run(const struct launch_context *c, const struct launch *l, struct launched *out)
{
    struct launching g = {.c = c, .l = l, .out = out};

    *out = (struct launched){0};
    g.bench = bench_list_find(c->benches, l->bench);
    if (!g.bench)
        return -ENOENT;
    int err = launch_found(&g);
    free(g.words);
    return err;
}

void launched_release(struct launched *out)
{
    free(out->header);
    free(out->rows);
    free(out->samples);
    child_result_release(&out->child);
    *out = (struct launched){0};
}
