/* SPDX-License-Identifier: Apache-2.0 */
/* The leader of a run in turn: see against.h. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/text.h"
#include "harness/against/against.h"
#include "harness/against/common.h"
#include "harness/against/leader_parts.h"
#include "harness/against/wire.h"
#include "harness/cancel.h"
#include "harness/compare/compare.h"
#include "harness/plan/suite.h"
#include "harness/run/run_meta.h"

#define PLAN_NS 120000000000ull /* for an agent to start, to probe its machine and to plan */

int leader_fail(const struct leader *g, int status)
{
    fprintf(stderr, "plumb run: %s\n", *g->error ? g->error : "out of memory");
    return status;
}

int leader_status(int err)
{
    switch (err) {
    case -ENOENT:
    case -EINVAL:
    case -EEXIST:
    case -EREMOTEIO:
    case -EPROTO:
    case -ESTALE:
        return EXIT_USAGE;
    case -EBADMSG:
        return EXIT_DAMAGED;
    default:
        return EXIT_INCOMPLETE;
    }
}

void leader_begin(struct leader *g, const struct against_options *o)
{
    const volatile int *cancel = cancel_on_signals();

    signal(SIGPIPE, SIG_IGN); /* an agent that is gone is an error of write() */
    g->options = o;
    g->t[0] = (struct target){.side = "a", .command = o->of, .cancel = cancel};
    g->t[1] = (struct target){.side = "b", .command = o->against, .cancel = cancel};
}

void leader_release(struct leader *g)
{
    for (int i = 0; i < 2; i++)
        target_release(&g->t[i]);
    free(g->path);
}

/* Both agents plan at the same time. */
int leader_ask_plans(struct leader *g, const char *suite, const char *config, const char *only,
                     uint64_t seed)
{
    int err = 0;

    for (int i = 0; !err && i < 2; i++) {
        err = target_start(&g->t[i], g->error, sizeof(g->error));
        if (!err)
            err = target_ask(&g->t[i],
                             json_pack("{s:s, s:i, s:s, s:s, s:I, s:s*}", "ask", "plan", "protocol",
                                       WIRE_PROTOCOL, "suite", suite, "config", config, "seed",
                                       (json_int_t)seed, "only", only),
                             g->error, sizeof(g->error));
    }
    for (int i = 0; !err && i < 2; i++) {
        json_t *answer = NULL;
        err = target_answer(&g->t[i], PLAN_NS, &answer, g->error, sizeof(g->error));
        if (!err)
            err = target_take_plan(&g->t[i], answer, g->error, sizeof(g->error));
        json_decref(answer);
    }
    return err;
}

/* Only what both can measure is measured, and it is settled who goes first. */
static int agree(struct leader *g)
{
    struct common told;
    int err = common_plan(&g->t[0].plan, &g->t[1].plan, &told);

    if (err == -ENOENT)
        snprintf(g->error, sizeof(g->error),
                 "the two targets have no case in common: the suite means other things there (a "
                 "has '%s', for example)",
                 told.only_a);
    if (!err && (told.n_only_a || told.n_only_b))
        fprintf(stderr,
                "plumb run: left out, since one target alone has them: %zu launches of a%s%s, "
                "%zu of b%s%s\n",
                told.n_only_a, told.n_only_a ? ", such as " : "", told.only_a, told.n_only_b,
                told.n_only_b ? ", such as " : "", told.only_b);
    return err ? err : common_turns(&g->t[0].plan, &g->t[1].plan, g->options->seed);
}

/* Turn i of the run, from 0, is launch i / 2 of this target. */
static int turn_of(const struct leader *g, size_t i)
{
    return common_first(&g->t[0].plan, &g->t[1].plan, i / 2) ^ (int)(i % 2);
}

