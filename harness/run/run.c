/* SPDX-License-Identifier: Apache-2.0 */
/* One run: its plan and folder, its launches, its end. See run.h. */
#include "harness/run/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/program.h"
#include "core/row.h"
#include "core/text.h"
#include "harness/child.h"
#include "harness/hosts/check.h"
#include "harness/hosts/hosts.h"
#include "harness/hosts/launcher.h"
#include "harness/hosts/spread.h"
#include "harness/machine/fact.h"
#include "harness/plan/plan.h"
#include "harness/plan/suite.h"
#include "harness/probe/probe.h"
#include "harness/report/report.h"
#include "harness/run/estimate.h"
#include "harness/run/launch.h"
#include "harness/run/progress.h"
#include "harness/store/run_folder.h"
#include "harness/store/store.h"
#include "harness/text.h"

#define AGAIN_ROUND 256 /* cases that are measured once more before it is looked again */

#define COST_KEPT_NS                                                                               \
    1000000000ull /* of launches, after which run.json has their cost at the latest */

struct run {
    struct run_options options;
    struct bench_list benches;
    struct suite suite;
    struct plan plan;
    struct hosts_run hosts;
    struct store *store; /* NULL after a good start: it was a dry run */
    struct kept kept;
    struct batches batches;
    json_t *meta;
    char *path, *name;
    struct progress progress;
    struct estimate estimate;
    size_t failed, late, done;
    bool wrong;
    uint64_t again_ns;                                       /* for repetitions beyond the plan */
    uint64_t planned_ns, child_ns;                           /* where the time went */
    uint64_t told_planned_ns, told_stored_ns, told_child_ns; /* of it, what run.json has */
    const volatile int *cancel; /* set: the current launch ends, and no other starts */
    char error[1024];
};

/* Prints r->error and returns status. */
static int fail(const struct run *r, int status)
{
    fprintf(stderr, "plumb run: %s\n", r->error);
    return status;
}

/* ---- The start of a run: its plan and its folder, new or found ---- */

/* Prints how long the launches are expected to take. */
static void say_time(struct run *r)
{
    char text[ESTIMATE_BYTES];

    estimate_make(&r->estimate, &r->benches, &r->plan, hosts_slots(&r->hosts.hosts));
    if (r->estimate.todo)
        fprintf(stderr, "plumb run: %s\n", estimate_text(&r->estimate, text));
    if (r->estimate.todo && r->again_ns)
        fprintf(stderr, "plumb run: up to %.3g min more for what looks slow among its like\n",
                (double)r->again_ns / 60e9);
}

static void print_dry_run(struct run *r)
{
    bool hosts = plan_has_hosts(&r->plan);

    printf("order,case,repeat,bench,arguments%s\n", hosts ? ",from,to,hosts,commands" : "");
    for (size_t i = 0; i < r->plan.n; i++) {
        const struct launch *l = &r->plan.launches[i];
        printf("%zu,%u,%u,", i + 1, l->case_number, l->repeat);
        csv_print(stdout, l->bench);
        putchar(',');
        csv_print(stdout, l->arguments);
        if (hosts) {
            /* Between or over which hosts, and the command lines: one, or one for each connection.
             */
            const struct bench_info *bench = bench_list_find(&r->benches, l->bench);
            char *commands = bench && launch_has_hosts(l)
                                 ? host_launch_commands(&r->hosts, l, bench->path)
                                 : NULL;

            printf(",");
            csv_print(stdout, l->from);
            printf(",");
            csv_print(stdout, l->to);
            printf(",");
            csv_print(stdout, l->hosts);
            printf(",");
            csv_print(stdout, commands ? commands : "");
            free(commands);
        }
        putchar('\n');
    }
    fprintf(stderr, "plumb run: %zu %s planned, nothing was run\n", r->plan.n,
            r->plan.n == 1 ? "launch" : "launches");
    say_time(r);
}

/* Cases that need a peer go between the hosts, those that need a group over all of them. 0 or
 * -errno with r->error. */
