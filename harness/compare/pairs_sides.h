/* SPDX-License-Identifier: Apache-2.0 */
/* The sides of a comparison while they are paired: their run folders, who was measured in turn with
 * whom (pairs_sides.c), and what each says of a case (pairs_values.c). See pairs.h. */
#ifndef PLUMB_COMPARE_PAIRS_SIDES_H
#define PLUMB_COMPARE_PAIRS_SIDES_H

#include <stddef.h>

#include "harness/compare/pairs.h"
#include "harness/plan/plan.h"
#include "harness/report/choices.h"

/* Run folders behind paths: each path a run, or a folder of runs, which come in the order of their
 * start. */
struct run_paths {
    char **all;
    size_t n;
};

/* Adds those of one path. 0; -ENOENT: no run there; -EPROTO: a run of a schema that this program
 * does not know, or of none; -ENOMEM, other -errno. error says which and why. */
int run_paths_add(struct run_paths *paths, const char *path, char *error, size_t len);
void run_paths_release(struct run_paths *paths);

/* One side of a comparison while it is being paired. */
struct side {
    const char *name;               /* "A" */
    size_t first, end;              /* its runs */
    const struct pairs_role *roles; /* of each of them, in the case at hand; NULL: all are LEVEL */
};

/* Is the run one of the side's level? Others say no more of a case than their values. */
static inline bool side_has(const struct side *s, size_t run)
{
    return !s->roles || s->roles[run - s->first].role == DECIDE_LEVEL;
}

/* When a launch was measured, by its run's plan. */
struct planned_turn {
    const char *case_id, *repeat;
    enum launch_turn turn;
};

struct run_turns {
    struct planned_turn *all; /* sorted */
    size_t n;                 /* 0: nobody knows */
};

struct pairing {
    struct pairs *p;
    const struct pairs_options *options;
    struct side a, b;
    struct suite_index *plans; /* one a run */
    struct run_turns *turns;   /* one a run, in the pool */
};

/* -EPROTO with error set: both targets of a plumb run --against are on one side. */
int sides_refuse_mixed(const struct pairs *p, char *error, size_t len);
/* -EEXIST with error set: a side has one run twice, by its path or as a copy: what varies between
 * runs would seem known. */
int sides_refuse_twice(const struct pairs *p, char *error, size_t len);

/* Has every run of a side its partner on the other? */
bool sides_in_turn(const struct pairs *p);
/* Fills in g->turns: what the plans of runs that were measured in turn say of who went first. 0 or
 * -ENOMEM. */
int turns_read(struct pairing *g);
/* Of runs that were measured in turn: leaves the launches that both of a pair have, each beside its
 * partner; runs of B then stand in the order of A's. False, and nothing is changed, where there are
 * not two of them, or a launch says a case twice. */
bool launches_align(struct pairing *g, const struct report_bench *b, const struct report_case *c,
                    struct decide_case *decide);

/* The launches' values of one side, launches of a run in time order. Returns how many its level
 * has; the pool's `failed` is set where memory is short. */
size_t side_values(struct pairing *g, const struct side *side, const struct report_bench *b,
                   const struct report_case *c, struct decide_side *out);

/* Has the row a value that may be held against another, and did others take no more of the CPU
 * (steal) while it was measured than this share? 0: it is not asked. */
bool row_counts(const struct report_rows *rows, size_t row, double limit);
/* How many launches of a side are left out for that, "3 of 5 launches of B (12 to 31 %)"; "": none.
 */
const char *side_taken(struct pairing *g, const struct pair *pair, const struct side *side);

/* Why the two sides are not comparable; "" where they are. Sets what differs otherwise. */
const char *pair_refusal(struct pairing *g, struct pair *pair);
/* Why a side has no value, for people. */
struct lost {
    const char *text; /* "B skipped it: why"; "": it has one */
    const char
        *of_all; /* where it is of all launches, what stands behind the side's name; else NULL */
};
/* Sets *failed where it failed or gave wrong data. */
struct lost lost_reason(struct pairing *g, const struct pair *pair, const struct side *side,
                        bool *failed);
/* A figure beside the samples of which a side's launches, all of them done, have no row. */
bool is_left_out(struct pairing *g, const struct pair *pair, const struct side *side);
/* The margin of a case: the smaller one of what the suites of A and B say, the options' where one
 * says nothing. */
double pair_margin(struct pairing *g, const struct pair *pair);
/* A case that no launch could name, and of which the other side knows the names: it is told there.
 */
bool is_told_elsewhere(struct pairing *g, const struct report_bench *b,
                       const struct report_case *c);

#endif
