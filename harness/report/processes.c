/* SPDX-License-Identifier: Apache-2.0 */
/* What shared processes saved: see processes.h. */
#include "harness/report/processes.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"

/* A launch, by its rows: those of one stand together. */
struct use {
    const char *case_id, *repeat;
    bool shares, first, chosen, worked;
    double overhead_s;
};

struct uses {
    struct use *all;
    size_t n;
};

static void add_row(struct use *u, const struct table *t, size_t row, double *sampled_s)
{
    double elapsed_s = table_number(t, row, "elapsed_s");
    double launch_s = table_number(t, row, "launch_s");
    const char *status = table_text(t, row, "status");

    u->chosen |= *table_text(t, row, "chosen_in") != 0;
    u->worked &= !strcmp(status, "ok") || !strcmp(status, "noisy");
    if (elapsed_s > *sampled_s)
        *sampled_s = elapsed_s;
    u->overhead_s = launch_s - *sampled_s;
}

static struct uses list_uses(const struct table *t)
{
    struct uses uses = {.all = xcalloc(t->n_rows, sizeof(*uses.all))};
    double sampled_s = 0;

    for (size_t row = 0; row < t->n_rows; row++) {
        const char *case_id = table_text(t, row, "case"), *repeat = table_text(t, row, "repeat");
        struct use *u = uses.n ? &uses.all[uses.n - 1] : NULL;
        if (!u || strcmp(u->case_id, case_id) != 0 || strcmp(u->repeat, repeat) != 0) {
            double before = table_number(t, row, "process_cases");
            u = &uses.all[uses.n++];
            *u = (struct use){.case_id = case_id,
                              .repeat = repeat,
                              .shares = !isnan(before),
                              .first = before == 0,
                              .worked = true};
            sampled_s = 0;
        }
        add_row(u, t, row, &sampled_s);
    }
    return uses;
}

/* How much more overhead the case had as the first than else, in the mean; NaN: not known. */
static double start_of(const struct uses *u, const struct use *first)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < u->n; i++) {
        const struct use *x = &u->all[i];
        if (x->shares && !x->first && x->worked && x->chosen == first->chosen &&
            !strcmp(x->case_id, first->case_id) && isfinite(x->overhead_s)) {
            sum += x->overhead_s;
            n++;
        }
    }
    return n ? first->overhead_s - sum / (double)n : NAN;
}

static void count(const struct uses *u, double *starts, struct process_use *out)
{
    size_t n = 0, later = 0;
    double least = INFINITY;

    for (size_t i = 0; i < u->n; i++) {
        const struct use *x = &u->all[i];
        if (!x->shares)
            continue;
        out->launches++;
        out->processes += x->first;
        later += !x->first;
        double start = x->first && x->worked ? start_of(u, x) : NAN;
        if (isfinite(start)) {
            least = fmin(least, start);
            starts[n++] = start;
        }
    }
    out->later += later;
    if (!n)
        return;
    out->known += later;
    out->saved_s = (isnan(out->saved_s) ? 0 : out->saved_s) +
                   (least > 0 ? stats_median(starts, n) * (double)later : 0);
}

struct process_use process_use_of(const struct run_folder *run)
{
    struct process_use use = {.saved_s = NAN};

    for (size_t i = 0; i < run->n_benches; i++) {
        struct uses u = list_uses(&run->benches[i].rows);
        double *starts = xcalloc(u.n, sizeof(*starts));

        count(&u, starts, &use);
        free(starts);
        free(u.all);
    }
    return use;
}

const char *process_use_text(const struct process_use *use, char text[PROCESS_USE_BYTES])
{
    const char *least = use->known < use->later ? "at least " : "";
    char saved[64] = "";

    text[0] = 0;
    if (!use->later)
        return text;
    if (use->saved_s < 1 && !*least)
        snprintf(saved, sizeof(saved), ", which saved nothing measurable");
    else if (use->saved_s >= 1 && use->saved_s < 90)
        snprintf(saved, sizeof(saved), ", which saved %sabout %.0f s", least, use->saved_s);
    else if (use->saved_s >= 90)
        snprintf(saved, sizeof(saved), ", which saved %sabout %.0f min", least, use->saved_s / 60);
    snprintf(text, PROCESS_USE_BYTES, "%zu shared %zu process%s%s", use->launches, use->processes,
             use->processes == 1 ? "" : "es", saved);
    return text;
}
