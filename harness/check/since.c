/* SPDX-License-Identifier: Apache-2.0 */
/* Since when is a loss there? By the values of the history: see check.h. */
#include <math.h>
#include <string.h>

#include "harness/check/check.h"

/* The runs of the series before this one, back to two in a row that had not lost: a single one may
 * be noise. Those without a value neither count nor end the row. */
static const char *nights_text(struct pool *pool, const struct history_series *s,
                               const struct history_run *tonight, const struct decide_case *c,
                               double limit)
{
    const struct history_run *first = tonight;
    size_t n = 1, known = 0, missed = 0;

    for (size_t i = s->n; i-- > 0 && missed < 2;) {
        const struct history_run *run = s->runs[i];
        double value = history_value(s, i, limit).value;

        if (strcmp(run->started_utc, tonight->started_utc) > 0 || isnan(value) ||
            (!strcmp(run->started_utc, tonight->started_utc) && !strcmp(run->name, tonight->name)))
            continue;
        known++;
        /* Has an earlier value at least half of this run's loss? */
        double ratio = c->higher_is_better ? value / c->a_value : c->a_value / value;

        missed = log(ratio) <= log(c->ratio) / 2 ? 0 : missed + 1;
        if (missed)
            continue;
        first = run;
        n = known + 1;
    }
    if (!known)
        return "";
    return n == 1 ? "this night"
                  : pool_text(pool, "%s (run %s), %zu nights%s", first->started_utc, first->name, n,
                              n == known + 1 ? ", all that the history has" : "");
}

static const struct history_series *series_of(const struct history *h, const struct pair *pair)
{
    for (size_t i = 0; i < h->n_series; i++)
        if (!strcmp(h->series[i].key, pair->key) && !strcmp(h->series[i].unit, pair->c->unit))
            return &h->series[i];
    return NULL;
}

const char *check_since(const struct check_command *c, const struct gate *g)
{
    const struct pair *pair = g->n ? g->cases[0].pair : NULL;
    const struct history_run tonight = history_run_of(&g->p->report.runs[g->p->n_a]);
    struct pool *pool = &g->p->report.pool;
    struct history h = {0};
    const char *text = "";
    char error[256];
    int err;

    if (!g->counts[GATE_REGRESSED] || !baseline_is_history(c->options.baseline))
        return "";
    if (pair->decide.slipped)
        return "some nights: it came slowly; plumb history shows it";
    if (pair->decide.judged_by != DECIDE_BY_MEDIAN) /* the history has no other figure */
        return "";
    struct history_db *db = history_db_open(c->options.history, false, &err, error, sizeof(error));

    const struct history_series *s =
        db && !history_db_read(db, tonight.host, tonight.suite, NULL, &h, error, sizeof(error))
            ? series_of(&h, pair)
            : NULL;
    if (s)
        text = nights_text(pool, s, &tonight, &pair->decide, steal_limit(c->options.steal));
    if (*text && g->counts[GATE_REGRESSED] > 1)
        text = pool_text(pool, "%s, in %s", text, pair->label);
    history_release(&h);
    history_db_close(db);
    return text;
}
