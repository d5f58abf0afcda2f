/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of deep learning as data: what one step of training computes, keeps and sums. No
 * framework, and no weights.
 *
 * A model is a file configs/models/NAME.csv. Comments (#) name its sources. Then come lines
 * `key,value`, all of which may be left out:
 *
 *   unit       what a sample is: image, sequence, sample (the default)
 *   sequence   tokens of a sequence, where the user names no other number
 *   experts    how many experts a layer of kind `expert` has
 *
 * then the names of columns, and a line for each tensor of parameters, in the order of the forward
 * pass. A line may also be an operation without parameters, as pooling. Empty cells at the end may be left out.
 *
 *   block       pipelines are cut between blocks; they count up. "1..24": the lines that have it,
 *               one after another, are repeated for each of these blocks, and {} in their names is
 *               0, 1, ...
 *   layer       its name
 *   parameters  trainable numbers; of all experts
 *   m n k       the forward product of one sample: (m x k) by (k x n); convolutions as im2col.
 *               m, n and k are numbers, S (tokens of the sequence), or products: 2*S
 *   count       how many such products; 1
 *   backward    how many products of that size the backward pass has: 2 (for the gradients of the
 *               input and of the parameters), and 1 where the input is data
 *   output      numbers of a sample that are kept for the backward pass; the last of a block also
 *               goes to the next stage of a pipeline
 *   kind        dense (the default), expert: one of `experts` that each token chooses, m is of all
 *               together; table: rows of it are looked up. It lies on one rank, and its gradient
 *               is sparse and is never summed over all ranks
 *   split       tensor parallelism (M. Shoeybi and others, Megatron-LM, arXiv:1909.08053): column
 *               or row: each rank has a part of it; empty: each rank has all of it
 *   sum         numbers of a sample that the ranks of a tensor-parallel group sum: of `row` after
 *               its forward pass, of `column` after its backward pass
 *
 * Only layer and parameters must be there. One forward pass takes 2 m n k operations a product.
 */
#ifndef PLUMB_CORE_MODEL_H
#define PLUMB_CORE_MODEL_H

#include <stddef.h>
#include <stdint.h>

#define MODEL_LAYERS_MAX 4096
#define MODEL_NAME_MAX   64
#define MODEL_BLOCKS_MAX 1024

enum model_kind { MODEL_DENSE, MODEL_EXPERT, MODEL_TABLE, MODEL_KINDS };
enum model_split { MODEL_WHOLE, MODEL_COLUMN, MODEL_ROW, MODEL_SPLITS };

/* factor x tokens^power; 0 where the file has nothing */
struct model_size {
    uint64_t factor;
    unsigned power;
};

struct model_layer {
    char name[MODEL_NAME_MAX];
    unsigned block;
    uint64_t parameters;
    struct model_size m, n, k; /* all 0: it has no product */
    uint64_t count;
    unsigned backward;
    struct model_size output, sum;
    enum model_kind kind;
    enum model_split split;
};

struct model {
    char name[MODEL_NAME_MAX]; /* of the file, without folder and ending */
    char unit[16];
    uint64_t sequence; /* 0: it has no sequences */
    uint64_t experts;  /* 0: it has none */
    struct model_layer *layers;
    size_t n_layers;
    uint64_t parameters; /* the sum of all */
};

/* Reads a model. `name` is that of a file in the folder models of $PLUMB_CONFIGS, else of the first
 * of these that has it: ./configs, and beside the program ../../configs, ../share/plumbline/configs
 * and ../configs; or a path, which has a '/' or ends in ".csv". 0, or -errno with a sentence in
 * error: -ENOENT: no such model, and the sentence names those that there are; -EBADMSG: not a file
 * of this kind; -E2BIG: more than MODEL_LAYERS_MAX layers. Release it in any case. */
int model_load(const char *name, struct model *m, char *error, size_t len);
void model_release(struct model *m);

double model_size_value(struct model_size size, uint64_t sequence);
/* Floating-point operations of one sample: 2 m n k count, and `backward` times as many. */
double model_forward_flop(const struct model_layer *l, uint64_t sequence);
double model_backward_flop(const struct model_layer *l, uint64_t sequence);

#endif
