/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cases of two sets of runs, paired: what compare, check, history and the report's verdicts
 * stand on.
 *
 * A case is one choice of a benchmark's parameters and one metric, as harness/report/cases.h finds
 * them; a pair is that case in the runs of both sides. Only figures that were measured are held
 * against each other: of a launch that is ok or noisy. What is not comparable is refused with the
 * reason, never paired silently:
 *   path      the bytes took another kind of way on the two sides, by the column `carrier` (RDMA on
 *             one, sockets on the other): docs/schema.md. Devices' names may differ. Where one side
 *             proves no path that is told, and nothing refused. Launches that are left out for
 *             steal prove it as well
 *   origin    measured or imported on one side, simulated or modelled on the other
 *   outcome   what the suite's rules call an outcome of the case, and which makes it another
 *             quantity when it differs (the level that a working set lies in)
 * What a benchmark chose where nobody asked makes no case (COLUMN_USED: the vector unit, a thread
 * a core): launches that chose differently are one case, and that is told.
 *
 * Of rows that plumb import made, what their file does not tell agrees with everything: they are of
 * the one case that all else agrees with (harness/report/adopt.h), or of none. Where such a row has
 * a mean, the means of both sides are compared. One launch of it decides nothing.
 *
 * Rows of one launch that are one case count as one value, their mean. Metrics of which more, or
 * less, is not better by itself, and those that say the same as another, are left out: see
 * described_is_judged().
 *
 * What may differ between machines and is no other quantity (a kernel's name, a library's version,
 * an address) is told beside the figures: `differs`.
 */
#ifndef PLUMB_COMPARE_PAIRS_H
#define PLUMB_COMPARE_PAIRS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/decide/decide.h"
#include "harness/plan/plan.h"
#include "harness/report/model.h"
#include "harness/report/suite_index.h"
#include "harness/store/run_folder.h"

enum pair_state {
    PAIR_READY,     /* to be decided */
    PAIR_REFUSED,   /* not comparable: `reason` */
    PAIR_LOST_A,    /* A has no value: no such case, or it was skipped, failed or wrong: `reason` */
    PAIR_LOST_B,    /* B has none where A has */
    PAIR_LOST_BOTH, /* neither */
    PAIR_TAKEN,     /* one side has no launch in which others left it the CPU: `taken`; if it is B,
                       none of its launches failed */
    /* A figure beside the samples that the launches of one side left out: nothing is lost. */
    PAIR_LEFT_OUT
};

/* What disturbed a side of a case, by its rows' typed columns: means over its launches, and
 * what the median one lost. */
struct disturbance {
    size_t rows, noisy, throttled; /* measured; whose samples scatter; with throttled CPUs */
    double steal_percent, quota_percent, gpu_percent; /* NaN: not known */
    /* Share of its CPU time that others, or a quota, took in the median launch: 0.03; 0 of a GPU's
     * work. */
    double taken;
    bool seen; /* something besides scatter disturbed it */
};

struct pair {
    const struct report_bench *bench;
    const struct report_case *c;
    const char *pipe;  /* "Memory": the part of the machine that the benchmark says */
    const char *label; /* "memory triad 1 GiB, 2 threads: bandwidth": what varies, for people */
    const char *name; /* "memory triad, 1 GiB": as short as tells it from others that are decided */
    /* The same on every machine and in every run: "memory|op=triad|...|bandwidth|GB/s", parameters
     * by name. */
    const char *key;
    enum pair_state state;
    const char *reason; /* "" where there is none; READY: some launches of B failed */
    const char *code;   /* the column code of such a row of B, or else of A; "" */
    /* Launches that are left out for steal, "3 of 5 launches of B (12 to 31 %)"; "". */
    const char *taken;
    const char *differs; /* outcomes that differ: "kernel SkylakeX against Haswell"; "" */
    bool means;          /* its values are means, and not medians; `differs` has their definition */
    /* A launch of B failed, was late or gave wrong data (not merely skipped or absent); the case
     * may be READY by the others. */
    bool failed_b;
    bool failed_a;             /* the same of A */
    struct decide_case decide; /* sides filled in where READY; the rest by decide_suite() */
    struct disturbance noise_a, noise_b; /* by pairs_disturb() */
    /* The time taken can explain the difference, or hide one: the case is inconclusive. */
    bool explained;
};

