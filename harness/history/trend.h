/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of a history with their change points; what the writers of plumb history stand on. */
#ifndef PLUMB_HISTORY_TREND_H
#define PLUMB_HISTORY_TREND_H

#include <stdio.h>

#include "harness/compare/pairs.h"
#include "harness/history/change.h"
#include "harness/history/history_db.h"

/* What differs between a run and the one before it that has a value (of a slip: its last run, and
 * the one before its first), by harness/compare/pairs.h and by what the case's rows tell. */
struct trend_differ {
    enum change_kind kind;
    size_t at, before; /* indices of the runs; before is SIZE_MAX where there is none */
    const struct machine_difference *all; /* a: before */
    size_t n, n_near;                     /* the first n_near may weigh on the case */
    bool whole; /* false: of one of them the history keeps nothing but program and suite */
    const char *
        unkept; /* what of the case's rows the history does not keep of both, as words; "": all is kept */
    const char *
        unsteady; /* what the rows tell otherwise of both, but not from that run on alone: "address, isa"; "" */
};

/* The run of a step first, then those near it with which the level may have moved, too, where
 * anything differs there. Of a slip one: no run of it is the cause. */
struct trend_step {
    struct trend_differ *all;
    size_t n;
};

struct trend_pair;

struct trend {
    const struct history_series *series;
    size_t n;                        /* runs of the series that are looked at: the last n */
    const struct history_run **runs; /* n */
    double
        *values; /* n: the centre of the run's launches (stats_centre()); NaN: no number above 0 */
    size_t n_values; /* that are a number above 0 */
    size_t *n_taken; /* n: launches that are left out, as others took the CPU */
    double
        *taken; /* n: their centre where no launch is left and the value is NaN for it; else NaN */
    size_t n_gone; /* runs of which that is so */
    struct change_point *points;
    struct trend_step *steps; /* one a point */
    size_t n_points;
};

struct trends {
    struct history *history;
    struct trend *all; /* as the series */
    size_t n;
    size_t n_changed, n_short, n_bad; /* cases; too few runs to tell; with a value that is none */
    const char *first, *last;         /* start of the first and the last run; "" */
    size_t n_taken;           /* cases of which launches are left out, as others took the CPU */
    size_t n_gone;            /* runs in which a case has none left */
    size_t n_runs;            /* that a case is of */
    struct trend_pair *pairs; /* trend.c's memory */
    size_t n_pairs, pairs_room;
};

struct trend_filter {
    const char *host, *suite; /* "": all */
    const char *since;        /* runs that started before are left out; "": none */
    double steal_limit;       /* launches are left out, as in harness/compare/pairs.h */
};

/* 0 or -ENOMEM. *t is to be released in any case. */
int trends_make(struct trends *t, struct history *h, const struct trend_filter *filter);
void trends_release(struct trends *t);

/* Did the change make it worse? */
bool trend_is_worse(const struct trend *t, const struct change_point *p);
/* Could one of its changes for the worse first be told with one of the newest `within` runs of that
 * host and suite? */
bool trend_fails(const struct trends *all, const struct trend *t, size_t within);
/* Where the level of value i begins and ends: the segment between two changes. */
double trend_level(const struct trend *t, size_t segment);

/* One character a value, or a mean of several where there are more than `width`. The lower line
 * marks the runs of the changes: ^, and - up to the end of a slip. Both of TREND_SPARK_BYTES. */
#define TREND_SPARK_WIDTH 60
#define TREND_SPARK_BYTES (TREND_SPARK_WIDTH * 4 + 1)

/* Texts come from files: what would move a terminal is replaced. */
void trend_put(FILE *out, const char *text);
/* "1 of 3 cases changed level in 60 runs, 2026-01-01 to 2026-03-01" */
void trends_count_text(const struct trends *t, char *text, size_t len);
/* "1 of them has", "it has": n of t->n cases. */
const char *trends_of_them(const struct trends *t, size_t n, char *text, size_t len);

/* "in 3 cases launches are left out, as ..."; of t->n_taken. */
const char *trends_taken_text(const struct trends *t, char *text, size_t len);
/* "2 run folders are damaged, or cannot be read, and left out"; of t->history->n_left_out. */
const char *trends_left_out_text(const struct trends *t, char *text, size_t len);

/* "12.41 to 12.02 GB/s"; "-3.1 % (-3.8 % to -2.4 %)". */
void trend_levels_text(const struct trend *t, const struct change_point *p, char *text, size_t len);
void trend_change_text(const struct change_point *p, char *text, size_t len);
/* "step"; "slip" */
const char *trend_kind(const struct change_point *p);
/* "-0.31 % a run (-0.35 to -0.28 %)", of a slip; "": a step. */
void trend_a_run_text(const struct change_point *p, char *text, size_t len);
/* "to run quick-20250303 (2025-03-03T02:00:00Z), and may go on", of a slip; "": a step. */
void trend_end_text(const struct trend *t, const struct change_point *p, char *text, size_t len);
/* "quick-20250214 (2025-02-14T02:00:00Z, plumb 1.0 abc123)" */
void trend_run_text(const struct trend *t, const struct change_point *p, char *text, size_t len);

/* Does the history keep all that could differ? */
bool trend_differ_known(const struct trend_differ *d);
/* "kernel: 6.1.0 to 6.1.2; CPU governor: ..."; at most `most` of them, and how many more. "": none.
 */
const char *trend_differ_text(struct pool *pool, const struct trend_differ *d, size_t most);
/* "it differs from the run before by ...", without a full stop. named: it is the step's own run. */
const char *trend_differ_sentence(struct pool *pool, const struct trend *t,
                                  const struct trend_differ *d, bool named);

void trends_print(FILE *out, const struct trends *t, bool all, bool utf8);
void trends_csv(FILE *out, const struct trends *t); /* a line a change */
int trends_json(FILE *out, const struct trends *t); /* 0, -ENOMEM or -EIO */
/* One page with all it shows, and its plots in NAME-plots/ beside it. 0 or -errno with error set.
 */
int trends_html(const char *path, const struct trends *t, bool all, char *error, size_t len);

#endif
