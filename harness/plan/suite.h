/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A suite: a YAML file that names benchmarks and the values of their options. docs/suites.md
 * describes the format for people.
 *
 *   suite: quick
 *   about: one line
 *   again: 2m                      # time for more repetitions of what looks slow
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
 * `gpus`, `gpu` and `nodes` stand for what the machine has.
 */
#ifndef PLUMB_HARNESS_SUITE_H
#define PLUMB_HARNESS_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/plan/bench_info.h"
#include "harness/plan/yaml.h"
#include "harness/text.h"

#define SUITE_CASES_MAX  100000
#define SUITE_REPEAT_MAX 1000

/* A case that cannot be measured here, and is kept so that the run says why: once a benchmark. */
enum suite_stand_in { STAND_IN_NOT, STAND_IN_NO_GPU, STAND_IN_NO_OTHER_GPU };

/* Which hosts a case that needs a peer is run between, where a run has hosts: see hosts/spread.h;
 * none, unless it says so, of a benchmark that takes a peer if asked. One that needs a group is run over all of them at once, unless it says none. */
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
    uint64_t again_ns; /* for repetitions beyond the planned ones, where they decide; 0: none */
    struct suite_case *cases;
    size_t n;
    const struct bench_list *benches; /* the cases are of */
};

/* Reads and expands. `configs` is where shape sets are (configs/shapes/NAME.yaml); NULL: none. 0 or
 * -EINVAL with error "file:line: ...". */
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

/* One entry of a suite before its lists are expanded (a draft): its options are set one by one
 * (suite_option.c), then every combination becomes a case (suite_expand.c). For the files of
 * harness/plan alone. */

struct case_draft {
    const struct bench_info *bench;
    struct opt_values *values; /* one an option of the bench */
    bool *every_gpu;           /* the same: it was given as `gpus` */
    bool *general;             /* the same: it came with the suite's defaults */
    struct opt_values *all;    /* the same: given or by default; made with the expansion */
    unsigned *largest;         /* the same: 0, or it takes the last of its default values so many
                                * times over; values come with expansion */
    char **defaults;           /* as bench->defaults, of this case; NULL: the bench's are right */
    size_t n;
    bool no_gpu;     /* it asks for GPUs, and there is none */
    bool by_machine; /* its places are those that this machine has */
    unsigned repeats;
    uint64_t timeout_ns;
    double margin;
    int line;
    enum suite_between between;
};

void case_draft_init(struct case_draft *draft); /* bench is set */
void case_draft_release(struct case_draft *draft);

/* Sets option i from text; a list for a list option. 0 or -EINVAL with error. */
int case_draft_set(struct case_draft *draft, size_t i, const char *text, char *error, size_t len);

/* Takes out options that were given and apply to no combination. 0, or -EINVAL with error
 * where that is a mistake: the suite's defaults did not set the option, and it does not depend on
 * this machine. */
int case_draft_prune(struct case_draft *draft, char *error, size_t len);

/* Appends all combinations to the suite. An option that does not apply to one is not part of it, so
 * that no combination stands twice. Two options given as `gpus` make the pairs of different GPUs.
 * Without a GPU (or, for pairs, without another one) one case stands for all that ask for one.
 * 0, or -EINVAL with error. */
int case_draft_expand(struct case_draft *draft, struct suite *suite, char *error, size_t len);

/* Cases that measure the same become the first of them, with the most repeats that any of them has;
 * forgets what the cases mean. */
void suite_unite(struct suite *suite);

/* ---- Options of a case ---- */

/* Keys of a case that are the harness' own. */
bool suite_key_is_own(const char *key);
/* SIZE_MAX: there is no such option, or a suite may not set it. */
size_t suite_option_index(const struct bench_info *b, const char *key);

/* Is a list option that a case does not name left to the benchmark? The communicators of a group
 * are measured in one launch, and this machine does not know how many ranks the hosts have. */
bool suite_option_is_left(const struct bench_info *b, size_t i);

/* All: 0, or -errno with the error in the document. */
int suite_option_read(struct case_draft *draft, struct yaml_value key, const char *name,
                      struct yaml_value value);
