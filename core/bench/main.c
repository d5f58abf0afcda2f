/* SPDX-License-Identifier: Apache-2.0 */
/* The one main() of all benchmarks. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bench/bench.h"
#include "core/bench/runner.h"
#include "core/option.h"
#include "core/program.h"
#include "core/stats.h"
#include "core/text.h"

struct json_out {
    FILE *out;
    unsigned depth;
    bool more; /* something stands before, in the innermost */
};

/*
 * ---- Writing JSON, a member or an element at a time ----
 *
 * `key` is NULL in lists. Names of jansson, which the harness links, are not taken.
 */

#define LINES_DEPTH 2 /* so far each member has a line of its own */

static void begin(struct json_out *j, const char *key, bool line)
{
    if (j->more)
        fputc(',', j->out);
    if (j->depth && (line || j->depth <= LINES_DEPTH))
        fprintf(j->out, "\n%*s", (int)(2 * j->depth), "");
    else if (j->more)
        fputc(' ', j->out);
    if (key) {
        json_print(j->out, key);
        fputs(": ", j->out);
    }
    j->more = true;
}

/* '{' or '[' */
static void json_out_open(struct json_out *j, const char *key, char bracket)
{
    begin(j, key, !key);
    fputc(bracket, j->out);
    j->depth++;
    j->more = false;
}

/* '}' or ']' */
static void json_out_close(struct json_out *j, char bracket)
{
    j->depth--;
    if (!j->depth)
        fputc('\n', j->out);
    fputc(bracket, j->out);
    if (!j->depth)
        fputc('\n', j->out);
    j->more = true;
}

/* NULL: null */
static void json_out_text(struct json_out *j, const char *key, const char *text)
{
    begin(j, key, false);
    if (text)
        json_print(j->out, text);
    else
        fputs("null", j->out);
}

static void json_out_texts(struct json_out *j, const char *key, const char *const *texts, size_t n)
{
    json_out_open(j, key, '[');
    for (size_t i = 0; i < n; i++)
        json_out_text(j, NULL, texts[i]);
    json_out_close(j, ']');
}

/* finite */
static void json_out_real(struct json_out *j, const char *key, double value)
{
    begin(j, key, false);
    fprintf(j->out, "%.17g", value);
}

static void json_out_u64(struct json_out *j, const char *key, uint64_t value)
{
    begin(j, key, false);
    fprintf(j->out, "%" PRIu64, value);
}

static void json_out_flag(struct json_out *j, const char *key, bool value)
{
    begin(j, key, false);
    fputs(value ? "true" : "false", j->out);
}

/* ---- What a benchmark says of itself ---- */

/*
 * What a benchmark answers to --describe: one JSON object, from which the harness knows all that it
 * knows of it.
 *
 *   bench, help, needs, origin   as in struct bench
 *   backends   a list of {name, state (present, absent, down), version, what, why, address, origin
 *              (simulated)}: core/backend.h; what is not known is not there
 *   options    a list of {name, owner (own, all), letter, type, list, column, kept, default (a
 *              list), min, max, choices, help, when, scope}; what an option has not is not there
 *   rows       {stage, columns, metrics, headlines, contrasts, plots, terms, pipes, limits,
 *              experiments, starts}: core/bench_rows.h. Its columns are all columns of parameters, in the
 *              order of the rows
 */

static void say_backend(void *arg, const struct backend *b)
{
    struct json_out *j = arg;

    json_out_open(j, NULL, '{');
    json_out_text(j, "name", b->name);
    json_out_text(j, "state", backend_state_name(b->state));
    if (b->version)
        json_out_text(j, "version", b->version);
    if (b->what)
        json_out_text(j, "what", b->what);
    if (b->why)
        json_out_text(j, "why", b->why);
    if (b->address)
        json_out_text(j, "address", b->address);
    if (b->simulated)
        json_out_text(j, "origin", "simulated");
    json_out_close(j, '}');
}

