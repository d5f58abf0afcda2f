/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of memory's bandwidth on a GPU: one kernel in one launch shape, or the driver's copy or set;
 * and how a shape is chosen. */
#ifndef PLUMB_BENCHES_MEMORY_GPU_MEMORY_RUN_H
#define PLUMB_BENCHES_MEMORY_GPU_MEMORY_RUN_H

#include "benches/memory/gpu_arrays.h"
#include "benches/memory/gpu_memory.h"
#include "core/hw/gpu_time.h"

struct gpu_passes {
    const struct memory_params *params;
    struct gpu *gpu;
    struct gpu_timer timer;
    struct gpu_arrays arrays;
    bool inside; /* all passes of a run are inside one launch */
    uint64_t tune_passes;
};

/* One row: a kernel with its shape, or the driver. */
struct gpu_variant {
    const char *name; /* of the launch: "tuned", "plain"; "": the driver's */
    struct gpu_shape shape;
    char text[64];             /* of the shape */
    struct gpu_kernel *kernel; /* NULL: the driver's */
    double scalar;             /* of the last run */
};

/* The timed thing: so many passes. 0, or -errno with the reason in gpu_error(). */
int gpu_variant_run(struct gpu_passes *m, const struct gpu_variant *v, uint64_t passes,
                    uint64_t *ns);

/* The shape and the kernel of a variant, by its name; the tuned one is searched for once in a process.
 * A remark in the reason where the search was cut short. Errors as above. */
int gpu_variant_choose(struct point *pt, struct gpu_passes *m, struct gpu_variant *v);

#endif
