/* SPDX-License-Identifier: Apache-2.0 */
/* plumb crosscheck: the command. */
#include "core/exit_code.h"
#include "harness/child.h"
#include "harness/crosscheck/crosscheck.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/option.h"
#include "harness/crosscheck/check.h"

#define AT(member) offsetof(struct check_options, member)

static const struct opt table[] = {
    {.name = "only",
     .type = OPT_STRING,
     .offset = AT(only),
     .arg = "PATTERN",
     .help = "only these witnesses or programs (* ? [..] as in a shell; several: a,b)"},
    {.name = "pairs",
     .letter = 'n',
     .type = OPT_U64,
     .offset = AT(pairs),
     .def = "10",
     .min = 1,
     .max = 1000,
     .help = "pairs of runs for each program; below 6 there is no interval"},
    {.name = "seconds",
     .letter = 's',
     .type = OPT_U64,
     .offset = AT(seconds),
     .def = "2",
     .min = 1,
     .max = 600,
     .help = "seconds that each run measures, without its warm-up"},
    {.name = "timeout",
     .type = OPT_DURATION,
     .offset = AT(timeout_ns),
     .arg = "TIME",
     .help = "longest time of a run; one that takes longer is stopped and fails. Default: 30 s and "
             "five times --seconds"},
    {.name = "device",
     .letter = 'd',
     .type = OPT_STRING,
     .offset = AT(device),
     .arg = "DEVICE[:PORT]",
     .help = "device for RDMA; default: the first one"},
    {.name = "out",
     .letter = 'o',
     .type = OPT_STRING,
     .offset = AT(out),
     .arg = "DIR",
     .help = "folder to make; default: results/crosscheck-TIME"},
    {.name = "csv", .type = OPT_FLAG, .offset = AT(csv), .help = "print CSV, not the table"},
    {.name = "json", .type = OPT_FLAG, .offset = AT(json), .help = "print JSON, not the table"},
    {.name = "help", .letter = 'h', .type = OPT_FLAG, .offset = AT(help), .help = "show this text"},
    {.name = NULL},
};

static void print_help(const struct opts *o)
{
    puts("plumb crosscheck: compare our figures with those of other programs\n"
         "\n"
         "usage: plumb crosscheck [options]\n"
         "\n"
         "Runs iperf3, sockperf, qperf, perftest (ib_write_bw and similar), ucx_perftest, IMB, "
         "osu_allreduce\n"
         "and nccl-tests, if they are in PATH, in turn with our own benchmark. Size, streams, "
         "duration and\n"
         "CPUs are the same, and both ends are on this machine. Nothing is installed. Prints the "
         "ratio ours /\n"
         "theirs with its interval, after a conversion to one definition, and describes the "
         "conversion.\n");
    opts_help(o, stdout);
    puts("\n"
         "verdicts: agree (the interval is within 2 % of 1; for CPU time within 15 %), ours faster "
         "or slower\n"
         "          (the interval excludes 1), undecided\n"
         "exit: 0 all agree or ours is better, 1 ours is worse in one, or a ratio shows a wrong "
         "definition,\n"
         "      2 usage, 3 one is undecided, 4 one failed, nothing could be run, or an interrupt; "
         "if several\n"
         "      apply, the first of 1, 4, 3");
}

static bool prints_table(const struct check *c)
{
    return !c->options.csv && !c->options.json;
}

static bool can_run(const struct comparison *m)
{
    return m->state == COMPARISON_TODO;
}

static int run_all(struct check *c)
{
    int err = 0;

    for (size_t i = 0; !err && i < c->n; i++) {
        struct comparison *m = &c->comparisons[i];
        if (can_run(m)) {
            size_t done = c->progress.done;
            if (!c->progress.out)
                fprintf(stderr, "plumb crosscheck: %s\n", m->w->name);
            err = comparison_run(c, m);
            c->progress.done = done + 2 * (size_t)c->options.pairs; /* also where it failed */
            progress_clear(&c->progress);
        }
        if (prints_table(c) && !err)
            show_comparison(stdout, c, m);
    }
    return err;
}

