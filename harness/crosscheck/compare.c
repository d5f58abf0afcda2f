/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One comparison: pairs of runs, ours and theirs in turn (A B, B A, A B, ...), so that a drift of
 * the machine falls on both alike. Ours goes first in the first pair: where it put its ends is
 * where the witness' ends are then put.
 */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/condition.h"
#include "core/stats.h"
#include "core/units.h"
#include "harness/crosscheck/crosscheck.h"
#include "harness/plan/bench_info.h"
#include "harness/table.h"

/* ---- Ratios and verdicts ---- */

/* What a definition that was got wrong multiplies by. */
static const struct {
    double factor;
    const char *text;
} mistakes[] = {
    {1.048576, "2^20 against 1e6 bytes"},
    {1.073741824, "2^30 against 1e9 bytes"},
    {1.024, "2^10 against 1e3 bytes"},
    {2, "half against whole round trips, or one direction against two"},
    {8, "bits against bytes"},
    {1000, "a thousand in the unit"},
};

static bool within(const struct judgement *j, double centre, double margin)
{
    return j->low >= centre * (1 - margin) && j->high <= centre * (1 + margin);
}

/* Narrower than the margin: 2.4 % and 4.9 % are near enough to real differences as it is. */
static const char *suspect(const struct judgement *j, double margin)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        double f = mistakes[i].factor, near = fmin(margin, (f - 1) / 5);
        if (within(j, f, near) || within(j, 1 / f, near))
            return mistakes[i].text;
    }
    return NULL;
}

static enum verdict verdict_of(const struct judgement *j, double margin, bool higher_is_better)
{
    if (isnan(j->low) || isnan(j->high))
        return VERDICT_UNDECIDED;
    if (within(j, 1, margin))
        return VERDICT_AGREE;
    if (j->low <= 1 && j->high >= 1)
        return VERDICT_UNDECIDED;
    return (j->low > 1) == higher_is_better ? VERDICT_BETTER : VERDICT_WORSE;
}

/* The width of an interval goes with one over the root of the number of pairs. */
static size_t pairs_wanted(const struct judgement *j, double margin)
{
    double times = (j->high - j->low) / 2 / margin;

    if (isnan(times))
        return JUDGE_PAIRS_MIN;
    double wanted = ceil((double)j->pairs * fmax(times * times, 1.2));
    return wanted < 1e6 ? (size_t)wanted : 0;
}

int judge(const double *ours, const double *theirs, size_t pairs, double margin,
          bool higher_is_better, struct judgement *j)
{
    struct median_ci ci;

    *j = (struct judgement){.pairs = pairs, .verdict = VERDICT_UNDECIDED};
    int err = stats_ci_ratio(ours, theirs, pairs, JUDGE_CONFIDENCE, &ci);
    if (!err) {
        j->ours = stats_median(ours, pairs);
        j->theirs = stats_median(theirs, pairs);
        j->ratio = ci.median;
        j->low = ci.low;
        j->high = ci.high;
        j->verdict = verdict_of(j, margin, higher_is_better);
        if (j->verdict == VERDICT_BETTER || j->verdict == VERDICT_WORSE)
            j->suspect = suspect(j, margin);
        if (j->verdict == VERDICT_UNDECIDED)
            j->pairs_wanted = pairs_wanted(j, margin);
    }
    return err;
}

/* ---- Our rows ---- */

/* A row is noisy here because it was asked for a width that nothing reaches: so it measures for all
 * of its time. */
static int judge_row(const struct table *t, size_t row, char *error, size_t len)
{
    const char *status = table_text(t, row, "status"), *reason = table_text(t, row, "reason");

    if (!strcmp(status, "ok") || !strcmp(status, "noisy"))
        return 0;
    snprintf(error, len, "our row is %s: %s", status, *reason ? reason : "it says no reason");
    return strcmp(status, "skipped") ? -EIO : -EOPNOTSUPP;
}

struct cell_of {
    const struct table *t;
    size_t row;
};

static const char *cell_named(const void *arg, const char *name, size_t len)
{
    const struct cell_of *c = arg;
    char column[64];

    snprintf(column, sizeof(column), "%.*s", (int)len, name);
    return table_text(c->t, c->row, column);
}