static void say_option(struct json_out *j, const struct opt *opt, const struct opt_values *v,
                       bool own)
{
    char letter[2] = {opt->letter, 0};
    size_t n = 0;

    while (opt->choices && opt->choices[n])
        n++;
    json_out_open(j, NULL, '{');
    json_out_text(j, "name", opt->name);
    json_out_text(j, "owner", own ? "own" : "all");
    if (opt->letter)
        json_out_text(j, "letter", letter);
    json_out_text(j, "type", opt_type_name(opt->type));
    json_out_flag(j, "list", opt->flags & OPT_LIST);
    json_out_flag(j, "column", opt->flags & OPT_COLUMN);
    json_out_flag(j, "kept", opt->flags & OPT_KEPT);
    json_out_texts(j, "default", (const char *const *)v->texts, v->n);
    if (opt->max) {
        json_out_u64(j, "min", opt->min);
        json_out_u64(j, "max", opt->max);
    } else if (opt->min) {
        json_out_u64(j, "min", opt->min);
    }
    if (n)
        json_out_texts(j, "choices", opt->choices, n);
    json_out_text(j, "help", opt->help);
    if (opt->scope) {
        json_out_text(j, "when", opt->scope->when);
        json_out_text(j, "scope", opt->scope->what);
    }
    json_out_close(j, '}');
}

static void say_options(struct json_out *j, const struct opts *o)
{
    size_t own = 0; /* the first table is the program's own */

    while (o->tables[0][own].name)
        own++;
    json_out_open(j, "options", '[');
    for (size_t i = 0; i < o->n; i++)
        say_option(j, opts_at(o, i), &o->values[i], i < own);
    json_out_close(j, ']');
}

static void say_field(struct json_out *j, const struct rows_field *f, const char *entry)
{
    const void *at = entry + f->offset;

    if (f->type == ROWS_TEXT && *(const char *const *)at)
        json_out_text(j, f->name, *(const char *const *)at);
    else if (f->type == ROWS_NUMBER && *(const double *)at != 0)
        json_out_real(j, f->name, *(const double *)at);
    else if (f->type == ROWS_FLAG && *(const unsigned *)at & f->flag)
        json_out_flag(j, f->name, true);
    else if (f->type == ROWS_CHOICE && *(const int *)at)
        json_out_text(j, f->name, f->choices[*(const int *)at]);
}

static void say_list(struct json_out *j, const struct rows_list *list, const char *entry)
{
    json_out_open(j, list->name, '[');
    for (; entry && *(const char *const *)entry; entry += list->size) {
        json_out_open(j, NULL, '{');
        for (const struct rows_field *f = list->fields; f->name; f++)
            say_field(j, f, entry);
        json_out_close(j, '}');
    }
    json_out_close(j, ']');
}

static void say_rows(struct json_out *j, const struct bench *b)
{
    struct bench_rows rows = b->rows ? *b->rows : (struct bench_rows){0};
    struct bench_column columns[ROW_PARAMS_MAX + 1] = {{.name = NULL}};
    struct runner_columns names;

    runner_columns(b, &names);
    for (size_t i = 0; i < names.n; i++)
        columns[i] = runner_column(b, names.list[i]);
    rows.columns = columns;
    json_out_open(j, "rows", '{');
    if (rows.stage)
        json_out_text(j, "stage", bench_stage_names[rows.stage]);
    for (const struct rows_list *list = rows_lists; list->name; list++) {
        const char *entries;

        memcpy(&entries, (const char *)&rows + list->offset, sizeof(entries));
        say_list(j, list, entries);
    }
    json_out_close(j, '}');
}

/* `backends`: also those, which may start devices. */
static void describe_bench(const struct bench *b, const struct opts *o, bool backends, FILE *out)
{
    struct json_out j = {.out = out};

    json_out_open(&j, NULL, '{');
    json_out_text(&j, "bench", b->name);
    json_out_text(&j, "help", b->help);
    json_out_text(&j, "needs", b->needs ? b->needs : "");
    json_out_text(&j, "origin", b->origin ? b->origin : "measured");
    json_out_open(&j, "backends", '[');
    if (b->backends && backends)
        b->backends(say_backend, &j);
    json_out_close(&j, ']');
    say_options(&j, o);
    say_rows(&j, b);
    json_out_close(&j, '}');
}

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

