/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of plumb run. See plumb.h. */
#include "harness/plumb/plumb.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/option.h"
#include "core/program.h"
#include "harness/against/against.h"
#include "harness/command.h"
#include "harness/hosts/hosts.h"
#include "harness/hosts/launcher.h"
#include "harness/plan/suite.h"
#include "harness/run/launch.h"
#include "harness/run/run.h"

/* The options as the table fills them in. */
struct given {
    struct run_options run;
    int launcher;  /* of launcher_names; -1: not given */
    int processes; /* of process_rules[] */
    int argc;
    char **argv;
};

#define AT(member) offsetof(struct given, member)

#define NOT_RESUMED (1u << 30) /* refused with --resume: it would change what is measured */
#define NOT_IN_TURN (1u << 31) /* refused with --against: it measures no hosts */

static const struct opt run_table[] = {
    {OPTION("out", OPT_STRING, run.out, "DIR", "run folder to make; default: results/SUITE-TIME"),
     .flags = NOT_RESUMED, .letter = 'o'},
    {OPTION("resume", OPT_STRING, run.resume, "DIR",
            "continue a stopped run; finished launches stay, also failed ones, unless --retry is "
            "given")},
    {OPTION("again", OPT_DURATION, run.again_ns, NULL,
            "time for more repetitions, after the planned ones, of what looks slow among its like "
            "(GPUs, pairs, rails); 0: none; default: as the suite says"),
     .flags = NOT_RESUMED | NOT_IN_TURN},
    {OPTION("retry", OPT_FLAG, run.retry, NULL,
            "with --resume: also repeat launches that failed or exceeded their time-out, but not "
            "those with wrong data")},
    {OPTION("only", OPT_STRING, run.only, "PATTERN",
            "only the cases of this benchmark, or whose \"BENCH ARGUMENTS\" match (* ? [..] as in "
            "a shell; sizes as 65536, 64K or 64KiB); may be given again"),
     .flags = NOT_RESUMED | OPT_AGAIN},
    {OPTION("repeat", OPT_U64, run.repeat, "N",
            "launches of each case, instead of the suite's number; more launches show smaller "
            "differences"),
     .flags = NOT_RESUMED | NOT_IN_TURN, .min = 1, .max = SUITE_REPEAT_MAX},
    {OPTION("processes", OPT_CHOICE, processes, NULL,
            "process of a launch. case: one of its own; round: one for all cases of its benchmark "
            "and round; auto: round for cases whose start is dear, as on a GPU (docs/suites.md)"),
     .flags = NOT_RESUMED | NOT_IN_TURN, .def = "auto", .choices = process_rules},
    {OPTION("seed", OPT_U64, run.seed, NULL,
            "seed of the order of launches and of the data; the same seed gives the same plan"),
     .flags = NOT_RESUMED, .def = "1"},
    {OPTION("hosts", OPT_STRING, run.hosts.file, "FILE",
            "hosts: benchmarks that need a peer run between pairs of them, those that need a "
            "group over all of them (docs/hosts.md)"),
     .flags = NOT_RESUMED | NOT_IN_TURN},
    {OPTION(
         "slots", OPT_U64, run.hosts.slots, "N",
         "ranks of a group on each host, instead of the hosts file's; default: its slots=, or 1"),
     .flags = NOT_RESUMED | NOT_IN_TURN, .min = 1, .max = HOSTS_SLOTS_MAX},
    {OPTION("launcher", OPT_CHOICE, launcher, NULL,
            "launcher for the ends of a pair and the ranks of a group; default: ssh with --hosts, "
            "else local"),
     .flags = NOT_RESUMED | NOT_IN_TURN, .choices = launcher_names},
    {OPTION("rsh", OPT_STRING, run.hosts.rsh, "PROGRAM",
            "program instead of ssh, called as PROGRAM HOST COMMAND; may have arguments; or "
            "$PLUMB_RSH"),
     .flags = NOT_RESUMED | NOT_IN_TURN},
    {OPTION("remote-dir", OPT_STRING, run.hosts.remote_dir, "DIR",
            "folder of plumb and the benchmarks on the other hosts; default: the folder here"),
     .flags = NOT_RESUMED | NOT_IN_TURN},
    {OPTION("port", OPT_U64, run.hosts.port, NULL,
            "first of 100 ports for listeners on the hosts; default: 18600"),
     .flags = NOT_RESUMED | NOT_IN_TURN, .min = 1024, .max = 65535},
    {OPTION("host-wait", OPT_DURATION, run.hosts.wait_ns, NULL,
            "time without an answer after which a host counts as missing; default: 20s"),
     .flags = NOT_RESUMED | NOT_IN_TURN},
    {OPTION("launcher-args", OPT_STRING, run.hosts.arguments, "ARGS",
            "further arguments of mpirun or srun, as one word"),
     .flags = NOT_RESUMED | NOT_IN_TURN},
    {OPTION("against", OPT_STRING, run.against, "COMMAND",
            "measure in turn with another plumb, started by COMMAND (\"ssh guest plumb\", "
            "\"../other/build/bin/plumb\"), and compare (docs/against.md)"),
     .flags = NOT_RESUMED},
    {OPTION("of", OPT_STRING, run.of, "COMMAND",
            "with --against: command for the reference, instead of this plumb"),
     .flags = NOT_RESUMED},
    {OPTION("dry-run", OPT_FLAG, run.dry_run, NULL, "print the plan, and measure nothing"),
     .flags = NOT_RESUMED, .letter = 'n'},
    {OPTION("no-report", OPT_FLAG, run.no_report, NULL,
            "make no report; plumb report can make it later")},
    {OPTION("allow-skip", OPT_FLAG, run.allow_skip, NULL,
            "exit 0 also where nothing of a benchmark could be measured (all of it was skipped)"),
     .flags = NOT_IN_TURN},
    {OPTION("help", OPT_FLAG, run.help, NULL, "show this text"), .letter = 'h'},
    {.name = NULL},
};

