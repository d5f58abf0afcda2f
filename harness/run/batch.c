/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that measure many cases: see launch.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/condition.h"
#include "core/program.h"
#include "harness/run/launch.h"
#include "harness/text.h"

#define VALUES 4 /* of one term at most, and some more */

const char *const process_rules[] = {"auto", "case", "round", NULL};

/* ---- Which launches share a process ---- */

struct asked {
    const struct bench_info *bench;
    const char *arguments;
    char values[VALUES][128];
    unsigned next;
};

/* For conditions on the options of a launch. */
static const char *value_of(const void *arg, const char *name, size_t len)
{
    struct asked *a = (struct asked *)arg;
    char *value = a->values[a->next++ % VALUES], option[64];
    size_t size;

    snprintf(option, sizeof(option), "%.*s", (int)len, name);
    const char *given = argument_value(a->arguments, option, &size);
    if (given) {
        snprintf(value, sizeof(a->values[0]), "%.*s", (int)size, given);
        return value;
    }
    for (size_t i = 0; i < a->bench->n_own; i++)
        if (!strcmp(a->bench->options[i].name, option))
            return a->bench->defaults[i];
    return NULL;
}

bool option_applies(const struct bench_info *b, const struct opt *opt, const char *arguments)
{
    struct asked a = {.bench = b, .arguments = arguments};

    return !opt->scope || condition_holds(opt->scope->when, value_of, &a);
}

static bool is_dear(const struct bench_info *b, const char *arguments)
{
    struct asked a = {.bench = b, .arguments = arguments};

    for (const struct bench_start *s = b->rows.starts; s && s->what; s++)
        if (!s->where || condition_holds(s->where, value_of, &a))
            return true;
    return false;
}

bool launch_shares(enum process_rule rule, const struct bench_info *b, const struct launch *l)
{
    if (rule == PROCESS_CASE || launch_has_hosts(l))
        return false;
    return rule == PROCESS_ROUND || is_dear(b, l->arguments);
}

/* ---- The processes ---- */

static void end(struct batch *b)
{
    child_server_end(b->server);
    b->server = NULL;
    b->n = 0;
}

/* The one of this benchmark and round; those of other rounds are over. */
static struct batch *find(struct batches *all, const struct bench_info *bench, unsigned round)
{
    struct batch *found = NULL;

    for (size_t i = 0; i < all->n; i++) {
        struct batch *b = &all->all[i];
        bool same = b->bench == bench;
        if (b->round != round || (all->alone && !same))
            end(b);
        found = same ? b : found;
    }
    if (!found) {
        found = ARRAY_ADD(all->all, all->n);
        *found = (struct batch){.bench = bench};
    }
    found->round = round;
    return found;
}

int batch_run(struct batches *all, const struct bench_info *bench, const struct launch *l,
              const char *line, const struct child_spec *spec, struct child_result *result)
{
    uint64_t begin_ns = clock_now_ns();
    struct batch *b = find(all, bench, l->repeat);
    bool fresh = false;
    int err = -ESRCH;

    all->before = 0;
    while (err == -ESRCH && !fresh) {
        fresh = !b->server;
        static const char marks[] = "/dev/fd/4"; /* CHILD_MARKS_FD */
        const char *argv[] = {b->bench->path, "--commands", marks, NULL};
        struct child_spec process = *spec;

        process.argv = argv;
        err = fresh ? child_server_start(&process, &b->server) : 0;
        if (err)
            break;
        all->before = b->n;
        err = child_server_ask(b->server, line, l->timeout_ns, result);
        b->n++;
        if (err) {
            end(b); /* it may have ended between two cases: another one begins with this case */
            if (err == -ESRCH && !fresh)
                child_result_release(result);
        }
    }
    if (err == -ESRCH)
        err = -ECHILD;
    result->elapsed_ns = clock_now_ns() - begin_ns;
    /* What a failure left behind, such as a broken context, is nobody else's. */
    if (b->server && (err || result->ended || result->status != EXIT_GOOD))
        end(b);
    return err;
}

void batches_release(struct batches *all)
{
    for (size_t i = 0; i < all->n; i++)
        end(&all->all[i]);
    free(all->all);
    all->all = NULL; /* its rule stays */
    all->n = 0;
}
