/* SPDX-License-Identifier: Apache-2.0 */
/* The sides of a cause, measured in turn: see measure.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/condition.h"
#include "core/units.h"
#include "harness/doctor/measure.h"
#include "harness/run/estimate.h"
#include "harness/run/launch.h"
#include "harness/run/progress.h"
#include "harness/table.h"
#include "harness/text.h"

/* ---- The environment of a side ---- */

/* ---- One side, by a benchmark ---- */

/* Short, since what varies is between launches, and there are many of them. A cause with a budget of
 * its own has other words. */
#define SIDE_WORDS "--budget 200ms --warmup 100ms"
#define SIDE_NS    60000000000ull /* the longest time of a side */

struct running {
    struct measures *all;
    struct launch_context context;
    struct hosts_run no_hosts;
    struct kept kept;
    struct progress progress;
};

/* The launch of a side; its arguments are the caller's to free. */
static void side_launch(const struct running *r, const struct measurement *m, bool with,
                        struct launch *l)
{
    const struct bench_experiment *e = m->cause;
    const char *peer = bench_needs(m->bench, "peer") ? r->all->options->peer : NULL;
    size_t size;

    *l = (struct launch){.case_number = (unsigned)(m - r->all->all) + 1,
                         .repeat = (unsigned)m->n_turns + 1,
                         .bench = m->bench->name,
                         .timeout_ns = SIDE_NS};
    l->arguments =
        xasprintf("%s %s %s%s %s", e->both ? e->both : "", with ? e->with : e->without,
                  peer ? "--host " : "", peer ? peer : "",
                  argument_value(e->both ? e->both : "", "budget", &size) ? "" : SIDE_WORDS);
}

struct table_row {
    const struct table *t;
    size_t row;
};

static const char *cell_of(const void *arg, const char *name, size_t len)
{
    const struct table_row *at = arg;
    char text[64];

    snprintf(text, sizeof(text), "%.*s", (int)len, name);
    return table_text(at->t, at->row, text);
}

static bool more_is_better(const struct measurement *m, const struct unit *unit)
{
    for (const struct bench_metric *k = m->bench->rows.metrics; k->name; k++)
        if (!strcmp(k->name, m->cause->metric) && k->better != BETTER_BY_UNIT)
            return k->better == BETTER_MORE;
    return unit->higher_is_better;
}

static int take_value(struct measurement *m, const struct table *t, double *value)
{
    const struct unit *unit = NULL;
    size_t found = 0;

    for (size_t row = 0; row < t->n_rows; row++) {
        if (!(!strcmp(table_text(t, row, "metric"), m->cause->metric) &&
              condition_holds(m->cause->where ? m->cause->where : "", cell_of,
                              &(struct table_row){t, row})))
            continue;
        found++;
        *value = table_number(t, row, "value");
        unit = units_find(table_text(t, row, "unit"));
        m->simulated = !strcmp(table_text(t, row, "origin"), "simulated");
    }
    if (found != 1 || !unit) {
        snprintf(m->reason, sizeof(m->reason), "%s printed %zu rows of %s, not one", m->bench->name,
                 found, m->cause->metric);
        return -EBADMSG;
    }
    snprintf(m->unit, sizeof(m->unit), "%s", unit->name);
    m->more_is_better = more_is_better(m, unit);
    return 0;
}

static int read_rows(struct measurement *m, const struct launched *l, bool with, double *value)
{
    struct buffer text = {0};
    struct table t = {0};

    buffer_text(&text, l->header);
    buffer_text(&text, l->rows);
    int err = table_parse(m->bench->name, text.text, text.size, &t, m->reason, sizeof(m->reason));
    if (!err && l->record.state == LAUNCH_DONE) {
        err = take_value(m, &t, value);
    } else if (!err) { /* why it has no value: the reason of its row */
        bool skipped = l->record.state == LAUNCH_SKIP;
        err = skipped ? -EOPNOTSUPP : -EIO;
        snprintf(m->reason, sizeof(m->reason), "%s",
                 skipped && t.n_rows ? table_text(&t, t.n_rows - 1, "reason") : l->summary);
    }
    if (!err && with && m->cause->counts) {
        for (size_t row = 0; row < t.n_rows; row++)
            if (!strcmp(table_text(&t, row, "metric"), m->cause->counts))
                m->counted += fmax(0, table_number(&t, row, "value")); /* NaN: an empty cell */
    }
    table_release(&t);
    buffer_release(&text);
    return err;
}