/* Prints "plumb run: ..." and returns the exit code. */
static int refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int refuse(const char *format, ...)
{
    va_list args;

    fputs("plumb run: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return EXIT_USAGE;
}

static void print_help(const struct opts *o)
{
    puts("plumb run: measure a suite\n"
         "\n"
         "usage: plumb run SUITE [options]\n"
         "       plumb run SUITE --hosts FILE [--launcher ssh|mpirun|srun]\n"
         "       plumb run SUITE --against COMMAND [--of COMMAND]\n"
         "       plumb run --resume DIR [--retry]\n"
         "\n"
         "SUITE is a name (plumb list shows them) or a YAML file (docs/suites.md). Every case is "
         "launched\n"
         "several times, in an interleaved order that --seed shuffles. Each launch is stored "
         "before the next\n"
         "one starts, so a run may be killed at any time and resumed. It ends with a table and a "
         "report.\n");
    opts_help(o, stdout);
    puts("\n"
         "exit: 0 good, 1 wrong data, 2 usage, 4 incomplete (a case failed, a time-out, an "
         "interrupt, a full\n"
         "      disk, or nothing of a benchmark was measured), 5 damaged files; with --against, if "
         "both runs\n"
         "      are complete, the code of plumb compare: 0 equivalent or better, 1 worse, 3 "
         "inconclusive");
}

/* An option with this flag that was given: its name, or NULL. */
static const char *given_of(const struct opts *o, unsigned flag)
{
    for (const struct opt *opt = run_table; opt->name; opt++)
        if (opt->flags & flag && opts_values(o, opt->name)->given)
            return opt->name;
    return NULL;
}

/* "A|B" of --only A --only B. A new text. */
static char *unite_only(const struct opt_values *only)
{
    struct buffer all = {0};

    buffer_text(&all, "");
    for (size_t i = 0; i < only->n; i++) {
        buffer_text(&all, all.size ? "|" : "");
        buffer_text(&all, only->texts[i]);
    }
    return all.text;
}

static int run_in_turn(const struct opts *o, const struct run_options *given, int argc, char **argv)
{
    const struct against_options options = {.of = given->of,
                                            .against = given->against,
                                            .out = given->out,
                                            .only = given->only,
                                            .seed = given->seed,
                                            .dry_run = given->dry_run,
                                            .no_report = given->no_report,
                                            .argc = argc,
                                            .argv = argv};
    const char *name = given_of(o, NOT_IN_TURN);

    if (given->resume)
        return against_resume(given->resume, &options);
    if (name)
        return refuse("--%s does not go with --against: measure both sides by plumb run --hosts, "
                      "and hold them against each other by plumb compare",
                      name);
    return against_run(o->args[0], &options);
}

static int run_parsed(const struct opts *o, const struct run_options *given, int argc, char **argv)
{
    bool resume = given->resume != NULL, pair = resume && against_is_pair(given->resume);
    const char *name = resume ? given_of(o, NOT_RESUMED) : NULL;

    if (name)
        return refuse("--%s does not go with --resume: the run folder has its plan and seed", name);
    if (given->retry && pair)
        return refuse("--retry does not go with the two runs of --against");
    if (given->retry && !resume)
        return refuse("--retry goes with --resume DIR: it launches again what failed there");
    if (given->of && !given->against)
        return refuse("--of is the reference of --against: give both");
    if (resume && o->n_args)
        return refuse("--resume takes no suite: the run folder has its plan");
    if (!resume && o->n_args != 1)
        return refuse("which suite? For example: plumb run quick (plumb list shows them)");
    if (given->against || pair)
        return run_in_turn(o, given, argc, argv);
    return resume ? run_resume(given) : run_suite(given, o->args[0], argc, argv);
}

static int run_given(const struct opts *o, void *context)
{
    struct given *given = context;
    char *only = given->run.only ? unite_only(opts_values(o, "only")) : NULL;
    int status;

    if (given->launcher >= 0)
        given->run.hosts.launcher = launcher_names[given->launcher];
    given->run.processes = process_rules[given->processes];
    given->run.again_given = opts_values(o, "again")->given;
    given->run.only = only;
    status = run_parsed(o, &given->run, given->argc, given->argv);
    free(only);
    return status;
}

int cmd_run(int argc, char **argv)
{
    struct given given = {.launcher = -1, .argc = argc, .argv = argv};
    const struct command command = {.name = "run",
                                    .table = run_table,
                                    .options = &given,
                                    .help = &given.run.help,
                                    .print_help = print_help,
                                    .run = run_given,
                                    .context = &given};

    return command_run(&command, argc, argv);
}
