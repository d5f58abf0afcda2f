/* SPDX-License-Identifier: Apache-2.0 */
/* Asking hosts: see check.h. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "harness/hosts/check.h"
#include "harness/hosts/end.h"
#include "harness/hosts/launcher.h"

#define CHECK_CLOCK_S 1.0 /* the largest difference that is accepted, beyond its uncertainty */

#define AT_ONCE       32 /* connections */
#define JOBS_AT_ONCE  8  /* of mpirun or srun */
#define SLICE_MS      20
#define STOP_GRACE_NS 1000000000ull
#define NETWORKS_MAX  64

/* A host that is being asked. */
struct asking {
    struct host *host;
    double begin_s, end_s; /* our clock before it was asked, and when its own had come */
    uint64_t since_ns;
    bool done;
    bool again; /* its job ended without an answer: to be asked once more, by itself */
};

struct batch {
    struct hosts_run *run;
    const struct bench_list *benches;
    char token[HOSTS_TOKEN_SIZE];
    struct end ends[AT_ONCE];
    struct asking asking[AT_ONCE];
    unsigned n;
    bool alone; /* no other job is running */
};

/* The clock that people set, which is what is compared. */
static double wall_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void set_problem(struct host *h, const char *text)
{
    free(h->problem);
    h->problem = xstrdup(text);
}

/* `date +%s.%N`, where %N may be unknown: then it is a second that has begun. */
static void take_clock(struct host *h, const char *text, double begin_s, double end_s)
{
    char *end, problem[400];
    double s = strtod(text, &end);
    bool whole = !strchr(text, '.') || *end || end[-1] == '.';

    if (end == text)
        return;
    double least = s - end_s, most = s + (whole ? 1 : 0) - begin_s;
    h->offset_s = (least + most) / 2;
    h->spread_s = (most - least) / 2;
    if (fabs(h->offset_s) - h->spread_s <= CHECK_CLOCK_S)
        return;
    snprintf(
        problem, sizeof(problem),
        "the clock of '%s' is %.3g s %s this machine's (known to %.2g s): set both by one time "
        "server, see chronyc tracking or timedatectl",
        h->name, fabs(h->offset_s), h->offset_s > 0 ? "ahead of" : "behind", h->spread_s);
    set_problem(h, problem);
}

static void take_build(struct host *h, struct host_program *p, const struct stream_hello *said)
{
    struct stream_hello missing = *said;
    char problem[768];

    if (!strcmp(said->name, "0")) {
        p->version = xstrdup(said->version);
        return;
    }
    snprintf(missing.name, sizeof(missing.name), "%.200s", h->calls);
    host_say_missing(p->path ? p->path : p->bench, h->name, &missing, problem, sizeof(problem));
    p->problem = xstrdup(problem);
}

static void take_builds(struct host *h, const char *text, const char *token)
{
    for (size_t i = 0; i < h->n_programs; i++) {
        const char *at = stream_find(text, "build", token);
        struct stream_hello said = {0};
        if (at)
            said = stream_hello(text, "build", token);
        if (said.there)
            take_build(h, &h->programs[i], &said);
        text = at ? strchr(at, '\n') : text;
        text = text ? text : "";
    }
}

static void take_networks(struct host *h, const char *text, const char *token)
{
    size_t n = 0;

    h->networks = xcalloc(NETWORKS_MAX + 1, sizeof(*h->networks));
    while (n < NETWORKS_MAX && (text = stream_find(text, "net", token)) != NULL) {
        h->networks[n] = xstrndup(text, strcspn(text, "\n"));
        stream_printable(h->networks[n++]);
    }
}

void check_take(struct host *h, const char *text, const char *token, double begin_s, double end_s)
{
    struct stream_hello hello = stream_hello(text, "begin", token);

    h->answered = true;
    h->calls = xstrdup(hello.name);
    take_clock(h, hello.version, begin_s, end_s);
    take_builds(h, text, token);
    take_networks(h, text, token);
}

