/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why there is no CUDA here: what the machine's files tell of its GPUs, the kernel's driver and the
 * device nodes, made into a sentence with a remedy. Read below $PLUMB_SYSROOT where that is set.
 */
#ifndef PLUMB_CORE_HW_CUDA_REASON_H
#define PLUMB_CORE_HW_CUDA_REASON_H

#include <stddef.h>

/* libcuda.so.1 did not load; `said` is the loader's message. */
void cuda_reason_library(const char *said, char *error, size_t len);

/* cuInit failed with `code` (a CUresult), whose text is `said`. */
void cuda_reason_init(int code, const char *said, char *error, size_t len);

/* The driver is too old for this build; versions as 13000. */
void cuda_reason_version(int driver, int build, char *error, size_t len);

#endif
