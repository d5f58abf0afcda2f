/* SPDX-License-Identifier: Apache-2.0 */
/* The one main() of all benchmarks. */
#include <errno.h>
#include <jansson.h>
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

/* ---- What a benchmark says of itself ---- */

/*
 * What a benchmark answers to --describe: one JSON object in a line, from which the harness knows
 * all that it knows of it.
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

/* Bytes that are not UTF-8 make no JSON: what has them is "?". NULL: it is not there. */
static void say_text(json_t *into, const char *key, const char *text)
{
    json_t *value = text ? json_string(text) : NULL;

    if (text)
        json_object_set_new(into, key, value ? value : json_string("?"));
}

static json_t *texts_of(const char *const *texts, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *text = json_string(texts[i]);

        json_array_append_new(list, text ? text : json_string("?"));
    }
    return list;
}

static void say_backend(void *list, const struct backend *b)
{
    json_t *o = json_object();

    say_text(o, "name", b->name);
    say_text(o, "state", backend_state_name(b->state));
    say_text(o, "version", b->version);
    say_text(o, "what", b->what);
    say_text(o, "why", b->why);
    say_text(o, "address", b->address);
    say_text(o, "origin", b->simulated ? "simulated" : NULL);
    json_array_append_new(list, o);
}

static json_t *option_of(const struct opt *opt, const struct opt_values *v, bool own)
{
    char letter[2] = {opt->letter, 0};
    json_t *o = json_object();
    size_t n = 0;

    while (opt->choices && opt->choices[n])
        n++;
    say_text(o, "name", opt->name);
    say_text(o, "owner", own ? "own" : "all");
    say_text(o, "letter", opt->letter ? letter : NULL);
    say_text(o, "type", opt_type_name(opt->type));
    json_object_set_new(o, "list", json_boolean(opt->flags & OPT_LIST));
    json_object_set_new(o, "column", json_boolean(opt->flags & OPT_COLUMN));
    json_object_set_new(o, "kept", json_boolean(opt->flags & OPT_KEPT));
    json_object_set_new(o, "default", texts_of((const char *const *)v->texts, v->n));
    if (opt->min || opt->max)
        json_object_set_new(o, "min", json_integer((json_int_t)opt->min));
    if (opt->max)
        json_object_set_new(o, "max", json_integer((json_int_t)opt->max));
    if (n)
        json_object_set_new(o, "choices", texts_of(opt->choices, n));
    say_text(o, "left_by", opt->left_by);
    say_text(o, "help", opt->help);
    if (opt->scope) {
        say_text(o, "when", opt->scope->when);
        say_text(o, "scope", opt->scope->what);
    }
    return o;
}

static void say_field(json_t *o, const struct rows_field *f, const char *entry)
{
    const void *at = entry + f->offset;

    if (f->type == ROWS_TEXT)
        say_text(o, f->name, *(const char *const *)at);
    else if (f->type == ROWS_NUMBER && *(const double *)at != 0)
        json_object_set_new(o, f->name, json_real(*(const double *)at));
    else if (f->type == ROWS_FLAG && *(const unsigned *)at & f->flag)
        json_object_set_new(o, f->name, json_true());
    else if (f->type == ROWS_CHOICE && *(const int *)at)
        say_text(o, f->name, f->choices[*(const int *)at]);
}

static json_t *rows_of(const struct bench *b)
{
    struct bench_rows rows = b->rows ? *b->rows : (struct bench_rows){0};
    struct bench_column columns[ROW_PARAMS_MAX + 1] = {{.name = NULL}};
    struct runner_columns names;
    json_t *o = json_object();

    runner_columns(b, &names);
    for (size_t i = 0; i < names.n; i++)
        columns[i] = runner_column(b, names.list[i]);
    rows.columns = columns;
    say_text(o, "stage", rows.stage ? bench_stage_names[rows.stage] : NULL);
    for (const struct rows_list *list = rows_lists; list->name; list++) {
        const char *entries;

        memcpy(&entries, (const char *)&rows + list->offset, sizeof(entries));
        json_t *all = json_array();
        for (; entries && *(const char *const *)entries; entries += list->size) {
            json_t *one = json_object();
            for (const struct rows_field *f = list->fields; f->name; f++)
                say_field(one, f, entries);
            json_array_append_new(all, one);
        }
        json_object_set_new(o, list->name, all);
    }
    return o;
}

