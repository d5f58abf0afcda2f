/* SPDX-License-Identifier: Apache-2.0 */
/* The leader of a run in turn: see against.h. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/program.h"
#include "core/row.h"
#include "core/text.h"
#include "harness/against/against.h"
#include "harness/child.h"
#include "harness/compare/compare.h"
#include "harness/hosts/agent.h"
#include "harness/machine/fact.h"
#include "harness/plan/suite.h"
#include "harness/run/run.h"
#include "harness/store/run_folder.h"
#include "harness/store/store.h"

/* A run in turn while it goes on. */
struct leader {
    const struct against_options *options;
    struct target t[2]; /* a and b */
    struct progress progress;
    char *path;
    char pair[80]; /* the same in both runs, and in no other */
    char error[1024];
};

#define PLAN_NS 120000000000ull /* for an agent to start, to probe its machine and to plan */

/* Prints g->error and returns status. */
static int fail(const struct leader *g, int status)
{
    fprintf(stderr, "plumb run: %s\n", g->error);
    return status;
}

/* The exit code of an error. */
static int status_of(int err)
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

static void begin(struct leader *g, const struct against_options *o)
{
    const volatile int *cancel = cancel_on_signals();

    signal(SIGPIPE, SIG_IGN); /* an agent that is gone is an error of write() */
    g->options = o;
    g->t[0] = (struct target){.side = "a", .command = o->of, .cancel = cancel};
    g->t[1] = (struct target){.side = "b", .command = o->against, .cancel = cancel};
}

static void release(struct leader *g)
{
    for (int i = 0; i < 2; i++)
        target_release(&g->t[i]);
    free(g->path);
}

/* Starts both agents and takes their plans. 0 or -errno with g->error. Both agents plan at the same
 * time. */