static void print_plan(const struct leader *g)
{
    const struct plan *plan = &g->t[0].plan;

    puts("order,target,case,repeat,bench,arguments");
    for (size_t i = 0; i < 2 * plan->n; i++) {
        const struct launch *l = &plan->launches[i / 2];
        printf("%zu,%s,%u,%u,", i + 1, g->t[turn_of(g, i)].side, l->case_number, l->repeat);
        csv_print(stdout, l->bench);
        putchar(',');
        csv_print(stdout, l->arguments);
        putchar('\n');
    }
    fprintf(stderr, "plumb run: %zu launches planned, nothing was run\n", 2 * plan->n);
}

static int choose_path(struct leader *g, const char *suite)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm tm;

    gmtime_r(&now, &tm);
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
    int err = g->options->out ? 0 : store_make_results(g->error, sizeof(g->error));
    if (err)
        return err;
    int n = g->options->out ? asprintf(&g->path, "%s", g->options->out)
                            : asprintf(&g->path, "results/%s-against-%s", suite, stamp);
    if (n < 0)
        return -ENOMEM;
    while (n > 1 && g->path[n - 1] == '/')
        g->path[--n] = 0;
    if (!mkdir(g->path, 0777))
        return 0;
    err = -errno;
    snprintf(g->error, sizeof(g->error), "cannot make the folder '%s': %s; name another with --out",
             g->path, strerror(-err));
    return err;
}

/* What makes the two runs a pair, for those who read run.json; the names of the runs; and how to do them again, of which an
 * agent knows its own part alone. */
static void mark(struct leader *g, struct target *t, const char *suite_path)
{
    const struct target *other = &g->t[t == &g->t[0]];
    const char *slash = strrchr(g->path, '/');
    char name[600];

    snprintf(name, sizeof(name), "%.500s-%s", slash ? slash + 1 : g->path, t->side);
    json_object_set_new(t->meta, "run", json_string(name));
    json_object_set_new(t->meta, "command", run_meta_command(g->options->argc, g->options->argv));
    json_object_set_new(t->meta, "against",
                        json_pack("{s:s, s:s, s:s, s:s, s:s*, s:s}", "pair", g->pair, "side",
                                  t->side, "other", other->side, "order", "ABBA in each case",
                                  "command", t->command, "suite", suite_path));
}

static int make_folders(struct leader *g, const char *suite, const char *suite_path)
{
    struct timespec now;
    int err = choose_path(g, suite);

    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(g->pair, sizeof(g->pair), "%lld.%09ld-%ld", (long long)now.tv_sec, now.tv_nsec,
             (long)getpid());

    for (int i = 0; !err && i < 2; i++) {
        struct target *t = &g->t[i];
        if (asprintf(&t->path, "%s/%s", g->path, t->side) < 0)
            return -ENOMEM;
        mark(g, t, suite_path);
        err = store_create(t->path, t->meta, &t->plan, &t->store, g->error, sizeof(g->error));
    }
    return err;
}

static int launch_next(struct leader *g, size_t i)
{
    struct target *t = &g->t[turn_of(g, i)];
    const struct launch *l = &t->plan.launches[i / 2];

    if (l->state != LAUNCH_TODO)
        return 0;
    snprintf(g->progress.now, sizeof(g->progress.now), "%s: %s %s (launch %u)", t->side, l->bench,
             l->arguments, l->repeat);
    progress_show(&g->progress);
    int err = target_launch(t, i / 2, g->error, sizeof(g->error));
    g->progress.done += !err;
    return err;
}

static int measure(struct leader *g)
{
    size_t n = 2 * g->t[0].plan.n, done = 0;
    int err = 0;

    for (int i = 0; i < 2; i++) {
        struct target *t = &g->t[i];
        t->progress = &g->progress;
        for (size_t l = 0; l < t->plan.n; l++) {
            enum launch_state state = t->plan.launches[l].state;
            t->done += state != LAUNCH_TODO;
            t->failed += state == LAUNCH_FAIL;
            t->late += state == LAUNCH_LATE;
        }
        done += t->done;
    }
    fprintf(stderr, "plumb run: %zu launches, in turn on a and b, into %s\n", n - done, g->path);
    progress_start(&g->progress, stderr, n, done);
    for (size_t i = 0; !err && !*g->t[0].cancel && i < n; i++)
        err = launch_next(g, i);
    progress_clear(&g->progress);
    return *g->t[0].cancel ? -ECANCELED : err;
}

