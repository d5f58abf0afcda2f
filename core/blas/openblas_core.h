/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of OpenBLAS' kernel sets fits a CPU. A build for many CPUs (DYNAMIC_ARCH) chooses one when
 * it is loaded, by the CPU's family and model: a CPU that is newer than the library gets a set that
 * may use half of its vector width. OPENBLAS_CORETYPE overrides the choice.
 */
#ifndef PLUMB_CORE_BLAS_OPENBLAS_CORE_H
#define PLUMB_CORE_BLAS_OPENBLAS_CORE_H

#include "core/blas/cpu_features.h"

/* The value of OPENBLAS_CORETYPE that fits `f` better than the kernel set `current` (what
 * openblas_get_corename() says), or NULL when none is known to. A set that this table does not
 * know, one of a newer release, is never called worse. */
const char *openblas_better_core(const struct cpu_features *f, const char *current);

#endif