static int spread_over_hosts(struct run *r)
{
    bool pairs = spread_has_pairs(&r->suite), groups = spread_has_groups(&r->suite);
    int err = 0;

    if (!r->hosts.launcher)
        return 0;
    if (!pairs && !groups) {
        fprintf(stderr,
                "plumb run: no case of suite '%s' is for several hosts: all run on this machine\n",
                r->suite.name);
        hosts_run_release(&r->hosts);
        return 0;
    }
    err = hosts_run_check(&r->hosts, pairs, groups, r->error, sizeof(r->error));
    if (!err)
        err = spread_suite(&r->suite, &r->hosts.hosts, r->options.seed, r->error, sizeof(r->error));
    return err;
}

/* Reads suite and benchmarks, makes the plan. Returns an exit code. */
static int make_plan(struct run *r, const char *suite_name, struct buffer *config)
{
    char *path = suite_find(suite_name, r->error, sizeof(r->error));
    char *configs = suite_configs_folder();
    int err = path ? file_read(path, 1u << 20, config) : -ENOENT;

    if (!err &&
        (err = hosts_run_make(&r->options.hosts, &r->hosts, r->error, sizeof(r->error))) != 0)
        goto done;
    if (path && err)
        snprintf(r->error, sizeof(r->error), "cannot read the suite '%s': %s", path,
                 strerror(-err));
    if (!err)
        err = suite_parse(path, config->text, config->size, configs, &r->benches, &r->suite,
                          r->error, sizeof(r->error));
    if (!err) {
        /* A case that stands for what is absent here has one launch: it gives the reason. */
        for (size_t i = 0; r->options.repeat && i < r->suite.n; i++)
            if (r->suite.cases[i].stand_in == STAND_IN_NOT)
                r->suite.cases[i].repeats = (unsigned)r->options.repeat;
    }
    if (!err)
        suite_unite_absent(&r->suite, r->hosts.launcher != NULL);
    if (!err)
        err = spread_over_hosts(r);
    if (!err) {
        err = plan_make(&r->suite, r->options.seed, r->options.only, &r->plan);
        if (err == -ENOENT)
            snprintf(r->error, sizeof(r->error),
                     "no case of suite '%s' matches --only '%s': see --dry-run", r->suite.name,
                     r->options.only);
        if (!err && r->hosts.launcher)
            spread_say(&r->hosts, &r->suite, &r->plan);
    }
done:
    free(path);
    free(configs);
    return err ? fail(r, EXIT_USAGE) : EXIT_GOOD;
}

/* The hosts are asked before anything is measured. 0 or -errno with r->error. */
static int ask_hosts(struct run *r)
{
    int err = plan_has_hosts(&r->plan) ? check_all(&r->hosts, &r->benches, &r->plan) : 0;

    if (err)
        snprintf(r->error, sizeof(r->error), "cannot ask the hosts: %s", strerror(-err));
    return err;
}

/* Makes r ready to launch. Returns an exit code. */
static int start_new(struct run *r, const char *suite_name, int argc, char **argv)
{
    struct buffer config = {0};
    uint64_t begin_ns = clock_now_ns();
    int status = make_plan(r, suite_name, &config);

    r->planned_ns = clock_now_ns() - begin_ns;
    if (status == EXIT_GOOD && r->plan.pairs)
        fprintf(stderr, "plumb run: sampled %u of %u pairs of GPUs; another --seed draws others\n",
                r->plan.pairs, r->plan.pairs_of);
    if (status == EXIT_GOOD && r->options.dry_run) {
        print_dry_run(r);
    } else if (status == EXIT_GOOD && ask_hosts(r)) {
        status = fail(r, EXIT_INCOMPLETE);
    } else if (status == EXIT_GOOD) {
        r->path = store_path(r->options.out, r->suite.name, "", r->error, sizeof(r->error));
        if (!r->path) {
            buffer_release(&config);
            return fail(r, EXIT_INCOMPLETE);
        }
        const char *slash = strrchr(r->path, '/');
        r->name = xstrdup(slash ? slash + 1 : r->path);
        r->meta = run_meta_make(
            &(struct run_meta){.name = r->name,
                               .benches = &r->benches,
                               .suite = r->suite.name,
                               .config = config.text,
                               .config_size = config.size,
                               .seed = r->options.seed,
                               .only = r->options.only,
                               .processes = r->options.processes,
                               .pairs = r->plan.pairs,
                               .pairs_of = r->plan.pairs_of,
                               .hosts = plan_has_hosts(&r->plan) ? hosts_run_meta(&r->hosts) : NULL,
                               .argc = argc,
                               .argv = argv});
        r->again_ns = r->options.again_given ? r->options.again_ns : r->suite.again_ns;
        if (r->again_ns)
            json_object_set_new(r->meta, "again_s", json_real((double)r->again_ns * 1e-9));
        if (store_create(r->path, r->meta, &r->plan, &r->store, r->error, sizeof(r->error)))
            status = fail(r, EXIT_INCOMPLETE);
    }
    buffer_release(&config);
    return status;
}

