/* SPDX-License-Identifier: Apache-2.0 */
/* A second, independent instance of a shared library in one process. */
#ifndef PLUMB_CORE_BLAS_PRIVATE_COPY_H
#define PLUMB_CORE_BLAS_PRIVATE_COPY_H

/*
 * Opens a private copy of the library that `symbol` (an address in it) belongs to, while the
 * environment holds name=value. The copy lies in memory (memfd_create) and carries another soname,
 * so that the loader takes it for another library and never hands it out for the original; it has
 * its own state and threads and saw the environment as it was when it was loaded. The environment is put back. Costs the library's size in memory.
 *
 * NULL with *err: -errno of the copy, or -ENODEV when the loader refuses it; *why (not to be freed)
 * says what failed. Never closed.
 */
void *private_copy_open(const void *symbol, const char *name, const char *value, int *err,
                        const char **why);

#endif
