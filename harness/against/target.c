/* SPDX-License-Identifier: Apache-2.0 */
/* A target of a run in turn, and the agent at its other end: see against.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/program.h"
#include "harness/against/against.h"
#include "harness/child.h"
#include "harness/hosts/agent.h"
#include "harness/machine/fact.h"
#include "harness/plan/suite.h"
#include "harness/run/launch.h"
#include "harness/run/run.h"
#include "harness/store/store.h"
#include "harness/text.h"

/* ---- Messages of leader and agent ---- */

json_t *wire_launch(const struct launch *l)
{
    json_t *margin = l->margin > 0 ? json_real(l->margin) : NULL;

    return json_pack("{s:i, s:i, s:i, s:s, s:s, s:I, s:o*}", "case", (int)l->case_number, "repeat",
                     (int)l->repeat, "rows", (int)l->rows, "bench", l->bench, "arguments",
                     l->arguments, "timeout_ns", (json_int_t)l->timeout_ns, "margin", margin);
}

int wire_take_launch(const json_t *message, struct launch *l)
{
    const char *bench, *arguments;
    json_int_t timeout_ns;
    double margin = 0;
    int number, repeat, rows;

    if (json_unpack((json_t *)message, "{s:i, s:i, s:i, s:s, s:s, s:I, s?F}", "case", &number,
                    "repeat", &repeat, "rows", &rows, "bench", &bench, "arguments", &arguments,
                    "timeout_ns", &timeout_ns, "margin", &margin) ||
        number < 1 || repeat < 1 || rows < 0 || timeout_ns < 1)
        return -EBADMSG;
    if (json_object_get(message, "margin") && !(margin > 0 && margin < 1))
        return -EBADMSG;
    *l = (struct launch){.case_number = (unsigned)number,
                         .repeat = (unsigned)repeat,
                         .rows = (unsigned)rows,
                         .bench = xstrdup(bench),
                         .arguments = xstrdup(arguments),
                         .from = xstrdup(""),
                         .to = xstrdup(""),
                         .hosts = xstrdup(""),
                         .timeout_ns = (uint64_t)timeout_ns,
                         .margin = margin};
    return 0;
}

#define STOP_GRACE_NS 3000000000ull /* for an agent to end what it runs */
/* beyond a launch's own time-out, until an agent is given up */
#define LATE_NS  30000000000ull
#define SLICE_MS 50

int target_start(struct target *t, char *error, size_t len)
{
    struct end *e = &t->agent;
    /* This program, as a word for a shell. */
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    struct argv w = {0};

    path[n > 0 ? n : 0] = 0;
    argv_add(&w, n > 0 ? path : "plumb");
    char *own = argv_quoted(&w, 0);
    argv_release(&w);

    *e = (struct end){END_NONE, .name = t->side, .talks = true};
    argv_add(&e->command, "sh");
    argv_add(&e->command, "-c");
    argv_addf(&e->command, "%s agent", t->command ? t->command : own);
    free(own);
    int err = end_start(e);
    if (!err && fcntl(e->p.in, F_SETFL, O_NONBLOCK))
        err = -errno;
    if (err)
        snprintf(error, len, "cannot start target %s: %s", t->side, strerror(-err));
    return err;
}

/* The reason of its end, and the log to read. */
static int gone(const struct target *t, char *error, size_t len)
{
    const struct end *e = &t->agent;

    snprintf(error, len, "target %s ended: %s (status %d); it was started by: %s", t->side,
             *e->last ? e->last : "without a word", e->p.status, e->command.all[2]);
    return -EPIPE;
}

/* Its next answer, if one has come: 0, -EREMOTEIO for an error that it tells, or -EPROTO where it
 * prints something else. */
static int take_answer(struct target *t, json_t **answer, char *error, size_t len)
{
    if (t->agent.stray) {
        snprintf(error, len,
                 "what target %s says is no answer of plumb's ('%.60s'): its command must print "
                 "nothing else, and end in a plumb: %s",
                 t->side, t->agent.stray, t->agent.command.all[2]);
        return -EPROTO;
    }
    json_t *m = end_answer(&t->agent);
    const char *problem = json_string_value(json_object_get(m, "error"));
    if (problem) {
        snprintf(error, len, "target %s: %s", t->side, problem);
        json_decref(m);
        return -EREMOTEIO;
    }
    *answer = m;
    return 0;
}

/* Waits for a target that does not read no longer than for one that does not answer, and not after
 * a signal. */
