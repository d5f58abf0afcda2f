/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compute of a rank as products of matrices: of the shapes that the layers of its plan have, by
 * one thread, by the first of the host's libraries that has the type. All products share their
 * operands: as much memory as the largest needs.
 *
 * The update of parameters moves as many bytes as the optimizer does, of arrays of f32: parameters,
 * gradients, and Adam's moments. It multiplies and adds, with no root and no division, which a
 * vector unit would do while it waits for memory.
 */
#ifndef PLUMB_BENCHES_STEP_PRODUCTS_H
#define PLUMB_BENCHES_STEP_PRODUCTS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "benches/step/plan.h"
#include "core/matrix/library.h"

/*
 * A layer's product of a micro-batch's samples, which lie side by side in one product; but what is
 * done for each head is as many products (model.h: count). Tensor parallelism divides n of a
 * `column` layer, k of a `row` layer, and the number of what is counted. With Y = X W, of m x k and
 * k x n, the backward pass has the gradient of X, m x k from products of length n, and the one of W,
 * k x n from products of length m; where X is data, that alone.
 */
#define STEP_PRODUCTS_MOST 2
struct step_product {
    struct gemm_shape shape;
    uint64_t count;
};
/* Of one layer, STEP_FORWARD or STEP_BACKWARD: returns how many. */
unsigned step_products(const struct step_spec *s, const struct step_layer *l, enum step_kind kind,
                       struct step_product out[STEP_PRODUCTS_MOST]);

/* Can this machine multiply what a step of this type sends? Fills in which library does, and its
 * kernels. 0; -EOPNOTSUPP, -ENODEV with why. */
int products_library(enum collective_type type, char *kernel, size_t len, char why[GEMM_WHY_BYTES]);

struct products;

/* `sharing`: ranks that share this host's memory. 0, or -errno with why. */
int products_open(struct products **p, const struct step_spec *s, const struct step_layer *layers,
                  const struct step_plan *plan, unsigned sharing, char why[GEMM_WHY_BYTES]);
/* The products of a piece of compute, or the update, `times` over, unless *stop is set meanwhile. Of one thread
 * alone: the first call makes the library ready for it. */
int products_run(struct products *p, const struct step_op *op, double times,
                 const _Atomic int *stop, char why[GEMM_WHY_BYTES]);
/* Does each of the shapes once, and holds it against f64. 0; -EBADMSG with why. */
int products_check(struct products *p, char why[GEMM_WHY_BYTES]);
void products_close(struct products *p); /* NULL is left alone */

#endif
