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

/* What updates the parameters: an option's choices, ended by NULL. */
enum model_update { UPDATE_NONE, UPDATE_SGD, UPDATE_ADAM, UPDATE_KINDS };
extern const char *const model_update_names[UPDATE_KINDS + 1];
enum model_update model_update_find(const char *name); /* "": UPDATE_NONE */

/* Bytes that the update of a parameter moves: sgd reads gradient and parameter, and writes the
 * parameter; adam also reads and writes two moments. The gradient is of the type. Parameters and
 * moments are, too, but f32 where the type has less than 4 bytes: then the parameter is written a
 * second time, in the type. sgd, adam: types of 4 and 2 bytes 12, 28; of 8 24, 56; of 1 10, 26. */
double model_update_bytes(enum model_update update, double element_bytes);
/* That it keeps. adam: two moments of f32, 8; of types of 8 bytes 16. Types of less than 4 bytes:
 * parameters in f32, too: 4, with sgd as with adam. With bf16 and adam this is the K = 12 of ZeRO
 * (arXiv:1910.02054, section 3.1). */
double model_state_bytes(enum model_update update, double element_bytes);

/*
 * What a rank keeps in its memory, in bytes. Of P parameters of its layers, of e bytes each, of which
 * n data-parallel ranks have the same:
 *
 *   parameters    e P; with ZeRO 3 e P / n. Groups that are gathered come on top
 *   gradients     e P; from ZeRO 2 on e P / n
 *   update        model_state_bytes() x P; from ZeRO 1 on 1/n of it
 *   activations   e times all outputs that the model's file has for a sample, times the samples of a
 *                 micro-batch, times the micro-batches whose backward pass is still to come. Outputs
 *                 of a `column` layer are divided by tensor parallelism
 *   tables        lie on one rank each. They have gradients of the rows that were looked up, and no
 *                 state: they are updated by plain SGD
 */
struct model_kept {
    double element_bytes, state_bytes;
    unsigned zero;
    double parameters, shared; /* P; P / n */
    double tables, rows;       /* numbers of tables, and of the rows of them that were looked up */
    double outputs;            /* of all samples that are on their way */
};
struct model_memory {
    double parameters, gradients, update, activations;
};
struct model_memory model_memory(const struct model_kept *k);
double model_memory_all(const struct model_memory *m);

#endif
