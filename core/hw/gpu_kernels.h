/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels that a GPU module brings, by name, and the one argument of each: a struct, passed by
 * value. Plain C, included by the kernels themselves (CUDA C++) too; nothing but fixed-width types.
 *
 *   name                          argument            what it does
 *   spin                          gpu_spin_args       one thread waits for a word in host memory
 *   empty                         gpu_empty_args      nothing
 *   <op>_<type>_u<U>[_cs]         gpu_pass_args       a memory operation; see below
 *   chase                         gpu_chase_args      one thread follows a chain of addresses
 *   chase_sys                     gpu_chase_args      the same, by loads that no cache of this GPU answers
 *                                                     for others' memory
 *   copy16                        gpu_copy_args       copies 16 bytes a step; all of it a multiple
 *                                 of 16
 *   copy1                         gpu_copy_args       copies bytes: any length and alignment
 *   multicast16                   gpu_copy_args       copy16 to a multicast address
 *   fill                          gpu_fill_args       gpu_value_bits(), into arrays or matrices
 *
 * <op> is read, write, copy, scale, add or triad; <type> f32 or f64; U in 1, 2, 4, 8 is how many
 * 16-byte accesses a thread has in flight; _cs marks stores and loads as streaming (evict first).
 * All threads of the grid go over the arrays together (a grid-stride loop), so that any grid does.
 * Their loads go round the first-level cache: a pass over a set that L2 holds is served by L2.
 * Those of `chase` go through every cache. In a chain, nothing but a load is between one and the next.
 */
#ifndef PLUMB_CORE_HW_GPU_KERNELS_H
#define PLUMB_CORE_HW_GPU_KERNELS_H

#include <stdint.h>
#include <string.h>

struct gpu_spin_args {
    const volatile uint32_t *go; /* waits until it is `turn` or beyond (signed difference) */
    uint32_t turn;
    uint32_t *gave_up; /* set to 1 when it waited longer than limit_ns */
    uint64_t limit_ns;
};

struct gpu_empty_args {
    uint64_t unused;
};

/* write: dst = s; copy: dst = a; scale: dst = s a; add: dst = a + b; triad: dst = a + s b, rounded
 * once (fused). read: the 32-bit words of a, added as unsigned 64-bit numbers, passes times over;
 * the grid adds its sum to *sum. */
struct gpu_pass_args {
    void *dst;
    const void *a, *b;
    uint64_t bytes; /* of each array; a multiple of 16 */
    uint64_t passes;
    double scalar;
    uint64_t *sum;
};

/* Each 8-byte word of the chain holds the address of the next one, as the device sees it; `hops`
 * loads from the word at `start` on, then the address that the last one gave goes to *end. */
struct gpu_chase_args {
    const uint64_t *start;
    uint64_t hops;
    uint64_t *end;
};

struct gpu_copy_args {
    void *dst;
    const void *src;
    uint64_t bytes;
    uint64_t passes;
};

struct gpu_fill_args {
    void *dst;
    uint64_t count; /* elements */
    uint64_t first; /* number of the first one */
    uint64_t seed;
    uint32_t type; /* enum gpu_value */
    uint32_t kind; /* enum gpu_data */
};

#define GPU_KERNEL_UNROLLS 4 /* 1, 2, 4, 8 */

/* Data as a pure function of its position: element i of an array with some seed. The same code
 * makes it on the host and on a GPU (this header is also CUDA C++), bit for bit, so that gigabytes
 * need not be carried over to be filled or checked. */

#ifdef __CUDACC__
#define GPU_BOTH __host__ __device__ static inline
#else
#define GPU_BOTH static inline
#endif

enum gpu_value {
    GPU_U64,
    GPU_F64,
    GPU_F32,
    GPU_F16,
    GPU_BF16,
    GPU_E4M3,
    GPU_E5M2,
    GPU_S8,
    GPU_VALUES
};

enum gpu_data {
    GPU_RANDOM, /* floating types: uniform on a grid in (-1, 1), never 0; s8: -127..127; u64: any */
    GPU_ZEROS,  /* draws less power: faster than any real data */
};

/* The bytes of an element. */
GPU_BOTH unsigned gpu_value_bytes(uint32_t type)
{
    return type <= GPU_F64 ? 8 : type == GPU_F32 ? 4 : type <= GPU_BF16 ? 2 : 1;
}

/* splitmix64 (Steele, Lea, Flood 2014) of a position: every bit of the result hangs on every bit of
 * both. */
GPU_BOTH uint64_t gpu_hash(uint64_t seed, uint64_t i)
{
    uint64_t z = seed * 0xd1342543de82ef95u + i * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Binary floating types by their widths: sign, exponent of `ebits` with this bias, fraction of
 * `fbits`. */
struct gpu_float_form {
    int fbits, bias;
    int sign_at;
};

GPU_BOTH struct gpu_float_form gpu_float_form(uint32_t type)
{
    struct gpu_float_form f = {23, 127, 31};

    if (type == GPU_F64) {
        f.fbits = 52, f.bias = 1023, f.sign_at = 63;
    } else if (type == GPU_F16) {
        f.fbits = 10, f.bias = 15, f.sign_at = 15;
    } else if (type == GPU_BF16) {
        f.fbits = 7, f.bias = 127, f.sign_at = 15;
    } else if (type == GPU_E4M3) {
        f.fbits = 3, f.bias = 7, f.sign_at = 7;
    } else if (type == GPU_E5M2) {
        f.fbits = 2, f.bias = 15, f.sign_at = 7;
    }
    return f;
}

/*
 * The bits of element i. A floating one gets a random sign and a random fraction; its exponent is
 * -1 - (number of zeros that lead a random word, at most 5): the density of a uniform number in
 * (-1, 1), cut off below 2^-6, exact in every type here without rounding. */
GPU_BOTH uint64_t gpu_value_bits(uint32_t type, uint32_t kind, uint64_t seed, uint64_t i)
{
    uint64_t h = gpu_hash(seed, i), fraction;
    struct gpu_float_form f;
    int exponent = 1;

    if (kind == GPU_ZEROS)
        return 0;
    if (type == GPU_U64)
        return h;
    if (type == GPU_S8)
        return (uint8_t)(int8_t)((int)(h % 255) - 127);
    f = gpu_float_form(type);
    while (exponent < 6 && !(h >> (57 + exponent) & 1)) /* bits 58 to 62 */
        exponent++;
    fraction = h & ((UINT64_C(1) << f.fbits) - 1); /* bits 0 to 51 */
    return (h >> 63) << f.sign_at | (uint64_t)(f.bias - exponent) << f.fbits | fraction;
}

/* The value of such bits, exact in a double. */
GPU_BOTH double gpu_value_of_bits(uint32_t type, uint64_t bits)
{
    struct gpu_float_form f;
    uint64_t wide;
    double value;
    int exponent;

    if (type == GPU_U64)
        return (double)bits;
    if (type == GPU_S8)
        return (double)(int8_t)bits;
    f = gpu_float_form(type);
    exponent = (int)(bits >> f.fbits & ((UINT64_C(1) << (f.sign_at - f.fbits)) - 1));
    if (!exponent) /* the smallest numbers are not made here */
        return 0;
    wide = (bits >> f.sign_at & 1) << 63 | (uint64_t)(exponent - f.bias + 1023) << 52 |
           (bits & ((UINT64_C(1) << f.fbits) - 1)) << (52 - f.fbits);
    memcpy(&value, &wide, sizeof(value));
    return value;
}

#endif
