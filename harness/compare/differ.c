/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the machines, the programs and the suites of two runs, by the table of
 * harness/report/facts.h: see pairs.h. */
#include <string.h>

#include "harness/compare/pairs.h"
#include "harness/report/facts.h"
#include "harness/report/show.h"

/* The list in the report's pool, and the runs that are held against each other: those of A, then
 * those of B. */
struct differ {
    struct pool *pool;
    const json_t **runs; /* their run.json */
    size_t n_runs, n_a;
    struct machine_difference *all;
    size_t n, room;
};

static bool is_none(const char *text)
{
    return !strcmp(text, "off") || !strcmp(text, "0") || !strcmp(text, "none");
}

/* What one side does not tell is most likely what the other says is not there. */
static bool is_silence(const char *none, const char *other)
{
    return !*none && is_none(other);
}

/* A run that does not tell is no other than those that say it is not there. */
static void fill_silence(const char **texts, size_t n)
{
    const char *none = "";

    for (size_t i = 0; i < n; i++)
        none = is_none(texts[i]) ? texts[i] : none;
    for (size_t i = 0; i < n; i++)
        texts[i] = is_silence(texts[i], none) ? none : texts[i];
}

/* Adds the fact, unless all runs of both sides say the same of it; texts: what each says. Of a side
 * whose runs differ among themselves it is told how many say what. */
static void add_fact(struct differ *d, const struct shown_fact *f, const char *what,
                     const char **texts)
{
    bool mixed_a, mixed_b;

    fill_silence(texts, d->n_a);
    fill_silence(texts + d->n_a, d->n_runs - d->n_a);
    const char *a = shares_text(d->pool, texts, d->n_a, "runs", &mixed_a);
    const char *b = shares_text(d->pool, texts + d->n_a, d->n_runs - d->n_a, "runs", &mixed_b);
    if (!mixed_a && !mixed_b && (!strcmp(a, b) || is_silence(a, b) || is_silence(b, a)))
        return;
    if (d->n == d->room) {
        size_t room = d->room ? 2 * d->room : 32;
        struct machine_difference *grown = pool_alloc(d->pool, room, sizeof(*grown));
        if (d->n)
            memcpy(grown, d->all, d->n * sizeof(*grown));
        d->all = grown;
        d->room = room;
    }
    d->all[d->n++] = (struct machine_difference){what, a, b, f->pipes, !f->aside};
}

/* ---- Devices, which are matched by what they are, not by their address ---- */

#define MODELS_MAX 512 /* of a damaged file there may be any number */

/* What a device is, the same on every machine: its kind and numbers. "": disks and bridges, which
 * feed nothing that is measured. */
static const char *model_of(struct pool *pool, const json_t *device)
{
    const char *kind = fact_name(device, "kind");

    if (!fact_fits("gpu|ethernet|infiniband|nvswitch|fpga", kind))
        return "";
    return pool_text(pool, "%s %s:%s", kind, fact_name(device, "vendor_id"),
                     fact_name(device, "device_id"));
}

/* The links of all devices of one model. */
static const char *links_text(struct pool *pool, const json_t *list, const char *model)
{
    const char **texts = pool_alloc(pool, json_array_size(list), sizeof(*texts));
    size_t n = 0;

    FACT_EACH (list, device)
        if (!strcmp(model_of(pool, device), model))
            texts[n++] = shown_link(pool, device);
    return !n && json_is_array(list) ? "none" : shown_counted(pool, texts, n);
}

/* A fact for each model that a run has. */
static void add_models(struct differ *d, const struct shown_fact *f)
{
    const char **known = pool_alloc(d->pool, MODELS_MAX, sizeof(*known)),
               **texts = pool_alloc(d->pool, d->n_runs, sizeof(*texts));
    size_t n_known = 0;

    for (size_t run = 0; run < d->n_runs; run++)
        FACT_EACH (fact_at(d->runs[run], f->path), device) {
            const char *model = model_of(d->pool, device), *name = fact_name(device, "name");
            size_t k = 0;

            while (k < n_known && strcmp(known[k], model) != 0)
                k++;
            if (!*model || k < n_known || k == MODELS_MAX)
                continue;
            known[n_known++] = model;
            for (size_t i = 0; i < d->n_runs; i++)
                texts[i] = links_text(d->pool, fact_at(d->runs[i], f->path), model);
            add_fact(d, f, pool_text(d->pool, "%s %s", f->what, *name ? name : model), texts);
        }
}

/* Where rows were imported, nothing is known of the machine: that is one difference, not thirty. */
static size_t tell_imported(struct pairs *p, struct machine_difference **all)
{
    bool imported[2] = {false, false};

    for (size_t i = 0; i < p->report.n_runs; i++)
        imported[i >= p->n_a] |=
            json_array_size(json_object_get(p->report.runs[i].meta, "imported")) > 0;
    if (!imported[0] && !imported[1])
        return 0;
    *all = pool_alloc(&p->report.pool, 1, sizeof(**all));
    **all = (struct machine_difference){.what = "machine",
                                        .a = imported[0] ? "not known: imported" : "measured",
                                        .b = imported[1] ? "not known: imported" : "measured",
                                        .pipes = ""};
    return 1;
}

size_t pairs_machine_differences(struct pairs *p, struct machine_difference **all)
{
    struct differ d = {.pool = &p->report.pool};
    size_t imported = tell_imported(p, all);

    if (imported)
        return imported;

    d.runs = pool_alloc(d.pool, p->report.n_runs, sizeof(*d.runs));
    for (size_t i = 0; i < p->report.n_runs; i++) {
        if (!pairs_is_level(p, i))
            continue;
        d.runs[d.n_runs++] = p->report.runs[i].meta;
        d.n_a += i < p->n_a;
    }
    const char **texts = pool_alloc(d.pool, d.n_runs, sizeof(*texts));
    for (const struct shown_fact *f = shown_facts; f->what; f++) {
        if (f->models) {
            add_models(&d, f);
            continue;
        }
        for (size_t i = 0; i < d.n_runs; i++)
            texts[i] = shown_text(d.pool, f, d.runs[i], d.runs, d.n_runs);
        add_fact(&d, f, f->what, texts);
    }
    *all = d.all;
    return d.n;
}