static int send_text(struct target *t, const char *text, size_t n)
{
    uint64_t until_ns = clock_now_ns() + LATE_NS;
    struct pollfd to = {.fd = t->agent.p.in, .events = POLLOUT};

    while (n) {
        ssize_t done = write(t->agent.p.in, text, n);
        if (done < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
        text += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
        if (*t->cancel)
            return -ECANCELED;
        if (clock_now_ns() > until_ns)
            return -ETIMEDOUT;
        if (n && done < 0)
            poll(&to, 1, SLICE_MS);
    }
    return 0;
}

int target_ask(struct target *t, json_t *message, char *error, size_t len)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    int err = !text ? -EILSEQ : t->agent.p.in < 0 ? -EPIPE : send_text(t, text, strlen(text));

    if (!err)
        err = send_text(t, "\n", 1);
    free(text);
    json_decref(message);
    if (err == -EPIPE) {
        /* It no longer reads. Its last answer explains more than its end. */
        json_t *answer = NULL;

        ends_wait(&t->agent, 1, STOP_GRACE_NS);
        int told = take_answer(t, &answer, error, len);
        json_decref(answer);
        return told ? told : gone(t, error, len);
    }
    if (err == -ETIMEDOUT)
        snprintf(error, len, "target %s does not read its input; it was started by: %s", t->side,
                 t->agent.command.all[2]);
    else if (err)
        snprintf(error, len, "cannot tell target %s: %s", t->side, strerror(-err));
    return err;
}

int target_answer(struct target *t, uint64_t within_ns, json_t **answer, char *error, size_t len)
{
    uint64_t until_ns = clock_now_ns() + within_ns;
    int err;

    *answer = NULL;
    while (!(err = take_answer(t, answer, error, len)) && !*answer) {
        if (*t->cancel)
            return -ECANCELED;
        if (end_is_over(&t->agent))
            return gone(t, error, len);
        if (clock_now_ns() > until_ns) {
            snprintf(error, len, "target %s has said nothing for %.3g s", t->side,
                     (double)within_ns * 1e-9);
            return -ETIMEDOUT;
        }
        err = ends_attend(&t->agent, 1, SLICE_MS);
        if (err) {
            snprintf(error, len, "cannot read what target %s says: %s", t->side, strerror(-err));
            return err;
        }
        if (t->progress)
            progress_show(t->progress);
    }
    return err;
}

static int damaged(const struct target *t, char *error, size_t len)
{
    snprintf(error, len, "target %s answers with something else than was asked for", t->side);
    return -EPROTO;
}

int target_take_plan(struct target *t, json_t *answer, char *error, size_t len)
{
    json_t *all = json_object_get(answer, "launches"), *meta = json_object_get(answer, "meta");
    size_t n = json_array_size(all);

    if (!n || !json_is_object(meta) ||
        json_integer_value(json_object_get(answer, "protocol")) != AGENT_PROTOCOL)
        return damaged(t, error, len);
    t->meta = json_incref(meta);
    t->plan.launches = xcalloc(n, sizeof(*t->plan.launches));
    for (size_t i = 0; i < n; i++)
        if (wire_take_launch(json_array_get(all, i), &t->plan.launches[t->plan.n++]))
            return damaged(t, error, len);
    return 0;
}

/* The texts stay the answer's. 0 or -EPROTO. */
static int record_of(const json_t *answer, struct launch_record *r, int *wrong,
                     const char **summary, json_int_t *elapsed_ns)
{
    const char *state;
    int rows;

    if (json_unpack((json_t *)answer, "{s:s, s:i, s:s, s:s, s:s, s:s, s:b, s:s, s:I}", "state",
                    &state, "n_rows", &rows, "header", &r->header, "rows", &r->rows, "samples",
                    &r->samples, "log", &r->log, "wrong", wrong, "summary", summary, "elapsed_ns",
                    elapsed_ns) ||
        rows < 1 || rows > PLAN_ROWS_MAX)
        return -EPROTO;
    r->n_rows = (unsigned)rows;
    return launch_state_parse(state, &r->state) && r->state != LAUNCH_TODO ? 0 : -EPROTO;
}

static int keep(struct target *t, size_t i, const json_t *answer, char *error, size_t len)
{
    struct launch_record record = {0};
    const char *summary = "";
    json_int_t elapsed_ns = 0;
    int wrong = 0;

    if (record_of(answer, &record, &wrong, &summary, &elapsed_ns))
        return damaged(t, error, len);
    int err = store_commit(t->store, i, &record, error, len);
    if (err)
        return err;
    t->done++;
    t->wrong |= wrong;
    t->child_ns += (uint64_t)elapsed_ns;
    t->failed += record.state == LAUNCH_FAIL;
    t->late += record.state == LAUNCH_LATE;
    if (launch_state_is_bad(record.state)) {
        const struct launch *l = &t->plan.launches[i];

        progress_clear(t->progress);
        fprintf(stderr, "plumb run: %s: %s %s: %s\n", t->side, l->bench, l->arguments, summary);
    }
    return 0;
}

int target_launch(struct target *t, size_t i, char *error, size_t len)
{
    const struct launch *l = &t->plan.launches[i];
    json_t *message = wire_launch(l), *answer = NULL;

    json_object_set_new(message, "ask", json_string("launch"));
    json_object_set(message, "run", json_object_get(t->meta, "run"));
    int err = target_ask(t, message, error, len);
    if (!err)
        err = target_answer(t, l->timeout_ns + LATE_NS, &answer, error, len);
    if (!err)
        err = keep(t, i, answer, error, len);
    json_decref(answer);
    return err;
}

void target_release(struct target *t)
{
    if (t->agent.p.pid)
        ends_stop(&t->agent, 1, STOP_GRACE_NS);
    store_close(t->store);
    plan_release(&t->plan);
    json_decref(t->meta);
    free(t->path);
}

