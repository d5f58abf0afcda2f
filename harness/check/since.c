/* SPDX-License-Identifier: Apache-2.0 */
/* Since when is a fault there? By the history, for the mail: see check.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "harness/check/check.h"
#include "harness/report/show.h"

#define NAMED_MAX 3 /* of the sentences on lost cases that differ; the history has all */

/* Of the way from the baseline to this run's value, as logarithms: a run that went less than the
 * one share of it has not lost, one that went more than the other has. */
#define SHARE_UP   (1.0 / 3)
#define SHARE_DOWN (2.0 / 3)

struct lookup {
    struct history_db *db;
    struct pool *pool;
    const struct history_run *tonight;
    struct history_run *runs; /* of its host and suite */
    size_t n, n_all;          /* the first n came before it */
    int64_t id;               /* of this run in the history; 0: it is not there */
    char *error;
    size_t len;
};

static const char *moment(struct pool *pool, const struct history_run *run)
{
    return pool_text(pool, "%s (run %s)", run->started_utc, run->name);
}

/* ---- a loss, by the values of its case */

/* The value of a run by the launches that count; NaN: none. */
static double value_of(struct pool *pool, const struct history_series *s, size_t run, double limit)
{
    double *kept = pool_alloc(pool, s->n_launches[run] + 1, sizeof(*kept));
    const double *steals = s->steals[run];
    size_t n = 0;

    for (size_t i = 0; kept && i < s->n_launches[run]; i++)
        if (s->launches[run][i] > 0 && isfinite(s->launches[run][i]) &&
            !(steals && steal_is_over(steals[i], limit)))
            kept[n++] = s->launches[run][i];
    return n ? stats_centre(kept, n) : NAN;
}

/* How much of this run's loss an earlier value has: 0, that of the baseline; 1, this run's. */
static double share_of(const struct decide_case *c, double value)
{
    double ratio = c->higher_is_better ? value / c->a_value : c->a_value / value;

    return log(ratio) / log(c->ratio);
}

static const struct history_series *series_of(const struct history *h, const struct pair *pair)
{
    for (size_t i = 0; i < h->n_series; i++)
        if (!strcmp(h->series[i].key, pair->key) && !strcmp(h->series[i].unit, pair->c->unit))
            return &h->series[i];
    return NULL;
}

/* The newest runs of a case, back to the last one that had not lost. */
struct stretch {
    const struct history_run *up, *first; /* NULL: none */
    size_t n_known, n_down, n;            /* n: from `first` on, this run not included */
};

static struct stretch stretch_of(const struct lookup *l, const struct history_series *s,
                                 const struct decide_case *c, double limit)
{
    struct stretch t = {0};
    size_t n = 0;

    while (n < s->n && s->runs[n]->id != l->id &&
           strcmp(s->runs[n]->started_utc, l->tonight->started_utc) <= 0)
        n++;
    for (size_t i = n; i-- > 0 && !t.up;) {
        double share = share_of(c, value_of(l->pool, s, i, limit));

        t.n_known += isfinite(share);
        if (share <= SHARE_UP)
            t.up = s->runs[i];
        else if (share >= SHARE_DOWN) {
            t.first = s->runs[i];
            t.n_down++;
            t.n = n - i;
        }
    }
    return t;
}

static const char *stretch_words(struct pool *pool, const struct stretch *t)
{
    const char *up =
        t->up ? pool_text(pool, "; the last run without this loss began at %s", moment(pool, t->up))
              : "; the history has no run without this loss";

    if (!t->first)
        return pool_text(pool, "this night%s", up);
    if (t->n_down == t->n)
        return pool_text(pool, "%s, %zu runs in a row with this one%s", moment(pool, t->first),
                         t->n + 1, up);
    return pool_text(pool, "%s, %zu of %zu runs with this one%s", moment(pool, t->first),
                     t->n_down + 1, t->n + 1, up);
}

static const char *loss_words(const struct lookup *l, const struct history *h,
                              const struct gate_case *c, double limit)
{
    const struct history_series *s = series_of(h, c->pair);
    struct stretch t = {0};

    if (c->pair->decide.slipped)
        return "unknown: the loss came slowly, over many runs, which plumb history shows";
    if (c->pair->decide.judged_by != DECIDE_BY_MEDIAN)
        return "unknown: the medians do not show the loss, and the history has them alone";
    if (s)
        t = stretch_of(l, s, &c->pair->decide, limit);
    return t.n_known ? stretch_words(l->pool, &t)
                     : "unknown: the history has no earlier value of this case";
}

/* What is said alike of several cases is said once. */
struct said {
    const char *words, *label;
    size_t n;
};

static void say_loss(struct said *all, size_t *n, const char *words, const char *label)
{
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(all[i].words, words)) {
            all[i].n++;
            return;
        }
    all[(*n)++] = (struct said){words, label, 1};
}

static const char *said_words(struct pool *pool, const struct said *all, size_t n)
{
    const char *text = "";

    if (n == 1)
        return all[0].words;
    for (size_t i = 0; i < n && i < NAMED_MAX; i++)
        text = pool_text(pool, "%s%s%s (%s): %s", text, i ? ". " : "",
                         show_count(pool, all[i].n, "case"), all[i].label, all[i].words);
    return n > NAMED_MAX ? pool_text(pool, "%s. Other cases: see plumb history", text) : text;
}

