/* SPDX-License-Identifier: Apache-2.0 */
/* A target of a run in turn: see against.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "harness/against/against.h"
#include "harness/store/store.h"
#include "harness/text.h"

/* ---- Messages of leader and agent ---- */

json_t *wire_text(const char *text)
{
    json_t *valid = json_string(text);
    char *copy;

    if (valid || !(copy = strdup(text)))
        return valid;
    for (char *c = copy; *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    valid = json_string(copy);
    free(copy);
    return valid;
}

int wire_send(int fd, json_t *message)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    int err = text ? write_all(fd, text, strlen(text)) : -ENOMEM;

    if (!err)
        err = write_all(fd, "\n", 1);
    free(text);
    json_decref(message);
    return err;
}

json_t *wire_launch(const struct launch *l)
{
    json_t *margin = l->margin > 0 ? json_real(l->margin) : NULL;

    return json_pack("{s:i, s:i, s:s, s:s, s:I, s:o*}", "case", (int)l->case_number, "repeat",
                     (int)l->repeat, "bench", l->bench, "arguments", l->arguments, "timeout_ns",
                     (json_int_t)l->timeout_ns, "margin", margin);
}

int wire_take_launch(const json_t *message, struct launch *l)
{
    const char *bench, *arguments;
    json_int_t timeout_ns;
    double margin = 0;
    int number, repeat;

    if (json_unpack((json_t *)message, "{s:i, s:i, s:s, s:s, s:I, s?F}", "case", &number, "repeat",
                    &repeat, "bench", &bench, "arguments", &arguments, "timeout_ns", &timeout_ns,
                    "margin", &margin) ||
        number < 1 || repeat < 1 || timeout_ns < 1)
        return -EBADMSG;
    if (json_object_get(message, "margin") && !(margin > 0 && margin < 1))
        return -EBADMSG;
    *l = (struct launch){.case_number = (unsigned)number,
                         .repeat = (unsigned)repeat,
                         .bench = strdup(bench),
                         .arguments = strdup(arguments),
                         .from = strdup(""),
                         .to = strdup(""),
                         .hosts = strdup(""),
                         .timeout_ns = (uint64_t)timeout_ns,
                         .margin = margin};
    return l->bench && l->arguments && l->from && l->to && l->hosts ? 0 : -ENOMEM;
}

#define STOP_GRACE_NS 3000000000ull /* for an agent to end what it runs */
/* beyond a launch's own time-out, until an agent is given up */
#define LATE_NS  30000000000ull
#define SLICE_MS 50

/* This program, as a word for a shell. */
static char *own_command(void)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    struct argv w = {0};

    path[n > 0 ? n : 0] = 0;
    argv_add(&w, n > 0 ? path : "plumb");
    char *quoted = w.err ? NULL : argv_quoted(&w, 0);
    argv_release(&w);
    return quoted;
}

int target_start(struct target *t, char *error, size_t len)
{
    struct end *e = &t->agent;
    char *own = t->command ? NULL : own_command();

    *e = (struct end){.name = t->side, .in = -1, .out = -1, .err = -1};
    if (t->command || own) {
        argv_add(&e->command, "sh");
        argv_add(&e->command, "-c");
        argv_addf(&e->command, "%s run --agent", t->command ? t->command : own);
    }
    free(own);
    int err = end_start(e);
    if (!err && fcntl(e->in, F_SETFL, O_NONBLOCK))
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
             *e->last ? e->last : "without a word", e->status, e->command.all[2]);
    return -EPIPE;
}

/* Its first whole line, taken out of its output; NULL: none yet. */
static char *take_line(struct end *e)
{
    char *text = e->output.text;
    char *end = text ? memchr(text, '\n', e->output.size) : NULL;

    if (!end)
        return NULL;
    char *line = strndup(text, (size_t)(end - text));
    size_t rest = e->output.size - (size_t)(end + 1 - text);
    memmove(text, end + 1, rest + 1);
    e->output.size = rest;
    return line;
}

