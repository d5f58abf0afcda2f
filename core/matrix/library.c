/* SPDX-License-Identifier: Apache-2.0 */
/* What the matrix libraries of the host share: see library.h. */
#include "core/matrix/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * ---- CPU features. The only place, with the loops of the benchmark's ceiling, that asks for
 * the architecture. ----
 */

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdint.h>

/* Bits of XCR0: the kernel saves these registers, so that a process may use them. */
#define XCR0_AVX    0x6u
#define XCR0_AVX512 0xe6u
#define XCR0_AMX    0x60000u

static bool bit(uint32_t word, unsigned number)
{
    return word >> number & 1;
}

void cpu_features_read(struct cpu_features *f)
{
    uint32_t a, b1, c1, d1, b7, c7, d7, a71, b, c, d, xcr0, high;

    *f = (struct cpu_features){0};
    if (!__get_cpuid(1, &a, &b1, &c1, &d1) || !bit(c1, 27))
        return; /* no XGETBV: older than AVX */
    __asm__ volatile("xgetbv" : "=a"(xcr0), "=d"(high) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d7) || (xcr0 & XCR0_AVX) != XCR0_AVX)
        return;
    if (!a || !__get_cpuid_count(7, 1, &a71, &b, &c, &d))
        a71 = 0;
    f->avx2 = bit(b7, 5);
    f->fma = bit(c1, 12);
    f->avx_vnni = bit(a71, 4);
    if ((xcr0 & XCR0_AVX512) == XCR0_AVX512) {
        f->avx512f = bit(b7, 16);
        f->avx512 = f->avx512f && bit(b7, 17) && bit(b7, 28) && bit(b7, 30) && bit(b7, 31);
        f->avx512_vnni = f->avx512 && bit(c7, 11);
        f->avx512_bf16 = f->avx512 && bit(a71, 5);
    }
    if ((xcr0 & XCR0_AMX) == XCR0_AMX) {
        f->amx_tile = bit(d7, 24);
        f->amx_bf16 = f->amx_tile && bit(d7, 22);
        f->amx_int8 = f->amx_tile && bit(d7, 25);
    }
}

#elif defined(__aarch64__)
#include <sys/auxv.h>

/* From the kernel's uapi/asm/hwcap.h. */
#define HWCAP_BIT_ASIMD   1
#define HWCAP_BIT_ASIMDDP 20
#define HWCAP_BIT_SVE     22
#define HWCAP2_BIT_I8MM   13
#define HWCAP2_BIT_BF16   14

void cpu_features_read(struct cpu_features *f)
{
    unsigned long one = getauxval(AT_HWCAP), two = getauxval(AT_HWCAP2);

    *f = (struct cpu_features){
        .neon = one >> HWCAP_BIT_ASIMD & 1,
        .dotprod = one >> HWCAP_BIT_ASIMDDP & 1,
        .sve = one >> HWCAP_BIT_SVE & 1,
        .bf16 = two >> HWCAP2_BIT_BF16 & 1,
        .i8mm = two >> HWCAP2_BIT_I8MM & 1,
    };
}

#else

void cpu_features_read(struct cpu_features *f)
{
    *f = (struct cpu_features){0};
}
#endif

const char *cpu_features_widest(const struct cpu_features *f)
{
    if (f->avx512f)
        return "avx512";
    if (f->avx2)
        return "avx2";
    if (f->sve)
        return "sve";
    return f->neon ? "neon" : "no unit that this program knows";
}

/* ---- Libraries ---- */

const struct gemm_library *const gemm_host_libraries[] = {&gemm_onednn, &gemm_openblas, NULL};

int gemm_why(char *why, int err, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, GEMM_WHY_BYTES, format, args);
    va_end(args);
    return err;
}

/* It is there, and yet dlopen() took none: not for another of the same name to stand in silently. */
static bool is_broken(const char *name, const char **text)
{
    size_t len = strlen(name);

    *text = dlerror();
    return *text && (strncmp(*text, name, len) != 0 || !strstr(*text, "No such file"));
}

void *gemm_dlopen(const char *file, const char *const *names, const char *package, int *err,
                  char *why)
{
    const char *const one[] = {file, NULL};
    const char *const *try = file ? one : names;
    const char *text = NULL;
    void *handle = NULL;

    for (; *try && !handle; try++) {
        char bundled[64];

        snprintf(bundled, sizeof(bundled), "plumb-%s", *try);
        handle = file ? NULL : dlopen(bundled, RTLD_NOW | RTLD_LOCAL);
        if (!handle && !file && is_broken(bundled, &text)) {
            *err = gemm_why(why, -ELIBACC, "the bundle's own library does not load: %s", text);
            return NULL;
        }
        handle = handle ? handle : dlopen(*try, RTLD_NOW | RTLD_LOCAL);
    }
    *err = 0;
    if (!handle && file) {
        text = dlerror();
        *err = gemm_why(why, -ELIBACC, "cannot open library '%s': %s", file, text ? text : "");
    } else if (!handle) {
        *err = gemm_why(why, -ELIBACC, "library '%s' is not here: install Debian package '%s'",
                        names[0], package);
    }
    return handle;
}

int gemm_dlsym(void *handle, const struct gemm_symbol *symbols, void *table, char *why)
{
    for (; symbols->name; symbols++) {
        void *at = dlsym(handle, symbols->name);
        if (!at && !symbols->optional)
            return gemm_why(why, -ELIBACC,
                            "this library has no function '%s': it is another one or too old",
                            symbols->name);
        memcpy((char *)table + symbols->offset, &at, sizeof(at));
    }
    return 0;
}