static int launch_side(struct running *r, struct measurement *m, bool with, double *value)
{
    const char *set = !with && m->variable ? getenv(m->variable) : NULL;
    char *hidden = set ? xstrdup(set) : NULL;
    struct launched launched = {0};
    struct launch l;

    side_launch(r, m, with, &l);
    if (hidden)
        unsetenv(m->variable);
    int err = launch_run(&r->context, &l, &launched);
    if (hidden)
        setenv(m->variable, hidden, 1);
    free(hidden);
    if (err)
        snprintf(m->reason, sizeof(m->reason), "cannot launch '%s': %s", l.bench, strerror(-err));
    else
        err = launched.cancelled ? -ECANCELED : read_rows(m, &launched, with, value);
    launched_release(&launched);
    free(l.arguments);
    return err;
}

static int own_side(struct measurement *m, bool with, double *value)
{
    const struct unit *unit = units_find(m->own->unit);
    const char *why = NULL;
    int err = m->own->side(with, value, &why);

    snprintf(m->unit, sizeof(m->unit), "%s", m->own->unit);
    m->more_is_better = !unit || unit->higher_is_better;
    if (err)
        snprintf(m->reason, sizeof(m->reason), "%s", why ? why : strerror(-err));
    return err;
}

static int side(void *arg, struct measurement *m, bool with, double *value)
{
    struct running *r = arg;

    if (r->context.cancel && *r->context.cancel)
        return -ECANCELED;
    char now[160];

    snprintf(now, sizeof(now), "%s, turn %zu: %s the cause", m->cause->check, m->n_turns + 1,
             with ? "with" : "without");
    progress_now(&r->progress, now, "");
    int err = m->own ? own_side(m, with, value) : launch_side(r, m, with, value);
    r->progress.done += !err;
    r->progress.total += !err && m->n_turns >= MEASURE_TURNS_MIN;
    return err;
}

/* ---- All of them ---- */

static void tick(void *arg)
{
    progress_show(arg);
}

/* What a side is asked to take. */
static uint64_t side_ns(const struct running *r, const struct measurement *m)
{
    struct launch l;

    if (m->own)
        return m->own->side_ns;
    side_launch(r, m, true, &l);
    uint64_t ns = launch_asked_ns(r->all->benches, &l, 0);
    free(l.arguments);
    return ns;
}

/* The starts of programs come on top. */
static void say_duration(const struct running *r, size_t n, FILE *chatter)
{
    uint64_t least_ns = 0, most_ns = r->all->options->rule.budget_ns * n;
    char least[32], most[32];

    for (size_t i = 0; i < r->all->n; i++)
        if (r->all->all[i].state == MEASURE_TODO)
            least_ns += 4 * MEASURE_TURNS_MIN * side_ns(r, &r->all->all[i]);
    units_format_duration(least_ns, least, sizeof(least));
    units_format_duration(most_ns, most, sizeof(most));
    fprintf(chatter,
            "plumb doctor: measures %zu cause%s with and without, in turn, %d times each or more: "
            "%s at least%s%s\n",
            n, n == 1 ? "" : "s", 2 * MEASURE_TURNS_MIN, least,
            most_ns > least_ns ? ", at most about " : "", most_ns > least_ns ? most : "");
}

int measure_run(struct measures *m, FILE *chatter)
{
    struct running r = {.all = m};
    size_t n = 0, sides = 4 * MEASURE_TURNS_MIN;
    int err = 0;

    for (size_t i = 0; i < m->n; i++)
        n += m->all[i].state == MEASURE_TODO;
    if (!n)
        return 0;
    r.context = (struct launch_context){.benches = m->benches,
                                        .run = "",
                                        .seed = 1,
                                        .hosts = &r.no_hosts,
                                        .kept = &r.kept,
                                        .cancel = m->options->cancel,
                                        .tick = tick,
                                        .tick_arg = &r.progress};
    say_duration(&r, n, chatter);
    progress_start(&r.progress, chatter, n * sides, 0);
    r.progress.command = "doctor";
    for (size_t i = 0; !err && i < m->n; i++) {
        struct measurement *one = &m->all[i];
        if (one->state != MEASURE_TODO)
            continue;
        measure_turns(one, &m->options->rule, side, &r);
        r.progress.total = r.progress.done + --n * sides;
        if (m->options->cancel && *m->options->cancel)
            err = -ECANCELED;
    }
    progress_end(&r.progress);
    kept_release(&r.kept);
    return err;
}
