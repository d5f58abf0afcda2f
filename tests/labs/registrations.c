/* SPDX-License-Identifier: Apache-2.0 */
/* To be preloaded: each registration of memory for RDMA, as the library is asked for it, is a line
 * "BYTES ACCESS" of the file $REGISTRATIONS. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *reg_fn(void *pd, void *at, size_t bytes, uint64_t iova, unsigned access);

void *ibv_reg_mr_iova2(void *pd, void *at, size_t bytes, uint64_t iova, unsigned access);

void *ibv_reg_mr_iova2(void *pd, void *at, size_t bytes, uint64_t iova, unsigned access)
{
    /* A module opened it for itself alone, so RTLD_NEXT does not have it. */
    void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
    FILE *out = fopen(getenv("REGISTRATIONS"), "ae");
    reg_fn *real;

    *(void **)&real = dlsym(library, "ibv_reg_mr_iova2");
    if (out) {
        fprintf(out, "%zu 0x%x\n", bytes, access);
        fclose(out);
    }
    return real(pd, at, bytes, iova, access);
}
