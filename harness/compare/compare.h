/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plumb compare: two sets of runs held against each other. See pairs.h for what is paired.
 *
 * plumb report --baseline stands here too: the report knows nothing of verdicts, and is handed what
 * makes and writes them (struct report_judge), so that compare leans on the report and never the
 * other way round.
 */
#ifndef PLUMB_COMPARE_H
#define PLUMB_COMPARE_H

#include <stddef.h>
#include <stdio.h>

#include "harness/compare/pairs.h"
#include "harness/document/document.h"
#include "harness/report/reference.h"

/* Exit code: 0 equivalent or better, 1 worse, 2 usage or no run there, 3 inconclusive, 4 B failed
 * in cases that A has, a run was not measured to its end, or a file could not be written, 5 a run
 * folder is damaged. argv[0] is "compare". */
int cmd_compare(int argc, char **argv);

/* The report of two runs in the folder `out`, with the verdicts of b against a where they can be
 * compared. 0, or as report_make() with error set. */
int compare_report(const char *a, const char *b, const char *out, char *error, size_t len);

/* plumb report, with verdicts where a baseline is given. argv[0] is "report". */
int cmd_report(int argc, char **argv);

/* ---- Where the outputs of one command go ---- */

struct output_asked {
    const char *option; /* "--json" */
    const char *path;   /* "-": stdout; NULL: not asked for */
};

/* -EINVAL with error set where two of them go to one place, in which they would mix; else 0. */
int outputs_refuse_mixed(const struct output_asked *all, size_t n, char *error, size_t len);

/* What is shown of a comparison, in one order and in the same words wherever it is shown: terminal,
 * Markdown, HTML, CSV and JSON write it out, and decide nothing. All of it lives in the pool of the
 * pairs' report. */

#define VIEW_DECISIONS 4
#define VIEW_FIRST     20 /* cases that are listed without being asked for */
#define VIEW_NAMES     4  /* in a list: runs of a side, components */
#define VIEWS_MAX      7  /* comparisons side by side, each of a run with the same first one */

extern const char *const view_letters[VIEWS_MAX + 1]; /* of the sides: "A", "B", "C" ... */

/* What a case's state is called in files, and what it says of the sides. */
struct view_state {
    const char *code; /* "lost-b" */
    const char *says; /* before the reason: "not comparable: "; NULL: nothing */
    bool of_a, of_b;  /* that side has the case */
};
/* "failed-b" of a case that is lost because B failed. */
const struct view_state *view_state(const struct pair *pair);

/* The cases of one pipe that were decided: worse first, then inconclusive, better, equivalent, in
 * each the lowest ratio first (of those better the highest). */
struct view_pipe {
    const char *name;
    const struct pair **pairs;
    size_t n;
    size_t n_cases; /* n, and those that were left out for steal: they are inconclusive */
    size_t counts[VIEW_DECISIONS]; /* of n_cases, by enum decision */
    const struct pair *worst; /* the lowest ratio, of those worse where any is; NULL: no ratio */
};

/* Cases that were not compared, for one reason. */
struct view_left {
    const struct view_state *state;
    const char *reason; /* never "" */
    const char *advice; /* the nearest case of the other side, and what to do; "" */
    const struct pair **pairs;
    size_t n;
};

struct view {
    struct pairs *p;
    struct pool *pool;
    const char *name_a, *name_b; /* the sides' names in sentences: "bare"; "A" */
    const char *a, *b;   /* "bare on node7 (bare metal), 2026-01-02, 5 repetitions, quiet" */
    const char *verdict; /* who wins where, by how much: a sentence without a full stop */
    const char *basis;   /* what it rests on */
    const char *detects; /* the smallest detectable slowdown; "" */
    const char *slow_a, *slow_b;       /* what is slow beside its like in a side: GPUs, links; "" */
    const char *next;                  /* what to do next: a command, or more data; "" */
    const struct reference *reference; /* that A is; NULL */
    const struct versus *versus;       /* in training steps of a model; NULL: not asked for */
    double price_a, price_b;           /* NaN: not known */
    const char **remarks;              /* what to know before believing it */
    size_t n_remarks;
    double margin;              /* NaN: cases have several */
    size_t n_ready, n_failed_b; /* decided; lost because B failed */
    size_t n_lacking; /* A has a value, and B none for another reason, or one of another sort */
    size_t n_extra;   /* B has a value, and A none */
    size_t n_thinned; /* decided or left out for steal, though some launches of B failed */
    const struct pair *thinned; /* the first of them */
    bool incomplete;            /* a value is missing, or launches failed, on either side */
    size_t n_taken;             /* left out for steal */
    const char *state;          /* of a run that was not measured to its end; "" */
    size_t n_unfinished;        /* such runs */
    struct view_pipe *pipes;
    size_t n_pipes;
    struct view_left *left;
    size_t n_left;
    const struct pair **listed; /* worse, then inconclusive, the lowest ratio first */
    size_t n_listed;
    const char *obstacles[7]; /* "3 cases inconclusive: one repetition a side ..." */
    size_t n_obstacles;
    struct machine_difference *differences;
    size_t n_differences;
};