static bool is_asked_for(const struct witness *w, const struct table *t, size_t row)
{
    return !strcmp(table_text(t, row, "metric"), w->metric) &&
           (!w->scope || !strcmp(table_text(t, row, "scope"), w->scope)) &&
           (!w->rows || condition_holds(w->rows, cell_named, &(struct cell_of){t, row}));
}

static void copy(char *to, size_t len, const struct table *t, size_t row, const char *column)
{
    snprintf(to, len, "%s", table_text(t, row, column));
}

static void take_facts(const struct table *t, size_t row, struct ours *out)
{
    copy(out->cpus, sizeof(out->cpus), t, row, "cpus");
    copy(out->detail, sizeof(out->detail), t, row, "detail");
    copy(out->gid, sizeof(out->gid), t, row, "carrier_gid");
}

static int add_row(const struct witness *w, const struct table *t, size_t row, struct ours *out,
                   char *error, size_t len)
{
    double value = table_number(t, row, w->column);

    if (strcmp(table_text(t, row, "unit"), w->unit) != 0 || !(value > 0)) {
        snprintf(error, len, "our row has '%s' %s in its column '%s', not a number of %s",
                 table_text(t, row, w->column), table_text(t, row, "unit"), w->column, w->unit);
        return -EBADMSG;
    }
    out->value += value;
    take_facts(t, row, out);
    return 0;
}

static int read_table(const struct witness *w, const struct table *t, struct ours *out, char *error,
                      size_t len)
{
    size_t found = 0, wanted = w->scope ? 2 : 1; /* of both sides, or the one */
    int err = 0;

    for (size_t row = 0; !err && row < t->n_rows; row++) {
        err = judge_row(t, row, error, len);
        if (!err && is_asked_for(w, t, row)) {
            err = add_row(w, t, row, out, error, len);
            found++;
        }
    }
    if (err || found == wanted)
        return err;
    snprintf(error, len, "our benchmark printed %zu rows of %s, not %zu", found, w->metric, wanted);
    return -EBADMSG;
}

int ours_read(const struct witness *w, const char *csv, size_t size, struct ours *out, char *error,
              size_t len)
{
    struct table t;
    int err = table_parse(w->bench, csv, size, &t, error, len);

    *out = (struct ours){0};
    if (err)
        return -EBADMSG;
    err = read_table(w, &t, out, error, len);
    table_release(&t);
    return err;
}

#define LONGER_S   2
#define MESSAGES_S 10000
#define OUR_WORDS                                                                                  \
    " --budget {seconds}s --width 0.0001% --min-samples 100000000 --max-samples 100000000 --csv"
#define SERVER_TRIES 3 /* a port may be taken between our look and its use */

struct texts {
    char size[24], mib[24], streams[24], seconds[24], longer[24], messages[24], port[24];
};

#define VALUES_MAX 13

static void text_of(char text[24], uint64_t number)
{
    snprintf(text, 24, "%llu", (unsigned long long)number);
}

static void values_fill(const struct crosscheck *c, const struct comparison *m, unsigned port,
                        struct texts *t, struct template_value values[VALUES_MAX])
{
    text_of(t->size, m->w->size);
    text_of(t->mib, m->w->size >> 20);
    text_of(t->streams, m->streams);
    text_of(t->seconds, c->options.seconds);
    text_of(t->longer, c->options.seconds + LONGER_S);
    text_of(t->messages, c->options.seconds * MESSAGES_S);
    text_of(t->port, port);
    const struct template_value all[VALUES_MAX] = {
        {"size", t->size},       {"mib", t->mib},
        {"streams", t->streams}, {"seconds", t->seconds},
        {"longer", t->longer},   {"messages", t->messages},
        {"port", t->port},       {"host", "127.0.0.1"},
        {"device", c->device},   {"device_port", c->device_port},
        {"gid", m->last.gid},    {NULL, NULL},
    };
    memcpy(values, all, sizeof(all));
}

static void tick(void *arg)
{
    progress_show(arg);
}

