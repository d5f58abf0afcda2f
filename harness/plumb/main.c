/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, and the benchmarks as commands (plumb gemm is plumb-gemm, as git finds its
 * commands). See plumb.h. */
#include "harness/plumb/plumb.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/option.h"
#include "core/program.h"
#include "harness/against/against.h"
#include "harness/check/check.h"
#include "harness/compare/compare.h"
#include "harness/doctor/doctor.h"
#include "harness/forecast/forecast.h"
#include "harness/history/history.h"
#include "harness/hosts/agent.h"
#include "harness/import/import.h"
#include "harness/plan/bench_info.h"
#include "harness/plan/suite.h"
#include "harness/probe/probe.h"
#include "harness/report/report.h"

/* ---- The commands ---- */

/* The other end of a connection: see the headers of both. */
static int cmd_agent(int argc, char **argv)
{
    return argc > 1 ? host_agent(argv[1]) : against_agent();
}

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* NULL: not for people */
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
    {"import", cmd_import,
     "rows of a run folder out of what iperf3, perftest, nccl-tests, nvbandwidth ... printed"},
    {"agent", cmd_agent, NULL},
    {NULL, NULL, NULL},
};

static int unknown(const char *name)
{
    struct bench_list benches = {0};
    const char *names[160], *near;
    char error[512], *suite = suite_find(name, error, sizeof(error));
    size_t n = 0;

    if (suite && !access(suite, R_OK)) {
        fprintf(stderr, "plumb: '%s' is a suite: did you mean 'plumb run %s'?\n", name, name);
        free(suite);
        return EXIT_USAGE;
    }
    free(suite);
    for (const struct command *c = commands; c->help; c++)
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

static int obey(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";
    char help[] = "--help";

    if (!strcmp(name, "help") && argc > 2) { /* plumb help run is plumb run --help */
        name = argv[1] = argv[2];
        argv[2] = help;
        argc = 3;
    }
    if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
        FILE *out = argc > 1 ? stdout : stderr;
        fputs("plumb: a benchmark suite for the hardware that feeds deep learning\n"
              "\n"
              "usage: plumb COMMAND [options]\n"
              "\n",
              out);
        for (const struct command *c = commands; c->help; c++)
            fprintf(out, "  %-10s %s\n", c->name, c->help);
        fputs("  BENCH      run one benchmark: plumb BENCH --help (plumb list shows them)\n"
              "\n"
              "Each command has its own help: plumb run --help. Start with: plumb run quick\n",
              out);
        return argc > 1 ? EXIT_GOOD : EXIT_USAGE;
    }
    if (!strcmp(name, "--version") || !strcmp(name, "-v") || !strcmp(name, "version")) {
        printf("plumb %s (%s, %s, %s)\n", PLUMB_VERSION,
               *build_commit() ? build_commit() : "no commit", build_compiler(), build_flags());
        return 0;
    }
    for (const struct command *c = commands; c->name; c++)
        if (!strcmp(c->name, name))
            return c->run(argc - 1, argv + 1);
    return run_bench(argc - 1, argv + 1);
}

/* For jansson, too, no memory ends the program: what it cannot make is wrong text alone. */
static void *json_bytes(size_t n)
{
    return xrealloc(NULL, n);
}

int main(int argc, char **argv)
{
    program_begin();
    json_set_alloc_funcs(json_bytes, free);
    return program_end("plumb", obey(argc, argv));
}