/* Whatever was measured is kept, also after an interrupt. */
static int write_results(struct check *c)
{
    static const char *const names[] = {"crosscheck.csv", "crosscheck.json"};
    char path[CHECK_PATH_MAX];
    int err = check_close_folder(c);

    for (int i = 0; !err && i < 2; i++) {
        FILE *out = fopen(check_path(c, names[i], path), "we");
        if (out && i == 0)
            show_csv(out, c);
        else if (out)
            err = show_json(out, c);
        int bad = out ? ferror(out) : 1;
        if (out && fclose(out))
            bad = 1;
        if (bad || err) {
            err = -EIO;
            snprintf(c->error, sizeof(c->error), "cannot write '%.400s': is the disk full", path);
        }
    }
    return err;
}

static int status_of(const struct check *c)
{
    bool failed = false, undecided = false, worse = false, ran = false;

    for (size_t i = 0; i < c->n; i++) {
        const struct comparison *m = &c->comparisons[i];
        bool done = m->state == COMPARISON_DONE;
        ran = ran || done;
        failed = failed || m->state == COMPARISON_FAILED || m->state == COMPARISON_TODO;
        undecided = undecided || (done && m->judgement.verdict == VERDICT_UNDECIDED);
        worse = worse || (done && (m->judgement.verdict == VERDICT_WORSE || m->judgement.suspect));
    }
    return worse            ? EXIT_BAD
           : failed || !ran ? EXIT_INCOMPLETE
           : undecided      ? EXIT_UNDECIDED
                            : EXIT_GOOD;
}

static int finish(struct check *c, int err)
{
    int write_err = c->pairs_file ? write_results(c) : 0;

    if (c->options.csv)
        show_csv(stdout, c);
    if (c->options.json && show_json(stdout, c))
        write_err = -ENOMEM;
    if (prints_table(c) && c->folder)
        show_end(stdout, c);
    if (err == -ECANCELED)
        fputs("plumb crosscheck: interrupted\n", stderr);
    else if (err || write_err)
        fprintf(stderr, "plumb crosscheck: %s\n", *c->error ? c->error : "out of memory");
    return err || write_err ? EXIT_INCOMPLETE : status_of(c);
}

static int crosscheck(struct check *c)
{
    size_t runs = 0;
    int err = check_plan(c);

    if (err) {
        fprintf(stderr, "plumb crosscheck: %s\n", c->error);
        return err == -ENOENT ? EXIT_USAGE : EXIT_INCOMPLETE;
    }
    for (size_t i = 0; i < c->n; i++)
        runs += can_run(&c->comparisons[i]) ? 2 * (size_t)c->options.pairs : 0;
    if (check_open_folder(c)) {
        fprintf(stderr, "plumb crosscheck: %s\n", c->error);
        return EXIT_USAGE;
    }
    c->cancel = cancel_on_signals();
    progress_start(&c->progress, stderr, runs, 0);
    c->progress.log = NULL; /* off a terminal: a line a witness */
    if (prints_table(c))
        show_begin(stdout, c);
    err = run_all(c);
    return finish(c, err);
}

int cmd_crosscheck(int argc, char **argv)
{
    const struct opt *tables[] = {table, NULL};
    struct check c = {0};
    struct opts o;
    int status = EXIT_USAGE, err = opts_init(&o, tables);

    if (!err)
        err = opts_parse(&o, argc, argv);
    if (!err)
        err = opts_apply(&o, table, NULL, &c.options);
    if (err) {
        fprintf(stderr, "plumb crosscheck: %s\n", o.error);
    } else if (c.options.help) {
        print_help(&o);
        status = EXIT_GOOD;
    } else if (o.n_args || (c.options.csv && c.options.json)) {
        fprintf(stderr, "plumb crosscheck: %s\n",
                o.n_args ? "it takes options alone: see --help" : "--csv or --json, not both");
    } else {
        if (!c.options.timeout_ns)
            c.options.timeout_ns = (30 + 5 * c.options.seconds) * 1000000000ull;
        status = crosscheck(&c);
    }
    check_release(&c);
    opts_release(&o);
    return status;
}