/* From a signal to the end, where a row that is under way cannot be finished. */
#define PATIENCE_S 2

static const struct opt common_options[] = {
    {.name = "budget",
     .type = OPT_DURATION,
     .offset = offsetof(struct bench_common, budget_ns),
     .def = "5s",
     .help = "time for the samples of one point"},
    {.name = "warmup",
     .type = OPT_DURATION,
     .offset = offsetof(struct bench_common, warmup_ns),
     .def = "1s",
     .help = "longest warm-up; it ends earlier when the samples are steady"},
    {.name = "confidence",
     .type = OPT_FRACTION,
     .offset = offsetof(struct bench_common, confidence),
     .def = "95%",
     .help = "confidence of the interval of the median"},
    {.name = "width",
     .type = OPT_FRACTION,
     .offset = offsetof(struct bench_common, width),
     .def = "1%",
     .help = "stop when the interval is +/- this share of the median"},
    {.name = "min-samples",
     .type = OPT_U64,
     .offset = offsetof(struct bench_common, min_samples),
     .def = TEXT(STATS_MIN_SAMPLES),
     .min = 1,
     .max = 1000000000,
     .help = "fewest samples before sampling may stop as converged"},
    {.name = "max-samples",
     .type = OPT_U64,
     .offset = offsetof(struct bench_common, max_samples),
     .def = "1000000",
     .min = 1,
     .max = 1000000000,
     .help = "largest number of samples"},
    {.name = "repeat",
     .type = OPT_U64,
     .offset = offsetof(struct bench_common, repeats),
     .def = "1",
     .min = 1,
     .max = 100000,
     .help = "how often every point is measured, in shuffled order"},
    {.name = "seed",
     .type = OPT_U64,
     .offset = offsetof(struct bench_common, seed),
     .def = "1",
     .help = "seed of the order and of the data"},
    {.name = "csv",
     .type = OPT_FLAG,
     .offset = offsetof(struct bench_common, csv),
     .help = "print rows as CSV with all columns (docs/schema.md), not as a table"},
    {.name = "json",
     .type = OPT_FLAG,
     .offset = offsetof(struct bench_common, json),
     .help = "print each row as a JSON object on a line of its own, with the columns it has"},
    {.name = "output",
     .letter = 'O',
     .type = OPT_STRING,
     .offset = offsetof(struct bench_common, output_path),
     .arg = "FILE",
     .help = "write rows to this file, not to stdout"},
    {.name = "samples",
     .type = OPT_STRING,
     .offset = offsetof(struct bench_common, samples_path),
     .arg = "FILE",
     .help = "write every sample to this file, as CSV"},
    {.name = "commands",
     .type = OPT_STRING,
     .offset = offsetof(struct bench_common, batch_path),
     .arg = "FILE",
     .help = "measure each line of standard input as one command line, in this process; FILE gets "
             "a line when one begins, and its exit status when it ends"},
    {.name = "planned",
     .type = OPT_FLAG,
     .flags = OPT_HIDDEN,
     .offset = offsetof(struct bench_common, planned),
     .help = "the values are those of a run's plan: where one cannot be, its row is skipped"},
    {.name = "describe",
     .type = OPT_FLAG,
     .offset = offsetof(struct bench_common, describe),
     .help = "print a description of all options and rows as JSON, for programs"},
    {.name = "help",
     .letter = 'h',
     .type = OPT_FLAG,
     .offset = offsetof(struct bench_common, help),
     .help = "show this text"},
    {.name = "version",
     .type = OPT_FLAG,
     .offset = offsetof(struct bench_common, version),
     .help = "show version and build"},
    {.name = NULL},
};

static volatile int
    cancel; /* set by the signal handler alone: a handler has no other way to speak */