/* The launches that are to do must be measured by the same program as those that are done. */
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

/* Is every host of this launch among those of run.json? */
static bool has_hosts_of(const struct run *r, const struct launch *l)
{
    if (!launch_has_hosts(l))
        return true;
    if (!r->hosts.launcher)
        return false;
    if (launch_has_pair(l))
        return hosts_find(&r->hosts.hosts, l->from) && hosts_find(&r->hosts.hosts, l->to);
    char *all = hosts_names(&r->hosts.hosts);
    bool same = !strcmp(all, l->hosts);
    free(all);
    return same;
}

static int check_hosts(struct run *r)
{
    for (size_t i = 0; i < r->plan.n; i++) {
        const struct launch *l = &r->plan.launches[i];
        if (has_hosts_of(r, l))
            continue;
        snprintf(r->error, sizeof(r->error),
                 "'%s' is damaged: plan.csv names hosts, '%s', that run.json does not", r->path,
                 launch_has_group(l) ? l->hosts : l->from);
        return -EBADMSG;
    }
    return 0;
}

/* The same of the run in the folder options.resume. */
static int start_again(struct run *r)
{
    r->path = store_path(r->options.resume, "", "", r->error, sizeof(r->error));
    int err = run_folder_meta(r->path, &r->meta, r->error, sizeof(r->error));
    if (!err)
        err = store_open(r->path, &r->plan, &r->store, r->error, sizeof(r->error));
    if (!err && r->options.retry)
        err = store_retry(r->store, r->error, sizeof(r->error));
    if (!err)
        err = hosts_run_from_meta(json_object_get(r->meta, "hosts"), &r->plan, &r->hosts, r->error,
                                  sizeof(r->error));
    if (!err)
        err = check_hosts(r);
    if (!err)
        err = run_has_wrong(r->path, &r->wrong, r->error, sizeof(r->error));
    if (!err)
        err = kept_load(&r->kept, &r->benches, &r->plan, r->path, r->error, sizeof(r->error));
    if (err)
        return fail(r, err == -EBADMSG                     ? EXIT_DAMAGED
                       : err == -ENOENT || err == -ENOTDIR ? EXIT_USAGE
                                                           : EXIT_INCOMPLETE);
    r->again_ns = (uint64_t)(1e9 * fact_number(r->meta, "again_s", 0));
    r->options.seed = (uint64_t)fact_integer(r->meta, "seed", 0);
    r->options.processes = fact_name(r->meta, "processes");
    r->name = xstrdup(fact_name(r->meta, "run")); /* its own, also where the folder was moved */
    if (check_same(r))
        return fail(r, EXIT_USAGE);
    return ask_hosts(r) ? fail(r, EXIT_INCOMPLETE) : EXIT_GOOD;
}

/* ---- The launches of a run, and its end ---- */

static void count_state(struct run *r, enum launch_state state)
{
    r->failed += state == LAUNCH_FAIL;
    r->late += state == LAUNCH_LATE;
    r->done += state != LAUNCH_TODO;
}

static void tick(void *arg)
{
    progress_show(arg);
}

/* Brings the meta's cost up to now; `state`: the run has ended so. NULL: it goes on. */
static void tell_cost(struct run *r, const char *state)
{
    uint64_t planned = r->planned_ns - r->told_planned_ns;
    uint64_t stored = store_spent_ns(r->store) - r->told_stored_ns;
    uint64_t child = r->child_ns - r->told_child_ns;

    if (state)
        run_meta_finish(r->meta, state, planned, stored, child);
    else
        run_meta_spent(r->meta, planned, stored, child);
    r->told_planned_ns += planned;
    r->told_stored_ns += stored;
    r->told_child_ns += child;
}