static void failed(struct comparison *m, const char *who, const char *why)
{
    m->state = COMPARISON_FAILED;
    snprintf(m->reason, sizeof(m->reason), "%.40s in pair %zu: %.440s", who, m->pairs + 1, why);
}

static struct tandem_spec spec_of(struct crosscheck *c)
{
    return (struct tandem_spec){.timeout_ns = c->options.timeout_ns,
                                .cancel = c->cancel,
                                .tick = tick,
                                .tick_arg = &c->progress};
}

/* Its rows say better than its status why it failed. */
static int read_ours(struct comparison *m, const struct buffer *csv, int err, char *why, size_t len)
{
    struct ours now;
    char told[512];
    int told_err = ours_read(m->w, csv->text, csv->size, &now, told, sizeof(told));

    if (told_err && (!err || told_err != -EBADMSG)) {
        snprintf(why, len, "%s", told);
        return told_err;
    }
    if (!err) {
        m->last = now;
        m->ours[m->pairs] = now.value;
    }
    return err;
}

static int take_ours(struct crosscheck *c, struct comparison *m, const struct tandem_result *r,
                     int err, char *why, size_t len)
{
    if (!r->ran || err == -ECANCELED)
        return err;
    int keep_err = crosscheck_keep(c, m, "ours.csv", &r->client.out);
    if (!keep_err)
        keep_err = crosscheck_keep(c, m, "ours.err", &r->client.err);
    if (keep_err)
        return keep_err;
    return err && err != -EIO ? err : read_ours(m, &r->client.out, err, why, len);
}

/* The launcher's words, and ours behind them: a new array. Takes `ours`. */
static char **launched(const struct witness *w, const struct template_value *values, char **ours,
                       char *error, size_t len)
{
    char **first =
        ours && w->launcher ? template_fill(NULL, w->launcher, values, error, len) : NULL;
    size_t n = 0, more = 0;

    if (!ours || !w->launcher)
        return ours;
    while (first && first[n])
        n++;
    while (ours[more])
        more++;
    char **all = first ? realloc(first, (n + more + 1) * sizeof(*all)) : NULL;
    if (!all) {
        texts_free(first);
        texts_free(ours);
        return NULL;
    }
    memcpy(all + n, ours, (more + 1) * sizeof(*ours));
    free(ours);
    return all;
}

/* -EIO and the like: the comparison failed, with m->reason; -ECANCELED; other: nothing can go on.
 */
static int run_ours(struct crosscheck *c, struct comparison *m)
{
    struct template_value values[VALUES_MAX];
    struct tandem_spec spec = spec_of(c);
    struct tandem_result r = {0};
    struct texts texts;
    char why[512] = "", *text = NULL, *path = bench_find_program(m->w->bench), **words = NULL;

    values_fill(c, m, 0, &texts, values);
    if (path && asprintf(&text, "%s%s", m->w->ours, OUR_WORDS) >= 0)
        words = template_fill(path, text, values, why, sizeof(why));
    words = launched(m->w, values, words, why, sizeof(why));
    int err = words ? 0 : -EIO;
    spec.client = words;
    if (!err) {
        err = tandem_run(&spec, &r, why, sizeof(why));
        err = take_ours(c, m, &r, err, why, sizeof(why));
    }
    if (err && err != -ECANCELED)
        failed(m, "ours", why);
    if (err == -EOPNOTSUPP) {
        m->state = COMPARISON_SKIPPED;
        snprintf(m->reason, sizeof(m->reason), "%.500s", why);
    }
    tandem_result_release(&r);
    texts_free(words);
    free(text);
    free(path);
    return err;
}

static int keep_theirs(struct crosscheck *c, const struct comparison *m,
                       const struct tandem_result *r)
{
    static const char *const names[] = {"theirs.out", "theirs.err", "server.out", "server.err"};
    const struct buffer *const texts[] = {&r->client.out, &r->client.err, &r->server.out,
                                          &r->server.err};
    int err = 0;

    for (int i = 0; !err && i < 4; i++)
        if (texts[i]->size)
            err = crosscheck_keep(c, m, names[i], texts[i]);
    return err;
}

