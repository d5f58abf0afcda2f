/* SPDX-License-Identifier: Apache-2.0 */
/* plumb run: see run.h. What goes into run.json is in run_meta.c. */
#include "harness/run/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/csv.h"
#include "core/option.h"
#include "core/units.h"
#include "harness/plan/suite.h"
#include "harness/report/report.h"
#include "harness/run/launch.h"
#include "harness/run/progress.h"
#include "harness/run/run_meta.h"
#include "harness/store/store.h"
#include "harness/text.h"

enum { EXIT_GOOD = 0, EXIT_BAD = 1, EXIT_USAGE = 2, EXIT_INCOMPLETE = 4, EXIT_DAMAGED = 5 };

struct run_options {
    const char *out, *resume, *only;
    uint64_t seed;
    bool dry_run, no_report, help;
};

#define AT(member) offsetof(struct run_options, member)

static const struct opt run_table[] = {
    {.name = "out",
     .letter = 'o',
     .type = OPT_STRING,
     .offset = AT(out),
     .arg = "DIR",
     .help = "the run folder to make; default: results/SUITE-TIME"},
    {.name = "resume",
     .type = OPT_STRING,
     .offset = AT(resume),
     .arg = "DIR",
     .help = "go on with a run that was stopped: what is done stays"},
    {.name = "only",
     .type = OPT_STRING,
     .offset = AT(only),
     .arg = "PATTERN",
     .help = "the cases whose \"BENCH ARGUMENTS\" hold this (* ? [..] as in a shell)"},
    {.name = "seed",
     .type = OPT_U64,
     .offset = AT(seed),
     .def = "1",
     .help = "of the order of the launches and of the data: the same seed, the same plan"},
    {.name = "dry-run",
     .letter = 'n',
     .type = OPT_FLAG,
     .offset = AT(dry_run),
     .help = "print the plan and stop"},
    {.name = "no-report",
     .type = OPT_FLAG,
     .offset = AT(no_report),
     .help = "measure only; make the report later with plumb report"},
    {.name = "help", .letter = 'h', .type = OPT_FLAG, .offset = AT(help), .help = "this text"},
    {.name = NULL},
};

struct run {
    struct run_options options;
    struct bench_list benches;
    struct suite suite;
    struct plan plan;
    struct store *store;
    json_t *meta;
    char *path, *name;
    struct progress progress;
    size_t failed, late, skipped, done;
    bool wrong;
    uint64_t planned_ns, child_ns, own_ns; /* where the time went */
    char error[1024];
};

static volatile int cancel; /* set by the signal handler alone */

static void on_signal(int number)
{
    (void)number;
    cancel = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction before;
    if (!sigaction(SIGHUP, NULL, &before) && before.sa_handler != SIG_IGN) /* nohup stays nohup */
        sigaction(SIGHUP, &action, NULL);
}

static int fail(const struct run *r, int status)
{
    fprintf(stderr, "plumb run: %s\n", r->error);
    return status;
}

static void count_state(struct run *r, enum launch_state state)
{
    r->failed += state == LAUNCH_FAIL;
    r->late += state == LAUNCH_LATE;
    r->skipped += state == LAUNCH_SKIP;
    r->done += state != LAUNCH_TODO;
}

static void tick(void *arg)
{
    progress_show(arg);
}

/* Runs and commits launch i. 0, or -errno with r->error when the run cannot go on. */
static int run_launch(struct run *r, size_t i, const struct launch_context *context)
{
    struct launch *l = &r->plan.launches[i];
    struct launched launched;

    snprintf(r->progress.now, sizeof(r->progress.now), "%s %s (launch %u)", l->bench, l->arguments,
             l->repeat);
    progress_show(&r->progress);
    int err = launch_run(context, l, &launched);
    r->child_ns += launched.child_ns;
    if (err)
        snprintf(r->error, sizeof(r->error), "cannot launch '%s %s': %s", l->bench, l->arguments,
                 strerror(-err));
    else if (!launched.cancelled)
        err = store_commit(r->store, i, &launched.record, r->error, sizeof(r->error));
    if (!err && !launched.cancelled) {
        count_state(r, l->state);
        r->wrong |= launched.wrong;
        r->progress.done++;
        if (l->state == LAUNCH_FAIL || l->state == LAUNCH_LATE) {
            progress_clear(&r->progress);
            fprintf(stderr, "plumb run: %s %s: %s\n", l->bench, l->arguments, launched.summary);
        }
    }
    launched_release(&launched);
    return err;
}