static int ask_plans(struct leader *g, const char *suite, const char *config, const char *only,
                     uint64_t seed)
{
    int err = 0;

    for (int i = 0; !err && i < 2; i++) {
        err = target_start(&g->t[i], g->error, sizeof(g->error));
        if (!err)
            err = target_ask(&g->t[i],
                             json_pack("{s:s, s:i, s:s, s:s, s:I, s:s*}", "ask", "plan", "protocol",
                                       AGENT_PROTOCOL, "suite", suite, "config", config, "seed",
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

/* Leaves the launches that both can make, and decides which target goes first in each. */
static int agree(struct leader *g)
{
    struct common common;
    int err = common_plan(&g->t[0].plan, &g->t[1].plan, &common);

    if (err == -ENOENT)
        snprintf(g->error, sizeof(g->error),
                 "the two targets have no case in common: the suite means other things there (a "
                 "has '%s', for example)",
                 common.only_a);
    if (!err && (common.n_only_a || common.n_only_b))
        fprintf(stderr,
                "plumb run: left out, since one target alone has them: %zu launches of a%s%s, "
                "%zu of b%s%s\n",
                common.n_only_a, common.n_only_a ? ", such as " : "", common.only_a,
                common.n_only_b, common.n_only_b ? ", such as " : "", common.only_b);
    if (!err)
        common_turns(&g->t[0].plan, &g->t[1].plan, g->options->seed);
    return err;
}

/* Turn i of the run, from 0, is launch i / 2 of this target. */
static int turn_of(const struct leader *g, size_t i)
{
    return common_first(&g->t[0].plan, &g->t[1].plan, i / 2) ^ (int)(i % 2);
}

static int make_folders(struct leader *g, const char *suite, const char *suite_path)
{
    struct timespec now;
    int err = 0;

    g->path = store_path(g->options->out, suite, "-against", g->error, sizeof(g->error));
    if (!g->path)
        return -EACCES;
    if (mkdir(g->path, 0777)) {
        err = -errno;
        snprintf(g->error, sizeof(g->error),
                 "cannot make the folder '%s': %s; name another with --out", g->path,
                 strerror(-err));
    }
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(g->pair, sizeof(g->pair), "%lld.%09ld-%ld", (long long)now.tv_sec, now.tv_nsec,
             (long)getpid());

    for (int i = 0; !err && i < 2; i++) {
        struct target *t = &g->t[i];
        t->path = xasprintf("%s/%s", g->path, t->side);
        /* What makes the two runs a pair, for those who read run.json; the names of the runs; and
         * how to do them again, of which an agent knows its own part alone. */
        const struct target *other = &g->t[t == &g->t[0]];
        const char *slash = strrchr(g->path, '/');
        char name[600];

        snprintf(name, sizeof(name), "%.500s-%s", slash ? slash + 1 : g->path, t->side);
        json_object_set_new(t->meta, "run", json_string(name));
        json_object_set_new(t->meta, "command",
                            run_meta_command(g->options->argc, g->options->argv));
        json_object_set_new(t->meta, "against",
                            json_pack("{s:s, s:s, s:s, s:s, s:s*, s:s}", "pair", g->pair, "side",
                                      t->side, "other", other->side, "order", "ABBA in each case",
                                      "command", t->command, "suite", suite_path));
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
    char now[160];

    snprintf(now, sizeof(now), "%s: %s %s (launch %u)", t->side, l->bench, l->arguments, l->repeat);
    progress_now(&g->progress, now, "");
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
    progress_end(&g->progress);
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

/* Stores the state of both runs. An exit code. */
static int finish(struct leader *g, int err)
{
    size_t done = g->t[0].done + g->t[1].done, n = 2 * g->t[0].plan.n;
    const char *state = done == n ? "complete" : err == -ECANCELED ? "interrupted" : "stopped";
    int status = EXIT_GOOD;

    if (err && err != -ECANCELED)
        fail(g, 0);
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

/* The comparison of both, on the terminal and, unless --no-report is given, as a page. */
static int show(struct leader *g, int status)
{
    char *words[] = {"compare", g->t[0].path, g->t[1].path, NULL}, error[1024] = "";
    int verdict = cmd_compare(3, words);

    if (g->options->no_report)
        return status == EXIT_GOOD ? verdict : status;
    if (compare_report(g->t[0].path, g->t[1].path, g->path, error, sizeof(error))) {
        fprintf(stderr, "plumb run: no report: %s\n", error);
        verdict = verdict == EXIT_GOOD ? EXIT_INCOMPLETE : verdict;
    } else {
        printf("\nreport: %s/report.html\n", g->path);
    }
    return status == EXIT_GOOD ? verdict : status;
}

/* Measures the launches that are to do, closes both runs, compares. An exit code. */
static int measure_and_compare(struct leader *g)
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

    begin(&g, o);
    char *path = suite_find(suite, g.error, sizeof(g.error));
    int err = path ? file_read(path, 1u << 20, &config) : -ENOENT;
    if (path && err)
        snprintf(g.error, sizeof(g.error), "cannot read the suite '%s': %s", path, strerror(-err));
    if (!err)
        err = ask_plans(&g, suite, config.text, o->only, o->seed);
    if (!err)
        err = agree(&g);
    const char *name = json_string_value(json_object_get(g.t[0].meta, "suite"));
    if (!err && o->dry_run) {
        const struct plan *plan = &g.t[0].plan;

        puts("order,target,case,repeat,bench,arguments");
        for (size_t i = 0; i < 2 * plan->n; i++) {
            const struct launch *l = &plan->launches[i / 2];
            printf("%zu,%s,%u,%u,", i + 1, g.t[turn_of(&g, i)].side, l->case_number, l->repeat);
            csv_print(stdout, l->bench);
            putchar(',');
            csv_print(stdout, l->arguments);
            putchar('\n');
        }
        fprintf(stderr, "plumb run: %zu launches planned, nothing was run\n", 2 * plan->n);
    } else if (!err)
        err = make_folders(&g, name ? name : "suite", suite);
    if (err)
        status = err == -ECANCELED ? EXIT_INCOMPLETE : fail(&g, status_of(err));
    else if (!o->dry_run)
        status = measure_and_compare(&g);
    free(path);
    buffer_release(&config);
    release(&g);
    return status;
}

/* ---- A run in turn that is resumed ---- */

#define KEEP_NS 30000000000ull /* for an agent to answer what takes it no time */

bool against_is_pair(const char *path)
{
    char *a = xasprintf("%s/a", path), *b = xasprintf("%s/b", path);
    bool is = run_folder_is(a) && run_folder_is(b);

    free(a);
    free(b);
    return is;
}

/* The stored run.json and the agent's report of itself must be of one program and one machine. */
static int check_same(struct leader *g, const struct target *t, const json_t *now)
{
    static const char *const keys[] = {"version", "commit", "config_hash"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (!json_equal(json_object_get(t->meta, keys[i]), json_object_get(now, keys[i]))) {
            snprintf(g->error, sizeof(g->error),
                     "target %s is not what it was when this run was begun (its %s differs): start "
                     "a new run",
                     t->side, keys[i]);
            return -ESTALE;
        }
    const json_t *was = json_object_get(json_object_get(t->meta, "machine"), "host");
    const json_t *is = json_object_get(json_object_get(now, "machine"), "host");
    if (json_equal(json_object_get(was, "hostname"), json_object_get(is, "hostname")))
        return 0;
    snprintf(g->error, sizeof(g->error),
             "target %s is on another host than when this run was begun: start a new run", t->side);
    return -ESTALE;
}

/* A launch that was lost with the power is measured again. If it was the first of a pair, so is the
 * second: in the other order the pair would break the balance of the plan. */
static int check_turns(struct leader *g)
{
    const struct plan *a = &g->t[0].plan, *b = &g->t[1].plan;
    int err = 0;

    for (size_t i = 0; !err && i < a->n; i++) {
        int first = a->n == b->n ? common_first(a, b, i) : -1;
        if (first < 0) {
            snprintf(g->error, sizeof(g->error), "'%s' is damaged: its two runs have other plans",
                     g->path);
            return -EBADMSG;
        }
        struct target *then = &g->t[!first];
        if (g->t[first].plan.launches[i].state == LAUNCH_TODO &&
            then->plan.launches[i].state != LAUNCH_TODO)
            err = store_redo(then->store, i, g->error, sizeof(g->error));
    }
    return err;
}

static int open_folders(struct leader *g, const char *path)
{
    int err = 0;

    g->path = xstrdup(path);
    for (int i = 0; !err && i < 2; i++) {
        struct target *t = &g->t[i];
        t->path = xasprintf("%s/%s", path, t->side);
        err = run_folder_meta(t->path, &t->meta, g->error, sizeof(g->error));
        if (!err)
            err = store_open(t->path, &t->plan, &t->store, g->error, sizeof(g->error));
        t->command =
            json_string_value(json_object_get(json_object_get(t->meta, "against"), "command"));
    }
    return err ? err : check_turns(g);
}

/* Agents plan again, so that they know suite and seed. The plans in the folders count. */
static int ask_again(struct leader *g)
{
    const json_t *meta = g->t[0].meta;
    struct leader fresh = {.options = g->options};
    int err;

    for (int i = 0; i < 2; i++)
        fresh.t[i] = (struct target){
            .side = g->t[i].side, .command = g->t[i].command, .cancel = g->t[i].cancel};
    err = ask_plans(&fresh, json_string_value(json_object_get(meta, "suite")),
                    json_string_value(json_object_get(meta, "config")),
                    json_string_value(json_object_get(meta, "only")),
                    (uint64_t)fact_integer(meta, "seed", 0));
    memcpy(g->error, fresh.error, sizeof(g->error));
    for (int i = 0; !err && i < 2; i++)
        err = check_same(g, &g->t[i], fresh.t[i].meta);
    for (int i = 0; !err && i < 2; i++) {
        g->t[i].agent = fresh.t[i].agent;
        fresh.t[i].agent = (struct end){END_NONE};
    }
    release(&fresh);
    return err;
}

/* Tells the new agent of a target the choices of its earlier launches (harness/run/launch.h): by all
 * rows, a message for each benchmark. */
static int tell_choices(struct leader *g, struct target *t)
{
    struct run_folder folder;
    int err = run_folder_load(t->path, &folder, g->error, sizeof(g->error));

    if (err)
        return err;
    for (size_t i = 0; !err && i < folder.n_benches; i++) {
        const char *bench = folder.benches[i].name;
        json_t *launches = json_array(), *answer = NULL;
        char *path = xasprintf("%s/%s.csv", t->path, bench);
        struct buffer rows = {0};

        for (size_t k = 0; k < t->plan.n; k++)
            if (t->plan.launches[k].state == LAUNCH_DONE &&
                !strcmp(t->plan.launches[k].bench, bench))
                json_array_append_new(launches, wire_launch(&t->plan.launches[k]));
        if (json_array_size(launches) && !(err = file_read(path, SIZE_MAX, &rows))) {
            err = target_ask(t,
                             json_pack("{s:s, s:O, s:o}", "ask", "keep", "launches", launches,
                                       "rows", message_text(rows.text)),
                             g->error, sizeof(g->error));
            if (!err)
                err = target_answer(t, KEEP_NS, &answer, g->error, sizeof(g->error));
        } else if (err) {
            snprintf(g->error, sizeof(g->error), "cannot read '%s': %s", path, strerror(-err));
        }
        json_decref(answer);
        json_decref(launches);
        buffer_release(&rows);
        free(path);
    }
    run_folder_release(&folder);
    return err;
}

int against_resume(const char *path, const struct against_options *o)
{
    struct leader g = {0};

    begin(&g, o);
    int err = open_folders(&g, path);
    if (!err)
        err = ask_again(&g);
    for (int i = 0; !err && i < 2; i++)
        err = run_has_wrong(g.t[i].path, &g.t[i].wrong, g.error, sizeof(g.error));
    for (int i = 0; !err && i < 2; i++)
        err = tell_choices(&g, &g.t[i]);
    int status = !err                ? measure_and_compare(&g)
                 : err == -ECANCELED ? EXIT_INCOMPLETE
                                     : fail(&g, status_of(err));
    release(&g);
    return status;
}
