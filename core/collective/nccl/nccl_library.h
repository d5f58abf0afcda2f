/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL, opened at run time: some hundred megabytes that only collectives on GPUs need. */
#ifndef PLUMB_CORE_COLLECTIVE_NCCL_NCCL_LIBRARY_H
#define PLUMB_CORE_COLLECTIVE_NCCL_NCCL_LIBRARY_H

#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* A thread for one call of a library that may never return: who asked for it looks whether it has.
 * One call at a time. */

typedef int helper_fn(void *arg);

#endif