static int run_launches(struct run *r)
{
    struct launch_context context = {.benches = &r->benches,
                                     .run = r->name,
                                     .seed = r->options.seed,
                                     .limits = json_object_get(r->meta, "limits"),
                                     .cores = run_meta_cores(r->meta),
                                     .cancel = &cancel,
                                     .tick = tick,
                                     .tick_arg = &r->progress};
    int err = 0;

    for (size_t i = 0; i < r->plan.n; i++)
        if (r->plan.launches[i].state != LAUNCH_TODO)
            count_state(r, r->plan.launches[i].state);
    fprintf(stderr, "plumb run: %zu launches%s into %s\n", r->plan.n - r->done,
            r->done ? " to go" : "", r->path);
    progress_start(&r->progress, stderr, r->plan.n, r->done);
    for (size_t i = 0; !err && !cancel && i < r->plan.n; i++)
        if (r->plan.launches[i].state == LAUNCH_TODO)
            err = run_launch(r, i, &context);
    progress_clear(&r->progress);
    return err;
}

static void print_dry_run(const struct run *r)
{
    printf("order,case,repeat,bench,arguments\n");
    for (size_t i = 0; i < r->plan.n; i++) {
        const struct launch *l = &r->plan.launches[i];
        printf("%zu,%u,%u,", i + 1, l->case_number, l->repeat);
        csv_print(stdout, l->bench);
        putchar(',');
        csv_print(stdout, l->arguments);
        putchar('\n');
    }
    fprintf(stderr, "plumb run: %zu launches planned, nothing was run\n", r->plan.n);
}

/* As it was given, without slashes at its end. */
static int set_path(struct run *r, const char *path)
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    r->path = strndup(path, len);
    return r->path ? 0 : -ENOMEM;
}

static int choose_path(struct run *r)
{
    char path[512], stamp[32];
    time_t now = time(NULL);
    struct tm tm;

    if (r->options.out)
        return set_path(r, r->options.out);
    gmtime_r(&now, &tm);
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
    mkdir("results", 0755); /* a failure shows when the run folder itself cannot be made */
    snprintf(path, sizeof(path), "results/%.400s-%s", r->suite.name, stamp);
    return set_path(r, path);
}

static void take_name(struct run *r)
{
    const char *slash = strrchr(r->path, '/');

    r->name = strdup(slash ? slash + 1 : r->path);
}

/* Reads suite and benchmarks, makes the plan. Returns an exit code. */
static int make_plan(struct run *r, const char *suite_name, struct buffer *config)
{
    char *path = suite_find(suite_name, r->error, sizeof(r->error));
    char *configs = suite_configs_folder();
    int err = path ? file_read(path, 1u << 20, config) : -ENOENT;

    if (path && err)
        snprintf(r->error, sizeof(r->error), "cannot read the suite '%s': %s", path,
                 strerror(-err));
    if (!err)
        err = suite_parse(path, config->text, config->size, configs, &r->benches, &r->suite,
                          r->error, sizeof(r->error));
    if (!err) {
        err = plan_make(&r->suite, r->options.seed, r->options.only, &r->plan);
        if (err == -ENOENT)
            snprintf(r->error, sizeof(r->error),
                     "no case of suite '%s' matches --only '%s': see --dry-run", r->suite.name,
                     r->options.only);
        else if (err)
            snprintf(r->error, sizeof(r->error), "cannot plan: %s", strerror(-err));
    }
    free(path);
    free(configs);
    return err ? fail(r, EXIT_USAGE) : EXIT_GOOD;
}