/* `backends`: also those, which may start devices. */
static void describe_bench(const struct bench *b, const struct opts *o, bool backends)
{
    json_t *all = json_object(), *list = json_array();

    say_text(all, "bench", b->name);
    say_text(all, "help", b->help);
    say_text(all, "needs", b->needs ? b->needs : "");
    say_text(all, "origin", b->origin ? b->origin : "measured");
    if (b->backends && backends)
        b->backends(say_backend, list);
    json_object_set_new(all, "backends", list);
    size_t own = 0; /* the first table is the program's own */
    json_t *options = json_array();
    while (o->tables[0][own].name)
        own++;
    for (size_t i = 0; i < o->n; i++)
        json_array_append_new(options, option_of(opts_at(o, i), &o->values[i], i < own));
    json_object_set_new(all, "options", options);
    json_object_set_new(all, "rows", rows_of(b));
    json_dumpf(all, stdout, 0);
    putchar('\n');
    json_decref(all);
}

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

/* From a signal to the end, where a row that is under way cannot be finished. */
#define PATIENCE_S 2

#define AT(field) .offset = offsetof(struct bench_common, field)

static const struct opt common_options[] = {
    {.name = "budget",
     OPT_OF(OPT_DURATION, 0, budget_ns, "5s"),
     .help = "time for the samples of one point"},
    {.name = "warmup",
     OPT_OF(OPT_DURATION, 0, warmup_ns, "1s"),
     .help = "longest warm-up; it ends earlier when the samples are steady"},
    {.name = "confidence",
     OPT_OF(OPT_FRACTION, 0, confidence, "95%"),
     .help = "confidence of the interval of the median"},
    {.name = "width",
     OPT_OF(OPT_FRACTION, 0, width, "1%"),
     .help = "stop when the interval is +/- this share of the median"},
    {.name = "min-samples",
     OPT_NUMBER(OPT_U64, 0, min_samples, TEXT(STATS_MIN_SAMPLES), 1, 1000000000),
     .help = "fewest samples before sampling may stop as converged"},
    {.name = "max-samples",
     OPT_NUMBER(OPT_U64, 0, max_samples, "1000000", 1, 1000000000),
     .help = "largest number of samples"},
    {.name = "repeat",
     OPT_NUMBER(OPT_U64, 0, repeats, "1", 1, 100000),
     .help = "how often every point is measured, in shuffled order"},
    {.name = "seed", OPT_OF(OPT_U64, 0, seed, "1"), .help = "seed of the order and of the data"},
    {.name = "csv",
     OPT_OF(OPT_FLAG, 0, csv, NULL),
     .help = "print rows as CSV with all columns (docs/schema.md), not as a table"},
    {.name = "json",
     OPT_OF(OPT_FLAG, 0, json, NULL),
     .help = "print each row as a JSON object on a line of its own, with the columns it has"},
    {.name = "verbose",
     .letter = 'v',
     OPT_OF(OPT_FLAG, 0, verbose, NULL),
     .help = "a table with all that was found: waits, CPU, counters, why a row is noisy"},
    {.name = "output",
     .letter = 'O',
     OPT_OF(OPT_STRING, 0, output_path, NULL),
     .arg = "FILE",
     .help = "write rows to this file, not to stdout"},
    {.name = "samples",
     OPT_OF(OPT_STRING, 0, samples_path, NULL),
     .arg = "FILE",
     .help = "write every sample to this file, as CSV"},
    {.name = "commands",
     OPT_OF(OPT_STRING, 0, batch_path, NULL),
     .arg = "FILE",
     .help = "measure each line of standard input as one command line, in this process; FILE gets "
             "a line when one begins, and its exit status when it ends"},
    {.name = "planned",
     OPT_OF(OPT_FLAG, OPT_HIDDEN, planned, NULL),
     .help = "the values are those of a run's plan: where one cannot be, its row is skipped"},
    {.name = "describe",
     OPT_OF(OPT_FLAG, 0, describe, NULL),
     .help = "print a description of all options and rows as JSON, for programs"},
    {.name = "help", .letter = 'h', OPT_OF(OPT_FLAG, 0, help, NULL), .help = "show this text"},
    {.name = "version", OPT_OF(OPT_FLAG, 0, version, NULL), .help = "show version and build"},
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
        fprintf(stderr, "plumb-%s: %s\n", bench.name, o->error);
    return err;
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
    struct runner_session session = {0};
    struct bench_common common = {0};
    struct opts o;
    bool stuck = false;
    int status = EXIT_GOOD;

    program_begin();
    if (read_options(&o, &common, argc, argv))
        status = EXIT_USAGE;
    else if (common.help || common.version || common.describe) {
        if (common.help)
            print_help(&o);
        else if (common.describe) /* of other defaults: no device is looked for */
            describe_bench(&bench, &o, argc == 2);
        else
            printf("plumb-%s %s (%s, %s, %s)\n", bench.name, PLUMB_VERSION,
                   *build_commit() ? build_commit() : "no commit", build_compiler(), build_flags());
    } else if (common.batch_path)
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