/* A session that is killed must not take its cost with it, which a forecast of minutes stands on. */
static int keep_cost(struct run *r)
{
    if (r->child_ns - r->told_child_ns < COST_KEPT_NS)
        return 0;
    tell_cost(r, NULL);
    return store_meta(r->store, r->meta, r->error, sizeof(r->error));
}

/* Runs and commits launch i. 0, or -errno with r->error when the run cannot go on. */
static int run_launch(struct run *r, size_t i, const struct launch_context *context)
{
    struct launch *l = &r->plan.launches[i];
    struct launched launched;
    uint64_t begin_ns = clock_now_ns();
    /* From now on the progress line counts down from the time that launch i and all later ones are
     * expected to take. */
    struct progress *p = &r->progress;

    if (r->estimate.ended) {
        p->left_at_ns = clock_now_ns();
        p->left_ns = estimate_left_ns(&r->estimate, &r->plan);
        p->rest_ns = p->left_ns - estimate_expects_ns(&r->estimate, i);
    }
    char now[160], label[96];

    snprintf(now, sizeof(now), "%s %s (launch %u)", l->bench, l->arguments, l->repeat);
    progress_now(p, now, launch_label(&r->benches, l, label, sizeof(label)));
    int err = launch_run(context, l, &launched);
    r->child_ns += launched.child_ns;
    if (err)
        snprintf(r->error, sizeof(r->error), "cannot launch '%s %s': %s", l->bench, l->arguments,
                 strerror(-err));
    else if (!launched.cancelled)
        err = store_commit(r->store, i, &launched.record, r->error, sizeof(r->error));
    bool failed = launch_state_is_bad(l->state);
    if (!err && !launched.cancelled) {
        count_state(r, l->state);
        estimate_ended(&r->estimate, &r->plan, i, clock_now_ns() - begin_ns);
        r->wrong |= launched.wrong;
        r->progress.done++;
        if ((failed && !launched.known) || launched.lost) {
            progress_clear(&r->progress);
            fprintf(stderr, "plumb run: %s %s: %s\n", l->bench, l->arguments, launched.summary);
        }
    }
    if (!err)
        err = keep_cost(r);
    launched_release(&launched);
    return err;
}

/* Plans and runs one more repetition of launch i's case. */
static int run_once_more(struct run *r, size_t i, const struct launch_context *context)
{
    plan_repeat(&r->plan, i);
    estimate_again(&r->estimate, i);
    int err = store_extend(r->store, r->error, sizeof(r->error));
    r->progress.total = r->plan.n;
    return err ? err : run_launch(r, r->plan.n - 1, context);
}

/* A launch of this case of the plan that has ended; SIZE_MAX: none. */
static size_t launch_of_case(const struct run *r, unsigned number)
{
    for (size_t i = 0; i < r->plan.n; i++)
        if (r->plan.launches[i].case_number == number && r->plan.launches[i].state == LAUNCH_DONE)
            return i;
    return SIZE_MAX;
}

/* Repetitions beyond the planned ones, where they decide, until nothing is open or the time is used
 * up. What is left of it is kept for --resume. */
static int run_again(struct run *r, const struct launch_context *context)
{
    uint64_t begin_ns = clock_now_ns(), until_ns = begin_ns + r->again_ns;
    unsigned cases[AGAIN_ROUND];
    size_t n = 1, before = r->plan.n, started = 1;
    int err = 0;

    while (!err && n && started && !*r->cancel && clock_now_ns() < until_ns) {
        struct run_folder folder;
        err = run_folder_load(r->path, &folder, r->error, sizeof(r->error));
        if (err)
            break;
        err = report_again(&folder, cases, AGAIN_ROUND, &n);
        run_folder_release(&folder);
        started = 0;
        for (size_t k = 0; !err && k < n && !*r->cancel && clock_now_ns() < until_ns; k++) {
            size_t i = launch_of_case(r, cases[k]);
            err = i == SIZE_MAX ? 0 : run_once_more(r, i, context);
            started += i != SIZE_MAX;
        }
        batches_release(&r->batches);
    }
    uint64_t used_ns = clock_now_ns() - begin_ns;
    bool goes_on = (*r->cancel || err) && used_ns < r->again_ns;

    json_object_set_new(r->meta, "again_s",
                        json_real(goes_on ? (double)(r->again_ns - used_ns) * 1e-9 : 0));
    if (r->plan.n > before) {
        progress_clear(&r->progress);
        fprintf(stderr, "plumb run: %zu more repetitions where they decide%s\n", r->plan.n - before,
                n && clock_now_ns() >= until_ns ? "; the time for these is used up" : "");
    }
    return err;
}