static void on_signal(int number)
{
    (void)number;
    cancel = 1;
    alarm(PATIENCE_S);
}

/* It is stuck in a driver that does not come back. The rows and samples so far are written: nothing
 * that is done at exit() is to be waited for. */
static void on_alarm(int number)
{
    static const char text[] =
        ": interrupted in a call that does not end: the case at work has no row\n";

    (void)number;
    if (write(STDERR_FILENO, "plumb-", 6) < 0 ||
        write(STDERR_FILENO, bench.name, strlen(bench.name)) < 0 ||
        write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        _exit(EXIT_INCOMPLETE);
    _exit(EXIT_INCOMPLETE);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal,
                               .sa_flags = SA_RESETHAND}; /* a second one ends it at once */
    struct sigaction last = {.sa_handler = on_alarm};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGALRM, &last, NULL);
}

static void print_help(const struct opts *o)
{
    printf("plumb-%s: %s\n\n%s\n\nusage: plumb-%s [options]%s%s    (or: plumb %s ...)\n\n",
           bench.name, bench.help, bench.about, bench.name, bench.arguments ? " " : "",
           bench.arguments ? bench.arguments : "", bench.name);
    puts("A list is a,b,c. A list of numbers is also lo..hi (doubling), lo..hixF or lo..hi+STEP. "
         "Sizes\n"
         "take K, M, G (binary).");
    puts("Every combination of the lists is one point, with one row or more. Defaults are in "
         "brackets.\n");
    opts_help(o, stdout);
    puts("\nexit: 0 good, 1 wrong data, 2 usage, 4 a point failed or was interrupted");
}

static int run(struct opts *o, const struct bench_common *common, struct runner_session *session,
               bool *stuck)
{
    struct runner_result result;
    FILE *out = stdout;

    if (common->output_path && !(out = fopen(common->output_path, "we"))) {
        fprintf(stderr, "plumb-%s: cannot write '%s': %s\n", bench.name, common->output_path,
                strerror(errno));
        return EXIT_USAGE;
    }
    catch_signals();
    int err = runner_run(&bench, o, common, out, &cancel, session, &result);
    alarm(0);
    *stuck = result.stuck;
    int lost = stream_finish(out);
    if (lost && !err) {
        fprintf(stderr, "plumb-%s: rows are not complete: %s\n", bench.name, strerror(-lost));
        err = -EIO;
    }
    if (err == -EINVAL || err == -E2BIG)
        return EXIT_USAGE;
    if (err || result.failed || result.interrupted)
        return EXIT_INCOMPLETE;
    return result.wrong ? EXIT_BAD : EXIT_GOOD;
}

static int instead(struct opts *o, const struct bench_common *common)
{
    if (!bench.instead)
        return -1;
    catch_signals();
    return bench.instead(o, common, &cancel);
}

/* Reads a command line. 0, or -errno with a message on stderr. */
static int read_options(struct opts *o, struct bench_common *common, int argc, char **argv)
{
    static const struct opt *tables[] = {NULL, common_options, NULL};

    tables[0] = bench.options;
    int err = opts_init(o, tables);

    if (!err)
        err = opts_parse(o, argc, argv);
    if (!err && bench.defaults)
        err = bench.defaults(o);
    if (!err)
        err = opts_apply(o, common_options, NULL, common);
    if (!err && !common->version) /* which is for the texts of some options, without the others */
        err = opts_refuse_vain(o);
    if (!err && o->n_args) {
        snprintf(o->error, sizeof(o->error), "'%s' is not an option: see --help", o->args[0]);
        err = -EINVAL;
    }
    if (!err && common->csv && common->json) {
        snprintf(o->error, sizeof(o->error), "rows are CSV or JSON: leave out --csv or --json");
        err = -EINVAL;
    }
    if (!err && (common->confidence <= 0 || common->confidence >= 1)) {
        snprintf(o->error, sizeof(o->error),
                 "option '--confidence': from above 0%% to below 100%%");
        err = -EINVAL;
    }
    if (!err && opts_values(o, "min-samples")->given && opts_values(o, "max-samples")->given &&
        common->min_samples > common->max_samples) {
        snprintf(o->error, sizeof(o->error), "--min-samples is more than --max-samples");
        err = -EINVAL;
    }
    if (err)
        fprintf(stderr, "plumb-%s: %s\n", bench.name, err == -ENOMEM ? "out of memory" : o->error);
    return err;
}

