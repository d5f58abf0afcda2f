/* SPDX-License-Identifier: Apache-2.0 */
/* The morning's mail: three lines after a bad night, none after a quiet one. See check.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "harness/check/check.h"
#include "harness/compare/compare.h"
#include "harness/report/show.h"

/* ---- what */

static bool is_quiet(const struct check_result *r)
{
    bool apart = r->kept.done && r->kept.judged.standing == HISTORY_APART;

    return check_is_settled(r) || (r->gate.verdict == GATE_PASSED && !apart);
}

/* The first that need action, worst first; the verdict's sentence has those that lost. */
static const char *other_faults(const struct gate *g)
{
    struct pool *pool = &g->p->report.pool;
    const char *list = "";
    size_t n = 0;

    for (size_t i = 0; i < g->n && g->cases[i].state <= GATE_REFUSED; i++) {
        const struct gate_case *c = &g->cases[i];

        if (c->state != GATE_REGRESSED && n++ < WORDS_NAMED_MAX)
            list = show_joined(pool, list, pool_text(pool, "%s: %s", c->pair->label, c->text));
    }
    return n > WORDS_NAMED_MAX ? pool_text(pool, "%s, and %zu more", list, n - WORDS_NAMED_MAX)
                               : list;
}

static const char *what_words(const struct check_result *r)
{
    const struct gate *g = &r->gate;
    struct pool *pool = &g->p->report.pool;
    const struct history_run run = history_run_of(&g->p->report.runs[g->p->n_a]);
    const char *cases = other_faults(g);
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

/* Without cases the environment alone can be compared. */
static const char *changed_unmeasured(struct pool *pool, const struct check_unmeasured *u)
{
    const char *known = known_changes(pool, u->environment.other, u->environment.n_other);

    if (!u->n_environments)
        return "unknown: there is no baseline to compare with";
    return *known ? known
                  : "nothing in the environment that run.json records; program and suite are not "
                    "compared";
}

/* A run in which nothing was measured has no cases to judge, but it says where it ran. */
static int write_unmeasured(struct check_command *c, const struct run_folder *run,
                            struct pool *pool)
{
    const struct history_run tonight = history_run_of(run);
    struct check_unmeasured u;
    int err = check_since_unmeasured(c, run, pool, &u);
    FILE *out = err ? NULL : strcmp(c->options.mail, "-") ? fopen(c->options.mail, "we") : stdout;

    if (!out)
        return err ? err : -errno;
    line(out, pool, "What",
         pool_text(pool, "%s, suite %s: %s", tonight.host, tonight.suite, c->error));
    line(out, pool, "Since", u.since);
    line(out, pool, "Changed", changed_unmeasured(pool, &u));
    return stream_finish(out);
}

int check_mail_unmeasured(struct check_command *c)
{
    struct run_folder run = {0};
    struct pool pool = {0};
    char error[1024];
    int err = run_folder_load(c->run, &run, error, sizeof(error));

    if (!err)
        err = write_unmeasured(c, &run, &pool);
    run_folder_release(&run);
    pool_release(&pool);
    return err;
}
