/* SPDX-License-Identifier: Apache-2.0 */
/* Launching one case: start the benchmark, read its rows, fill in what only the harness knows, make
 * a row where the benchmark made none. */
#ifndef PLUMB_HARNESS_LAUNCH_H
#define PLUMB_HARNESS_LAUNCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "harness/child.h"
#include "harness/hosts/hosts.h"
#include "harness/plan/bench_info.h"
#include "harness/plan/plan.h"
#include "harness/store/store.h"

/*
 * What a benchmark chooses by a race (OPT_KEPT) is decided once for each case of a run: by the
 * first launch that is done and chose. The later launches are given its choice as an option.
 *
 *   left     the case does not name the option, or names it with its default
 *   chosen   the column of the option's name has one value in all rows of that launch, but for
 *            empty cells, and the option takes it. Else each launch decides for itself
 *   hosts    of launches on hosts nothing is kept: one host may lack what another chose
 *
 * The plan and its arguments stay as they are. A benchmark that finds a choice unfit here chooses
 * again, and says so.
 */

struct kept_case {
    unsigned case_number;
    char *arguments; /* "--isa avx2" */
};

struct kept {
    struct kept_case *cases;
    size_t n;
};

/* What launch l chose, by the n rows of t from `first`: "--isa avx2", or "". A new text. */
char *kept_choices(const struct bench_info *b, const struct launch *l, const struct table *t,
                   size_t first, size_t n);

/* Takes the choices of a launch that is done from its rows, but of a case that is decided. */
void kept_learn(struct kept *k, const struct bench_info *b, const struct launch *l,
                const struct table *t, size_t first, size_t n);

/* The same from all rows of a benchmark, of launches of this plan. NULL b: none are kept. */
void kept_learn_all(struct kept *k, const struct bench_info *b, const struct plan *plan,
                    const struct table *t);
/* The same from a run that goes on. 0, or -errno with error. */
int kept_load(struct kept *k, const struct bench_list *benches, const struct plan *plan,
              const char *path, char *error, size_t len);

/* What the launch is given; "": nothing, it decides for itself. */
const char *kept_of(const struct kept *k, const struct launch *l);

void kept_release(struct kept *k);

/*
 * Processes that measure many cases. Within a round (a repeat), the cases of a benchmark share a
 * process where the rule says so: what it opens is paid once, and a case runs once in it. Each
 * round has processes of its own. A process without a case to measure waits for its next one.
 *
 *   failure    a case that ends with another status than 0 ends its process: the next case starts a
 *              new one
 *   death      of a process that ends in a case, that case is lost, and no other
 *   hosts      launches on hosts have a process each
 */

enum process_rule {
    PROCESS_AUTO,  /* cases whose start is dear share one: bench_start */
    PROCESS_CASE,  /* one for each launch */
    PROCESS_ROUND, /* all cases share one */
};
extern const char *const process_rules[]; /* their names; ends with NULL */

struct batches {
    enum process_rule rule;
    bool alone; /* one process at a time: no two may have a GPU */
    struct batch {
        const struct bench_info *bench;
        unsigned round;
        struct child_server *server; /* NULL: it is to be started */
        unsigned n;                  /* cases that it was given */
    } * all;
    size_t n;
    unsigned before; /* cases of the process of the last launch that were before it */
};

/* Does this option of the benchmark say something of a launch with these arguments (opt.scope)? */
bool option_applies(const struct bench_info *b, const struct opt *opt, const char *arguments);

bool launch_shares(enum process_rule rule, const struct bench_info *b, const struct launch *l);

/* As child_run(), of a case that shares a process: `line` has its arguments. spec->argv and
 * spec->timeout_ns are not used. */
int batch_run(struct batches *all, const struct bench_info *bench, const struct launch *l,
              const char *line, const struct child_spec *spec, struct child_result *result);

/* Ends the processes. */
void batches_release(struct batches *all);

/* "memory triad DRAM": the values of the benchmark's own options. */
const char *launch_label(const struct bench_list *benches, const struct launch *l, char *text,
                         size_t len);

struct launch_context {
    const struct bench_list *benches;
    const char *run; /* the run's name */
    uint64_t seed;
    const char *machine;  /* its processor; "" */
    double cores;         /* of the whole machine; 0: not known */
    const json_t *limits; /* of this machine, see limits_row.h; NULL: none */
    const struct hosts_run
        *hosts;              /* of launches between hosts; without a launcher: there are none */
    struct batches *batches; /* NULL: each launch has a process of its own */
    struct kept *kept; /* what earlier launches of this run chose; learns what this one does */
    const volatile int *cancel;
    void (*tick)(void *arg);
    void *tick_arg;
};

/* What came of it: everything that store_commit needs. */
struct launched {
    struct launch_record record;
    bool cancelled; /* to be forgotten: the launch stays to do */
    bool wrong;     /* a row says wrong data */
    bool lost;      /* a rank was lost that none of it needed: see summary */
    bool known;     /* it failed for a reason already printed: one of its hosts cannot take part */
    char summary[256]; /* one line for the log of a failure: "memory --op triad: killed by signal
                          11" */
    uint64_t child_ns; /* the time that the benchmark itself took */
    char *header, *stored_header, *rows, *samples, *log;
    struct child_result child;
};

/* 0 or -errno when nothing could be launched at all (memory, processes). Release *out in any case.
 */
int launch_run(const struct launch_context *c, const struct launch *l, struct launched *out);
void launched_release(struct launched *out);

#endif