static int take_theirs(struct crosscheck *c, struct comparison *m, const struct tandem_result *r,
                       int err, char *why, size_t len)
{
    struct foreign_figure figure = {0};

    if (err == -ECANCELED)
        return err;
    int keep_err = keep_theirs(c, m, r);
    if (keep_err)
        return keep_err;
    if (!err)
        err = witness_read(m->w, r->client.out.text ? r->client.out.text : "", r->client.out.size,
                           &figure, why, len);
    if (!err) {
        m->printed[m->pairs] = figure.printed;
        m->theirs[m->pairs] = figure.value;
        m->figure = figure;
    }
    return err;
}

static int try_theirs(struct crosscheck *c, struct comparison *m, char *why, size_t len,
                      bool *again)
{
    struct template_value values[VALUES_MAX];
    struct tandem_spec spec = spec_of(c);
    struct tandem_result r = {0};
    const char *peer = m->last.cpus;
    struct texts texts;
    int err = 0;

    spec.port = tandem_free_port();
    values_fill(c, m, spec.port, &texts, values);
    char **server = m->w->server ? template_fill(NULL, m->w->server, values, why, len) : NULL;
    char **client = template_fill(NULL, m->w->client, values, why, len);
    if (!client || (m->w->server && !server) || !spec.port)
        err = -EIO;
    spec.server = server;
    spec.client = client;
    spec.client_cpus = tandem_cpus_parse(m->last.cpus, &peer);
    if (*peer == '>')
        spec.server_cpus = tandem_cpus_parse(peer + 1, NULL);
    if (!err) {
        err = tandem_run(&spec, &r, why, len);
        *again = err == -EIO && !r.ran;
        err = take_theirs(c, m, &r, err, why, len);
    }
    tandem_result_release(&r);
    texts_free(server);
    texts_free(client);
    return err;
}

static int run_theirs(struct crosscheck *c, struct comparison *m)
{
    char why[512] = "";
    bool again = true;
    int err = -EIO;

    for (int i = 0; i < SERVER_TRIES && err && again; i++) {
        again = false;
        err = try_theirs(c, m, why, sizeof(why), &again);
    }
    if (err && err != -ECANCELED)
        failed(m, m->w->program, why);
    if (err == -EOPNOTSUPP) {
        m->state = COMPARISON_SKIPPED;
        snprintf(m->reason, sizeof(m->reason), "%.40s: %.440s", m->w->program, why);
    }
    return err;
}

static int run_pair(struct crosscheck *c, struct comparison *m)
{
    bool ours_first = m->pairs % 2 == 0;
    int err = 0;

    for (int i = 0; !err && i < 2; i++) {
        bool ours = (i == 0) == ours_first;
        snprintf(c->progress.now, sizeof(c->progress.now), "%s, pair %zu of %llu: %s", m->w->name,
                 m->pairs + 1, (unsigned long long)c->options.pairs, ours ? "ours" : m->w->program);
        progress_show(&c->progress);
        err = ours ? run_ours(c, m) : run_theirs(c, m);
        c->progress.done++;
    }
    if (!err)
        err = crosscheck_keep_pair(c, m, ours_first);
    m->pairs += !err;
    return err;
}

/* A witness that fails says so in its own reason. */
static bool cannot_go_on(const struct crosscheck *c)
{
    return *c->error != 0;
}

int comparison_run(struct crosscheck *c, struct comparison *m)
{
    size_t n = (size_t)c->options.pairs;
    int err = 0;

    m->ours = calloc(n, sizeof(*m->ours));
    m->theirs = calloc(n, sizeof(*m->theirs));
    m->printed = calloc(n, sizeof(*m->printed));
    if (!m->ours || !m->theirs || !m->printed) {
        snprintf(c->error, sizeof(c->error), "out of memory");
        return -ENOMEM;
    }
    while (!err && m->pairs < n)
        err = run_pair(c, m);
    if (cannot_go_on(c) || err == -ECANCELED)
        return err;
    if (err)
        return 0; /* m->state and m->reason say it */
    m->state = COMPARISON_DONE;
    return judge(m->ours, m->theirs, m->pairs, m->w->margin,
                 units_find(m->w->unit)->higher_is_better, &m->judgement);
}
