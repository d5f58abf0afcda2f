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

struct reference;

#define VIEW_DECISIONS 4
#define VIEW_FIRST     20 /* cases of a pipe */

/* The cases of one pipe that were decided: worse first, then inconclusive, better, equivalent, in
 * each the lowest ratio first (of those better the highest). */
struct view_pipe {
    const char *name;
    const struct pair **pairs;
    size_t n;
    size_t n_cases; /* n, and those that were left out for steal: they are undecided */
    size_t counts[VIEW_DECISIONS]; /* of n_cases, by enum decision */
    size_t n_shown;                /* of them, from the first: all but the equivalent ones */
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
    const char *advice; /* the nearest case of the other side, and what to do; "" */
    const struct pair **pairs;
    size_t n;
};

struct view {
    struct pairs *p;
    struct pool *pool;
    const char *name_a, *name_b;       /* the sides' names alone: "bare-1", "bare-1 and 2 more" */
    const char *a, *b;                 /* what the sides are: "bare-1 on node7, 2026-01-02" */
    const char *name;                  /* the verdict in a word: "worse", "incomplete" */
    const char *verdict;               /* sentences, without the last full stop */
    const char *basis;                 /* what it rests on */
    const struct reference *reference; /* that A is; NULL */
    const struct versus *versus;       /* in training steps of a model; NULL: not asked for */
    double price_a, price_b;           /* NaN: not known */
    const char **remarks;              /* what to know before believing it */
    size_t n_remarks;
    double margin;              /* NaN: cases have several */
    size_t n_ready, n_failed_b; /* decided; lost because B failed */
    size_t n_lacking;    /* A has a value, and B none for another reason, or one of another sort */
    size_t n_thinned;    /* decided or left out for steal, though some launches of B failed */
    size_t n_taken;      /* left out for steal */
    const char *state;   /* of a run that was not measured to its end; "" */
    size_t n_unfinished; /* such runs */
    struct view_pipe *pipes;
    size_t n_pipes;
    struct view_left *left;
    size_t n_left;
    const char *obstacles[7]; /* "3 cases undecided: one launch a side ..." */
    size_t n_obstacles;
    struct machine_difference *differences;
    size_t n_differences;
};

/* reference: that A is; NULL: it is none. v->versus is NULL, and the caller's to set. */
void view_make(struct pairs *p, const struct reference *reference, struct view *v);

/* The exit code that this comparison asks for. */
int view_exit(const struct view *v);

/* What holds of one case, as texts; "" where it cannot be told. */
struct view_figures {
    const char *ratio;      /* "0.947" */
    const char *interval;   /* "0.941 to 0.953" */
    const char *both;       /* "0.947 (0.941 to 0.953)" */
    const char *verdict;    /* "worse", "likely worse" */
    const char *more;       /* "+7": further launches, or runs, a side */
    const char *detectable; /* "1.2 %": the smallest loss that would have been found */
};

/* What the verdict's word says beyond decision_name(): a code of the JSON. */
enum view_word {
    WORD_DECIDED,      /* worse, better, equivalent */
    WORD_UNDECIDED,    /* "undecided" */
    WORD_DISTURBED,    /* the time that others took can explain the difference, or hide one */
    WORD_LIKELY_WORSE, /* the whole interval is past the margin, and not proven over the suite */
    WORD_LIKELY_BETTER
};
enum view_word view_word(const struct pair *pair);
/* For people: "undecided" where the code is "inconclusive". */
const char *decision_word(enum decision decision);
struct view_figures view_figures(struct pool *pool, const struct pair *pair);

/* The same text without what terminals obey. */
const char *view_printable(struct pool *pool, const char *text);

const char *view_percent(struct pool *pool, double share); /* 0.05: "5 %" */
/* "not comparable: ..."; "B failed: the peer is gone" */
const char *view_left_text(struct pool *pool, const struct view_left *left);

/* ---- The comparison as a document (view_document.c) ---- */

