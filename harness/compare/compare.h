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

/* Exit code: 0 equivalent or better, 1 worse, 2 usage or no run there, 3 inconclusive, 4 B failed
 * in cases that A has, a run was not measured to its end, or a file could not be written, 5 a run
 * folder is damaged. argv[0] is "compare". */
int cmd_compare(int argc, char **argv);

/* The report of two runs in the folder `out`, with the verdicts of b against a where they can be
 * compared. 0, or as report_make() with error set. */
int compare_report(const char *a, const char *b, const char *out, char *error, size_t len);

/* plumb report, with verdicts where a baseline is given. argv[0] is "report". */
int cmd_report(int argc, char **argv);

/* ---- What the commands of this room share ---- */

/* The folders of both sides, from what the user named: see compare_sides(). */
struct compare_sides {
    char **a, **b;
    size_t n_a, n_b;
};

/* From the words that are no options. before NULL: two of them, each a folder or several with
 * commas between, or one: the folder of a plumb run --against, whose a and b are meant; else so
 * many of them are A's and the others B's. 0; -EINVAL with error set; -ENOMEM. */
int compare_sides(char *const *words, size_t n, const size_t *before, struct compare_sides *sides,
                  char *error, size_t len);
void compare_sides_release(struct compare_sides *sides);

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
#define VIEW_FIRST     20 /* cases of a pipe */

/* The cases of one pipe that were decided: worse first, then inconclusive, better, equivalent, in
 * each the lowest ratio first (of those better the highest). */
struct view_pipe {
    const char *name;
    const struct pair **pairs;
    size_t n, counts[VIEW_DECISIONS]; /* by enum decision */
    size_t n_shown;                   /* of them, from the first: all but the equivalent ones */
    size_t n_first; /* of these: those worse, and some; what is listed without being asked for */
    const struct pair *worst; /* the lowest ratio, of those worse where any is; NULL: no ratio */
    const char **causes;      /* differences of the machines that may weigh on it, where it has
                                    a case that is worse or better */
    size_t n_causes;
};

/* Cases that were not compared, for one reason. */
struct view_left {
    enum pair_state state;
    bool failed_b;
    const char *reason; /* never "" */
    const struct pair **pairs;
    size_t n;
};

/* Cases that are inconclusive for more than their spread, or seem to be decided and are not. */
struct view_obstacle {
    size_t n;
    const char *text; /* "3 cases inconclusive for want of data: one launch a side ..." */
};

struct view_axis {
    double low, high;               /* ratios at its ends */
    double margin_low, margin_high; /* the band; NaN: cases have several margins */
};

struct view {
    struct pairs *p;
    struct pool *pool;
    const char *name_a, *name_b; /* the sides' names alone: "bare-1", "bare-1 and 2 more" */
    const char *a, *b;           /* what the sides are: "bare-1 on node7, 2026-01-02" */
    const char *name;            /* the verdict in a word: "worse", "incomplete" */
    const char *verdict;         /* one sentence, without a full stop */
    const char *basis;           /* what it rests on */
    const char **remarks;        /* what to know before believing it */
    size_t n_remarks;
    double margin;              /* NaN: cases have several */
    size_t n_ready, n_failed_b; /* decided; lost because B failed */
    size_t n_lacking;    /* A has a value, and B none for another reason, or one of another sort */
    size_t n_thinned;    /* decided, though some launches of B failed */
    const char *state;   /* of a run that was not measured to its end; "" */
    size_t n_unfinished; /* such runs */
    struct view_pipe *pipes;
    size_t n_pipes;
    struct view_left *left;
    size_t n_left;
    struct view_obstacle obstacles[5];
    size_t n_obstacles;
    struct machine_difference *differences;
    size_t n_differences;
    struct view_axis axis;
};

/* 0 or -ENOMEM. */
int view_make(struct pairs *p, struct view *v);

/* The exit code that this comparison asks for: see compare.h. */
int view_exit(const struct view *v);

/* What holds of one case, as texts; "" where it cannot be told. */
struct view_figures {
    const char *ratio;    /* "0.947" */
    const char *interval; /* "0.941 to 0.953" */
    const char *both;     /* "0.947 (0.941 to 0.953)" */
    const char *name;     /* the verdict in a word: "worse", "incomplete" */
    const char *verdict;  /* "worse", "worse, beyond" */
    const char *more;     /* "+7": further launches, or runs, a side */
    const char *smallest; /* "1.2 %": the smallest loss that would have been found */
};
/* Is it inconclusive with the whole interval past the margin: not proven over the whole suite? */
bool view_is_beyond_alone(const struct pair *pair);
struct view_figures view_figures(struct pool *pool, const struct pair *pair);

/* The same text without what terminals obey. */
const char *view_printable(struct pool *pool, const char *text);

const char *view_percent(struct pool *pool, double share); /* 0.05: "5 %" */
/* "not comparable: ..."; "B failed: the peer is gone" */
const char *view_left_text(struct pool *pool, const struct view_left *left);
const char *view_explain(struct view *v); /* how to read the table and the bars, a paragraph */

/* 0 to 1 along the axis, not clipped. */
double view_axis_at(const struct view_axis *axis, double ratio);

void view_print_text(FILE *out, struct view *v, bool all);
int view_print_markdown(FILE *out, struct view *v);
int view_print_html(FILE *out, struct view *v);
void view_print_html_section(FILE *out,
                             struct view *v); /* for a page that has the report's style */
int view_print_csv(FILE *out, struct view *v);
int view_print_json(FILE *out, struct view *v);

/* ---- The sentences of a comparison (view_words.c) ---- */

/* Sides, verdict, basis, remarks and obstacles. 0 or -ENOMEM. */
int words_make(struct view *v);

/* The remarks alone: what to know before believing the verdict. 0 or -ENOMEM. */
int words_remarks(struct view *v);

/* "NUMA nodes: 2 against 1" */
const char *words_difference(struct pool *pool, const struct machine_difference *difference);

/* Is the pipe one of "Memory, GPU memory"? */
bool words_has_pipe(const char *pipes, const char *pipe);

/* ---- A comparison in characters, for a terminal and inside of Markdown ---- */

struct text {
    FILE *out;
    struct view *v;
    size_t width; /* of a line */
    size_t most;  /* cases of a pipe; 0: as many as it has */
    bool utf8;
    bool all;    /* the equivalent cases, too */
    bool causes; /* say under a pipe what may weigh on it */
};

/* A line a case that is not equivalent, by pipe. */
void text_forest(const struct text *t);

/* First line at `indent`, the following ones deeper. */
void text_wrapped(const struct text *t, size_t indent, const char *text);

/* ---- An interval drawn in characters, with the margin as a band behind it ---- */

#define FOREST_COLUMNS_MAX 60
#define FOREST_BYTES       (FOREST_COLUMNS_MAX * 4 + 1)

/* Does this locale's encoding have more than ASCII: LC_ALL, LC_CTYPE, LANG, in their order? */
bool forest_locale_is_utf8(void);

/* The axis that all these cases are drawn on. */
struct view_axis forest_axis(const struct view *v);

/* `columns` characters. What lies outside of the axis is an arrow at its end. */
const char *forest_bar(const struct view_axis *axis, const struct decide_case *c, size_t columns,
                       bool utf8, char text[FOREST_BYTES]);

#endif