struct pairs {
    struct report report; /* runs of A first, then those of B */
    size_t n_a, n_b;
    const char *name_b; /* of its options */
    bool in_turn;       /* each run of A was measured in turn with one of B (plumb run --against) */
    struct pair *all; /* n that were asked for, in the order of the suite; behind them the others */
    size_t n, n_all;  /* what is decided is decided over all of them */
    double steal_limit; /* of its options */
    bool as_measured;   /* the same */
    struct decide_overall overall;
    /* Of A's runs in most cases, as asked for; NULL: all are LEVEL. */
    const enum pairs_role *roles;
};

/* What a run of A is to a case: see decide.h. An anchor says nothing of a case but its values:
 * neither that the case was there, nor which path it took. A run that has no part says nothing. */
enum pairs_role { PAIRS_LEVEL, PAIRS_ANCHOR, PAIRS_NO_PART };

struct pairs_roles {
    const char *key;             /* of the case; NULL: every case that has no roles of its own */
    const enum pairs_role *runs; /* of each run of A */
};

struct pairs_options {
    /* For all cases, but where a suite has its own, unless `forced`: the smaller one of the two
     * sides', so that a run does not loosen what it is held to. */
    double margin;
    bool forced;        /* the user said the margin */
    double steal_limit; /* launches in which others took a greater share of the CPU are left
                                out; 0: none */
    /* The time that others took of a side's CPU counts as its loss: pairs_disturb() decides nothing
     * otherwise. */
    bool as_measured;
    /* Patterns on key or label; NULL-ended; NULL: all. The others count in what a whole suite tells
     * (how runs differ), so no case is decided otherwise without them. */
    const char *const *only;
    struct decide_options decide;
    const char *name_a, *name_b; /* of the sides, in reasons; NULL: "A", "B" */
    /* n_roles of them, the first of every case (key NULL), then those of single cases; each path of
     * A is a run then. They are to live as long as the pairs. 0: all runs are LEVEL. */
    const struct pairs_roles *roles;
    size_t n_roles;
};

/* Loads the runs, pairs their cases and decides. A path is a run folder, or a folder of run
 * folders. 0; -EBADMSG: a file is damaged; -ENOENT: no run there; -EPROTO: a run of another
 * schema, or both targets of a plumb run --against on one side;
 * -EEXIST: one side has a run twice; -EINVAL: the runs hold no case. error says which and why, and
 * what to do. *p is to be released in any case. */
int pairs_load(struct pairs *p, const char *const *a, size_t n_a, const char *const *b, size_t n_b,
               const struct pairs_options *options, char *error, size_t len);
void pairs_release(struct pairs *p);

/* Is this run one that B is held against in most cases? Those of B are. */
bool pairs_is_level(const struct pairs *p, size_t run);

/* Are these one run, by path or as a copy? */
bool pairs_same_run(const struct run_folder *x, const struct run_folder *y);

/* Is a run on both sides, by its path or by its name, host and start? -EEXIST with error set: it
 * would be held against itself. */
int pairs_refuse_same(const struct pairs *p, char *error, size_t len);

/* The state of the first run that was not measured to its end ("interrupted"), of A and then of B;
 * "" where there is none. *n: how many there are. */
const char *pairs_unfinished(const struct pairs *p, size_t *n);

/* How many runs that could have been held against the one they were measured in turn with are not,
 * since they, or others beside them, have none of their own on the other side: those that have
 * none. 0: all have, or no run has. *first: of them. */
size_t pairs_without_partner(const struct pairs *p, size_t *first);

/* Decides again, after something of the pairs' `decide` was set (a margin): pairs_load() has done
 * so with its options. As decide_suite(). */
int pairs_decide(struct pairs *p, const struct decide_options *options);

/* Measures the disturbance of both sides of each case, in launches that are not left out. Then the
 * time that others took is given back to both sides: steal, and a CPU quota where the rows of
 * a side do not say what was sustained, which has the quota's pauses in it. A difference becomes inconclusive where its
 * interval then holds "no change", an equivalence where its interval then leaves the margin.
 * `overall` counts the cases of PAIR_TAKEN as inconclusive. For compare, not for gates. */
void pairs_disturb(struct pairs *p);
/* "steal 8.1 %, noisy in 2 of 5"; "": nothing was seen. */
const char *disturbance_text(struct pool *pool, const struct disturbance *d);

