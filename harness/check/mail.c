/* SPDX-License-Identifier: Apache-2.0 */
/* The morning's mail: three lines after a bad night, none after a quiet one. See check.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/check/check.h"
#include "harness/compare/compare.h"
#include "harness/report/show.h"

#define NAMED_MAX 3 /* of cases in the first line; the other files have all */

/* ---- since when */

static bool is_good(const struct history_run *run)
{
    return run->standing == HISTORY_BASELINE || run->standing == HISTORY_START ||
           run->standing == HISTORY_PROBATION;
}

static const char *moment(struct pool *pool, const struct history_run *run)
{
    return pool_text(pool, "%s (run %s)", run->started_utc, run->name);
}

/* Back from this night: the nights without a good run that stand next to it, n of them before it. */
static const char *since_words(struct pool *pool, const struct history_run *runs, size_t n)
{
    size_t first = n;

    while (first && !is_good(&runs[first - 1]))
        first--;
    const char *good =
        first ? pool_text(pool, "; the last good run began at %s", moment(pool, &runs[first - 1]))
              : "; no run before it was good";

    if (!n)
        return "this night, the first of the history";
    if (first == n)
        return pool_text(pool, "this night%s", good);
    return pool_text(pool, "%s, %zu nights in a row with this one%s", moment(pool, &runs[first]),
                     n - first + 1, good);
}

/* What the history says of a night: since when its fault is there, and what differs from the
 * baselines. */
struct morning {
    struct pool *pool;
    struct history_run tonight;
    const json_t *meta; /* run.json of the night; NULL: its differences are not asked for */
    const char *since;
    struct environment_word environment;
};

static int ask_runs(struct morning *m, struct history_db *db, char *error, size_t len)
{
    struct history_run *runs = NULL;
    size_t n = 0, before = 0;
    int err = history_db_runs(db, m->tonight.host, m->tonight.suite, 0, &runs, &n, error, len);

    while (!err && before < n && strcmp(runs[before].started_utc, m->tonight.started_utc) < 0)
        before++;
    if (!err)
        m->since = since_words(m->pool, runs, before);
    history_runs_release(runs, n);
    return err;
}

static int ask_history(struct morning *m, const struct check_options *o, char *error, size_t len)
{
    const struct history_sieve sieve = {
        .most = BASELINE_LAST, .steal_limit = steal_limit(o->steal), .meta = m->meta};
    size_t n;
    int err;
    struct history_db *db = history_db_open(o->history, false, &err, error, len);

    m->since = "unknown: no history is kept (--update-baseline)";
    if (!db)
        return err == -ENOENT || err == -ENOSYS ? 0 : err;
    err = ask_runs(m, db, error, len);
    if (!err && m->meta)
        err = history_db_environment(db, &m->tonight, &sieve, m->pool, &m->environment, &n, error,
                                     len);
    history_db_close(db);
    return m->pool->failed ? -ENOMEM : err;
}

int check_since(struct check_command *c, const struct gate *g, const char **since)
{
    struct morning m = {.pool = &g->p->report.pool,
                        .tonight = history_run_of(&g->p->report.runs[g->p->n_a])};
    int err = ask_history(&m, &c->options, c->error, sizeof(c->error));

    *since = m.since;
    return err;
}

/* ---- what */

static bool is_quiet(const struct check_result *r)
{
    bool apart = r->kept.done && r->kept.judged.standing == HISTORY_APART;

    return check_is_settled(r) || (r->gate.verdict == GATE_PASSED && !apart);
}

/* The first that need action, worst first. */
static const char *worst_cases(const struct gate *g)
{
    struct pool *pool = &g->p->report.pool;
    const char *list = "";
    size_t n = 0;

    for (size_t i = 0; i < g->n && g->cases[i].state <= GATE_REFUSED; i++) {
        const struct gate_case *c = &g->cases[i];
        const char *what = c->state == GATE_REGRESSED
                               ? pool_text(pool, "%s lost %s", c->pair->label,
                                           words_percent(pool, 1 - c->pair->decide.ratio))
                               : pool_text(pool, "%s: %s", c->pair->label, c->text);

        if (n++ < NAMED_MAX)
            list = show_joined(pool, list, what);
    }
    return n > NAMED_MAX ? pool_text(pool, "%s, and %zu more", list, n - NAMED_MAX) : list;
}

