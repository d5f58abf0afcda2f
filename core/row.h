/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row: one measured quantity of one case. One struct, one table of columns; printers only print
 * it, docs/schema.md is made from it.
 *
 * A row starts with the benchmark's own parameters, a column each; the columns of row_columns
 * follow. An empty cell is "not measured" (NaN, NULL or "" here); 0 means zero.
 */
#ifndef PLUMB_CORE_ROW_H
#define PLUMB_CORE_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/ledger.h"
#include "core/levels.h"
#include "core/stats.h"

#define ROW_SCHEMA_VERSION 2
#define ROW_PARAMS_MAX     48

struct row {
    const char *const *param_names; /* n_params of them: the same for every row of a benchmark */
    const char *params[ROW_PARAMS_MAX];
    size_t n_params;

    const char *metric, *unit;
    double value; /* the median of the samples */
    struct summary summary;
    uint64_t samples, discarded, inner_repeat;
    const char *stop; /* converged | time | samples | interrupted */
    double width_wanted;
    const char *
        noise; /* one of row_noises; NULL: the interval is as narrow as asked, or there are no samples */
    struct levels levels;
    double level_changes;
    double limit;
    const char *limit_kind, *limit_link, *limit_scope; /* see row_facts.h */
    double limit_raised_from;
    const char *limit_source;
    double percent_of_limit;
    const char *ceiling_place, *ceiling2_place; /* this and what follows: struct limit_parts */
    double ceiling, ceiling_share, ceiling_fill, ceiling2;
    double limit_before, limit_after;
    const char *carrier, *carrier_device; /* see row_facts.h */
    double carrier_gid;
    const char *evidence, *origin, *status, *reason;
    struct ledger ledger;
    struct gpu_ledger gpu; /* of the GPUs that the case used */
    const char *gpu_throttle, *gpu_clocks_set;
    const char *disturbed;
    const char *run, *case_id;
    uint64_t repeat;
    const char *host, *time_utc;
};

enum row_kind { ROW_TEXT, ROW_NUMBER, ROW_COUNT, ROW_SHARE };

struct row_column {
    const char *name;
    enum row_kind kind;
    size_t offset; /* in struct row: const char *, double or uint64_t by kind (ROW_SHARE: a double
                      from 0 to 1) */
    const char *help; /* one sentence, with the unit */
};

extern const struct row_column row_columns[]; /* ends with a NULL name */

extern const char *const row_statuses[]; /* ok noisy wrong skipped failed NULL */
extern const char *const row_origins[];  /* measured modelled simulated NULL */
extern const char *const row_stops[];    /* converged time samples interrupted NULL */

/* Why an interval is not as narrow as asked. */
#define ROW_NOISE_DEPENDENT "dependent" /* it is not, but made of too few independent samples */
#define ROW_NOISE_FEW_CHANGES                                                                      \
    "changes"                   /* nor that, but they changed between two levels too seldom */
#define ROW_NOISE_WIDE  "wide"  /* it is wider */
#define ROW_NOISE_FEW   "few"   /* there is none: too few samples */
#define ROW_NOISE_ALIKE "alike" /* there is none: each sample is like the one before */
extern const char *const row_noises[]; /* these; ends with NULL */

/* A row in which nothing has been measured: numbers NaN, texts NULL. */
void row_init(struct row *row);

/* Sentences that are made of columns where a row is shown, and stand in none: any of them, "; "
 * between. */
enum {
    ROW_SAYS_RAISED = 1, /* its limit was exceeded, and raised */
    ROW_SAYS_ABOVE = 2,  /* its value is above the limit */
    ROW_SAYS_WIDE = 4,   /* its interval is wider than asked */
    ROW_SAYS_NONE = 8,   /* it has too few samples for an interval */
    ROW_SAYS_ALL = 15
};
#define ROW_SAYS_BYTES 400
/* Of value, unit, ci_low, ci_high, width_wanted, noise, stop, percent_of_limit and
 * limit_raised_from. Returns text. */
const char *row_says(const struct row *row, unsigned which, char text[ROW_SAYS_BYTES]);

void row_print_csv_header(FILE *out, const char *const *param_names, size_t n_params);
void row_print_csv(FILE *out, const struct row *row);

/*
 * The aligned table for people: parameters that are swept or are outcomes as columns, the others
 * once, in a line above the rows that they hold for, and so why rows are skipped; metric, value
 * with interval, share of the limit, samples, status. What does not fit the line (columns from the
 * last one back, remarks) stands under the row. Zeroed: nothing printed yet, every parameter a
 * column.
 */
struct row_table {
    bool aside[ROW_PARAMS_MAX]; /* not a column */
    bool bytes[ROW_PARAMS_MAX]; /* a size: shown as 1 GiB */
    int width[ROW_PARAMS_MAX];  /* of a column: of its longest value; 0: of most */
    size_t line;                /* columns that a line may have; 0: as many as the terminal has */
    bool laid_out;              /* the next two are set */
    bool under[ROW_PARAMS_MAX]; /* a column that stands under the row */
    bool narrow;                /* columns are as narrow as they can be */
    bool begun;
    uint64_t told[ROW_PARAMS_MAX]; /* a hash of the value that was told above; 0: none */
    char skipped[512];             /* why the row before was skipped, "" if it was not */
    size_t like; /* rows behind it that are skipped for the same reason, and are counted alone */
};

void row_print_table(FILE *out, struct row_table *table, const struct row *row);
/* Behind the last row: what is still to be told. */
void row_print_table_end(FILE *out, struct row_table *table);

/* What stands below a row, wrapped. */
void row_print_figures(FILE *out, const struct row_table *table, const char *text);

/* Before the first row: a column will hold this value. */
void row_table_widen(struct row_table *table, size_t column, const char *value);

#endif