static int close_run(struct target *t, const char *state)
{
    char error[1024];

    run_meta_finish(t->meta, state, 0, store_spent_ns(t->store), t->child_ns);
    int err = store_meta(t->store, t->meta, error, sizeof(error));
    int sync_err = store_close(t->store);
    t->store = NULL;
    if (err)
        fprintf(stderr, "plumb run: %s\n", error);
    if (sync_err)
        fprintf(stderr, "plumb run: cannot sync '%s' to the disk: %s\n", t->path,
                strerror(-sync_err));
    return err ? err : sync_err;
}

/* Keeps what there is. An exit code. */
static int finish(struct leader *g, int err)
{
    size_t done = g->t[0].done + g->t[1].done, n = 2 * g->t[0].plan.n;
    const char *state = done == n ? "complete" : err == -ECANCELED ? "interrupted" : "stopped";
    int status = EXIT_GOOD;

    if (err && err != -ECANCELED)
        leader_fail(g, 0);
    for (int i = 0; i < 2; i++)
        if (close_run(&g->t[i], state))
            status = EXIT_INCOMPLETE;
    if (done < n) {
        fprintf(stderr,
                "plumb run: %s: %zu of %zu launches are kept; go on with: %s run --resume %s\n",
                state, done, n, program_invocation_name, g->path);
        return EXIT_INCOMPLETE;
    }
    if (g->t[0].wrong || g->t[1].wrong)
        return EXIT_BAD;
    return err || g->t[0].failed + g->t[0].late + g->t[1].failed + g->t[1].late ? EXIT_INCOMPLETE
                                                                                : status;
}

/* The page of both, with the verdicts. 0 or -errno. */
static int make_page(const struct leader *g)
{
    char error[1024] = "";
    int err = compare_report(g->t[0].path, g->t[1].path, g->path, error, sizeof(error));

    if (err)
        fprintf(stderr, "plumb run: no report: %s\n", error);
    else
        printf("\nreport: %s/report.html\n", g->path);
    return err;
}

/* The two held against each other, on the terminal and, unless --no-report is given, as a page. */
static int show(struct leader *g, int status)
{
    char *words[] = {"compare", g->t[0].path, g->t[1].path, NULL};
    int verdict = cmd_compare(3, words);

    if (!g->options->no_report && make_page(g))
        verdict = verdict == EXIT_GOOD ? EXIT_INCOMPLETE : verdict;
    return status == EXIT_GOOD ? verdict : status;
}

int leader_measure(struct leader *g)
{
    int err = measure(g);
    int status = finish(g, err);

    return g->t[0].done && g->t[1].done && err != -ECANCELED ? show(g, status) : status;
}

int against_run(const char *suite, const struct against_options *o)
{
    struct leader g = {0};
    struct buffer config = {0};
    int status = EXIT_GOOD;

    leader_begin(&g, o);
    char *path = suite_find(suite, g.error, sizeof(g.error));
    int err = path ? file_read(path, 1u << 20, &config) : -ENOENT;
    if (path && err)
        snprintf(g.error, sizeof(g.error), "cannot read the suite '%s': %s", path, strerror(-err));
    if (!err)
        err = leader_ask_plans(&g, suite, config.text, o->only, o->seed);
    if (!err)
        err = agree(&g);
    const char *name = json_string_value(json_object_get(g.t[0].meta, "suite"));
    if (!err && o->dry_run)
        print_plan(&g);
    else if (!err)
        err = make_folders(&g, name ? name : "suite", suite);
    if (err)
        status = err == -ECANCELED ? EXIT_INCOMPLETE : leader_fail(&g, leader_status(err));
    else if (!o->dry_run)
        status = leader_measure(&g);
    free(path);
    buffer_release(&config);
    leader_release(&g);
    return status;
}