static int start_new(struct run *r, const char *suite_name, int argc, char **argv)
{
    struct buffer config = {0};
    uint64_t begin_ns = clock_now_ns();
    int status = make_plan(r, suite_name, &config);

    r->planned_ns = clock_now_ns() - begin_ns;
    if (status == EXIT_GOOD && r->options.dry_run) {
        print_dry_run(r);
    } else if (status == EXIT_GOOD) {
        if (!choose_path(r))
            take_name(r);
        r->meta = !r->name ? NULL
                           : run_meta_make(&(struct run_meta){.name = r->name,
                                                              .suite = r->suite.name,
                                                              .config = config.text,
                                                              .config_size = config.size,
                                                              .seed = r->options.seed,
                                                              .only = r->options.only,
                                                              .argc = argc,
                                                              .argv = argv});
        snprintf(r->error, sizeof(r->error), "out of memory");
        if (!r->meta ||
            store_create(r->path, r->meta, &r->plan, &r->store, r->error, sizeof(r->error)))
            status = fail(r, EXIT_INCOMPLETE);
    }
    buffer_release(&config);
    return status;
}

/* What is left is measured as what is there was, or not at all. */
static int check_same(struct run *r)
{
    int err = run_meta_same(r->meta, r->error, sizeof(r->error));

    for (size_t i = 0; !err && i < r->plan.n; i++) {
        const char *bench = r->plan.launches[i].bench;
        if (r->plan.launches[i].state == LAUNCH_TODO && !bench_list_find(&r->benches, bench)) {
            snprintf(r->error, sizeof(r->error),
                     "the plan needs the benchmark '%s', which is not here: see plumb list", bench);
            err = -ENOENT;
        }
    }
    return err;
}

static int start_again(struct run *r)
{
    int err = set_path(r, r->options.resume);

    if (!err) /* r owns the path, release() frees it */
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
        err = run_meta_load(r->path, &r->meta, r->error, sizeof(r->error));
    if (!err)
        err = store_open(r->path, &r->plan, &r->store, r->error, sizeof(r->error));
    if (!err)
        err = run_has_wrong(r->path, &r->wrong, r->error, sizeof(r->error));
    if (err)
        return fail(r, err == -EBADMSG                     ? EXIT_DAMAGED
                       : err == -ENOENT || err == -ENOTDIR ? EXIT_USAGE
                                                           : EXIT_INCOMPLETE);
    r->options.seed = run_meta_seed(r->meta);
    const char *name = json_string_value(json_object_get(r->meta, "run"));
    r->name = strdup(name ? name : ""); /* its own, also where the folder was moved */
    return check_same(r) ? fail(r, EXIT_USAGE) : EXIT_GOOD;
}

static void print_cost(const struct run *r)
{
    if (r->done && getenv("PLUMB_COST"))
        fprintf(
            stderr,
            "plumb run: planning %.1f ms; storing %.1f ms, %.3f ms a launch; benchmarks %.1f ms\n",
            (double)r->planned_ns * 1e-6, (double)store_spent_ns(r->store) * 1e-6,
            (double)store_spent_ns(r->store) * 1e-6 / (double)r->done, (double)r->child_ns * 1e-6);
}

/* What is to be said and stored when no more is launched. `err`: what stopped it. */
static int finish(struct run *r, int err)
{
    bool complete = r->done == r->plan.n;
    char error[1024];

    print_cost(r);
    run_meta_finish(r->meta,
                    complete ? "complete"
                    : cancel ? "interrupted"
                             : "stopped",
                    r->planned_ns, store_spent_ns(r->store), r->child_ns);
    int meta_err = store_meta(r->store, r->meta, error, sizeof(error));
    int sync_err = store_close(r->store);
    r->store = NULL;
    if (err)
        fprintf(stderr, "plumb run: %s\n", r->error);
    else if (meta_err)
        fprintf(stderr, "plumb run: %s\n", error);
    else if (sync_err)
        fprintf(stderr, "plumb run: cannot sync '%s' to the disk: %s\n", r->path,
                strerror(-sync_err));
    if (!complete)
        fprintf(stderr,
                "plumb run: %s: %zu of %zu launches are kept; go on with: %s run --resume %s\n",
                cancel ? "interrupted" : "stopped", r->done, r->plan.n, program_invocation_name,
                r->path);
    if (r->failed || r->late)
        fprintf(stderr,
                "plumb run: %zu launches failed, %zu were over their time-out: see %s/log and the "
                "rows' reason\n",
                r->failed, r->late, r->path);
    if (!complete || err || meta_err || sync_err)
        return EXIT_INCOMPLETE;
    if (r->wrong)
        return EXIT_BAD;
    return r->failed || r->late ? EXIT_INCOMPLETE : EXIT_GOOD;
}