/* `shapes: NAME` stands for the option --shape with every shape of configs/shapes/NAME.yaml. */
int suite_shapes_read(struct case_draft *draft, struct yaml_value value, const char *configs);

/* ---- Shapes ---- */

/*
 * Named sets of matrix products: the layers of real models, from configs/shapes/NAME.yaml. The gemm
 * benchmark takes shapes as --shape MxNxK; a suite says "shapes: NAME" and the harness expands the
 * name with this module.
 *
 * A file (docs/limits.md shows one):
 *
 *   name, about, source   texts; name is the file's own name without ".yaml"
 *   unit, units           what m counts by ("token", "image") and how many of them to measure, e.g.
 *                         [1, 128, 2048]
 *   shapes                list of {name, m, n, k, count}: C[m x n] += A[m x k] B[k x n], m for ONE
 *                         unit; count is how often the product occurs in one pass of the model
 *
 * The set holds every shape for every number of units, units in the outer loop.
 */
struct shape {
    const char *name;
    int64_t units;   /* tokens, images */
    int64_t m, n, k; /* m for all units together */
    int64_t count;
};

struct shape_set {
    const char *name, *about, *source, *unit;
    struct shape *shapes;
    size_t count;
    void *owner; /* keeps the texts alive */
};

/* Reads one file. On success *out is to be freed with shapes_free(); on error it is zeroed and err
 * holds "file:line: what". 0 or -errno (-EINVAL for what the file says). */
int shapes_load(const char *path, struct shape_set *out, char *err, size_t errlen);
/* The same from memory; name stands in the messages. */
int shapes_load_buffer(const char *name, const void *data, size_t len, struct shape_set *out,
                       char *err, size_t errlen);
void shapes_free(struct shape_set *set);

/* "MxNxK", as the option --shape takes it. Returns as snprintf(). */
int shape_text(const struct shape *shape, char *buf, size_t size);

/* Words of a suite that stand for what this machine has: `gpus` every GPU ("cuda:0", "cuda:1",
 * ...), `gpu` the first one, `all-gpus` all at once ("cuda:all"), `nodes` every NUMA node ("node0",
 * ...). The GPUs are those that the benchmark names when it describes itself, so that a suite and its benchmarks see the same ones,
 * in the same order. They are meant for options that take places: `device`, `source`,
 * `destination`. */

/* Stands in a case where there is no GPU, so that the run says why in one row. */
#define PLACES_NO_GPU       "cuda:0"
#define PLACES_ALL_GPUS     "cuda:all"
#define PLACES_NO_OTHER_GPU "cuda:1"

/* GPUs of which one at least works: those that fail are counted too, since they give a row each. 0
 * where none works. */
size_t places_gpu_count(const struct bench_info *b);
/* The number of a GPU among those of the benchmark, from 0; SIZE_MAX: it is none of them. */
size_t places_gpu_number(const struct bench_info *b, const char *name);
/* Does the benchmark say that this GPU is a stand-in? */
bool places_gpu_is_simulated(const struct bench_info *b, const char *name);
/* Where GPU `number` stands when all are sorted by PCI address: neighbours on the bus are
 * neighbours there. Without addresses: number itself. */
size_t places_gpu_rank(const struct bench_info *b, size_t number);

/* Does an option of this type take places? Numbers and choices have no use for these words. */
bool places_taken_by(const struct opt *opt);

/*
 * Which pairs of GPUs a plan takes where there are too many for all of them.
 *
 * Up to PAIRS_ALL GPUs: every one of the n (n - 1). Above: of the GPUs in the order of the bus,
 * each with the next one (that is where a shared switch is, and the step to the next switch), each
 * with the one half way round (far), and further ones drawn by the seed: PAIRS_SAMPLED in all, or 8
 * more than the fixed ones where those are as many. So every GPU is twice a source and twice a
 * destination, and the same seed gives the same pairs.
 */

#define PAIRS_ALL     8
#define PAIRS_SAMPLED 40

/* taken: n x n, [from * n + to], to be freed. *count is how many. */
bool *pairs_choose(unsigned n, uint64_t seed, unsigned *count);

#endif
