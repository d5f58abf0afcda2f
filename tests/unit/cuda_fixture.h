/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA module under test: over the simulated device of tests/sim, or a real one. */
#ifndef PLUMB_TESTS_UNIT_CUDA_FIXTURE_H
#define PLUMB_TESTS_UNIT_CUDA_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/gpu/gpu.h"

/* Over the real driver and its GPUs, rather than simulated ones: PLUMB_TEST_GPU=real. */
bool cuda_fixture_real(void);

/* Leads the module to the simulated machine of tests/sim/machines, for this process. What is missing
 * is said, and false. */
bool cuda_fixture_simulate(const char *machine);
bool cuda_fixture_module(void); /* the module alone; the same */

/* Runs fn(arg, text, len) in a process of its own, with what it sets there; its text comes back. A
 * driver is started once in a process. Fails the test where the process does. */
void cuda_fixture_child(void (*fn)(void *arg, char *text, size_t len), void *arg, char *text,
                        size_t len);

#endif