static int show_results(struct run *r, int status)
{
    const char *runs[] = {r->path};
    struct run_folder folder;
    char error[1024] = "";

    if (r->options.no_report)
        return status;
    int err = run_folder_load(r->path, &folder, error, sizeof(error));
    if (err) {
        fprintf(stderr, "plumb run: %s\n", error);
        return EXIT_DAMAGED;
    }
    report_summary(stdout, &folder);
    run_folder_release(&folder);
    err = report_make(runs, 1, NULL, error, sizeof(error));
    if (err) {
        fprintf(stderr, "plumb run: no report: %s\n", error);
        return status == EXIT_GOOD ? EXIT_INCOMPLETE : status;
    }
    printf("\nreport: %s/report.html\n", r->path);
    return status;
}

static int run_and_finish(struct run *r)
{
    catch_signals();
    int err = run_launches(r);
    int status = finish(r, err);
    return r->done && !cancel ? show_results(r, status) : status;
}

static void release(struct run *r)
{
    store_close(r->store);
    plan_release(&r->plan);
    suite_release(&r->suite);
    bench_list_release(&r->benches);
    json_decref(r->meta);
    free(r->path);
    free(r->name);
}

static void print_help(const struct opts *o)
{
    puts("plumb run: measure a suite\n\n"
         "usage: plumb run SUITE [options]\n"
         "       plumb run --resume DIR\n\n"
         "SUITE is a name (plumb list shows them) or a YAML file (docs/suites.md). Every case is "
         "launched several times,\n"
         "in an order that is interleaved and shuffled by --seed. Each launch is stored before the "
         "next one starts: a run\n"
         "may be killed at any time and resumed. It ends with a table and a report.\n");
    opts_help(o, stdout);
    puts("\nexit: 0 good, 1 wrong data, 2 usage, 4 incomplete (a case failed, a time-out, an "
         "interrupt, a full disk), 5 damaged files");
}

/* Options that would change what is measured belong to the start of a run. */
static int refuse_with_resume(const struct opts *o, struct run *r)
{
    static const char *const names[] = {"out", "only", "seed", "dry-run"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!opts_values(o, names[i])->given)
            continue;
        snprintf(r->error, sizeof(r->error),
                 "--%s does not go with --resume: the run folder has its plan and seed", names[i]);
        return fail(r, EXIT_USAGE);
    }
    return EXIT_GOOD;
}

static int run_parsed(struct opts *o, struct run *r, int argc, char **argv)
{
    bool resume = r->options.resume != NULL;

    if (resume && refuse_with_resume(o, r))
        return EXIT_USAGE;

    if (o->n_args != (resume ? 0 : 1)) {
        snprintf(r->error, sizeof(r->error),
                 resume ? "--resume takes no suite: the run folder has its plan"
                        : "which suite? For example: plumb run quick (plumb list shows them)");
        return fail(r, EXIT_USAGE);
    }
    if (bench_list_load(&r->benches)) {
        snprintf(r->error, sizeof(r->error), "out of memory");
        return fail(r, EXIT_INCOMPLETE);
    }
    if (r->benches.problems)
        fprintf(stderr, "plumb run: not used: %s", r->benches.problems);
    int status = resume ? start_again(r) : start_new(r, o->args[0], argc, argv);
    if (status != EXIT_GOOD || !r->store)
        return status;
    return run_and_finish(r);
}

int cmd_run(int argc, char **argv)
{
    const struct opt *tables[] = {run_table, NULL};
    struct run r = {0};
    struct opts o;
    int status, err = opts_init(&o, tables);

    if (!err)
        err = opts_parse(&o, argc, argv);
    if (!err)
        err = opts_apply(&o, run_table, NULL, &r.options);
    if (err) {
        fprintf(stderr, "plumb run: %s\n", err == -ENOMEM ? "out of memory" : o.error);
        status = EXIT_USAGE;
    } else if (r.options.help) {
        print_help(&o);
        status = EXIT_GOOD;
    } else {
        status = run_parsed(&o, &r, argc, argv);
    }
    release(&r);
    opts_release(&o);
    return status;
}
