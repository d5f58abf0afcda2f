/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks said of their rows: see told.h. How it is asked of cases is in told_cases.c. */
#include "harness/report/told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct told_bench *find(const struct told *told, const char *bench)
{
    for (size_t i = 0; i < told->n; i++)
        if (!strcmp(told->benches[i].name, bench))
            return &told->benches[i];
    return NULL;
}

const struct bench_rows *told_of(const struct told *told, const char *bench)
{
    static const struct bench_column columns[] = {{.name = NULL}};
    static const struct bench_metric metrics[] = {{.name = NULL}};
    static const struct bench_headline headlines[] = {{.pipe = NULL}};
    static const struct bench_contrast contrasts[] = {{.title = NULL}};
    static const struct bench_plot plots[] = {{.x = NULL}};
    static const struct bench_pipe pipes[] = {{.pipe = NULL}};
    static const struct bench_limit limits[] = {{.where = NULL}};
    static const struct bench_rows nothing = {STAGE_NONE, columns, metrics, headlines,
                                              contrasts,  plots,   pipes,   limits};
    const struct told_bench *known = find(told, bench);

    return known ? &known->rows : &nothing;
}

static int add(struct told *told, const char *name, const json_t *json, char *error, size_t len)
{
    struct told_bench *known = find(told, name);
    struct bench_rows rows;
    char why[200] = "";
    int err = rows_told_read(json, &rows, why, sizeof(why));

    if (err == -EBADMSG)
        snprintf(error, len, "what 'run.json' keeps of the benchmark '%.60s': %s", name, why);
    if (err)
        return err;
    if (known) {
        err = rows_told_add_columns(&known->rows, &rows);
        rows_told_release(&rows);
        return err;
    }
    struct told_bench *grown = realloc(told->benches, (told->n + 1) * sizeof(*grown));
    if (!grown) {
        rows_told_release(&rows);
        return -ENOMEM;
    }
    told->benches = grown;
    grown[told->n++] = (struct told_bench){name, rows};
    return 0;
}

static int add_all(struct told *told, const json_t *benches, char *error, size_t len)
{
    const char *name;
    json_t *json;
    int err = 0;

    json_object_foreach ((json_t *)benches, name, json)
        if (!err)
            err = add(told, name, json, error, len);
    return err;
}

unsigned told_order(enum bench_stage stage)
{
    return stage == STAGE_NONE ? STAGES : stage;
}

static int by_stage(const void *x, const void *y)
{
    const struct told_bench *a = x, *b = y;
    unsigned at_a = told_order(a->rows.stage), at_b = told_order(b->rows.stage);

    return at_a != at_b ? (at_a < at_b ? -1 : 1) : strcmp(a->name, b->name);
}

static unsigned order_of(const struct told *told, const struct told_headline *h)
{
    enum bench_stage own = told_of(told, h->bench)->stage;

    return told_order(h->rule->stage ? h->rule->stage : own) +
           (h->rule->flags & HEADLINE_GPU ? 0 : STAGES + 1);
}

/* GPUs first: on a machine that has them they are what it was bought for. Stable: those of a benchmark stay in its order. */
static void sort_headlines(struct told *told)
{
    for (size_t i = 1; i < told->n_headlines; i++)
        for (size_t k = i;
             k && order_of(told, &told->headlines[k]) < order_of(told, &told->headlines[k - 1]);
             k--) {
            struct told_headline swapped = told->headlines[k];

            told->headlines[k] = told->headlines[k - 1];
            told->headlines[k - 1] = swapped;
        }
}

static int list_headlines(struct told *told)
{
    size_t n = 0;

    for (size_t i = 0; i < told->n; i++)
        for (const struct bench_headline *h = told->benches[i].rows.headlines; h->pipe; h++)
            n++;
    told->headlines = calloc(n + 1, sizeof(*told->headlines));
    if (!told->headlines)
        return -ENOMEM;
    for (size_t i = 0; i < told->n; i++)
        for (const struct bench_headline *h = told->benches[i].rows.headlines; h->pipe; h++)
            told->headlines[told->n_headlines++] = (struct told_headline){told->benches[i].name, h};
    sort_headlines(told);
    return 0;
}

int told_load(struct report *r, char *error, size_t len)
{
    struct told *told = &r->told;
    int err = 0;

    for (size_t i = r->n_runs; !err && i-- > 0;) {
        const json_t *benches = json_object_get(r->runs[i].meta, "benchmarks");

        if (!benches && !told->before && !(told->before = rows_told_before()))
            err = -ENOMEM;
        if (!err)
            err = add_all(told, benches ? benches : told->before, error, len);
    }
    if (!err && told->n)
        qsort(told->benches, told->n, sizeof(*told->benches), by_stage);
    return err ? err : list_headlines(told);
}

void told_release(struct told *told)
{
    for (size_t i = 0; i < told->n; i++)
        rows_told_release(&told->benches[i].rows);
    free(told->benches);
    free(told->headlines);
    json_decref(told->before);
    *told = (struct told){0};
}
