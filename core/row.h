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

#define ROW_SCHEMA_VERSION 3
#define ROW_PARAMS_MAX     48

/* An option that may be left to the benchmark (opt.left_by) has two columns: NAME, what was asked
 * for, ROW_LEFT where it was left; and NAME ROW_USED, what was chosen, or used as it was asked. */
#define ROW_LEFT "auto"
#define ROW_USED "_used"

struct row {
    const char *const *param_names; /* n_params of them: the same for every row of a benchmark */
    const char *params[ROW_PARAMS_MAX];
    bool param_counts[ROW_PARAMS_MAX]; /* numbers, where they are not words such as auto */
    size_t n_params;

    const char *metric, *unit;
    double value;         /* the median of the samples */
    double sustained;     /* the same over all of the time, see row.c */
    const char *value_is; /* NULL; or what it is in place of it: "mean" */
    const char *differs;  /* NULL; or how its definition differs: of imported rows */
    struct summary summary;
    uint64_t samples, discarded, inner_repeat;
    const char *stop; /* converged | time | samples | interrupted */
    double width_wanted;
    /* one of row_noises; NULL: the interval is as narrow as asked, or there are no samples */
    const char *noise;
    struct levels levels;
    double level_changes;
    double limit;
    const char *limit_kind, *limit_link, *limit_scope;
    double limit_raised_from;
    const char *limit_source;
    double percent_of_limit;
    const char *ceiling_place, *ceiling2_place; /* this and what follows: struct limit_parts */
    double ceiling, ceiling_share, ceiling_fill, ceiling2;
    double limit_before, limit_after;
    const char *carrier, *carrier_device;
    double carrier_gid;
    const char *evidence, *origin, *status, *code, *reason;
    struct ledger ledger;
    struct gpu_ledger gpu; /* of the GPUs that the case used */
    const char *gpu_throttle, *gpu_clocks_set;
    const char *disturbed;
    const char *bench, *label, *machine;
    const char *run, *case_id;
    uint64_t repeat;
    double launch_s, process_cases;
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
/* Why a row has no good value, for programs: the column code. Of -errno; "" for 0. */
const char *row_code(int err);
extern const char *const row_codes[]; /* all of them; ends with NULL */
#define ROW_CODE_CRASHED   "crashed"  /* the process died of a signal */
#define ROW_CODE_TIMEOUT   "timeout"
#define ROW_CODE_NO_ROWS   "no-rows" /* what it printed is no table of rows */
#define ROW_CODE_PEER_LOST "peer-lost"
#define ROW_CODE_FAILED    "failed"     /* anything else: the sentence says what */
extern const char *const row_origins[]; /* measured modelled simulated imported NULL */
extern const char *const row_stops[];   /* converged time samples interrupted NULL */

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
    ROW_SAYS_RAISED = 1,     /* its limit was exceeded, and raised */
    ROW_SAYS_ABOVE = 2,      /* its value is above the limit */
    ROW_SAYS_WIDE = 4,       /* its interval is wider than asked */
    ROW_SAYS_NONE = 8,       /* it has too few samples for an interval */
    ROW_SAYS_SUSTAINED = 16, /* over all of the time it is more than 2 % worse than its median */
    ROW_SAYS_ALL = 31
};
#define ROW_SAYS_BYTES      400
#define ROW_SUSTAINED_WORSE 0.02
/* sustained as a share of value, turned round for times: 0.8 is a loss of a fifth; NaN */
double row_sustained_share(double sustained, double value, const char *unit);
/* Of value, unit, sustained, ci_low, ci_high, width_wanted, noise, stop, percent_of_limit and
 * limit_raised_from. Returns text. */
const char *row_says(const struct row *row, unsigned which, char text[ROW_SAYS_BYTES]);

void row_print_csv_header(FILE *out, const char *const *param_names, size_t n_params);
void row_print_csv(FILE *out, const struct row *row);
/* One object on a line: `bench`, then what the row has of these columns. */
void row_print_json(FILE *out, const struct row *row);

/*
 * The table for people: a line above it of what holds for all rows, then a line for each point of
 * the sweep, in which each metric is a column, and one sentence at the end. Lines that begin with
 * '#' are no rows. What does not fit the line leaves it: the interval first, parameters last, which
 * then stand under it. Zeroed: nothing printed yet, every parameter a column.
 */
enum row_place {
    ROW_COLUMN,
    ROW_UNDER,   /* a column that has no room, and is told under the line */
    ROW_CONTEXT, /* told above the first line, and where it changes */
    ROW_DETAIL   /* told where everything is (verbose) */
};
#define ROW_METRICS_MAX 6 /* of one line */

struct row_table {
    enum row_place place[ROW_PARAMS_MAX];
    bool outcome[ROW_PARAMS_MAX]; /* tells no rows apart */
    bool bytes[ROW_PARAMS_MAX];   /* a size: shown as 1 GiB */
    bool right[ROW_PARAMS_MAX];   /* a number: to the right */
    int width[ROW_PARAMS_MAX];    /* of a column: of its longest value; 0: of most */
    bool verbose;                 /* all that a row carries, under its line */
    /* NULL; or the metric of which the mean over all sizes is told at the end, as nccl-tests does.
     * All metrics but the first are numbers in one unit then, and a column tells of wrong data */
    const char *average;
    /* NULL; or the parameters that pairs of places are told apart by: a matrix in place of lines */
    const char *from, *to;
    size_t line; /* columns that a line may have; 0: as many as the terminal has */