static void tell(const struct opts *o, const struct bench_common *common, bool backends)
{
    if (common->help)
        print_help(o);
    else if (common->describe)
        describe_bench(&bench, o, backends, stdout);
    else
        printf("plumb-%s %s (%s, %s, %s)\n", bench.name, PLUMB_VERSION,
               *build_commit() ? build_commit() : "no commit", build_compiler(), build_flags());
}

static int measure(struct opts *o, const struct bench_common *common,
                   struct runner_session *session, bool *stuck)
{
    int status = instead(o, common);

    return status < 0 ? run(o, common, session, stuck) : status;
}

/*
 * ---- Many command lines in one process ----
 *
 * Each line of stdin is one, its words between blanks. The file of --commands gets "begin" when one
 * was read, and "end STATUS" when its rows, samples and messages are written. The next one shares
 * what the process has opened (struct runner_session), and nothing else.
 */

#define BATCH_WORDS_MAX 256

static int obey(char *line, struct runner_session *session, bool *stuck)
{
    char *argv[BATCH_WORDS_MAX + 1] = {(char *)bench.name};
    struct bench_common common = {0};
    struct opts o;
    int argc = 1, status = EXIT_USAGE;

    for (char *save = NULL, *word = strtok_r(line, " \n", &save); word;
         word = strtok_r(NULL, " \n", &save)) {
        if (argc == BATCH_WORDS_MAX) {
            fprintf(stderr, "plumb-%s: over %d words in a line\n", bench.name, BATCH_WORDS_MAX);
            return EXIT_USAGE;
        }
        argv[argc++] = word;
    }
    if (read_options(&o, &common, argc, argv)) {
        opts_release(&o);
        return EXIT_USAGE;
    }
    if (common.help || common.version || common.describe || common.batch_path)
        fprintf(stderr, "plumb-%s: a line of --commands is for measuring\n", bench.name);
    else
        status = measure(&o, &common, session, stuck);
    opts_release(&o);
    return status;
}

/* Returns the worst status, by its number. */
static int obey_all(const char *path, struct runner_session *session, bool *stuck)
{
    FILE *marks = fopen(path, "we");
    int worst = EXIT_GOOD;
    char *line = NULL;
    size_t size = 0;

    if (!marks) {
        fprintf(stderr, "plumb-%s: cannot write '%s': %s\n", bench.name, path, strerror(errno));
        return EXIT_USAGE;
    }
    catch_signals();
    while (!cancel && !*stuck && getline(&line, &size, stdin) > 0) {
        fputs("begin\n", marks);
        fflush(marks);
        int status = obey(line, session, stuck);
        fflush(stdout);
        fprintf(marks, "end %d\n", status);
        fflush(marks);
        worst = status > worst ? status : worst;
    }
    alarm(0);
    free(line);
    fclose(marks);
    return worst;
}

int main(int argc, char **argv)
{
    struct runner_session session = {.opened = false};
    struct bench_common common = {0};
    struct opts o;
    bool stuck = false;
    int status = EXIT_GOOD;

    program_begin();
    if (read_options(&o, &common, argc, argv))
        status = EXIT_USAGE;
    else if (common.help || common.version || common.describe)
        tell(&o, &common, argc == 2); /* of other defaults: no device is looked for */
    else if (common.batch_path)
        status = obey_all(common.batch_path, &session, &stuck);
    else
        status = measure(&o, &common, &session, &stuck);
    status = program_end(program_invocation_short_name, status);
    if (stuck)
        _exit(status); /* exit() would wait for a device that does not answer */
    runner_session_release(&bench, &session);
    opts_release(&o);
    return status;
}
