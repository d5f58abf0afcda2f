/* SPDX-License-Identifier: Apache-2.0 */
/* Launching one case: see launch.h. */
#include "harness/run/launch.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/program.h"
#include "core/row.h"
#include "core/text.h"
#include "core/units.h"
#include "harness/hosts/launcher.h"
#include "harness/limits/limits_row.h"
#include "harness/plan/suite.h"
#include "harness/table.h"
#include "harness/text.h"

#define ARGUMENTS_MAX 128

/* One launch while it goes on. */
struct launching {
    const struct launch_context *c;
    const struct launch *l;
    const struct bench_info *bench;
    struct launched *out;
    const char *kept; /* choices of an earlier launch; "": none */
    char *words;      /* the arguments, split in place */
    bool shares;      /* its process is one of many cases */
    unsigned before;  /* cases that this one measured before */
    const char *argv[ARGUMENTS_MAX + 12];
    char seed[24];
};

/* ---- The row of a launch without rows ---- */

/* In a run that has hosts: the columns in front of the benchmark's own. "from,to," if it takes a
 * peer, "hosts," if it needs a group, "" else. */
static const char *host_columns(const struct launching *g)
{
    if (!g->c->hosts || !g->c->hosts->launcher)
        return "";
    return bench_takes_peer(g->bench) ? "from,to," : bench_needs(g->bench, "group") ? "hosts," : "";
}