    /* what has been printed so far */
    bool begun, stale, ci, p99, limit, has_limit;
    size_t n_metrics;
    int metric_width[ROW_METRICS_MAX]; /* 0: it has no room */
    char metrics[256];                 /* names, of which the header is */
    uint64_t told[ROW_PARAMS_MAX];     /* a hash of the value that was told; 0: none */
    uint64_t reason, skipped;          /* hashes of the reasons that were told last */
    size_t like;                       /* lines that are skipped for the same reason */
    size_t counts[8];                  /* lines by status, as row_statuses has them */
    size_t bimodal, unsustained;
    double steal, switches;
    struct row *rows; /* of the point under way */
    size_t n_rows;
    struct row_table_cell {
        char group[128], from[40], to[40], path[40], status[12], origin[12];
        const char *unit;
        double value; /* NaN of wrong and failed rows, too */
    } * cells;        /* of averages or matrices */
    size_t n_cells;
};

/* Texts of the row must last until row_table_point(). */
void row_table_add(struct row_table *table, const struct row *row);
/* All rows of a point have been added. */
void row_table_point(FILE *out, struct row_table *table);
/* What stands below the point, wrapped. */
void row_table_figures(FILE *out, const struct row_table *table, const char *text);
/* Behind the last row: what is still to be told; and releases the table. */
void row_table_end(FILE *out, struct row_table *table);

/* Before the first row: a column will hold this value. */
void row_table_widen(struct row_table *table, size_t column, const char *value);

/* Facts of a row in words that code may compare: what carried its bytes, how its limit is known,
 * and what a measured limit is made of, so that all rows of a run can share the best of each
 * part. */

/* The kinds of path that carried a row's bytes: the column carrier, as words with '+' between them.
 * 0: not told. */
enum {
    CARRIER_RDMA = 1,          /* "rdma" */
    CARRIER_SOCKETS = 2,       /* "sockets" */
    CARRIER_LOOPBACK = 4,      /* "loopback" */
    CARRIER_SHARED_MEMORY = 8, /* "shm" */
    CARRIER_PEER = 16,         /* "peer": access between GPUs */
    CARRIER_ALL = 31
};
#define CARRIERS_BYTES 40            /* of the words of all of them, and the 0 */
extern const char *const carriers[]; /* by bit; ends with NULL */
const char *carriers_print(unsigned kinds, char text[CARRIERS_BYTES]); /* returns text */
unsigned carriers_read(const char *text); /* 0 where a word is none of them */

/* For `evidence`: adds a remark to a text that holds others: ", " between them; cut when it is too
 * long. */
void evidence_add(char *text, size_t len, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* How a row's limit is known: the column limit_kind, in these words (docs/limits.md). */
enum limit_kind {
    LIMIT_TOLD,      /* "told": otherwise; also of no limit, and of an unknown word */
    LIMIT_SYSFS,     /* "sysfs": the system says so */
    LIMIT_NVML,      /* "nvml": NVIDIA's driver does */
    LIMIT_DATASHEET, /* "datasheet": the vendor or a standard does */
    LIMIT_MEASURED,  /* "measured": what no program exceeds, by other loops than the row's own */
    LIMIT_REFERENCE, /* "reference": the same work on the same machine; no verdict depends on it */
};
extern const char *const limit_kinds[]; /* by that number; ends with NULL */
enum limit_kind limit_kind_of(const char *word);
/* This suite measured it: it can be measured better, is raised where it is exceeded, and shared by
 * rows of one place. */
bool limit_is_ours(enum limit_kind kind);

/* Of the column limit_link: the link that the limit is of; "" of another, or of none. */
#define LIMIT_LINK_NVLINK     "nvlink"
#define LIMIT_LINK_PCIE       "pcie"
#define LIMIT_LINK_INFINIBAND "infiniband"
#define LIMIT_LINK_ROCE       "roce"
extern const char *const limit_links[]; /* ends with NULL */

/* Of the column limit_scope: the most that any algorithm gets through the links of a node, so that
 * what its ranks exchange in memory is counted; "": a link's own. */
#define LIMIT_SCOPE_NODE "node"

/* % of a limit: above it noise and rounding no longer explain a value. */
#define LIMIT_EXCEEDED_PERCENT 100.5

/* Of a rate: "103 % of the limit: the limit is too low, or the data did not take that path"; "" up
 * to LIMIT_EXCEEDED_PERCENT, and for NaN. Returns text. */
const char *limit_remark(double percent, char *text, size_t len);

/* ---- Measured limits ---- */

#define CEILING_PLACE 160 /* characters of a place, with the NUL */

/* What a limit is made of: the best rates of one or two paths. Zeroed: nothing is told. */
struct limit_parts {
    /* What each rate is one of: the path, its CPUs, memory and size. The same text in two rows of a
     * run: the same ceiling. "": the limit has no such part, or its place cannot be told. */
    char place[2][CEILING_PLACE];
    double rate[2]; /* in the row's unit */
    /* of the row's value: what goes by the first path, 0 to 1; the rest goes by the second */
    double share;
    /* what the first carries besides, in the same measure, if the second is not faster */
    double fill;
};

/* No row can be faster than its work on either path:
 *   1 / max(share / rate[0] + min(fill / rate[0], (1 - share) / rate[1]), (1 - share) / rate[1]) */
double limit_of_parts(const struct limit_parts *parts);

/* Two measurements of one limit, before the samples and after, differ by more than this share of
 * the higher one: the machine changed meanwhile. NaN: not measured twice. */
#define CEILING_UNSTEADY 0.1
double ceiling_change(double before, double after); /* a share; NaN */

#endif