/* reference: that A is; NULL: it is none. v->versus is NULL, and the caller's to set. */
void view_make(struct pairs *p, const struct reference *reference, struct view *v);

/* May the difference explain that cases of the component are worse, or better? */
bool view_explains(const struct view *v, const struct machine_difference *d,
                   const struct view_pipe *pipe);

/* How many cases are so, and the first of them; NULL. */
typedef bool view_is_fn(const struct pair *pair);
size_t view_count(const struct view *v, view_is_fn *is, const struct pair **first);

/* The exit code that a comparison, or several side by side, ask for. */
int view_exit(const struct view *views, size_t n);

/* What holds of one case, as texts; "" where it cannot be told. */
struct view_figures {
    const char *ratio;      /* "0.947" */
    const char *interval;   /* "0.941-0.953" */
    const char *both;       /* "0.947 (0.941-0.953)" */
    const char *verdict;    /* "worse", "likely worse" */
    const char *more;       /* "+7": further launches, or runs, a side */
    const char *detectable; /* "1.2 %": the smallest slowdown that would have been found */
};

/* The word of a verdict: worse, better, equivalent, inconclusive; its code says why it is that. */
struct view_word {
    const char *code, *text; /* "likely-worse", "likely worse" */
    bool likely; /* the whole interval is past the margin, and not proven over the suite */
    int rank;    /* of a decision: cases are listed in this order */
};
const struct view_word *view_word(const struct pair *pair);
struct view_figures view_figures(struct pool *pool, const struct pair *pair);

/* The same text without what terminals obey. */
const char *view_printable(struct pool *pool, const char *text);

const char *view_percent(struct pool *pool, double share); /* 0.05: "5 %" */

/* ---- Writers ---- */

/* Of one comparison, or of n side by side. all: the other cases, too. 0 or
 * -EIO; so the others. */
int view_print_text(FILE *out, struct view *views, size_t n, bool all);
int view_print_markdown(FILE *out, struct view *views, size_t n);
int view_print_html(FILE *out, struct view *views, size_t n);
int view_print_csv(FILE *out, struct view *views, size_t n);
int view_print_json(FILE *out, struct view *views, size_t n);
/* For a page that has the report's style. */
int view_print_html_section(FILE *out, struct view *v);
/* What the JSON has of a case that was compared: its figures, into the object. */
void view_figures_json(struct pool *pool, const struct pair *pair, json_t *o);

/* ---- plumb compare --to (reference.c) ---- */

/* By name; "auto": of those with which nearly as many of the run's cases can be compared as with
 * any, the nearest. NULL with error set. */
const struct reference *references_find(struct references *r, const char *name, char *error,
                                        size_t len);
/* "epyc of 2026-01-02, commit 1234abc: 5 of 7 facts of the machine agree; differs: ..." */
const char *reference_text(struct pool *pool, const struct reference *one);
/* All, with date, commit and machine. 0 or -EIO. */
int references_print(struct references *r, FILE *out);

/* ---- The sentences of a comparison (view_words.c) ---- */

/* Names, sides, verdict, basis, obstacles, remarks and what is next. */
void words_make(struct view *v);
/* Is the pipe one of "Memory, GPU memory"? */
bool words_has_pipe(const char *pipes, const char *pipe);

#endif
