/* SPDX-License-Identifier: Apache-2.0 */
/* What of a run's plan is between hosts, over them, and on this machine. See run_state.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/hosts/launcher.h"
#include "harness/hosts/spread.h"
#include "harness/run/run_state.h"

static const char *plural(size_t n, const char *one, const char *more)
{
    return n == 1 ? one : more;
}

static void say(const struct run *r, const struct spread *told)
{
    const struct hosts *hosts = &r->hosts.hosts;
    char by[LAUNCHER_BY_SIZE];

    launcher_by(&r->hosts, by);
    fputs("plumb run: ", stderr);
    if (told->between) {
        fprintf(stderr, "between hosts, %s: %zu %s over %zu %s", by, told->between,
                plural(told->between, "case", "cases"), told->pairs,
                plural(told->pairs, "pair", "pairs"));
        if (told->bouts > 1)
            fprintf(stderr, " in %u bouts, in each of which no host is in two pairs", told->bouts);
        fputs("; ", stderr);
    }
    if (told->over && !told->between)
        fprintf(stderr, "over all hosts, %s", by);
    else if (told->over)
        fputs("over all hosts", stderr);
    if (told->over)
        fprintf(stderr, ": %zu %s with %u ranks on %zu %s; ", told->over,
                plural(told->over, "case", "cases"), hosts_slots(hosts), hosts->n,
                plural(hosts->n, "host", "hosts"));
    fprintf(stderr, "on this machine: %zu %s\n", told->here, plural(told->here, "case", "cases"));
}

/* The pair's place in a table of hosts->n by hosts->n. */
static size_t pair_of(const struct hosts *hosts, const struct suite_case *c)
{
    return (size_t)(hosts_find(hosts, c->from) - hosts->all) * hosts->n +
           (size_t)(hosts_find(hosts, c->to) - hosts->all);
}

/* A case of the suite stands once for every pair of hosts, one behind the other. */
static void count(const struct run *r, const bool *planned, bool *used, struct spread *told)
{
    const struct suite_case *last = NULL;

    for (size_t i = 0; i < r->suite.n; i++) {
        const struct suite_case *c = &r->suite.cases[i];
        if (!planned[i])
            continue;
        told->over += c->hosts != NULL;
        told->here += !c->hosts && !c->from;
        if (!c->from)
            continue;
        bool *pair = &used[pair_of(&r->hosts.hosts, c)];
        told->between += !last || last->bench != c->bench || strcmp(last->arguments, c->arguments);
        told->pairs += !*pair;
        told->bouts = c->bout > told->bouts ? c->bout : told->bouts;
        *pair = true;
        last = c;
    }
}

int run_say_spread(const struct run *r)
{
    size_t n = r->hosts.hosts.n;
    bool *planned = calloc(r->suite.n + 1, sizeof(*planned));
    bool *used = calloc(n * n + 1, sizeof(*used));
    struct spread told = {0};
    int err = planned && used ? 0 : -ENOMEM;

    for (size_t i = 0; !err && i < r->plan.n; i++)
        planned[r->plan.launches[i].case_number - 1] = true;
    if (!err) {
        count(r, planned, used, &told);
        say(r, &told);
    }
    free(planned);
    free(used);
    return err;
}
