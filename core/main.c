/* SPDX-License-Identifier: Apache-2.0 */
/* The one main() of all benchmarks. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/bench.h"
#include "core/build_info.h"
#include "core/describe.h"
#include "core/exit_code.h"
#include "core/option_scope.h"
#include "core/runner.h"
#include "core/stats.h"
#include "core/version.h"

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
     .help = "most time until the level must be steady"},
    {.name = "confidence",
     .type = OPT_FRACTION,
     .offset = offsetof(struct bench_common, confidence),
     .def = "95%",
     .help = "of the interval of the median"},
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
     .help = "at least so many samples before it may stop as converged"},
    {.name = "max-samples",
     .type = OPT_U64,
     .offset = offsetof(struct bench_common, max_samples),
     .def = "1000000",
     .min = 1,
     .max = 1000000000,
     .help = "at most so many samples"},
    {.name = "repeat",
     .type = OPT_U64,
     .offset = offsetof(struct bench_common, repeats),
     .def = "1",
     .min = 1,
     .max = 100000,
     .help = "measure every point so often, in shuffled order"},
    {.name = "seed",
     .type = OPT_U64,
     .offset = offsetof(struct bench_common, seed),
     .def = "1",
     .help = "of the order and of the data"},
    {.name = "csv",
     .type = OPT_FLAG,
     .offset = offsetof(struct bench_common, csv),
     .help = "rows as CSV, all columns (docs/schema.md), not as a table"},
    {.name = "output",
     .letter = 'O',
     .type = OPT_STRING,
     .offset = offsetof(struct bench_common, output_path),
     .arg = "FILE",
     .help = "rows to this file, not to stdout"},
    {.name = "samples",
     .type = OPT_STRING,
     .offset = offsetof(struct bench_common, samples_path),
     .arg = "FILE",
     .help = "every sample to this file, as CSV"},
    {.name = "describe",
     .type = OPT_FLAG,
     .offset = offsetof(struct bench_common, describe),
     .help = "print all that the benchmark says of itself as JSON, for programs"},
    {.name = "help",
     .letter = 'h',
     .type = OPT_FLAG,
     .offset = offsetof(struct bench_common, help),
     .help = "this text"},
    {.name = "version",
     .type = OPT_FLAG,
     .offset = offsetof(struct bench_common, version),
     .help = "version and build"},
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
    puts("Lists are a,b,c; numbers also lo..hi (doubling), lo..hixF and lo..hi+STEP; sizes take K, "
         "M, G (binary).");
    puts("Every combination of the lists is one point and gives one row or more. Defaults are in "
         "brackets.\n");
    opts_help(o, stdout);
    puts("\nexit: 0 good, 1 wrong data, 2 usage, 4 a point failed or was interrupted");
}

static int run(struct opts *o, const struct bench_common *common, bool *stuck)
{
    struct runner_result result;
    FILE *out = stdout;

    if (common->output_path && !(out = fopen(common->output_path, "we"))) {
        fprintf(stderr, "plumb-%s: cannot write '%s': %s\n", bench.name, common->output_path,
                strerror(errno));
        return EXIT_USAGE;
    }
    catch_signals();
    int err = runner_run(&bench, o, common, out, &cancel, &result);
    alarm(0);
    *stuck = result.stuck;
    int bad = ferror(out);
    if (((out == stdout ? fflush(out) : fclose(out)) || bad) && !err) {
        fprintf(stderr, "plumb-%s: rows are not complete: %s\n", bench.name, strerror(errno));
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

int main(int argc, char **argv)
{
    const struct opt *tables[] = {bench.options, common_options, NULL};
    struct bench_common common = {0};
    struct opts o;
    bool stuck = false;
    int status = EXIT_USAGE, err = opts_init(&o, tables);

    if (!err)
        err = opts_parse(&o, argc, argv);
    if (!err && bench.defaults)
        err = bench.defaults(&o);
    if (!err)
        err = opts_refuse_vain(&o);
    if (!err)
        err = opts_apply(&o, common_options, NULL, &common);
    if (!err && o.n_args) {
        snprintf(o.error, sizeof(o.error), "'%s' is not an option: see --help", o.args[0]);
        err = -EINVAL;
    }
    if (err) {
        fprintf(stderr, "plumb-%s: %s\n", bench.name, err == -ENOMEM ? "out of memory" : o.error);
    } else if (common.help || common.version || common.describe) {
        if (common.help)
            print_help(&o);
        else if (common.describe)
            describe_bench(&bench, &o, argc == 2,
                           stdout); /* else of its defaults: no device is looked for */
        else
            printf("plumb-%s %s (%s, %s, %s)\n", bench.name, PLUMB_VERSION,
                   *build_commit() ? build_commit() : "no commit", build_compiler(), build_flags());
        status = EXIT_GOOD;
    } else {
        status = instead(&o, &common);
        if (status < 0)
            status = run(&o, &common, &stuck);
    }
    if (stuck)
        _exit(status); /* exit() would wait for a device that does not answer */
    opts_release(&o);
    return status;
}