/* What differs between the machines, the programs and the suites of the two sides, or among the
 * runs of one: "virtualisation: bare metal against KVM guest". All lives in the report's pool. */
struct machine_difference {
    /* "virtualisation", "CPU clock", "PCIe link of NVIDIA H200", "NUMA nodes", "NVIDIA driver" */
    const char *what;
    /* As people write them; "6.1 in 2 of 3 runs, 6.5 in 1"; "" where a side has none, or cannot
     * tell. */
    const char *a, *b;
    const char *pipes; /* that it may weigh on, ", " between: "Memory, Copies"; "" for all */
    /* Of what the program was measured in: limits, clocks, drivers, kernel, settings. Not of the
     * program itself, nor of what moves by itself, as the rate of a link that is idle. */
    bool environment;
};
size_t pairs_machine_differences(struct pairs *p, struct machine_difference **all);

/* --steal of the commands that leave out launches during which other guests took the CPU: check and
 * history. In a guest the hypervisor says which share of the time of all CPUs others took (steal, a
 * column of each row). */

#define STEAL_DEFAULT "2%"
#define STEAL_HELP    "launches during which other guests took more of the CPU are left out"
#define STEAL_NONE    "; 100%: none" /* ends the help */
#define STEAL_REFUSED "--steal is a share above 0 %, such as 2%; 100% leaves nothing out"
#define STEAL_WHY     "other guests took the CPU (steal; --steal)"

/* Is that what --steal asks for: above 0, and no more than 1? */
bool steal_is_share(double asked);
/* pairs_options.steal_limit: 0 where nothing is left out. */
double steal_limit(double asked);

/* What others took during a launch, in percent (NaN: not known), against a limit as above. */
bool steal_is_over(double percent, double limit);

/* What others took in each launch of a case in one run, in the order of its values where none of
 * them is left out: of pairs that were loaded with a limit of 0. Of a launch that says the case
 * twice the most. NaN: the rows do not say. In percent, n of them. */
double *steal_of_launches(struct pool *pool, const struct pair *pair, size_t run, size_t n);

/* ---- Inside of this folder: the sides while they are paired. Their run folders, and who was
 * measured in turn with whom, are in pairs_sides.c, what each has of a case in pairs_values.c. */

/* Adds the run folders behind a path: it, or those that lie in it, in the order of their start.
 * 0; -ENOENT: no run there; -EPROTO: a run of another schema; other
 * -errno. error says which and why. */
int run_paths_add(struct run_paths *paths, const char *path, char *error, size_t len);

/* One side of a comparison while it is being paired. */
struct side {
    const char *name;             /* "A" */
    size_t first, end;            /* its runs */
    const enum pairs_role *roles; /* of each of them, in the case at hand; NULL: all are LEVEL */
};

/* Is the run one of the side's level? Others say no more of a case than their values. */
static inline bool side_has(const struct side *s, size_t run)
{
    return !s->roles || s->roles[run - s->first] == PAIRS_LEVEL;
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
    const unsigned *boots;     /* one a run, in the pool: decide_run.boot */
};

/* -EPROTO with error set: both targets of a plumb run --against are on one side. */
int sides_refuse_mixed(const struct pairs *p, char *error, size_t len);
/* -EEXIST with error set: a side has one run twice, by its path or as a copy: what varies between
 * runs would seem known. */
int sides_refuse_twice(const struct pairs *p, char *error, size_t len);

/* Has every run of a side its partner on the other? */
bool sides_in_turn(const struct pairs *p);
/* Fills in g->turns: what the plans of runs that were measured in turn say of who went first. */
void turns_read(struct pairing *g);
/* Of runs that were measured in turn: leaves the launches that both of a pair have, each beside its
 * partner; runs of B then stand in the order of A's. False, and nothing is changed, where there are
 * not two of them, or a launch says a case twice. */
bool launches_align(struct pairing *g, const struct report_bench *b, const struct report_case *c,
                    struct decide_case *decide);

/* The launches' values of one side, launches of a run in time order. Returns how many its level
 * has. */
size_t side_values(struct pairing *g, const struct side *side, const struct report_bench *b,
                   const struct report_case *c, struct decide_side *out);

/* Fills in g->boots: the boots of the machine that the runs' run.json tell of, by number. */
void boots_number(struct pairing *g);

/* Are all of them numbers above 0? */
bool are_known(const double *values, size_t n);

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
    const char *code; /* of its rows, of the same; "" */
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