/* The values of these columns. */
static void print_hosts(const struct launching *g, FILE *out)
{
    const char *columns = host_columns(g);

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

/* The value of one parameter in what the launch was given ("--size 4096"); "" when it is not there,
 * and where an earlier launch chose it. */
static const char *given_value(const struct launching *g, const char *option)
{
    size_t n = strlen(option);

    if (argument_value(g->kept, option, &(size_t){0}))
        return "";
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

/* A launch on a simulated device is one of these even where it died before it could say so. */
static const char *origin_of(const struct launching *g)
{
    for (size_t i = 1; g->argv[i]; i++)
        if (places_gpu_is_simulated(g->bench, g->argv[i]))
            return "simulated";
    return g->bench->origin ? g->bench->origin : "measured";
}

/* The row of a launch that gave none: its parameters, status failed and why. */
static void print_failed_row(struct launching *g, const char *code, const char *reason, FILE *out)
{
    const struct bench_info *b = g->bench;
    char number[16], utc[24], host[256] = "unknown";
    struct row row;

    row_init(&row);
    row.param_names = (const char *const *)b->columns;
    row.n_params = b->n_columns;
    for (size_t i = 0; i < b->n_columns; i++) {
        /* A parameter's value in this launch: as given, else the benchmark's one default, if the
         * option says something of it; "" for a column that is an outcome. */
        char option[64];

        snprintf(option, sizeof(option), "%s", b->columns[i]);
        for (char *at = option; (at = strchr(at, '_')) != NULL;)
            *at = '-';
        const char *value = given_value(g, option);
        for (size_t k = 0; k < b->n_own; k++) {
            const struct opt *opt = &b->options[k];
            bool given = *value;

            if (strcmp(opt->name, option) != 0)
                continue;
            if (!given && !strchr(b->defaults[k], ',') && option_applies(b, opt, g->l->arguments))
                value = b->defaults[k];
            if (*value && opt_is_left(opt, value, given))
                value = ROW_LEFT;
        }
        row.params[i] = value;
    }
    if (launch_has_pair(g->l))
        snprintf(host, sizeof(host), "%s", g->l->from);
    else if (launch_has_group(g->l))
        snprintf(host, sizeof(host), "%.*s", (int)strcspn(g->l->hosts, ";"), g->l->hosts);
    else
        gethostname(host, sizeof(host) - 1);
    snprintf(number, sizeof(number), "%u", g->l->case_number);
    row.bench = b->name;
    row.label = g->l->arguments;
    row.machine = launch_has_hosts(g->l) ? "" : g->c->machine;
    row.origin = origin_of(g);
    row.status = "failed";
    row.code = code;
    row.reason = reason;
    row.run = g->c->run;
    row.case_id = number;
    row.repeat = g->l->repeat;
    row.launch_s = (double)g->out->child_ns * 1e-9;
    row.process_cases = g->shares ? (double)g->before : NAN;
    row.host = host;
    row.time_utc = clock_utc(utc, sizeof(utc));
    print_hosts(g, out);
    row_print_csv(out, &row);
}

const char *launch_label(const struct bench_list *benches, const struct launch *l, char *text,
                         size_t len)
{
    const struct bench_info *b = bench_list_find(benches, l->bench);
    size_t at = (size_t)snprintf(text, len, "%s", l->bench);

    for (size_t i = 0; b && i < b->n_own; i++) {
        char size_text[24];
        uint64_t bytes;
        size_t size;
        const char *value = argument_value(l->arguments, b->options[i].name, &size);

        if (!value || at >= len)
            continue;
        snprintf(size_text, sizeof(size_text), "%.*s", (int)size, value);
        if (b->options[i].type == OPT_SIZE && !units_parse_u64(size_text, &bytes)) {
            value = units_format_size(bytes, size_text, sizeof(size_text));
            size = strlen(value);
        }
        at += (size_t)snprintf(text + at, len - at, " %.*s", (int)size, value);
    }
    return text;
}

/* ---- Start, rows and samples ---- */

static int make_arguments(struct launching *g)
{
    size_t n = 0;

    g->kept = kept_of(g->c->kept, g->l);
    g->words = xasprintf("%s %s", g->l->arguments, g->kept);
    g->argv[n++] = g->bench->path;
    for (char *save = g->words, *word; (word = strsep(&save, " ")) != NULL;) {
        if (n > ARGUMENTS_MAX)
            return -E2BIG;
        if (*word)
            g->argv[n++] = word;
    }
    /* Made from the run's, so that two launches of one case do not see the same data. */
    snprintf(g->seed, sizeof(g->seed), "%" PRIu64,
             (g->c->seed * 1000003 + g->l->case_number) * 1000003 + g->l->repeat);
    g->argv[n++] = "--csv";
    g->argv[n++] = "--planned";
    g->argv[n++] = "--seed";
    g->argv[n++] = g->seed;
    g->argv[n++] = "--samples";
    g->argv[n++] = "/dev/fd/3";
    g->argv[n] = NULL;
    return 0;
}

/* The benchmark's own header, and the one that is stored: behind the hosts. */
static int make_headers(struct launching *g)
{
    struct launched *o = g->out;
    size_t size = 0;

    if (g->bench->n_columns > ROW_PARAMS_MAX)
        return -E2BIG;
    FILE *out = open_memstream(&o->header, &size);
    if (!out)
        alloc_fail(1);
    row_print_csv_header(out, (const char *const *)g->bench->columns, g->bench->n_columns);
    fclose(out);
    o->stored_header = xasprintf("%s%s", host_columns(g), o->header);
    return 0;
}

/* The text that a joined limit puts into a column; NULL: none. It replaces the whole limit
 * of the benchmark. */
static const char *limit_cell(const struct joined_limit *limit, const char *column, char *text,
                              size_t len)
{
    if (!strcmp(column, "limit_source"))
        return limit->source;
    if (!strcmp(column, "limit_kind"))
        return limit->kind;
    if (!strcmp(column, "limit_link"))
        return limit->link;
    if (!strcmp(column, "limit_scope"))
        return "";
    if (!strcmp(column, "limit_raised_from")) {
        if (!isnan(limit->raised_from))
            snprintf(text, len, "%.9g", limit->raised_from);
        return text;
    }
    if (!strcmp(column, "limit"))
        snprintf(text, len, "%.9g", limit->value);
    else if (!strcmp(column, "percent_of_limit") && !isnan(limit->percent))
        snprintf(text, len, "%.9g", limit->percent);
    return text[0] ? text : NULL;
}

/* Is it an option that may be left to the benchmark? */
static bool has_used(const struct bench_info *b, const char *column)
{
    char used[64];

    snprintf(used, sizeof(used), "%s%s", column, ROW_USED);
    for (size_t i = 0; i < b->n_columns; i++)
        if (!strcmp(b->columns[i], used))
            return true;
    return false;
}

/* What the harness fills in for a column of a row; NULL: the benchmark's own value stays. `limit`
 * is NULL where none was joined. */
static const char *filled(const struct launching *g, const struct joined_limit *limit,
                          const char *column, char *text, size_t len)
{
    text[0] = 0;
    if (!strcmp(column, "run"))
        return g->c->run;
    if (!strcmp(column, "machine")) /* of a launch on hosts it is another's */
        return launch_has_hosts(g->l) ? NULL : g->c->machine;
    if (!strcmp(column, "case"))
        snprintf(text, len, "%u", g->l->case_number);
    else if (!strcmp(column, "repeat"))
        snprintf(text, len, "%u", g->l->repeat);
    else if (!strcmp(column, "launch_s"))
        snprintf(text, len, "%.3f", (double)g->out->child_ns * 1e-9);
    else if (!strcmp(column, "process_cases") && g->shares)
        snprintf(text, len, "%u", g->before);
    else if (argument_value(g->kept, column, &(size_t){0}) && has_used(g->bench, column))
        snprintf(text, len, "%s", ROW_LEFT); /* the plan leaves it to the benchmark */
    else if (limit)
        return limit_cell(limit, column, text, len);
    return text[0] ? text : NULL;
}

/* What was wrong with one of its hosts when the run was started; NULL: nothing. */
static const char *known_problem(const struct launching *g)
{
    const struct hosts *hosts = &g->c->hosts->hosts;
    const char *problem = NULL;

    if (launch_has_pair(g->l)) {
        const struct host *from = hosts_find(hosts, g->l->from), *to = hosts_find(hosts, g->l->to);
        problem = to ? host_problem(to, g->l->bench) : NULL;
        return problem || !from ? problem : host_problem(from, g->l->bench);
    }
    for (size_t i = 0; launch_has_group(g->l) && !problem && i < hosts->n; i++)
        problem = host_problem(&hosts->all[i], g->l->bench);
    return problem;
}

/* Why the launch cannot stand, as far as its end tells; "" when it ended well. Returns its code. */
static const char *judge_end(const struct launching *g, char *reason, size_t len)
{
    const char *code = ROW_CODE_FAILED;
    const struct child_result *r = &g->out->child;
    const char *known = known_problem(g);
    char line[400];

    text_last_line(r->err.text, line, sizeof(line));
    const char *colon = *line ? ": " : "";
    reason[0] = 0;
    g->out->lost = launch_has_group(g->l) && r->status == HOST_LAUNCH_LOST;
    if (g->out->lost)
        snprintf(g->out->summary, sizeof(g->out->summary), "%.250s", line);
    if (g->out->lost || known)
        code = ROW_CODE_PEER_LOST;
    if (known) {
        snprintf(reason, len, "%s", known);
    } else if (r->timed_out) {
        snprintf(reason, len, "over its time-out of %.3g s", (double)g->l->timeout_ns * 1e-9);
        code = ROW_CODE_TIMEOUT;
    } else if (launch_has_hosts(g->l) && r->status == HOST_LAUNCH_FAILED)
        snprintf(reason, len, "%s", line);
    else if (r->flooded)
        snprintf(reason, len, "stopped: its rows, messages or samples were over %u MiB",
                 CHILD_OUTPUT_MAX >> 20);
    else if (r->signal) {
        snprintf(reason, len, "killed by signal %d (%s)%s%s", r->signal, strsignal(r->signal),
                 colon, line);
        code = ROW_CODE_CRASHED;
    } else if (!g->out->lost && !exit_has_rows(r->status))
        snprintf(reason, len, "ended with status %d%s%s", r->status, colon, line);
    size_t at = strlen(reason);
    if (at && g->before)
        snprintf(reason + at, len - at, " (its process had measured %u other case%s)", g->before,
                 g->before == 1 ? "" : "s");
    return code;
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
static int take_rows(struct launching *g, const char *code, char *reason, size_t len)
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
        print_failed_row(g, code, reason, out);
        o->record.n_rows = 1;
        o->record.state = o->child.timed_out ? LAUNCH_LATE : LAUNCH_FAIL;
        snprintf(o->summary, sizeof(o->summary), "%.250s", reason);
    } else if (!err) {
        const struct bench_limit *rules = g->bench->rows.limits;

        for (size_t row = 0; row < t.n_rows; row++) {
            struct joined_limit limit;
            print_hosts(g, out);
            int joined =
                (launch_has_group(g->l) ? false
                                        : !launch_has_pair(g->l) ||
                                              hosts_find(&g->c->hosts->hosts, g->l->from)->here) &&
                limits_row(g->c->limits, g->c->cores, rules, &t, row, &limit);
            for (size_t i = 0; i < t.n_columns; i++) {
                char text[32];
                const char *ours =
                    filled(g, joined ? &limit : NULL, t.columns[i], text, sizeof(text));
                csv_print(out, ours ? ours : table_cell(&t, row, i));
                fputc(i + 1 < t.n_columns ? ',' : '\n', out);
            }
        }
        o->record.n_rows = (unsigned)t.n_rows;
        o->record.state = state_of(g, &t);
        err = take_samples(g);
        if (!err && o->record.state == LAUNCH_DONE)
            kept_learn(g->c->kept, g->bench, g->l, &t, 0, t.n_rows);
    }
    if (out)
        fclose(out);
    table_release(&t);
    return err;
}

/* What it was given that its plan does not tell, and what it wrote to stderr. */
static int make_log(struct launching *g)
{
    const char *said = g->out->child.err.text;
    int n = asprintf(&g->out->log, "%s%s%s%s", *g->kept ? "plumb run: with " : "", g->kept,
                     *g->kept ? ", as an earlier launch of this case chose\n" : "", said);

    if (n < 0)
        g->out->log = NULL;
    g->out->record.log = g->out->log;
    return n < 0 ? -ENOMEM : 0;
}

static int start_and_wait(struct launching *g)
{
    struct child_spec spec = {.argv = g->argv,
                              .timeout_ns = g->l->timeout_ns,
                              .samples = true,
                              .cancel = g->c->cancel,
                              .tick = g->c->tick,
                              .tick_arg = g->c->tick_arg};
    struct host_launch over;

    if (g->c->batches && launch_shares(g->c->batches->rule, g->bench, g->l)) {
        /* The arguments as a line for a process that measures many cases. */
        struct buffer line = {0};

        for (size_t i = 1; g->argv[i]; i++) {
            buffer_text(&line, i > 1 ? " " : "");
            buffer_text(&line, g->argv[i]);
        }
        int err = batch_run(g->c->batches, g->bench, g->l, line.text, &spec, &g->out->child);
        g->shares = true;
        g->before = g->c->batches->before;
        buffer_release(&line);
        return err;
    }
    if (!launch_has_hosts(g->l))
        return child_run(&spec, &g->out->child);
    over = host_launch_of(g->c->hosts, g->l, g->bench->path, g->argv + 1);
    if (launch_has_pair(g->l) && (!over.from || !over.to))
        return -EINVAL;
    spec.body = host_launch_body;
    spec.body_arg = &over;
    return child_run(&spec, &g->out->child);
}

static int launch_found(struct launching *g)
{
    struct launched *o = g->out;
    char reason[768];
    int err = make_headers(g);

    err = err ? err : make_arguments(g);
    if (err)
        return err;
    if (known_problem(g)) {
        /* A launch that is not tried leaves what one that said nothing would. */
        o->known = true;
        buffer_text(&o->child.out, "");
        buffer_text(&o->child.err, "");
        buffer_text(&o->child.samples, "");
    } else
        err = start_and_wait(g);
    o->child_ns = o->child.elapsed_ns;
    if (err)
        return err;
    o->cancelled = o->child.cancelled;
    if (o->cancelled)
        return 0;
    const char *code = judge_end(g, reason, sizeof(reason));
    err = take_rows(g, *reason ? code : ROW_CODE_NO_ROWS, reason, sizeof(reason));
    o->record.header = o->stored_header;
    o->record.rows = o->rows ? o->rows : "";
    o->record.samples = o->samples ? o->samples : "";
    return err ? err : make_log(g);
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
    free(out->stored_header);
    free(out->rows);
    free(out->samples);
    free(out->log);
    child_result_release(&out->child);
    *out = (struct launched){0};
}
