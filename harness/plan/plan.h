/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan: every launch of a run, one line each, in the order they are run. Repeats are interleaved:
 * each round runs every case once, in an order shuffled by the seed, so that drift of the machine
 * does not look like a difference between cases. The pairs of hosts of a tournament keep its order
 * (hosts/spread.h).
 */
#ifndef PLUMB_HARNESS_PLAN_H
#define PLUMB_HARNESS_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "harness/plan/bench_info.h"
#include "harness/plan/suite.h"
#include "harness/table.h"

enum launch_state { LAUNCH_TODO, LAUNCH_DONE, LAUNCH_SKIP, LAUNCH_FAIL, LAUNCH_LATE };

/* Of a launch that is measured in turn with one of another target (harness/against): before it, or
 * after it. */
enum launch_turn { TURN_NONE, TURN_FIRST, TURN_SECOND };

struct launch {
    enum launch_state state;
    unsigned rows;        /* that belong to it in BENCH.csv */
    unsigned case_number; /* from 1 */
    unsigned repeat;      /* from 1 */
    enum launch_turn turn;
    char *bench, *arguments;
    char *from, *to; /* the hosts that it runs between; "": none */
    char *hosts;     /* those that it runs over at once, "a;b;c"; "": none */
    uint64_t timeout_ns;
    double margin;    /* that the suite says for its case; not above 0: none */
    uint64_t mark_at; /* where its state stands in plan.csv */
};

struct plan {
    struct launch *launches;
    size_t n;
    /* pairs of GPUs that were drawn, of how many; 0: none were left out */
    unsigned pairs, pairs_of;
};

/* Takes the cases that `only` keeps (NULL: all), see plan_keeps; of the pairs of many GPUs those
 * that suite.h draws by the seed. 0, or -ENOENT when none matches. */
int plan_make(const struct suite *suite, uint64_t seed, const char *only, struct plan *plan);
void plan_release(struct plan *plan);

/* Does `only` ("A|B", NULL: all) keep the case? */
bool plan_keeps(const struct bench_list *benches, const char *only, const char *bench,
                const char *arguments);

/* One more repetition of the case of launch i, to do, at the end of the plan. */
void plan_repeat(struct plan *plan, size_t i);

/* Is it between two hosts? Over a group of them? Either? Else it is this machine's. */
static inline bool launch_has_pair(const struct launch *l)
{
    return l->from && *l->from;
}

static inline bool launch_has_group(const struct launch *l)
{
    return l->hosts && *l->hosts;
}

static inline bool launch_has_hosts(const struct launch *l)
{
    return launch_has_pair(l) || launch_has_group(l);
}

/* Is this host among those that it runs on? */
bool launch_needs_host(const struct launch *l, const char *name);
bool plan_has_pairs(const struct plan *plan);
bool plan_has_groups(const struct plan *plan);
bool plan_has_hosts(const struct plan *plan);

/* Writes plan.csv into a new stream; sets mark_at. Where a launch is for hosts, with columns `from`, `to` and
 * `hosts`; where the suite says a margin, with `margin`; where launches are measured in turn, with
 * `turn`. State and rows have a fixed width ("todo,0000"), so that they can be overwritten in
 * place. */
int plan_print(FILE *out, struct plan *plan);
/* Reads plan.csv back. 0, or -EBADMSG with error. */
int plan_from_table(const struct table *t, struct plan *plan, char *error, size_t len);

#define PLAN_MARK_BYTES 9 /* "done,0003" */
#define PLAN_ROWS_MAX   9999
void plan_mark_text(const struct launch *l, char text[PLAN_MARK_BYTES + 1]);

const char *launch_state_name(enum launch_state state); /* todo done skip fail late */
bool launch_state_parse(const char *text,
                        enum launch_state *state); /* false: it is none of these */
static inline bool launch_state_is_bad(enum launch_state state)
{
    return state == LAUNCH_FAIL || state == LAUNCH_LATE;
}
/* As plan.csv says it: first, second; "" is none. False: it is none of these. */
bool launch_turn_parse(const char *text, enum launch_turn *turn);

/*
 * --only, alike in every command: given several times, each counts. One rule says whether a pattern
 * keeps a case:
 *
 *   A pattern that is a benchmark's name keeps the cases of that benchmark.
 *   Any other one is for fnmatch(3), and fits a part of one of the three texts of a case: its
 *   command line, "memory --op triad --size 65536"; its key,
 *   "memory|op=triad|size=65536|bandwidth|GB/s"; its label, "memory triad 64 KiB: bandwidth". A
 *   measured case has no command line and a planned one no key: each is made of the other, as far
 *   as possible.
 *   Sizes may be written as people do: 64K, 64KiB.
 *   '|' parts patterns: A|B is A, or B. Not in a pattern with a '=', which is a part of a key.
 */

struct only_case {
    const char *bench, *arguments;    /* "memory", "--op triad"; NULL: of the key */
    const char *key, *label;          /* NULL: there is none */
    const struct bench_list *benches; /* NULL: those of this machine */
};

/* Is the case kept by any pattern? `only` ends with NULL; NULL or none keeps all. */
bool only_keeps(const char *const *only, const struct only_case *c);

#endif