static const char *others_words(const struct gate *g)
{
    return g->counts[GATE_WRONG] + g->counts[GATE_FAILED] + g->counts[GATE_MISSING] +
                   g->counts[GATE_REFUSED]
               ? ". Other cases: unknown"
               : "";
}

static int losses_since(struct lookup *l, const struct gate *g, double limit, const char **since)
{
    struct history h = {0};
    struct said *all = pool_alloc(l->pool, g->n + 1, sizeof(*all));
    size_t n = 0;
    int err = all ? history_db_read(l->db, l->tonight->host, l->tonight->suite, NULL, &h, l->error,
                                    l->len)
                  : -ENOMEM;

    for (size_t i = 0; !err && i < g->n && g->cases[i].state == GATE_REGRESSED; i++)
        say_loss(all, &n, loss_words(l, &h, &g->cases[i], limit), g->cases[i].pair->label);
    if (!err)
        *since = pool_text(l->pool, "%s%s", said_words(l->pool, all, n), others_words(g));
    history_release(&h);
    return err;
}

/* ---- any other fault, by what earlier runs are to later ones */

static bool is_good(enum history_standing standing)
{
    return standing == HISTORY_BASELINE || standing == HISTORY_START ||
           standing == HISTORY_PROBATION;
}

/* The history has no reason for which a run is no baseline: these may have had other faults. */
static const char *standing_words(const struct lookup *l)
{
    size_t first = l->n;

    while (first && !is_good(l->runs[first - 1].standing))
        first--;
    return pool_text(l->pool, "not a baseline since %s; %s",
                     first == l->n ? "this night" : moment(l->pool, &l->runs[first]),
                     first ? pool_text(l->pool, "the last good run began at %s",
                                       moment(l->pool, &l->runs[first - 1]))
                           : "no run before it was good");
}

static const char *fault_words(const struct lookup *l, const struct check_result *r)
{
    if (!l->n)
        return "this night, the first of the history";
    if (is_good(r->kept.judged.standing))
        return "unknown: nothing is proven";
    return standing_words(l);
}

/* ---- the history */

/* Fills in the runs that came before this one. */
static int read_runs(struct lookup *l)
{
    const struct history_run *t = l->tonight;
    int err = history_db_runs(l->db, t->host, t->suite, 0, &l->runs, &l->n_all, l->error, l->len);

    for (size_t i = 0; !err && i < l->n_all; i++) {
        int later = strcmp(l->runs[i].started_utc, t->started_utc);

        if (!later && !strcmp(l->runs[i].name, t->name))
            l->id = l->runs[i].id;
        l->n += later < 0 || (!later && !l->id);
    }
    return err;
}

/* 0 with l->db NULL where there is no history. */
static int open_runs(struct lookup *l, const char *history)
{
    int err;

    l->db = history_db_open(history, false, &err, l->error, l->len);
    if (!l->db)
        return err == -ENOENT || err == -ENOSYS ? 0 : err;
    return read_runs(l);
}

/* A run without a value cannot be added, but those before it were. */
static bool holds_nights(const struct lookup *l, const struct check_options *o)
{
    return l->id || o->update || (o->accept && !o->beside);
}

static void lookup_release(struct lookup *l)
{
    history_runs_release(l->runs, l->n_all);
    history_db_close(l->db);
}

/* Runs that nobody added may lie between those of the history and this one. */
static const char *not_kept(struct pool *pool, const char *history)
{
    return pool_text(pool, "unknown: this run is not in the history '%s' (--update-baseline)",
                     history);
}

int check_since(struct check_command *c, struct check_result *r)
{
    const struct gate *g = &r->gate;
    const struct history_run tonight = history_run_of(&g->p->report.runs[g->p->n_a]);
    struct lookup l = {.pool = &g->p->report.pool,
                       .tonight = &tonight,
                       .error = c->error,
                       .len = sizeof(c->error)};
    int err = open_runs(&l, c->options.history);

    if (!err && !(l.db && holds_nights(&l, &c->options)))
        r->since = not_kept(l.pool, c->options.history);
    else if (!err && g->counts[GATE_REGRESSED])
        err = losses_since(&l, g, steal_limit(c->options.steal), &r->since);
    else if (!err)
        r->since = fault_words(&l, r);
    lookup_release(&l);
    return l.pool->failed ? -ENOMEM : err;
}

int check_since_unmeasured(struct check_command *c, const struct run_folder *run, struct pool *pool,
                           struct check_unmeasured *u)
{
    const struct check_options *o = &c->options;
    const struct history_run tonight = history_run_of(run);
    const struct history_sieve sieve = {
        .most = BASELINE_LAST, .steal_limit = steal_limit(o->steal), .meta = run->meta};
    char error[1024];
    struct lookup l = {.pool = pool, .tonight = &tonight, .error = error, .len = sizeof(error)};
    int err = open_runs(&l, o->history);

    *u = (struct check_unmeasured){.since = not_kept(pool, o->history)};
    if (!err && holds_nights(&l, o))
        u->since = l.n ? standing_words(&l) : "this night, the first of the history";
    if (!err && l.db && holds_nights(&l, o))
        err = history_db_environment(l.db, &tonight, &sieve, pool, &u->environment,
                                     &u->n_environments, error, sizeof(error));
    lookup_release(&l);
    return pool->failed ? -ENOMEM : err;
}