static int run_launches(struct run *r)
{
    struct launch_context context = {.benches = &r->benches,
                                     .run = r->name,
                                     .seed = r->options.seed,
                                     .limits = json_object_get(r->meta, "limits"),
                                     .machine = fact_name(r->meta, "machine.cpu.model"),
                                     .cores = fact_number(r->meta, "machine.cpu.cores", 0),
                                     .hosts = &r->hosts,
                                     .batches = &r->batches,
                                     .kept = &r->kept,
                                     .cancel = r->cancel,
                                     .tick = tick,
                                     .tick_arg = &r->progress};
    int rule = PROCESS_AUTO;

    FACT_EACH (fact_at(r->meta, "machine.gpus.devices"), gpu)
        r->batches.alone |= fact_is(gpu, "compute_mode", "exclusive process");

    while (process_rules[rule] && strcmp(process_rules[rule], r->options.processes) != 0)
        rule++;
    r->batches.rule = process_rules[rule] ? (enum process_rule)rule : PROCESS_AUTO;
    int err = 0;

    for (size_t i = 0; i < r->plan.n; i++)
        if (r->plan.launches[i].state != LAUNCH_TODO)
            count_state(r, r->plan.launches[i].state);
    size_t to_do = r->plan.n - r->done;
    fprintf(stderr, "plumb run: %zu launch%s%s into %s\n", to_do, to_do == 1 ? "" : "es",
            r->done ? " to go" : "", r->path);
    say_time(r);
    progress_start(&r->progress, stderr, r->plan.n, r->done);
    for (size_t i = 0; !err && !*r->cancel && i < r->plan.n; i++)
        if (r->plan.launches[i].state == LAUNCH_TODO)
            err = run_launch(r, i, &context);
    if (!err && !*r->cancel && r->again_ns)
        err = run_again(r, &context);
    progress_end(&r->progress);
    batches_release(&r->batches);
    return err;
}

/* Prints and stores how the run ended. `err` is the error that stopped it, or 0. */
static int finish(struct run *r, int err)
{
    bool complete = r->done == r->plan.n;
    char error[1024];

    if (r->done && getenv("PLUMB_COST"))
        fprintf(
            stderr,
            "plumb run: planning %.1f ms; storing %.1f ms, %.3f ms a launch; benchmarks %.1f ms\n",
            (double)r->planned_ns * 1e-6, (double)store_spent_ns(r->store) * 1e-6,
            (double)store_spent_ns(r->store) * 1e-6 / (double)r->done, (double)r->child_ns * 1e-6);
    tell_cost(r, complete ? "complete" : *r->cancel ? "interrupted" : "stopped");
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
                *r->cancel ? "interrupted" : "stopped", r->done, r->plan.n, program_invocation_name,
                r->path);
    if (r->failed || r->late)
        fprintf(stderr,
                "plumb run: %zu %s failed, %zu %s over the time-out: see the rows' "
                "reason, and in %s/log what they printed, if anything\n",
                r->failed, r->failed == 1 ? "launch" : "launches", r->late,
                r->late == 1 ? "was" : "were", r->path);
    if (complete && (r->failed || r->late) && !r->wrong)
        fprintf(stderr, "plumb run: to launch them again: %s run --resume %s --retry\n",
                program_invocation_name, r->path);
    if (!complete || err || meta_err || sync_err)
        return EXIT_INCOMPLETE;
    if (r->wrong)
        return EXIT_BAD;
    return r->failed || r->late ? EXIT_INCOMPLETE : EXIT_GOOD;
}

static bool has_value(const struct table *rows)
{
    for (size_t i = 0; i < rows->n_rows; i++)
        if (!strcmp(table_text(rows, i, "status"), "ok") ||
            !strcmp(table_text(rows, i, "status"), "noisy"))
            return true;
    return false;
}

