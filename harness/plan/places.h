/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of a suite that stand for what this machine has: `gpus` every GPU ("cuda:0", "cuda:1",
 * ...), `gpu` the first one, `nodes` every NUMA node ("node0", ...). The GPUs are those that the
 * benchmark names when it describes itself, so that a suite and its benchmarks see the same ones,
 * in the same order. They are meant for options that take places: `device`, `source`,
 * `destination`.
 */
#ifndef PLUMB_HARNESS_PLACES_H
#define PLUMB_HARNESS_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/plan/bench_info.h"
#include "harness/text.h"

/* Stands in a case where there is no GPU, so that the run says why in one row. */
#define PLACES_NO_GPU       "cuda:0"
#define PLACES_NO_OTHER_GPU "cuda:1"

struct places_read {
    bool word;      /* a word stands in the text */
    bool every_gpu; /* `gpus` stands in the text */
    bool no_gpu;    /* it asks for GPUs, and there is none */
};

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

/* A comma-separated list with the words replaced, and a GPU's other names by its one name. 0 or
 * -ENOMEM; *out is the caller's to release. */
int places_expand(const struct bench_info *b, const char *text, struct buffer *out,
                  struct places_read *read);

/* ---- Pairs ---- */

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

/* taken: n x n, [from * n + to], to be freed; NULL when memory is short. *count is how many. */
bool *pairs_choose(unsigned n, uint64_t seed, unsigned *count);

#endif
