/* SPDX-License-Identifier: Apache-2.0 */
/* plumb history: where the levels of cases moved, over many runs: change points (pure functions),
 * the trends of a history, and the command. */
#ifndef PLUMB_HISTORY_H
#define PLUMB_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include "harness/compare/pairs.h"
#include "harness/history/history_db.h"

/*
 * Change points of a series of runs' values: where the level moved, and by how much. Pure
 * functions.
 *
 * The series is gone through in time order, as somebody would who looks at it after every run.
 * After each run the newest values are held against the level before them; where the test says that
 * the level moved, the place of the step is where the energy distance of the two sides is largest,
 * as in E-divisive (Matteson and James 2014, doi:10.1080/01621459.2013.849605). What was told once
 * is never taken back: a series has as many points as its beginning, told by the same values, and
 * perhaps more, so that false alarms can be bounded per run added. All sizes are by all the values
 * that there are. A level that slips, a little with every run, is told as steps. The method and what
 * it finds is in docs/history.md.
 */

struct change_point {
    size_t at;            /* index of the first value of the new level */
    size_t seen;          /* index of the value with which it could be told: at + 2 or more */
    double before, after; /* levels, in the unit of the values; while it is searched, logarithms */
    double ratio;         /* after / before */
    double low, high;     /* interval of the ratio, 95 % */
    size_t at_low, at_high; /* it may begin anywhere between these, with 95 % */
    double p;               /* of the change, allowing for the search */
};

/* False alarms per case and run added: under 1 a year of nightly runs for 100 cases,
 * 1 / (365 * 100). */
#define CHANGE_LEVEL 2.5e-5
#define CHANGE_LEAST 0.005 /* steps smaller than this are not told */
#define CHANGE_SHORT 3     /* values of the new level before a step can be told */
#define CHANGE_FIRST 8     /* values before the first step can be told */

/* n values above 0 in time order (NaN: a run without this case, left out). *points is the caller's
 * to free, in order; NULL where there are none. 0 or -EDOM (a value is 0, below, or infinite). */
int change_points(const double *values, size_t n, struct change_point **points, size_t *n_points);

/* What the values of a series say of its noise and of a change in it (change_noise.c): what the
 * search for changes (change.c) stands on. All values are logarithms. */

#define CHANGE_WINDOW 60   /* values before a step that tell level and noise */
#define CHANGE_MEMORY 240  /* those that tell what noise can do: correlation, stray values */
#define CHANGE_TAIL   20   /* values behind a step with which it can be told at the latest */
#define CHANGE_CLIP   2.5  /* values further out, in standard deviations, count as so far out */
#define CHANGE_SCALE  1e-6 /* the least noise that is believed: 1 in a million */

#define CHANGE_CLIPPED    0.9377 /* variance of a standard normal clipped at CHANGE_CLIP */
#define CHANGE_CONFIDENCE 0.95

/* What the values before a place say of the noise there. */
struct change_noise {
    double level;               /* of the segment that the place would end */
    size_t n_level;             /* values that it is of */
    double sd;                  /* of one value, of its bulk */
    double freedom;             /* degrees of freedom of sd; 0: too few values for any test */
    double growth[CHANGE_TAIL]; /* [k - 1]: what the variance of a mean of k is, times sd^2 / k */
    double rest[CHANGE_MEMORY]; /* distances from the level, in time order, not clipped */
    size_t n_rest;
};

void change_sort(double *x, size_t n);

/* The noise before place `at`. The values from the last point on tell the level; earlier ones lend
 * their distances from their own levels, so that a new level need not learn the noise anew. */
void change_noise_at(const double *x, size_t at, const struct change_point *points, size_t n_points,
                     struct change_noise *noise);

/* The mean of n ascending values, each no further from their median than `reach`. */
double change_mean(const double *sorted, size_t n, double reach);
/* The level of n values in any order, n <= CHANGE_WINDOW. */
double change_level(const double *x, size_t n);

/* The standard error of the difference of a mean of k values and the level. */
double change_error(const struct change_noise *noise, size_t k);

/* Could so many values, so far up or down, come from the distances seen before, in any order? The
 * probability, from the cut between old and new level that speaks most against it. */
double change_chance(const struct change_noise *noise, const double *sorted, size_t k);

/* Fills the points, of which at, seen and p are known, from the values around them. */
void change_describe(const double *x, size_t n, struct change_point *points, size_t n_points);

/* The split of x[0..n) with at least `head` and `tail` values on its sides that has the largest
 * energy distance. */
size_t change_split(const double *x, size_t n, size_t head, size_t tail);

/* The cases of a history with their change points; what the writers of plumb history stand on. */

/* What differs between a run and the one before it that has a value, by harness/compare/pairs.h and
 * by what the case's rows tell. */
struct trend_differ {
    size_t at, before; /* indices of the runs; before is SIZE_MAX where there is none */
    const struct machine_difference *all; /* a: before */
    size_t n, n_near;                     /* the first n_near may weigh on the case */
};

/* The run of a step first, then those near it with which the level may have moved, too, where
 * anything differs there. */