static const char *what_words(const struct check_result *r)
{
    const struct gate *g = &r->gate;
    struct pool *pool = &g->p->report.pool;
    const struct history_run run = history_run_of(&g->p->report.runs[g->p->n_a]);
    const char *cases = worst_cases(g);
    const char *what = g->verdict == GATE_PASSED
                           ? "measured in another environment than the baselines; no loss is proven"
                           : g->sentence;

    return pool_text(pool, "%s, suite %s: %s: %s%s%s", run.host, run.suite,
                     g->verdict == GATE_PASSED ? "not compared by later nights"
                                               : gate_verdict_name(g->verdict),
                     what, *cases ? ": " : "", cases);
}

/* ---- what changed */

/* What a run records of the machine and of how it was measured; the program and the suite last. */
static const char *known_changes(struct pool *pool, const struct machine_difference *all, size_t n)
{
    const char *list = "";

    for (int environment = 1; environment >= 0; environment--)
        for (size_t i = 0; i < n; i++) {
            const struct machine_difference *d = &all[i];

            if (d->environment == environment && *d->a && *d->b)
                list = show_joined(pool, list, pool_text(pool, "%s %s to %s", d->what, d->a, d->b));
        }
    return list;
}

/* A fact that one side does not know may be the same on both. */
static const char *unknown_changes(struct pool *pool, const struct machine_difference *all,
                                   size_t n)
{
    const char *list = "";

    for (size_t i = 0; i < n; i++)
        if (!*all[i].a || !*all[i].b)
            list = show_joined(pool, list,
                               pool_text(pool, "%s (%s to %s)", all[i].what, words_side(all[i].a),
                                         words_side(all[i].b)));
    return *list ? pool_text(pool, "; not known of one side, and not compared: %s", list) : "";
}

static const char *changed_words(struct pool *pool, const struct machine_difference *all, size_t n,
                                 bool compared)
{
    const char *known = known_changes(pool, all, n), *unknown = unknown_changes(pool, all, n);

    if (!compared)
        return "unknown: there is no run to compare with";
    if (*known || *unknown)
        return pool_text(pool, "%s%s", *known ? known : "nothing that both sides record", unknown);
    return "nothing that a run records: machine, program and suite are those of the baseline";
}

static void line(FILE *out, struct pool *pool, const char *label, const char *text)
{
    fprintf(out, "%s: %s\n", label, view_printable(pool, text));
}

int output_mail(FILE *out, const struct check_result *r)
{
    struct pool *pool = &r->gate.p->report.pool;

    if (!is_quiet(r)) {
        line(out, pool, "What", what_words(r));
        line(out, pool, "Since", r->since);
        line(out, pool, "Changed",
             changed_words(pool, r->differences, r->n_differences, !r->gate.options.first));
    }
    return ferror(out) ? -EIO : 0;
}

/* A run in which nothing was measured has no cases to judge, but it says where it ran. */
static int write_unmeasured(struct morning *m, struct check_command *c, const char *what)
{
    char error[1024];
    int err = ask_history(m, &c->options, error, sizeof(error));
    FILE *out = err ? NULL : strcmp(c->options.mail, "-") ? fopen(c->options.mail, "we") : stdout;

    if (!out)
        return err ? err : -errno;
    line(out, m->pool, "What",
         pool_text(m->pool, "%s, suite %s: %s", m->tonight.host, m->tonight.suite, what));
    line(out, m->pool, "Since", m->since);
    line(out, m->pool, "Changed",
         changed_words(m->pool, m->environment.other, m->environment.n_other, true));
    return out == stdout ? 0 : fclose(out) ? -errno : 0;
}

int check_mail_unmeasured(struct check_command *c)
{
    struct run_folder run = {0};
    struct pool pool = {0};
    char error[1024];
    struct morning m = {.pool = &pool};
    int err = run_folder_load(c->run, &run, error, sizeof(error));

    if (!err) {
        m.tonight = history_run_of(&run);
        m.meta = run.meta;
        err = write_unmeasured(&m, c, c->error);
    }
    run_folder_release(&run);
    pool_release(&pool);
    return err;
}