/* ---- The agent of a target. It stores nothing: rows go to the leader. ---- */

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

    json_object_set_new(message, "error", message_text(text));
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

/* NULL: one of them is no UTF-8. */
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

static int take_order(struct agent *a, const json_t *m, const char **suite, const char **config,
                      const char **only)
{
    json_int_t seed = 0;
    int protocol = 0;

    if (json_unpack((json_t *)m, "{s:i, s:s, s:s, s:I, s?:s}", "protocol", &protocol, "suite",
                    suite, "config", config, "seed", &seed, "only", only) ||
        protocol != AGENT_PROTOCOL)
        return -EPROTO;
    a->seed = (uint64_t)seed;
    return 0;
}

/* The answer to "plan"; NULL: a text in it is no UTF-8. */
static json_t *answer_plan(struct agent *a, const json_t *m)
{
    const char *suite = NULL, *config = NULL, *only = NULL;
    char *words[] = {"agent"}, error[1024] = "";
    struct plan plan = {0};
    json_t *answer = NULL;

    if (a->planned || take_order(a, m, &suite, &config, &only))
        return error_of("this plumb speaks another protocol than the one that leads: use the same "
                        "version on both sides");
    /* Reads the suite as this machine understands it. 0 or -errno with error. */
    char *configs = suite_configs_folder();

    bench_list_load(&a->benches);
    int err = suite_parse(suite, config, strlen(config), configs, &a->benches, &a->suite, error,
                          sizeof(error));
    if (!err)
        suite_unite_absent(&a->suite, false);
    free(configs);
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
                                                   .argc = 1,
                                                   .argv = words});
        answer = json_pack("{s:i, s:O, s:o}", "protocol", AGENT_PROTOCOL, "meta", a->meta,
                           "launches", launches_of(&plan));
    } else {
        answer = error_of(*error ? error : strerror(-err));
    }
    plan_release(&plan);
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
                                     .machine = fact_name(a->meta, "machine.cpu.model"),
                                     .cores = fact_number(a->meta, "machine.cpu.cores", 0),
                                     .hosts = &a->hosts,
                                     .kept = &a->kept,
                                     .cancel = &a->stop,
                                     .tick = tick,
                                     .tick_arg = a};
    struct plan one = {.launches = xcalloc(1, sizeof(*one.launches)), .n = 1};
    struct launched launched = {0};
    json_t *answer = NULL;
    char text[256];

    if (!a->planned || wire_take_launch(m, one.launches)) {
        plan_release(&one);
        return error_of("a launch without a plan");
    }
    int err = launch_run(&context, one.launches, &launched);
    if (err) {
        snprintf(text, sizeof(text), "cannot launch '%s': %s", one.launches->bench, strerror(-err));
        answer = error_of(text);
    } else if (!launched.cancelled) {
        answer = json_object();
        const struct launch_record *r = &launched.record;

        json_object_set_new(answer, "state", json_string(launch_state_name(r->state)));
        json_object_set_new(answer, "n_rows", json_integer(r->n_rows));
        json_object_set_new(answer, "header", message_text(r->header));
        json_object_set_new(answer, "rows", message_text(r->rows));
        json_object_set_new(answer, "samples", message_text(r->samples));
        json_object_set_new(answer, "log", message_text(r->log));
        json_object_set_new(answer, "wrong", json_boolean(launched.wrong));
        json_object_set_new(answer, "summary", message_text(launched.summary));
        json_object_set_new(answer, "elapsed_ns", json_integer((json_int_t)launched.child_ns));
    }
    launched_release(&launched);
    plan_release(&one);
    return answer;
}

/* The answer to "keep": a new agent learns the earlier choices of its target, from rows of launches of
 * one benchmark that are done. */
static json_t *answer_keep(struct agent *a, const json_t *m)
{
    const json_t *launches = json_object_get(m, "launches");
    const char *rows = json_string_value(json_object_get(m, "rows"));
    struct plan plan = {0};
    struct table t = {0};
    char error[256];
    int err = rows && a->planned && json_array_size(launches) ? 0 : -EPROTO;

    for (size_t i = 0; !err && i < json_array_size(launches); i++) {
        struct launch *l = ARRAY_ADD(plan.launches, plan.n);

        *l = (struct launch){0};
        err = wire_take_launch(json_array_get(launches, i), l);
        l->state = LAUNCH_DONE;
    }
    if (!err)
        err = table_parse("rows", rows, strlen(rows), &t, error, sizeof(error));
    if (!err)
        kept_learn_all(&a->kept, bench_list_find(&a->benches, plan.launches[0].bench), &plan, &t);
    table_release(&t);
    plan_release(&plan);
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
    return a->stop || !answer ? -ECANCELED : message_send(STDOUT_FILENO, answer);
}

int against_agent(void)
{
    struct agent a = {.signals = cancel_on_signals()};
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int err = 0;

    if (isatty(STDIN_FILENO)) {
        fputs("plumb agent is how plumb run --against and --hosts start the other side\n", stderr);
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