struct trend_step {
    struct trend_differ *all;
    size_t n;
};

struct trend_pair;

struct trend {
    const struct history_series *series;
    size_t n;                        /* runs of the series that are looked at: the last n */
    const struct history_run **runs; /* n */
    /* n: the centre of the run's launches (stats_centre()); NaN: no number above 0 */
    double *values;
    size_t n_values; /* that are a number above 0 */
    size_t *n_taken; /* n: launches that are left out, as others took the CPU */
    /* n: their centre where no launch is left and the value is NaN for it; else NaN */
    double *taken;
    size_t n_gone; /* runs of which that is so */
    /* The newest runs of its host and suite that should have the case, and in which it has no value,
     * though runs before them have one; 0: the newest has one, or none ever had. */
    size_t n_missing;
    const struct history_run *last;   /* of n_missing: the last that has a value */
    bool retired;                     /* the newest run is of another text of the suite */
    const struct history_series *now; /* the same case goes on in another unit; NULL */
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
    size_t n_missing;         /* cases that have no value in the newest run */
    size_t n_quiet;           /* cases of enough runs, up to the newest, and without a change */
    struct trend_pair *pairs; /* trend.c's memory */
    size_t n_pairs;
};

struct trend_filter {
    const char *host, *suite; /* "": all */
    const char *since;        /* changes told by runs before are left out; "": none */
    double steal_limit;       /* launches are left out, as in harness/compare/pairs.h */
};

void trends_make(struct trends *t, struct history *h, const struct trend_filter *filter);
void trends_release(struct trends *t);

/* Did the change make it worse? */
bool trend_is_worse(const struct trend *t, const struct change_point *p);
/* Could one of its changes for the worse first be told with one of the newest `within` runs of that
 * host and suite? */
bool trend_fails(const struct trends *all, const struct trend *t, size_t within);
/* Has it no value in the newest run, as the first of the newest `within`, or still, though the suite
 * asks for it? */
bool trend_fails_to_show(const struct trends *all, const struct trend *t, size_t within);
/* Two machines that have the host's name in turn, "AMD EPYC, 64 cores; AMD EPYC, 2 cores"; "": one
 * alone, or one after the other. */
const char *trends_machines(const struct trends *t, const struct history_series *of);
/* "none in the newest 20 runs, the last is in n039 (2026-02-09)"; "" where n_missing is 0. */
const char *trend_missing_text(struct pool *pool, const struct trend *t);
/* Where the level of value i begins and ends: the segment between two changes. */
double trend_level(const struct trend *t, size_t segment);

/* What holds of the whole history: cases of too few runs, values and runs that are left out. remarks
 * has room for TRENDS_REMARKS; they live in the history's pool. Returns how many there are. */
#define TRENDS_REMARKS 8
size_t trends_remarks(const struct trends *t, const char **remarks);

/* "worse: -3.1 % (-3.8 to -2.4 %), 12.41 to 12.02 GB/s, from run quick-20250214 (...); could be
 * detected 2 runs later, with that of 2025-02-16". */
const char *trend_change_text(struct pool *pool, const struct trend *t, size_t point);

/* "kernel: 6.1.0 to 6.1.2; CPU governor: ..."; at most `most` of them, and how many more. "": none.
 */
const char *trend_differ_text(struct pool *pool, const struct trend_differ *d, size_t most);
/* "it differs from the run before by ...", without a full stop. named: it is the step's own run. */
const char *trend_differ_sentence(struct pool *pool, const struct trend *t,
                                  const struct trend_differ *d, bool named);

/* all: also cases without a change. 0 or -EIO. */
int trends_print(FILE *out, const struct trends *t, bool all);
void trends_csv(FILE *out, const struct trends *t); /* a line a change */
int trends_json(FILE *out, const struct trends *t); /* 0 or -EIO */
/* One page with all it shows, and its plots in NAME-plots/ beside it. 0 or -errno with error set.
 */
int trends_html(const char *path, const struct trends *t, bool all, char *error, size_t len);

/* Which runs and cases plumb history is asked for: where they lie, and what to say where none is
 * left. */

/* Where the runs lie. */
struct pick_source {
    const char *db;           /* a database; NULL: the folders */
    const char *const *paths; /* n of them */
    size_t n;
    char *found;           /* what was found in a folder that was named; NULL */
    const char *as_folder; /* "results" without any name */
};

/* n arguments: a database alone, or run folders, or folders of them; none: what is in results/. A
 * folder without a run of its own stands for the history.db or the runs/ in it. 0, -ENOENT, -EACCES
 * or -EINVAL with error set; to be released in any case. */
int pick_source(struct pick_source *s, const char *const *args, size_t n, char *error, size_t len);

#define PICK_SINCE_BYTES 32

/* "2025", "2025-01", "2025-01-31", "2025-01-31T02:00" and on, or "30d", days before `now`, as
 * started_utc is written. -EINVAL: no such date. */
int pick_since(const char *text, time_t now, char *since, size_t len);

int cmd_history(int argc, char **argv);

#endif
