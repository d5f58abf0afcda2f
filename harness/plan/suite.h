/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A suite: a YAML file that names benchmarks and the values of their options. docs/suites.md
 * describes the format for people.
 *
 *   suite: quick
 *   about: one line
 *   defaults: {repeat: 3, timeout: 60s, budget: 500ms}
 *   cases:
 *     - bench: memory
 *       op: [read, triad]          # every combination of the lists is a case
 *       size: 16K..128M x2
 *
 * Every key but bench, repeat, timeout, margin, between and shapes is an option of the benchmark;
 * option and value are checked against what the benchmark says of itself. A list option that is not
 * named takes all of its default values. No two cases are the same measurement: an option that does
 * not apply to a combination is not part of it, and a second equal case only adds its repeats.
 * `gpus`, `gpu` and `nodes` stand for what the machine has: see places.h.
 */
#ifndef PLUMB_HARNESS_SUITE_H
#define PLUMB_HARNESS_SUITE_H

#include <stdint.h>

#include "harness/plan/bench_info.h"

#define SUITE_CASES_MAX  100000
#define SUITE_REPEAT_MAX 1000

/* A case that cannot be measured here, and is kept so that the run says why: once a benchmark. */
enum suite_stand_in { STAND_IN_NOT, STAND_IN_NO_GPU, STAND_IN_NO_OTHER_GPU };

/* Which hosts a case that needs a peer is run between, where a run has hosts: see hosts/spread.h.
 * One that needs a group is run over all of them at once, unless it says none. */
enum suite_between { BETWEEN_RING, BETWEEN_FIRST, BETWEEN_ALL, BETWEEN_SAMPLE, BETWEEN_NONE };
extern const char *const suite_betweens[]; /* ring first all sample none NULL */

struct suite_case {
    const struct bench_info *bench;
    char *meaning;   /* all its options, also those by default; NULL once all are read */
    char *arguments; /* "--op triad --size 16384": no value holds a blank */
    unsigned repeats;
    uint64_t timeout_ns;
    double margin; /* NaN: the judge's default */
    int line;      /* in the suite's file */
    enum suite_between between;
    char *from, *to; /* a pair of hosts, see hosts/spread.h; NULL: it is run on this machine */
    char *hosts;     /* of a group, "a;b;c"; NULL: it is run on this machine */
    unsigned bout;   /* of a tournament of all pairs: those of one bout share no host; 0: none */
    enum suite_stand_in stand_in;
    unsigned pair_gpus; /* it is a pair of so many GPUs, of which a plan may take some; 0: none */
    unsigned pair[2];   /* their places on the bus, counted from 0: see places_gpu_rank() */
};

struct suite {
    char *name, *about;
    struct suite_case *cases;
    size_t n;
    const struct bench_list *benches; /* the cases are of */
};

/* Reads and expands. `configs` is where shape sets are (configs/shapes/NAME.yaml); NULL: none. 0 or
 * -EINVAL with error "file:line: ..."; -ENOMEM. */
int suite_load(const char *path, const char *configs, const struct bench_list *benches,
               struct suite *suite, char *error, size_t len);
int suite_parse(const char *name, const char *text, size_t size, const char *configs,
                const struct bench_list *benches, struct suite *suite, char *error, size_t len);
void suite_release(struct suite *suite);

/* The file of a suite: a path as it is, else NAME.yaml in the folders where suites are. New text,
 * or NULL with error saying where it looked. */
char *suite_find(const char *name, char *error, size_t len);
/* The first folder "configs" of: $PLUMB_CONFIGS, ./configs, beside the program (../../configs in
 * the tree, ../share/plumbline/configs installed). New text or NULL. */
char *suite_configs_folder(void);

void suite_case_release(struct suite_case *c);

/* Of a benchmark that needs a peer or a group: cases of a backend that is absent here (RDMA without
 * an adapter) become one, launched once. Its row gives the reason. Cases for other hosts, which may
 * have the backend, stay. */
void suite_unite_absent(struct suite *suite, bool has_hosts);

#endif