static int take_answer(const struct target *t, const char *line, json_t **answer, char *error,
                       size_t len)
{
    json_error_t why;
    json_t *m = json_loads(line, JSON_REJECT_DUPLICATES, &why);

    if (!json_is_object(m)) {
        snprintf(error, len,
                 "what target %s says is no answer of plumb's ('%.60s'): its command must print "
                 "nothing else, and end in a plumb: %s",
                 t->side, line, t->agent.command.all[2]);
        json_decref(m);
        return -EPROTO;
    }
    const char *problem = json_string_value(json_object_get(m, "error"));
    if (problem) {
        snprintf(error, len, "target %s: %s", t->side, problem);
        json_decref(m);
        return -EREMOTEIO;
    }
    *answer = m;
    return 0;
}

/* It no longer reads. Its last answer explains more than its end. */
static int lost(struct target *t, char *error, size_t len)
{
    json_t *answer = NULL;
    int err = 0;

    ends_wait(&t->agent, 1, STOP_GRACE_NS);
    char *line = take_line(&t->agent);
    if (line)
        err = take_answer(t, line, &answer, error, len);
    json_decref(answer);
    free(line);
    return err ? err : gone(t, error, len);
}

/* Waits for a target that does not read no longer than for one that does not answer, and not after
 * a signal. */
static int send_text(struct target *t, const char *text, size_t n)
{
    uint64_t until_ns = clock_now_ns() + LATE_NS;
    struct pollfd to = {.fd = t->agent.in, .events = POLLOUT};

    while (n) {
        ssize_t done = write(t->agent.in, text, n);
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
    int err = !text ? -ENOMEM : t->agent.in < 0 ? -EPIPE : send_text(t, text, strlen(text));

    if (!err)
        err = send_text(t, "\n", 1);
    free(text);
    json_decref(message);
    if (err == -EPIPE)
        return lost(t, error, len);
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
    char *line;
    int err = 0;

    *answer = NULL;
    while (!(line = take_line(&t->agent))) {
        if (*t->cancel || err)
            return *t->cancel ? -ECANCELED : err;
        if (end_is_over(&t->agent))
            return gone(t, error, len);
        if (clock_now_ns() > until_ns) {
            snprintf(error, len, "target %s has said nothing for %.3g s", t->side,
                     (double)within_ns * 1e-9);
            return -ETIMEDOUT;
        }
        err = ends_attend(&t->agent, 1, SLICE_MS);
        if (t->progress)
            progress_show(t->progress);
    }
    err = take_answer(t, line, answer, error, len);
    free(line);
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
        json_integer_value(json_object_get(answer, "protocol")) != WIRE_PROTOCOL)
        return damaged(t, error, len);
    t->meta = json_incref(meta);
    t->plan.launches = calloc(n, sizeof(*t->plan.launches));
    if (!t->plan.launches)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        int err = wire_take_launch(json_array_get(all, i), &t->plan.launches[t->plan.n++]);
        if (err)
            return err == -EBADMSG ? damaged(t, error, len) : err;
    }
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
    for (r->state = LAUNCH_DONE; r->state <= LAUNCH_LATE; r->state++)
        if (!strcmp(state, launch_state_name(r->state)))
            return 0;
    return -EPROTO;
}

static void say_problem(struct target *t, const struct launch *l, const char *summary)
{
    progress_clear(t->progress);
    fprintf(stderr, "plumb run: %s: %s %s: %s\n", t->side, l->bench, l->arguments, summary);
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
    if (record.state == LAUNCH_FAIL || record.state == LAUNCH_LATE)
        say_problem(t, &t->plan.launches[i], summary);
    return 0;
}

int target_launch(struct target *t, size_t i, char *error, size_t len)
{
    const struct launch *l = &t->plan.launches[i];
    json_t *message = wire_launch(l), *answer = NULL;

    if (!message)
        return -ENOMEM;
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
    if (t->agent.pid)
        ends_stop(&t->agent, 1, STOP_GRACE_NS);
    store_close(t->store);
    plan_release(&t->plan);
    json_decref(t->meta);
    free(t->path);
}
