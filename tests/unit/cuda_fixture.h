/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA module under test: over the simulated device of tests/sim, or a real one. */
#ifndef PLUMB_TESTS_UNIT_CUDA_FIXTURE_H
#define PLUMB_TESTS_UNIT_CUDA_FIXTURE_H

#include "core/hw/gpu.h"
#include "tests/unit/unit.h"

/* Over the real driver and its GPUs, rather than simulated ones: PLUMB_TEST_GPU=real. */
bool cuda_fixture_real(void);

/* Leads the module to the simulated machine of tests/sim/machines, for this process. What is missing
 * is said, and false. */
bool cuda_fixture_simulate(const char *machine);
bool cuda_fixture_module(void); /* the module alone; the same */

/* Fails the test where a call of the module does; `bed` has the GPU that was called. */
#define OK(bed, call)                                                                              \
    do {                                                                                           \
        int ok_err = (call);                                                                       \
        if (ok_err)                                                                                \
            fail_msg("%s: %d: %s", #call, ok_err, gpu_error((bed)->gpu));                          \
    } while (0)

/* What a test of the module stands on: GPU 0 and a stream of its own. */
struct cuda_fixture {
    struct gpus *gpus;
    const struct gpu_ops *ops; /* NULL: it was not opened */
    struct gpu *gpu;
    struct gpu_stream *stream;
};

/* Over cuda_fixture_simulate(machine). 0, also where what it needs is not here (then ops is NULL), or
 * -1: it is, and does not start. */
int cuda_fixture_open(const char *machine, struct cuda_fixture *f);
void cuda_fixture_close(struct cuda_fixture *f);

/* Runs fn(arg, text, len) in a process of its own, with what it sets there; its text comes back. A
 * driver is started once in a process. Fails the test where the process does. */
void cuda_fixture_child(void (*fn)(void *arg, char *text, size_t len), void *arg, char *text,
                        size_t len);

#endif
