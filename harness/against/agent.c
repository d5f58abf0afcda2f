/* SPDX-License-Identifier: Apache-2.0 */
/* The agent of a target: see against.h. It stores nothing: rows go to the leader. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/program.h"
#include "harness/against/against.h"
#include "harness/child.h"
#include "harness/plan/suite.h"
#include "harness/run/launch.h"
#include "harness/run/run.h"

struct agent {
    struct bench_list benches;
    struct suite suite;
    struct hosts_run hosts; /* none */
    struct kept kept;
    json_t *meta;
    uint64_t seed;
    const volatile int *signals;
    volatile int stop; /* by a signal, or since the leader is gone */
    bool planned;
};

static json_t *error_of(const char *text)
{
    json_t *message = json_object();

    json_object_set_new(message, "error", wire_text(text));
    return message;
}

/* While a launch runs the leader sends nothing: its pipe becomes readable when it ends. */
static void tick(void *arg)
{
    struct agent *a = arg;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    if (*a->signals || poll(&input, 1, 0) > 0)
        a->stop = 1;
}

static json_t *launches_of(const struct plan *plan)
{
    json_t *all = json_array();

    for (size_t i = 0; i < plan->n; i++)
        if (json_array_append_new(all, wire_launch(&plan->launches[i]))) {
            json_decref(all);
            return NULL;
        }
    return all;
}

/* Reads the suite as this machine understands it. 0 or -errno with error. */
static int read_suite(struct agent *a, const char *name, const char *config, char *error,
                      size_t len)
{
    char *configs = suite_configs_folder();
    int err = bench_list_load(&a->benches);

    if (err)
        snprintf(error, len, "out of memory");
    if (!err)
        err =
            suite_parse(name, config, strlen(config), configs, &a->benches, &a->suite, error, len);
    if (!err)
        suite_unite_absent(&a->suite, false);
    free(configs);
    return err;
}

static int take_order(struct agent *a, const json_t *m, const char **suite, const char **config,
                      const char **only)
{
    json_int_t seed = 0;
    int protocol = 0;

    if (json_unpack((json_t *)m, "{s:i, s:s, s:s, s:I, s?:s}", "protocol", &protocol, "suite",
                    suite, "config", config, "seed", &seed, "only", only) ||
        protocol != WIRE_PROTOCOL)
        return -EPROTO;
    a->seed = (uint64_t)seed;
    return 0;
}

/* The answer to "plan"; NULL: memory is short. */
static json_t *answer_plan(struct agent *a, const json_t *m)
{
    const char *suite = NULL, *config = NULL, *only = NULL;
    char *words[] = {"run", "--agent"}, error[1024] = "";
    struct plan plan = {0};
    json_t *answer = NULL;

    if (a->planned || take_order(a, m, &suite, &config, &only))
        return error_of("this plumb speaks another protocol than the one that leads: use the same "
                        "version on both sides");
    int err = read_suite(a, suite, config, error, sizeof(error));
    if (!err && (err = plan_make(&a->suite, a->seed, only, &plan)) == -ENOENT)
        snprintf(error, sizeof(error), "no case of suite '%s' matches --only '%s'", a->suite.name,
                 only ? only : "");
    if (!err) {
        a->planned = true;
        a->meta = run_meta_make(&(struct run_meta){.name = "",
                                                   .benches = &a->benches,
                                                   .suite = a->suite.name,
                                                   .config = config,
                                                   .config_size = strlen(config),
                                                   .seed = a->seed,
                                                   .only = only,
                                                   .pairs = plan.pairs,
                                                   .pairs_of = plan.pairs_of,
                                                   .argc = 2,
                                                   .argv = words});
        answer = json_pack("{s:i, s:O, s:o}", "protocol", WIRE_PROTOCOL, "meta", a->meta,
                           "launches", launches_of(&plan));
    } else {
        answer = error_of(*error ? error : strerror(-err));
    }
    plan_release(&plan);
    return answer;
}

