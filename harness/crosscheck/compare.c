/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One comparison: pairs of runs, ours and theirs in turn (A B, B A, A B, ...), so that a drift of the
 * machine falls on both alike. Ours goes first in the first pair: where it put its ends is where the
 * witness' ends are then put.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"
#include "harness/crosscheck/check.h"
#include "harness/crosscheck/template.h"
#include "harness/plan/bench_info.h"

#define LONGER_S   2
#define MESSAGES_S 10000
#define OUR_WORDS                                                                                  \
    " --budget {seconds}s --width 0.0001% --min-samples 1000000000 --max-samples 100000000 --csv"
#define SERVER_TRIES 3 /* a port may be taken between our look and its use */

struct texts {
    char size[24], streams[24], seconds[24], longer[24], messages[24], port[24];
};

#define VALUES_MAX 12

static void text_of(char text[24], uint64_t number)
{
    snprintf(text, 24, "%llu", (unsigned long long)number);
}

static void values_fill(const struct check *c, const struct comparison *m, unsigned port,
                        struct texts *t, struct template_value values[VALUES_MAX])
{
    text_of(t->size, m->w->size);
    text_of(t->streams, m->w->streams);
    text_of(t->seconds, c->options.seconds);
    text_of(t->longer, c->options.seconds + LONGER_S);
    text_of(t->messages, c->options.seconds * MESSAGES_S);
    text_of(t->port, port);
    const struct template_value all[VALUES_MAX] = {
        {"size", t->size},
        {"streams", t->streams},
        {"seconds", t->seconds},
        {"longer", t->longer},
        {"messages", t->messages},
        {"port", t->port},
        {"host", "127.0.0.1"},
        {"device", c->device},
        {"device_port", c->device_port},
        {"gid", m->last.gid},
        {NULL, NULL},
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

static struct tandem_spec spec_of(struct check *c)
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

static int take_ours(struct check *c, struct comparison *m, const struct tandem_result *r, int err,
                     char *why, size_t len)
{
    if (!r->ran || err == -ECANCELED)
        return err;
    int keep_err = check_keep(c, m, "ours.csv", &r->client.out);
    if (!keep_err)
        keep_err = check_keep(c, m, "ours.err", &r->client.err);
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

/* -EIO and the like: the comparison failed, with m->reason; -ECANCELED; other: nothing can go on. */
static int run_ours(struct check *c, struct comparison *m)
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

static int keep_theirs(struct check *c, const struct comparison *m, const struct tandem_result *r)
{
    static const char *const names[] = {"theirs.out", "theirs.err", "server.out", "server.err"};
    const struct buffer *const texts[] = {&r->client.out, &r->client.err, &r->server.out,
                                          &r->server.err};
    int err = 0;

    for (int i = 0; !err && i < 4; i++)
        if (texts[i]->size)
            err = check_keep(c, m, names[i], texts[i]);
    return err;
}

static int take_theirs(struct check *c, struct comparison *m, const struct tandem_result *r,
                       int err, char *why, size_t len)
{
    double printed = 0;

    if (err == -ECANCELED)
        return err;
    int keep_err = keep_theirs(c, m, r);
    if (keep_err)
        return keep_err;
    if (!err)
        err = m->w->read(m->w, r->client.out.text, &printed, why, len);
    if (!err) {
        m->printed[m->pairs] = printed;
        m->theirs[m->pairs] = printed * m->w->factor;
    }
    return err;
}

static int try_theirs(struct check *c, struct comparison *m, char *why, size_t len, bool *again)
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

static int run_theirs(struct check *c, struct comparison *m)
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
    return err;
}

static int run_pair(struct check *c, struct comparison *m)
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
        err = check_keep_pair(c, m, ours_first);
    m->pairs += !err;
    return err;
}

/* A witness that fails says so in its own reason. */
static bool cannot_go_on(const struct check *c)
{
    return *c->error != 0;
}

int comparison_run(struct check *c, struct comparison *m)
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
