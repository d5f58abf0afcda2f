/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One entry of a suite before its lists are expanded (a draft): its options are set one by one
 * (suite_option.c), then every combination becomes a case (suite_expand.c). For the files of
 * harness/plan; others use suite.h.
 */
#ifndef PLUMB_HARNESS_SUITE_OPTION_H
#define PLUMB_HARNESS_SUITE_OPTION_H

#include <stddef.h>
#include <stdint.h>

#include "harness/plan/suite.h"
#include "harness/plan/yaml.h"

struct case_draft {
    const struct bench_info *bench;
    struct opt_values *values; /* one an option of the bench */
    bool *every_gpu;           /* the same: it was given as `gpus` */
    bool *general;             /* the same: it came with the suite's defaults */
    struct opt_values *all;    /* the same: given or by default; made with the expansion */
    unsigned *every;           /* the same: 0, or it takes each so-many-th of its default values,
                                * the last of them first; values come with expansion */
    unsigned *times;           /* the same: each of those sizes so many times over; 0: as it is */
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

int case_draft_init(struct case_draft *draft); /* bench is set; 0 or -ENOMEM */
void case_draft_release(struct case_draft *draft);

/* Sets option i from text; a list for a list option. 0 or -EINVAL with error. */
int case_draft_set(struct case_draft *draft, size_t i, const char *text, char *error, size_t len);

/* Takes out options that were given and apply to no combination. 0, -ENOMEM, or -EINVAL with error
 * where that is a mistake: the suite's defaults did not set the option, and it does not depend on
 * this machine. */
int case_draft_prune(struct case_draft *draft, char *error, size_t len);

/* Appends all combinations to the suite. An option that does not apply to one is not part of it, so
 * that no combination stands twice. Two options given as `gpus` make the pairs of different GPUs.
 * Without a GPU (or, for pairs, without another one) one case stands for all that ask for one.
 * 0, -ENOMEM, or -EINVAL with error. */
int case_draft_expand(struct case_draft *draft, struct suite *suite, char *error, size_t len);

/* Cases that measure the same become the first of them, with the most repeats that any of them has;
 * forgets what the cases mean. 0 or -ENOMEM. */
int suite_unite(struct suite *suite);

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

#endif
