/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, the benchmarks as commands (plumb gemm is plumb-gemm, as git finds its
 * commands), and plumb list. See plumb.h. */
#include "harness/plumb/plumb.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/option.h"
#include "core/program.h"
#include "harness/check/check.h"
#include "harness/compare/compare.h"
#include "harness/crosscheck/crosscheck.h"
#include "harness/doctor/doctor.h"
#include "harness/forecast/forecast.h"
#include "harness/history/history.h"
#include "harness/import/import.h"
#include "harness/plan/bench_info.h"
#include "harness/plan/plan.h"
#include "harness/plan/suite.h"
#include "harness/probe/probe.h"
#include "harness/report/report.h"

/* ---- plumb list: what there is on this machine, and why not ---- */

static void list_benches(const struct bench_list *benches)
{
    puts("benchmarks");
    for (size_t i = 0; i < benches->n; i++) {
        const struct bench_info *b = &benches->benches[i];
        printf("  %-10s %s%s%s\n", b->name, b->help, b->needs && *b->needs ? "; needs " : "",
               b->needs ? b->needs : "");
    }
    if (!benches->n)
        puts("  none: they are searched for in this program's folder and in PATH, as plumb-NAME");
}

static bool same_backend(const struct bench_backend *x, const struct bench_backend *y)
{
    return !strcmp(x->name, y->name) && x->state == y->state && x->simulated == y->simulated &&
           !strcmp(x->address, y->address) && !strcmp(x->version, y->version) &&
           !strcmp(x->what, y->what) && !strcmp(x->why, y->why);
}

static const struct bench_backend *find_backend(const struct bench_info *b,
                                                const struct bench_backend *wanted)
{
    for (size_t k = 0; k < b->n_backends; k++)
        if (same_backend(&b->backends[k], wanted))
            return &b->backends[k];
    return NULL;
}

/* "copy, gemm, memory": the benchmarks that report the same of a backend. "" where one before
 * benchmark i does: then it is printed there. */
static void who_has(const struct bench_list *benches, size_t i, const struct bench_backend *backend,
                    char *text, size_t len)
{
    size_t at = 0;

    text[0] = 0;
    for (size_t k = 0; k < benches->n && at < len; k++) {
        if (!find_backend(&benches->benches[k], backend))
            continue;
        if (k < i)
            return;
        at +=
            (size_t)snprintf(text + at, len - at, "%s%s", at ? ", " : "", benches->benches[k].name);
    }
}

static void widen(int *width, const char *text)
{
    int n = (int)strlen(text);

    *width = n > *width ? n : *width;
}

static void print_backend(const struct bench_backend *b, int who_width, const char *who,
                          int name_width)
{
    const char *const texts[] = {b->version, b->what, b->why};
    const char *between = ": ";

    printf("  %-*s  %-*s  %s", who_width, who, name_width, b->name, backend_state_name(b->state));
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        if (!*texts[i])
            continue;
        printf("%s%s", between, texts[i]);
        between = ", ";
    }
    printf("%s%s%s\n", *b->address ? " at " : "", b->address, b->simulated ? " (simulated)" : "");
}

/* Prints, or where `print` is not set only finds out how wide the columns are. */
static void each_backend(const struct bench_list *benches, bool print, int *who_width,
                         int *name_width)
{
    for (size_t i = 0; i < benches->n; i++)
        for (size_t k = 0; k < benches->benches[i].n_backends; k++) {
            const struct bench_backend *backend = &benches->benches[i].backends[k];
            char who[256];

            who_has(benches, i, backend, who, sizeof(who));
            if (!*who)
                continue;
            widen(who_width, who);
            widen(name_width, backend->name);
            if (print)
                print_backend(backend, *who_width, who, *name_width);
        }
}

static void list_backends(const struct bench_list *benches)
{
    int who_width = 9, name_width = 11;

    puts("\nbackends");
    each_backend(benches, false, &who_width, &name_width);
    each_backend(benches, true, &who_width, &name_width);
}

static int is_suite(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 5 && entry->d_name[0] != '.' && !strcmp(entry->d_name + len - 5, ".yaml");
}

static size_t count_cases(const struct plan *plan)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n; i++)
        n += plan->launches[i].repeat == 1;
    return n;
}

/* As a run on this machine alone would plan it. */
static void list_suite(const char *path, const char *configs, const struct bench_list *benches)
{
    struct suite suite;
    struct plan plan;
    char error[512];

    if (suite_load(path, configs, benches, &suite, error, sizeof(error))) {
        printf("  %s\n", error);
        return;
    }
    size_t all = suite.n;
    suite_unite_absent(&suite, false);
    if (plan_make(&suite, 1, NULL, &plan))
        plan = (struct plan){0};
    printf("  %-10s %s (%zu cases, %zu launches%s", suite.name, suite.about, count_cases(&plan),
           plan.n, all > suite.n ? "" : ")\n");
    if (all > suite.n)
        printf("; %zu more %s what is absent here)\n", all - suite.n,
               all - suite.n == 1 ? "case needs" : "cases need");
    plan_release(&plan);
    suite_release(&suite);
}