/* Is what these rows need simply not in this machine? A GPU that it has and that does not answer is
 * another thing. */
static bool needs_other_machine(const struct run *r, const struct table *rows)
{
    /* null: it could not be told */
    const json_t *devices = fact_at(r->meta, "machine.gpus.devices");
    bool other = json_is_array(devices) && !json_array_size(devices);

    for (size_t i = 0; other && i < rows->n_rows; i++)
        other = !strcmp(table_text(rows, i, "code"), row_code(-ENODEV));
    return other;
}

/* Names the benchmarks of which nothing was measured, unless this machine lacks the device and
 * other benchmarks were measured. How many. */
static size_t tell_unmeasured(const struct run *r, const struct run_folder *folder)
{
    size_t measured = 0, n = 0;

    for (size_t i = 0; i < folder->n_benches; i++)
        measured += has_value(&folder->benches[i].rows);
    for (size_t i = 0; i < folder->n_benches; i++) {
        const struct run_bench *b = &folder->benches[i];
        if (!b->rows.n_rows || has_value(&b->rows) ||
            (measured && needs_other_machine(r, &b->rows)))
            continue;
        fprintf(stderr, "plumb run: nothing of '%s' was measured: %s\n", b->name,
                table_text(&b->rows, 0, "reason"));
        n++;
    }
    if (n)
        fputs("plumb run: so this run is incomplete; --allow-skip ends with 0 all the same\n",
              stderr);
    return n;
}

static int show_results(struct run *r, int status)
{
    const char *runs[] = {r->path};
    struct run_folder folder;
    char error[1024] = "";
    int err = run_folder_load(r->path, &folder, error, sizeof(error));

    if (err) {
        fprintf(stderr, "plumb run: %s\n", error);
        return EXIT_DAMAGED;
    }
    if (!r->options.no_report)
        report_summary(stdout, &folder, false);
    if (status == EXIT_GOOD && !r->options.allow_skip && tell_unmeasured(r, &folder))
        status = EXIT_INCOMPLETE;
    run_folder_release(&folder);
    if (r->options.no_report)
        return status;
    err = report_make(runs, 1, NULL, NULL, false, error, sizeof(error));
    if (err) {
        fprintf(stderr,
                "plumb run: the report is not complete: %s; the run is kept; to make it again: %s "
                "report %s\n",
                error, program_invocation_name, r->path);
        return status == EXIT_GOOD ? EXIT_INCOMPLETE : status;
    }
    printf("\nreport: %s/report.html\n", r->path);
    return status;
}

/* Launches all that is to do, stores, reports. Returns the exit code. */
static int run_and_finish(struct run *r)
{
    r->cancel = cancel_on_signals();
    int err = run_launches(r);
    int status = finish(r, err);
    return r->done == r->plan.n || (r->done && !*r->cancel) ? show_results(r, status) : status;
}

/* ---- Both together ---- */

static int load_benches(struct run *r)
{
    bench_list_load(&r->benches);
    if (r->benches.problems)
        fprintf(stderr, "plumb run: not used: %s", r->benches.problems);
    if (r->benches.n)
        return EXIT_GOOD;
    snprintf(r->error, sizeof(r->error), "no benchmark was found, or none could be asked");
    return fail(r, EXIT_INCOMPLETE);
}

static void release(struct run *r)
{
    store_close(r->store);
    estimate_release(&r->estimate);
    plan_release(&r->plan);
    kept_release(&r->kept);
    suite_release(&r->suite);
    hosts_run_release(&r->hosts);
    bench_list_release(&r->benches);
    json_decref(r->meta);
    free(r->path);
    free(r->name);
}

int run_suite(const struct run_options *o, const char *suite, int argc, char **argv)
{
    struct run r = {.options = *o};
    int status = load_benches(&r);

    if (status == EXIT_GOOD)
        status = start_new(&r, suite, argc, argv);
    if (status == EXIT_GOOD && r.store)
        status = run_and_finish(&r);
    release(&r);
    return status;
}

int run_resume(const struct run_options *o)
{
    struct run r = {.options = *o};
    int status = load_benches(&r);

    if (status == EXIT_GOOD)
        status = start_again(&r);
    if (status == EXIT_GOOD)
        status = run_and_finish(&r);
    release(&r);
    return status;
}
