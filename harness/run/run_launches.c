/* SPDX-License-Identifier: Apache-2.0 */
/* The launches of a run and its end. See run_state.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "harness/cancel.h"
#include "harness/report/report.h"
#include "harness/run/launch.h"
#include "harness/run/run_meta.h"
#include "harness/run/run_state.h"

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

/* From now on the progress line counts down from what is expected of this launch and of those after it. */
static void tell_left(struct run *r, size_t i)
{
    struct progress *p = &r->progress;

    if (!r->pace.ended)
        return;
    p->left_at_ns = clock_now_ns();
    p->left_ns = pace_left_ns(&r->pace, &r->plan);
    p->rest_ns = p->left_ns - pace_expects_ns(&r->pace, &r->plan, i);
}

/* Runs and commits launch i. 0, or -errno with r->error when the run cannot go on. */
static int run_launch(struct run *r, size_t i, const struct launch_context *context)
{
    struct launch *l = &r->plan.launches[i];
    struct launched launched;
    uint64_t begin_ns = clock_now_ns();

    tell_left(r, i);
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
        pace_ended(&r->pace, &r->plan, i, clock_now_ns() - begin_ns);
        r->wrong |= launched.wrong;
        r->progress.done++;
        bool failed = l->state == LAUNCH_FAIL || l->state == LAUNCH_LATE;
        if ((failed && !launched.known) || launched.lost) {
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
                                     .hosts = &r->hosts,
                                     .kept = &r->kept,
                                     .cancel = r->cancel,
                                     .tick = tick,
                                     .tick_arg = &r->progress};
    int err = pace_make(&r->pace, &r->benches, &r->plan, hosts_slots(&r->hosts.hosts));

    if (err)
        snprintf(r->error, sizeof(r->error), "out of memory");
    for (size_t i = 0; i < r->plan.n; i++)
        if (r->plan.launches[i].state != LAUNCH_TODO)
            count_state(r, r->plan.launches[i].state);
    size_t to_do = r->plan.n - r->done;
    fprintf(stderr, "plumb run: %zu launch%s%s into %s\n", to_do, to_do == 1 ? "" : "es",
            r->done ? " to go" : "", r->path);
    run_say_time(r);
    progress_start(&r->progress, stderr, r->plan.n, r->done);
    for (size_t i = 0; !err && !*r->cancel && i < r->plan.n; i++)
        if (r->plan.launches[i].state == LAUNCH_TODO)
            err = run_launch(r, i, &context);
    progress_clear(&r->progress);
    return err;
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
                    complete     ? "complete"
                    : *r->cancel ? "interrupted"
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

int run_and_finish(struct run *r)
{
    r->cancel = cancel_on_signals();
    int err = run_launches(r);
    int status = finish(r, err);
    return r->done && !*r->cancel ? show_results(r, status) : status;
}
