/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a cause of slowness costs on this machine: plumb doctor --measure.
 *
 *   cause    an entry of a benchmark's table `experiments` (core/bench_rows.h): the same case with
 *            the cause and without it; or one that no option of a benchmark switches, of which
 *            measure_own has a small test
 *   turn     four measurements: with, without, without, with; the next turn the other way round.
 *            So a steady drift of the machine cancels within a turn
 *   cost     by the rule for all that is measured in turn (harness/decide/decide.h): a turn is two
 *            pairs, each side is first in one of them
 *   end      the interval is narrow enough, or the time for the cause is used up. The interval is
 *            looked at after 7, 10, 15, 22, 33, 49 and 60 turns. To stop at the first narrow one
 *            makes intervals too narrow: so each is asked for 98 %, and 95 % and more of those at
 *            the end cover the truth (tests/unit/test_measure.c)
 */
#ifndef PLUMB_DOCTOR_MEASURE_H
#define PLUMB_DOCTOR_MEASURE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/bench_rows.h"
#include "harness/plan/bench_info.h"

#define MEASURE_TURNS_MIN  7 /* fewer have no interval */
#define MEASURE_TURNS_MAX  60
#define MEASURE_CONFIDENCE 0.98
#define MEASURE_NEAR       0.05 /* the margin within which there is no cost */

enum measure_state {
    MEASURE_TODO,    /* not begun */
    MEASURE_DONE,    /* the interval is narrow enough, or the time is used up */
    MEASURE_STOPPED, /* interrupted: its whole turns are kept */
    MEASURE_SKIPPED, /* not on this machine: `reason` */
    MEASURE_FAILED,  /* `reason` */
};

/* A turn as it was measured: values[0] to [3] in the order of time. */
struct measure_turn {
    bool with_first; /* with, without, without, with */
    double values[4];
};

struct measure_own;

struct measurement {
    const struct bench_experiment *cause;
    const struct bench_info *bench; /* NULL: of measure_own */
    const struct measure_own *own;
    char *variable; /* the one that the side without it lacks; NULL: none */
    char *command;  /* "plumb memory --op read --memory-node remote, against --memory-node local" */

    enum measure_state state;
    char reason[512];
    char unit[16];
    bool more_is_better, simulated; /* simulated: on devices that are none */
    double counted;                 /* of bench_experiment.counts, with the cause, in all turns */
    struct measure_turn *turns;
    size_t n_turns;
    /* With the cause over without it; NaN: too few turns. */
    double ratio, low, high;
    bool decides; /* a difference is proven, or there is none beyond MEASURE_NEAR */
};

/* A figure of one side, above 0. 0; -EOPNOTSUPP: it cannot run here, -ECANCELED, or another -errno;
 * all but -ECANCELED with m->reason. */
typedef int measure_side_fn(void *arg, struct measurement *m, bool with, double *value);

struct measure_rule {
    double width;       /* an interval of ratio +/- this share is narrow enough */
    uint64_t budget_ns; /* no new turn after this, but for the first MEASURE_TURNS_MIN */
};

/* Measures turns until the rule ends it, or the first one counted nothing of the cause; sets the
 * state. */
void measure_turns(struct measurement *m, const struct measure_rule *rule, measure_side_fn *side,
                   void *arg);

/* The share that is lost with the cause: of a rate 1 - ratio, of a time ratio - 1 (it grows by so
 * much). False: not known. */
bool measure_share(const struct measurement *m, double *low, double *high);
/* With all turns, so that it can be calculated again. A new object, or NULL. */
json_t *measure_json(const struct measurement *m);
/* Is it the price of what was found on this subject? That of a variable is of no other one. */
bool measure_is_of(const struct measurement *m, const char *check, const char *subject);
void measurement_release(struct measurement *m);

/* ---- Causes that no option of a benchmark switches: tests of our own (measure_own.c) ---- */

struct measure_own {
    struct bench_experiment cause;
    const char *unit;
    uint64_t side_ns; /* about so long takes one side */
    /* 0 or -errno, with a reason where errno's own does not do. */
    int (*side)(bool with, double *value, const char **why);
};

extern const struct measure_own measure_own[]; /* ends with a NULL cause.check */

/* ---- All causes that are to be priced ---- */

struct measure_options {
    const char *only; /* ids of causes, "a,b"; NULL: all */
    bool named;       /* they are the user's: one that nobody knows is an error */
    const char *peer; /* host of a listener, for benchmarks that need a peer; NULL: this machine */
    const json_t *machine; /* as harness/probe learnt it */
    struct measure_rule rule;
    const volatile int *cancel;
};

struct measures {
    struct measurement *all;
    size_t n;
    const struct measure_options *options;
    const struct bench_list *benches;
    json_t *facts; /* measure_facts() */
};

/* Lists the causes, and skips those for which the machine lacks something. The texts of *m are
 * those of `benches`. 0; -ENOENT: there is no such cause, error lists those that there are.
 * Release *m in any case. */
int measure_plan(struct measures *m, const struct bench_list *benches,
                 const struct measure_options *o, char *error, size_t len);
/* Measures one after another. Writes to `chatter` how long it takes and how far it is. 0;
 * -ECANCELED: what was measured until then is kept. */
int measure_run(struct measures *m, FILE *chatter);
json_t *measures_json(const struct measures *m); /* a new list */
/* Every cause that there is, by its id, for people. */
void measure_list(const struct bench_list *benches);
/* For people, at the width of the terminal. */
void measure_print(const struct measures *m);
void measures_release(struct measures *m);

/* The names of bench_experiment.machine with their texts; those that are not known are left out.
 * New. */
json_t *measure_facts(const json_t *machine, const char *peer);

#endif
