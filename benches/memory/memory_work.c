/* SPDX-License-Identifier: Apache-2.0 */
/* What memory's devices share: see memory_work.h. */
#include "benches/memory/memory_work.h"

#include <errno.h>
#include <stdlib.h>

const char *const memory_ops[] = {"read", "write", "copy",    "scale",
                                  "add",  "triad", "latency", NULL};
const char *const memory_types[] = {"f32", "f64", NULL};
const char *const memory_stores[] = {"regular", "nt", NULL};
const char *const memory_pages[] = {"base", "thp", "hugetlb", NULL};
const char *const memory_isas[] = {"auto", "avx512", "avx2", "sse2", "neon", "generic", NULL};
const char *const memory_launches[] = {"both", "tuned", "plain", NULL};
const char *const memory_engines[] = {"kernel", "driver", NULL};
const char *const memory_injects[] = {"none", "corrupt", NULL};

int memory_open(struct point *ctx)
{
    ctx->bench_state = calloc(1, sizeof(struct memory_session));
    return ctx->bench_state ? 0 : -ENOMEM;
}

void memory_close(struct point *ctx)
{
    struct memory_session *session = ctx->bench_state;

    ceilings_release(&session->ceilings);
    gpu_tunings_release(&session->tunings);
    free(session);
}
