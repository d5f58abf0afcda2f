/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether cases of one run differ: the one rule for it in a report. Whoever asks adds comparisons;
 * when all are there, harness/decide/decide.h decides them.
 *
 * A comparison holds a case, or several as the links of a host, against others. The cases of a side
 * count as its runs, so that what the others differ by among themselves is noise. What is asked about
 * one thing (the GPUs of a benchmark, its rails, the pairs of hosts) is a topic, and one suite. All
 * topics of places in a run share one alarm level, so that in at most 1 % of runs in which all places
 * are equal one is called slow. Another 1 % is shared by all else that is asked of the run. It holds
 * where both sides are chosen without their values. The best case of a contrast is not: of k equal
 * cases the luckiest is held against others, and up to k times as many of these are called different.
 *
 * Places that are built alike (GPUs, rails, pairs, hosts) are held against each other:
 *
 *   others      A place that lies more than the margin below the upper median of all is none to be held
 *               against, or two slow ones would hide each other. A link is as fast as the slower of
 *               its ends lets it be, so a host is held by its links to hosts that are not low, two at
 *               least, against the links between such.
 *   slow        The difference is proven, and the whole interval lies more than the margin below the
 *               others. That interval has the degrees of freedom of its own others alone. Launches
 *               stall, and all of a few may. So those of its launches that lie below, each by itself,
 *               must also be more than stalls explain. How often launches stall is told by the other
 *               cases of the benchmark's places, each held against the upper median of its own. The
 *               chance of as many (beta-binomial, with Jeffreys' prior), times the comparisons of the
 *               topic, must be within its alarm level: with few others or many stalls it takes more
 *               launches. This takes the place of decide.h's rule of few launches.
 *   looks slow  The value lies more than the margin below, which is not proven: a single launch proves
 *               nothing.
 */
#ifndef PLUMB_REPORT_COMPARISONS_H
#define PLUMB_REPORT_COMPARISONS_H

#include <stdbool.h>
#include <stddef.h>

#include "harness/decide/decide.h"
#include "harness/report/model.h"

#define COMPARISONS_MARGIN                                                                         \
    0.10                      /* below which a place is slow, where its kind has none of its own */
#define COMPARISONS_SAME 0.01 /* a difference that is not worth a word */
#define COMPARISON_NONE  ((size_t)-1)

struct comparison {
    const struct report_bench *bench;
    size_t run;
    const struct report_case *c; /* of its own side; of several the first */
    size_t n_own, group;         /* cases of its own side; those of a group have one number */
    size_t peers;                /* of links: the other ends of its own side's; else 0 */
    double margin;
    /* What comparisons_decide() fills in. The ratio is of the own side to the other, turned round so
     * that below 1 is worse; NaN: not known */
    enum decision decision;
    bool proven; /* a difference is, either way */
    double ratio, low, high;
    bool slow, looks_slow; /* of places that are alike */
};

/* One of several places that do the same: a GPU, or a pair of a kind. */
struct like {
    const char *place;           /* "cuda:5", "cuda:2 -> cuda:3" */
    const struct report_case *c; /* it may be without a value */
    const struct comparison *on; /* decided; NULL: it was held against no others */
};

struct comparison_topic;

struct comparisons {
    struct report *r;
    struct comparison *all;
    struct decide_case *cases; /* of the same numbers */
    size_t n;
    size_t groups;
    struct comparison_topic *topics;
    size_t n_topics;
};

/* What is added from here on is one topic of a benchmark in a run. about: what tells it from others,
 * for who looks it up; or NULL. alike: it is of places that are built so. */
void comparisons_topic(struct comparisons *q, const void *about, const struct report_bench *b,
                       size_t run, bool alike);

/* Holds a case against another. Both have values above 0. Returns its number; COMPARISON_NONE: the
 * margin is no share. */
size_t comparisons_add(struct comparisons *q, const struct report_case *c,
                       const struct report_case *other, double margin);

/* Cases that differ in their places alone, and have values above 0. */
struct comparison_group {
    const struct report_case **cases;
    size_t *place,
        *other; /* of each: its place, and the other end of a link; COMPARISON_NONE: it is none */
    size_t n, n_places;
    bool both; /* a link is of both its ends; else of `place` alone */
};

/* Holds each place against the others. at: n_places numbers, or NULL; COMPARISON_NONE: there are no
 * others. */
void comparisons_add_group(struct comparisons *q, const struct comparison_group *group,
                           double margin, size_t *at);

/* The case is like so many others: in a group it is known. */
void comparisons_like(struct comparisons *q, const struct report_case *c, size_t others);
/* Like how many others a case is, at most. */
size_t comparisons_alike(const struct comparisons *q, const struct report_bench *b, size_t run,
                         const struct report_case *c);

void comparisons_decide(struct comparisons *q);

/* Those of a topic, decided, and how many; NULL: there is no such topic. */
const struct comparison *comparisons_about(const struct comparisons *q, const void *about,
                                           const struct report_bench *b, size_t run, size_t *n);

/* The comparison of that number; NULL: COMPARISON_NONE. */
const struct comparison *comparison_of(const struct comparisons *q, size_t number);

/* " (0.52 to 0.55)"; "" where it is not known, or the ends differ so much that they tell nothing. */
const char *comparison_interval_text(struct pool *pool, const struct comparison *c);

#endif
