/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS' kernel sets: see openblas_core.h. */
#include "core/blas/openblas_core.h"

#include <stddef.h>
#include <strings.h>

/* Names as openblas_get_corename() gives them (driver/others/dynamic.c, dynamic_arm64.c). */
static const char *const with_avx2[] = {"Haswell", "Zen", "Excavator", NULL};
static const char *const before_avx2[] = {
    "Unknown",   "Katmai",       "Coppermine",  "Northwood",  "Prescott",    "Banias",
    "Atom",      "Core2",        "Penryn",      "Dunnington", "Nehalem",     "Athlon",
    "Opteron",   "Opteron_SSE3", "Barcelona",   "Nano",       "Sandybridge", "Bobcat",
    "Bulldozer", "Piledriver",   "Steamroller", NULL};
static const char *const without_sve[] = {"armv8",     "cortexa53", "cortexa55",  "cortexa57",
                                          "cortexa72", "cortexa73", "neoversen1", NULL};

static bool is_one_of(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (!strcasecmp(*names, name))
            return true;
    return false;
}

const char *openblas_better_core(const struct cpu_features *f, const char *current)
{
    bool old = is_one_of(before_avx2, current);

    /* Cooperlake and SapphireRapids differ from SkylakeX in bf16 alone, and every release since
     * 0.3.0 knows SkylakeX. */
    if (f->avx512 && (old || is_one_of(with_avx2, current)))
        return "SKYLAKEX";
    if (f->avx2 && f->fma && old)
        return "HASWELL";
    if (f->sve && is_one_of(without_sve, current))
        return "NEOVERSEV1";
    return NULL;
}
