/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compute of a rank as products of matrices, of the shapes that the layers of its plan have: on
 * the host by one thread, by the first of the libraries that has the type; or on the rank's GPU. All products share their
 * operands: as much memory as the largest needs.
 *
 * The update of parameters moves as many bytes as the optimizer does, of arrays of f32: parameters,
 * gradients, and Adam's moments. It multiplies and adds, with no root and no division, which a
 * vector unit would do while it waits for memory.
 */
#ifndef PLUMB_BENCHES_STEP_PRODUCTS_H
#define PLUMB_BENCHES_STEP_PRODUCTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "benches/step/plan.h"
#include "core/matrix/library.h"

/*
 * A layer's product of a micro-batch's samples, which lie side by side in one product; but what is
 * done for each head is as many products (model.h: count), and each expert of a rank has a product of
 * its part of the rows: where they cannot be equal, some have one row more. Tensor parallelism divides n of a
 * `column` layer, k of a `row` layer, and the number of what is counted. With Y = X W, of m x k and
 * k x n, the backward pass has the gradient of X, m x k from products of length n, and the one of W,
 * k x n from products of length m; where X is data, that alone.
 */
#define STEP_PRODUCTS_MOST 4
struct step_product {
    struct gemm_shape shape;
    uint64_t count;
};
/* Of one layer, STEP_FORWARD or STEP_BACKWARD: returns how many. */
unsigned step_products(const struct step_spec *s, const struct step_layer *l, enum step_kind kind,
                       struct step_product out[STEP_PRODUCTS_MOST]);

/* Can the host multiply what a step of this type sends? Fills in which library does, and its
 * kernels. 0; -EOPNOTSUPP, -ENODEV with why. */
int products_library(enum collective_type type, char *kernel, size_t len, char why[GEMM_WHY_BYTES]);

/* What a place is to make room for. */
struct products_need {
    enum collective_type type;
    const struct gemm_shape *shapes;
    size_t n;
    double updated;   /* parameters of f32, whose update moves as many bytes; 0: none are */
    bool adam;        /* else sgd */
    unsigned sharing; /* ranks that share this host's memory */
    const char *gpu;  /* PCI address of this rank's GPU */
};

/* Where products are done. All return 0, or -errno with why; all are required, but for those that
 * say otherwise. */
struct products_place {
    int (*open)(void **state, const struct products_need *need, char *why);
    void (*close)(void *state);           /* also what an open left half-way; never NULL */
    const char *(*name)(void *state);     /* "onednn 2.6.3 brg:avx512_core" */
    bool (*simulated)(const void *state); /* NULL: no */
    int (*ready)(void *state, char *why); /* by the thread that multiplies, once */
    int (*run)(void *state, size_t shape, uint64_t count, char *why); /* or queue them */
    int (*update)(void *state, char *why);
    int (*wait)(void *state, char *why); /* until all is done; NULL: it is */
    int (*check)(void *state, size_t shape, struct gemm_check *c,
                 char *why); /* once, against f64 */
};
extern const struct products_place products_on_host, products_on_gpu;

struct products;

/* 0, or -errno with why. */
int products_open(struct products **p, const struct products_place *place,
                  const struct step_spec *s, const struct step_layer *layers,
                  const struct step_plan *plan, unsigned sharing, const char *gpu,
                  char why[GEMM_WHY_BYTES]);
/* Who multiplies. */
void products_tell(const struct products *p, struct collective_report *told);
/* The products of a piece of compute, or the update, `times` over, unless *stop is set meanwhile. Of
 * one thread alone: the first call makes the place ready for it. */
int products_run(struct products *p, const struct step_op *op, double times,
                 const _Atomic int *stop, char why[GEMM_WHY_BYTES]);
/* Does each of the shapes once, and holds it against f64. 0; -EBADMSG with why. */
int products_check(struct products *p, char why[GEMM_WHY_BYTES]);
void products_close(struct products *p); /* NULL is left alone */

#endif