static json_t *result_of(const struct launched *l)
{
    json_t *answer = json_object();
    const struct launch_record *r = &l->record;

    json_object_set_new(answer, "state", json_string(launch_state_name(r->state)));
    json_object_set_new(answer, "n_rows", json_integer(r->n_rows));
    json_object_set_new(answer, "header", wire_text(r->header));
    json_object_set_new(answer, "rows", wire_text(r->rows));
    json_object_set_new(answer, "samples", wire_text(r->samples));
    json_object_set_new(answer, "log", wire_text(r->log));
    json_object_set_new(answer, "wrong", json_boolean(l->wrong));
    json_object_set_new(answer, "summary", wire_text(l->summary));
    json_object_set_new(answer, "elapsed_ns", json_integer((json_int_t)l->child_ns));
    return answer;
}

/* The answer to "launch"; NULL: there is nobody to answer. */
static json_t *answer_launch(struct agent *a, const json_t *m)
{
    const char *run = json_string_value(json_object_get(m, "run"));
    struct launch_context context = {.benches = &a->benches,
                                     .run = run ? run : "",
                                     .seed = a->seed,
                                     .limits = json_object_get(a->meta, "limits"),
                                     .cores = run_meta_cores(a->meta),
                                     .hosts = &a->hosts,
                                     .kept = &a->kept,
                                     .cancel = &a->stop,
                                     .tick = tick,
                                     .tick_arg = a};
    struct launch l = {0};
    struct plan one = {.launches = calloc(1, sizeof(l))};
    struct launched launched = {0};
    json_t *answer = NULL;
    char text[256];

    if (!one.launches || !a->planned || wire_take_launch(m, &l)) {
        free(one.launches);
        return error_of("a launch without a plan");
    }
    one.launches[0] = l;
    one.n = 1;
    int err = launch_run(&context, &one.launches[0], &launched);
    if (err) {
        snprintf(text, sizeof(text), "cannot launch '%s': %s", l.bench, strerror(-err));
        answer = error_of(text);
    } else if (!launched.cancelled) {
        answer = result_of(&launched);
    }
    launched_release(&launched);
    plan_release(&one);
    return answer;
}

/* The answer to "keep": a new agent learns the earlier choices of its target. NULL: memory is
 * short. */
static json_t *answer_keep(struct agent *a, const json_t *m)
{
    const char *rows = json_string_value(json_object_get(m, "rows"));
    struct plan one = {.launches = calloc(1, sizeof(*one.launches)), .n = 1};
    struct table t = {0};
    char error[256];
    int err = one.launches && rows && a->planned ? wire_take_launch(m, one.launches) : -EPROTO;
    const struct bench_info *b = err ? NULL : bench_list_find(&a->benches, one.launches->bench);

    if (!err)
        err = table_parse("rows", rows, strlen(rows), &t, error, sizeof(error));
    if (!err && b)
        err = kept_learn(&a->kept, b, one.launches, &t, 0, t.n_rows);
    table_release(&t);
    plan_release(&one);
    return err ? error_of("rows of a launch that cannot be read") : json_pack("{s:b}", "kept", 1);
}

/* One line, one answer. 0, or -errno when it is to end. */
static int obey(struct agent *a, const char *line, size_t len)
{
    json_t *m = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL), *answer;
    const char *ask = json_string_value(json_object_get(m, "ask"));

    if (ask && !strcmp(ask, "plan"))
        answer = answer_plan(a, m);
    else if (ask && !strcmp(ask, "launch"))
        answer = answer_launch(a, m);
    else if (ask && !strcmp(ask, "keep"))
        answer = answer_keep(a, m);
    else
        answer = error_of("this is no message for an agent of plumb");
    json_decref(m);
    return a->stop || !answer ? -ECANCELED : wire_send(STDOUT_FILENO, answer);
}

int against_agent(void)
{
    struct agent a = {.signals = cancel_on_signals()};
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int err = 0;

    if (isatty(STDIN_FILENO)) {
        fputs("plumb run: --agent is how plumb run --against starts the other side\n", stderr);
        return EXIT_USAGE;
    }
    while (!err && !*a.signals && (n = getline(&line, &room, stdin)) > 0)
        err = obey(&a, line, (size_t)n);
    free(line);
    json_decref(a.meta);
    suite_release(&a.suite);
    kept_release(&a.kept);
    bench_list_release(&a.benches);
    return err ? EXIT_INCOMPLETE : EXIT_GOOD;
}