enum view_for {
    VIEW_TERMINAL, /* the first cases of a component */
    VIEW_ALL,      /* all of them, and how to read it */
    VIEW_PAGE,     /* all of them, the others folded */
    VIEW_COMMENT   /* as a terminal: a comment on GitHub ends at 64 KiB */
};
struct document *view_document(struct view *v, enum view_for reader);
/* all: the equivalent cases, too, and how to read it. 0 or -EIO; so the others. */
int view_print_text(FILE *out, struct view *v, bool all);
int view_print_markdown(FILE *out, struct view *v);
int view_print_html(FILE *out, struct view *v);
/* For a page that has the report's style. */
int view_print_html_section(FILE *out, struct view *v);
/* Of any document: the page around it. */
int view_print_page(FILE *out, const char *title, const char *heading, const struct document *d);

int view_print_csv(FILE *out, struct view *v);
int view_print_json(FILE *out, struct view *v);
/* The same in parts, of several comparisons in one file: `first` is a column before the others, and
 * `run` what stands in it, and a key of the object; NULL: there is none. */
#define VIEW_JSON_SCHEMA 2
int view_print_csv_head(FILE *out, const char *first);
int view_print_csv_rows(FILE *out, struct view *v, const char *run);
json_t *view_json(struct view *v, const char *run);

/* ---- plumb compare --to: reference machines (reference.c) ---- */

/* A run that is kept as a reference. Nearness is told by typed facts of its run.json alone:
 * architecture, microarchitecture, CPU model, cores, memory, virtualisation, GPUs. */
struct reference {
    const char *name, *path; /* of its folder */
    json_t *meta;
    double distance;         /* sum of the weights of what differs */
    size_t n_alike, n_facts; /* 0 of 0 where no run is asked about */
    const char *differs;     /* "cores 2 against 64, GPUs none against 8 x NVIDIA H200"; "" */
    /* Cases that it and the run have both, of those of the run; 0 of 0: not counted. */
    size_t n_comparable, n_cases;
};

struct references {
    struct pool pool;
    const char *folder;
    const char *run_path;  /* the run that is asked about; NULL */
    json_t *run;           /* its run.json; NULL */
    struct reference *all; /* the nearest first, and of these the newest */
    size_t n;
};

/* Reads those of PLUMB_REFERENCES, of ./results/reference, of the tree of this program, or of its
 * installation. run: the folder of the run that is asked about, or NULL. 0, or -ENOENT with error
 * set; to be released in any case. */
int references_load(struct references *r, const char *run, char *error, size_t len);
void references_release(struct references *r);
/* By name; "auto": of those with which nearly as many of the run's cases can be compared as with
 * any, the nearest. NULL with error set. */
const struct reference *references_find(struct references *r, const char *name, char *error,
                                        size_t len);
/* "epyc of 2026-01-02, commit 1234abc: 5 of 7 facts of the machine agree; differs: ..." */
const char *reference_text(struct pool *pool, const struct reference *one);
/* All, with date, commit and machine. 0 or -EIO. */
int references_print(struct references *r, FILE *out);

/* ---- Three runs and more side by side: each against the first (many.c) ---- */

#define MANY_MAX 8

struct many {
    size_t n; /* comparisons: of each run but the first with the first */
    struct pairs pairs[MANY_MAX - 1];
    struct view views[MANY_MAX - 1];
};

/* Loads and decides each of 2 to MANY_MAX runs against the first. Levels of alarm and confidence are
 * divided among the comparisons (Bonferroni). As pairs_load(); to be released in any case. */
int many_load(struct many *m, const struct run_paths *sets, size_t n,
              const struct pairs_options *options, char *error, size_t len);
void many_release(struct many *m);
/* 0 decided; 3 a comparison is undecided; 4 one is incomplete. */
int many_exit(const struct many *m);

/* 0 or -EIO. */
int many_print_text(FILE *out, struct many *m, bool all);
int many_print_markdown(FILE *out, struct many *m);
int many_print_html(FILE *out, struct many *m);
int many_print_json(FILE *out, struct many *m);
int many_print_csv(FILE *out, struct many *m);

/* ---- The sentences of a comparison (view_words.c) ---- */

/* Sides, verdict, basis and obstacles. */
void words_make(struct view *v);
/* "1.2 to 1.35"; "1.2" where three digits do not tell them apart. */
const char *words_range(struct pool *pool, double low, double high);
/* "Memory, Copies and PCIe" */
const char *words_list(struct pool *pool, const char *const *words, size_t n);

/* Is the pipe one of "Memory, GPU memory"? */
bool words_has_pipe(const char *pipes, const char *pipe);

#endif
