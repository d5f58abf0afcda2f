/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gradients of a model, as training sums them: fused to buckets, one call each.
 *
 * A model is a file configs/models/NAME.csv: comments that name its source, the line
 * "layer,parameters", then a line for each tensor of parameters in the order of the forward pass.
 *
 * Gradients come in the reverse of that order, and a bucket takes them as they come until it holds
 * at least `bucket_bytes`; a tensor is never divided, so that a bucket is as large as that or
 * larger, but for the last. This is the rule of PyTorch's DistributedDataParallel (reducer.cpp: the
 * tensor that reaches bucket_cap_mb, 25 MiB unless told, is still in the bucket that it closes),
 * without its first bucket, which is smaller (1 MiB), and without the new order in which it lays
 * out the buckets after the first step.
 */
#ifndef PLUMB_BENCHES_ALLREDUCE_BUCKETS_H
#define PLUMB_BENCHES_ALLREDUCE_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

#include "core/collective/collective.h"

#define MODEL_LAYERS_MAX COLLECTIVE_CALLS_MAX /* each may be a bucket of its own */
#define MODEL_NAME_MAX   64

struct model {
    char name[MODEL_NAME_MAX]; /* of the file, without folder and ending */
    uint64_t *layers;          /* parameters of each tensor, in the order of the forward pass */
    size_t n_layers;
    uint64_t parameters; /* their sum */
};

/* Reads a model. `name` is that of a file in the folder models of $PLUMB_CONFIGS, else of the first
 * of these that has it: ./configs, and beside the program ../../configs, ../share/plumbline/configs
 * and ../configs; or a path, which has a '/' or ends in ".csv". 0, or -errno with a sentence in
 * error: -ENOENT: no such model; -EBADMSG: not a file of this kind; -E2BIG: more than
 * MODEL_LAYERS_MAX tensors. Release it in any case. */
int buckets_load(const char *name, struct model *m, char *error, size_t len);
void buckets_release(struct model *m);

/* One call for each bucket: element 0 is the first gradient that comes, each call begins where the
 * one before ended, and together they are all of the model. bucket_bytes 0: each tensor by itself.
 * *n calls; 0, -EINVAL (element_bytes is 0), -E2BIG: there are more than `most`. */
int buckets_fuse(const struct model *m, size_t element_bytes, uint64_t bucket_bytes,
                 struct collective_call *calls, size_t most, size_t *n);

#endif