static int start(struct batch *b, struct host *h)
{
    struct end *e = &b->ends[b->n];
    struct argv programs = {0};
    /* The programs that the host is asked for, as words of the script. */
    char path[4096];

    for (size_t i = 0; i < h->n_programs; i++) {
        const struct bench_info *bench = bench_list_find(b->benches, h->programs[i].bench);
        host_program_path(b->run, h, bench ? bench->path : "", path, sizeof(path));
        free(h->programs[i].path); /* it may be asked twice */
        h->programs[i].path = xstrdup(path);
        argv_add(&programs, path);
    }
    *e = (struct end){.name = h->name, .silent = true, .in = -1, .out = -1, .err = -1};
    h->asked = true;
    b->run->launcher->command(
        &(struct hosts_order){.run = b->run,
                              .task = TASK_CHECK,
                              .host = h,
                              .token = b->token,
                              .program = programs.n ? programs.all[0] : "",
                              .arguments = (const char *const *)programs.all + (programs.n > 0)},
        &e->command);
    argv_release(&programs);
    b->asking[b->n++] = (struct asking){.host = h, .begin_s = wall_s(), .since_ns = clock_now_ns()};
    return end_start(e);
}

/* Is the host done? */
static void look(struct batch *b, unsigned i)
{
    struct asking *a = &b->asking[i];
    const struct end *e = &b->ends[i];
    const char *text = e->output.text;
    bool late = clock_now_ns() >= a->since_ns + b->run->wait_ns;

    if (a->done)
        return;
    if (!a->end_s && stream_hello(text, "begin", b->token).there)
        a->end_s = wall_s();
    bool whole = a->end_s != 0 && stream_hello(text, "done", b->token).there;
    a->done = whole || late || end_is_over(e);
    if (!a->done)
        return;
    a->again = !whole && !late && !b->alone && b->n > 1 && b->run->launcher->ranks;
    if (a->again)
        return;
    if (whole)
        check_take(a->host, text, b->token, a->begin_s, a->end_s);
    else {
        char problem[900];

        if (end_is_over(e))
            host_say_unreached(b->run, e, problem, sizeof(problem));
        else
            host_say_mute(b->run, e, problem, sizeof(problem));
        set_problem(a->host, problem);
    }
}

static bool all_done(const struct batch *b)
{
    for (unsigned i = 0; i < b->n; i++)
        if (!b->asking[i].done)
            return false;
    return true;
}

static int ask_at_once(struct batch *b)
{
    int err = 0;

    while (!err && !all_done(b)) {
        err = ends_attend(b->ends, b->n, SLICE_MS);
        for (unsigned i = 0; !err && i < b->n; i++)
            look(b, i);
    }
    ends_stop(b->ends, b->n, STOP_GRACE_NS);
    b->n = 0;
    return err;
}

/* Several mpirun on one machine share a folder of Open MPI. One that ends removes it while another
 * enters it ("A call to mkdir was unable to create the desired directory"). A host that failed
 * beside others is asked once more, alone. */
static int ask_batch(struct batch *b)
{
    struct host *again[AT_ONCE];
    unsigned n = b->n, left = 0;
    int err = ask_at_once(b);

    for (unsigned i = 0; i < n; i++)
        if (b->asking[i].again)
            again[left++] = b->asking[i].host;
    b->alone = true;
    for (unsigned i = 0; !err && i < left; i++) {
        err = start(b, again[i]);
        if (!err)
            err = ask_at_once(b);
    }
    b->alone = false;
    return err;
}

int check_ask(struct hosts_run *run, const struct bench_list *benches)
{
    struct batch *b = xcalloc(1, sizeof(*b));
    unsigned at_once = run->launcher->ranks ? JOBS_AT_ONCE : AT_ONCE;
    int err = host_token(b->token);

    for (size_t i = 0; !err && i < run->hosts.n; i++) {
        if (!run->hosts.all[i].n_programs)
            continue;
        b->run = run;
        b->benches = benches;
        err = start(b, &run->hosts.all[i]);
        if (!err && b->n == at_once)
            err = ask_batch(b);
    }
    if (!err)
        err = ask_batch(b);
    else
        ends_stop(b->ends, b->n, 0);
    free(b);
    return err;
}
