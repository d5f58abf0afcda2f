/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the simulated libcublasLt.so. */
#ifndef PLUMB_TESTS_SIM_LT_H
#define PLUMB_TESTS_SIM_LT_H

#include "tests/sim/task.h"

#include <cublasLt.h>
#include <stdbool.h>

extern const char plumb_simulated[];

/* One type of numbers. */
enum lt_type { LT_F64, LT_F32, LT_F16, LT_BF16, LT_E4M3, LT_E5M2, LT_S8, LT_S32, LT_TYPES };

bool lt_type_of(cudaDataType_t type, enum lt_type *out);
unsigned lt_bytes(enum lt_type type);
double lt_read(enum lt_type type, const void *at, uint64_t index);
void lt_write(enum lt_type type, void *at, uint64_t index, double value); /* to the nearest even */
double lt_tf32(double value);

struct lt_product { /* what the result hangs on; columns first */
    uint64_t m, n, k, lda, ldb, ldc;
    double alpha, beta;
    uint32_t a, b, c; /* enum lt_type */
    uint32_t trans_a, trans_b, tf32;
};

void lt_product_run(const void *args, void *const at[SIM_RANGES]);

struct lt_desc {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    int32_t trans_a, trans_b;
    int8_t fast;
};

struct lt_layout {
    cudaDataType_t type;
    uint64_t rows, cols;
    int64_t ld;
};

struct lt_preference {
    uint64_t workspace_bytes;
    uint32_t schemes; /* of adding up the parts of a sum: a mask */
};

/* Whether the real one would compute it on such a device; the product, and its speed in TFLOP/s. */
cublasStatus_t lt_check(const struct sim_machine *machine, unsigned gpu, const struct lt_desc *desc,
                        const struct lt_layout *a, const struct lt_layout *b,
                        const struct lt_layout *c, struct lt_product *product, double *tflops);

/* The driver's side; false: the libcuda.so.1 of this process is not the simulated one. */
struct lt_driver {
    const struct sim_machine *machine;
    CUresult (*submit)(CUstream, const struct sim_task *);
    int gpu; /* the current one */
};
bool lt_driver(struct lt_driver *driver);

#endif
