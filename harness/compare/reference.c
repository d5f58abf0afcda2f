/* SPDX-License-Identifier: Apache-2.0 */
/* plumb compare --to: which reference, and the list of them: see compare.h. */
#include <errno.h>
#include <string.h>

#include "harness/compare/compare.h"
#include "harness/report/facts.h"
#include "harness/report/show.h"

/* What cannot be loaded has no comparable case; naming it says why. */
static void count_cases(const struct references *r, struct reference *one)
{
    const struct pairs_options options = {.margin = 0.05};
    const char *a = one->path, *b = r->run_path;
    struct pairs p;
    char error[512];

    if (b && !pairs_load(&p, &a, 1, &b, 1, &options, error, sizeof(error)))
        for (size_t i = 0; i < p.n; i++) {
            const struct pair *pair = &p.all[i];

            one->n_comparable += pair->state == PAIR_READY;
            one->n_cases += pair->c->points[p.n_a].n_values > 0;
        }
    if (b)
        pairs_release(&p);
}

#define NEARLY 0.9 /* of the cases that can be compared with the reference that has most of them */

static const struct reference *nearest(struct references *r)
{
    size_t most = 0;

    for (size_t i = 0; i < r->n; i++) {
        if (r->n > 1 && reference_is_own(r->run, r->all[i].meta))
            continue;
        count_cases(r, &r->all[i]);
        most = r->all[i].n_comparable > most ? r->all[i].n_comparable : most;
    }
    for (size_t i = 0; i < r->n; i++)
        if ((r->n == 1 || !reference_is_own(r->run, r->all[i].meta)) &&
            (double)r->all[i].n_comparable >= NEARLY * (double)most)
            return &r->all[i];
    return NULL;
}

const struct reference *references_find(struct references *r, const char *name, char *error,
                                        size_t len)
{
    const char *names = "";

    const struct reference *one = strcmp(name, "auto") ? NULL : nearest(r);

    if (one)
        return one;
    for (size_t i = 0; i < r->n; i++) {
        if (!strcmp(r->all[i].name, name)) {
            count_cases(r, &r->all[i]);
            return &r->all[i];
        }
        names = show_joined(&r->pool, names, r->all[i].name);
    }
    snprintf(error, len, "there is no reference '%.200s' in '%.400s', but %.400s, and auto", name,
             r->folder, names);
    return NULL;
}

static const char *text_of(struct pool *pool, const json_t *meta, const char *key, size_t most)
{
    return pool_text(pool, "%.*s", (int)most, shown_value(pool, json_object_get(meta, key)));
}

const char *reference_text(struct pool *pool, const struct reference *one)
{
    const char *commit = text_of(pool, one->meta, "commit", 40);

    const char *cases = one->n_cases ? pool_text(pool, "%zu of %zu cases can be compared, ",
                                                 one->n_comparable, one->n_cases)
                                     : "";

    return pool_text(pool, "%s of %s%s%s: %s%zu of %zu facts of the machine agree%s%s", one->name,
                     text_of(pool, one->meta, "started_utc", strlen("2026-01-02")),
                     *commit ? ", commit " : "", commit, cases, one->n_alike, one->n_facts,
                     *one->differs ? "; differs: " : "", one->differs);
}

int references_print(struct references *r, FILE *out)
{
    const struct document_terminal terminal = document_terminal_of(out);
    struct pool *pool = &r->pool;
    struct document *d = document_new(pool);

    for (size_t i = 0; i < r->n; i++) {
        const struct reference *one = &r->all[i];

        document_answer(
            d, one->name,
            r->run ? pool_text(pool, "%zu of %zu facts agree", one->n_alike, one->n_facts) : "",
            TONE_NONE,
            pool_text(pool, "%s, commit %s, suite %s",
                      text_of(pool, one->meta, "started_utc", strlen("2026-01-02")),
                      text_of(pool, one->meta, "commit", 40),
                      text_of(pool, one->meta, "suite", 40)));
        /* "virtualisation bare metal, processor AuthenticAMD family 26 model 2, cores 2, ..." */
        const char *machine = "";

        for (const struct shown_fact *f = shown_facts; f->what; f++) {
            const char *fact = f->weight ? shown_text(pool, f, one->meta, NULL, 0) : "";

            if (*fact)
                machine = show_joined(pool, machine, pool_text(pool, "%s %s", f->what, fact));
        }
        document_answer_more(d, machine, "");
    }
    return document_write_terminal(d, &terminal, out);
}