static void list_suites(const struct bench_list *benches)
{
    char *configs = suite_configs_folder();
    struct dirent **entries = NULL;
    int n = configs ? scandir(configs, &entries, is_suite, alphasort) : -1;

    puts("\nsuites");
    if (n <= 0)
        printf("  none in %s\n", configs ? configs : "./configs or beside the program");
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", configs, entries[i]->d_name) >= 0)
            list_suite(path, configs, benches);
        free(path);
        free(entries[i]);
    }
    free(entries);
    free(configs);
}

static int cmd_list(int argc, char **argv)
{
    struct bench_list benches;

    if (argc > 1) {
        bool help = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");
        fprintf(help ? stdout : stderr, "usage: plumb list\nBenchmarks, backends and suites that "
                                        "are here; what is missing says why.\n");
        return help ? EXIT_GOOD : EXIT_USAGE;
    }
    if (bench_list_load(&benches)) {
        fputs("plumb list: out of memory\n", stderr);
        return EXIT_INCOMPLETE;
    }
    list_benches(&benches);
    list_backends(&benches);
    list_suites(&benches);
    if (benches.problems)
        printf("\nnot used\n%s", benches.problems);
    bench_list_release(&benches);
    return 0;
}

/* ---- The commands ---- */

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
};

static const struct command commands[] = {
    {"probe", cmd_probe, "what this machine is, virtual or not, and its limits"},
    {"doctor", cmd_doctor, "why this machine is slow, what each cause costs, and the remedy"},
    {"list", cmd_list, "benchmarks, suites and backends: present, or why not"},
    {"run", cmd_run, "measure a suite into a run folder, and make its report"},
    {"report", cmd_report, "HTML page and plots of one run, or of several side by side"},
    {"compare", cmd_compare,
     "equivalent, better, worse or inconclusive: one run, or several, against others"},
    {"check", cmd_check, "is this run slower than its baseline? For CI"},
    {"history", cmd_history, "when did the level of a case change, over many runs?"},
    {"forecast", forecast_command, "how fast does a training job run here, and on more nodes?"},
    {"crosscheck", cmd_crosscheck,
     "compare our figures with iperf3, perftest, nccl-tests, nvbandwidth ..."},
    {"import", cmd_import, "rows of a run folder out of what these programs printed"},
    {NULL, NULL, NULL},
};

static void print_help(FILE *out)
{
    fputs("plumb: a benchmark suite for the hardware that feeds deep learning\n"
          "\n"
          "usage: plumb COMMAND [options]\n"
          "\n",
          out);
    for (const struct command *c = commands; c->name; c++)
        fprintf(out, "  %-10s %s\n", c->name, c->help);
    fputs("  BENCH      run one benchmark: plumb BENCH --help (plumb list shows them)\n"
          "\n"
          "Each command has its own help: plumb run --help. Start with: plumb run quick\n",
          out);
}

static int unknown(const char *name)
{
    struct bench_list benches = {0};
    const char *names[160], *near;
    size_t n = 0;

    for (const struct command *c = commands; c->name; c++)
        names[n++] = c->name;
    bench_list_load(&benches);
    for (size_t i = 0; i < benches.n && n < 159; i++)
        names[n++] = benches.benches[i].name;
    names[n] = NULL;
    near = opts_nearest(name, names);
    if (near)
        fprintf(stderr, "plumb: no command or benchmark '%s': did you mean '%s'?\n", name, near);
    else
        fprintf(stderr, "plumb: no command or benchmark '%s': see plumb --help and plumb list\n",
                name);
    bench_list_release(&benches);
    return EXIT_USAGE;
}

static int run_bench(int argc, char **argv)
{
    char *path = bench_find_program(argv[0]);

    (void)argc;
    if (!path)
        return unknown(argv[0]);
    argv[0] = path;
    execv(path, argv);
    fprintf(stderr, "plumb: cannot start '%s': %s\n", path, strerror(errno));
    free(path);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";

    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        print_help(argc > 1 ? stdout : stderr);
        return argc > 1 ? EXIT_GOOD : EXIT_USAGE;
    }
    if (!strcmp(name, "--version")) {
        printf("plumb %s (%s, %s, %s)\n", PLUMB_VERSION,
               *build_commit() ? build_commit() : "no commit", build_compiler(), build_flags());
        return 0;
    }
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c->run(argc - 1, argv + 1);
    return run_bench(argc - 1, argv + 1);
}
