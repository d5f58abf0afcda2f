/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of gpu_kernels.h, by their names. */
#include "core/hw/cuda/kernels_memory.cuh"
#include "core/hw/gpu_kernels.h"

/*
 * Blocks of up to so many threads must fit into an SM's registers: with 8 accesses of two arrays in
 * flight, 1024 would not. That one block of them is enough is said too (the 1 below), or the compiler
 * spares registers for more of them and waits for some loads before it begins the others. */
#define THREADS(unroll) ((unroll) == 8 ? 512 : 1024)

#define PASS(op, suffix, type, unroll, cs)                                                         \
    extern "C" __global__ void __launch_bounds__(THREADS(unroll), 1)                               \
        op##_##suffix(const gpu_pass_args args)                                                    \
    {                                                                                              \
        pass_kernel<type, op_##op<type>, unroll, cs>(args);                                        \
    }

#define READ(suffix, unroll, cs)                                                                   \
    extern "C" __global__ void __launch_bounds__(THREADS(unroll), 1)                               \
        read_##suffix(const gpu_pass_args args)                                                    \
    {                                                                                              \
        read_kernel<unroll, cs>(args);                                                             \
    }

#define OPS(suffix, type, unroll, cs)                                                              \
    READ(suffix, unroll, cs)                                                                       \
    PASS(write, suffix, type, unroll, cs)                                                          \
    PASS(copy, suffix, type, unroll, cs)                                                           \
    PASS(scale, suffix, type, unroll, cs)                                                          \
    PASS(add, suffix, type, unroll, cs)                                                            \
    PASS(triad, suffix, type, unroll, cs)

#define UNROLLS(short_name, type)                                                                  \
    OPS(short_name##_u1, type, 1, false)                                                           \
    OPS(short_name##_u2, type, 2, false)                                                           \
    OPS(short_name##_u4, type, 4, false)                                                           \
    OPS(short_name##_u8, type, 8, false)                                                           \
    OPS(short_name##_u1_cs, type, 1, true)                                                         \
    OPS(short_name##_u2_cs, type, 2, true)                                                         \
    OPS(short_name##_u4_cs, type, 4, true)                                                         \
    OPS(short_name##_u8_cs, type, 8, true)

UNROLLS(f32, float)
UNROLLS(f64, double)

static __device__ __forceinline__ uint64_t clock_ns()
{
    uint64_t ns;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

/* Every look at *go crosses the bus to the host's memory: no need to wait between two. */
extern "C" __global__ void spin(const gpu_spin_args args)
{
    const uint64_t begin = clock_ns();

    while ((int32_t)(*args.go - args.turn) < 0) {
        if (clock_ns() - begin > args.limit_ns) {
            *(volatile uint32_t *)args.gave_up = 1;
            break;
        }
    }
}

extern "C" __global__ void empty(const gpu_empty_args)
{
}

/* A weak load through every cache, the first-level one too: the size of the set says which of them
 * answers. What it gives is the next address as it is: an index would have to be made into one, and
 * those instructions would be in the latency. The loop's own are not: they need not wait for the load. */
static __device__ __forceinline__ uint64_t hop(uint64_t at)
{
    asm volatile("ld.global.u64 %0, [%0];" : "+l"(at));
    return at;
}

/* To where the memory is: of another GPU's memory and of the host's, a weak load may be answered from lines that this GPU's
 * caches kept, L2 too. One that is relaxed at the system's scope may not. */
static __device__ __forceinline__ uint64_t hop_sys(uint64_t at)
{
    asm volatile("ld.relaxed.sys.global.u64 %0, [%0];" : "+l"(at));
    return at;
}

template <uint64_t HOP(uint64_t)> static __device__ __forceinline__ void follow(const gpu_chase_args &args)
{
    uint64_t at = (uint64_t)args.start;

    if (blockIdx.x || threadIdx.x)
        return;
#pragma unroll 1
    for (uint64_t i = args.hops / 8; i; i--) {
#pragma unroll
        for (int k = 0; k < 8; k++)
            at = HOP(at);
    }
#pragma unroll 1
    for (uint64_t i = args.hops % 8; i; i--)
        at = HOP(at);
    *args.end = at;
}

extern "C" __global__ void chase(const gpu_chase_args args)
{
    follow<hop>(args);
}

extern "C" __global__ void chase_sys(const gpu_chase_args args)
{
    follow<hop_sys>(args);
}

extern "C" __global__ void __launch_bounds__(1024, 1) copy16(const gpu_copy_args args)
{
    gpu_pass_args pass = {};

    pass.dst = args.dst;
    pass.a = args.src;
    pass.bytes = args.bytes;
    pass.passes = args.passes;
    pass_kernel<float, op_copy<float>, 4, false>(pass);
}

/* A store that the switches bring to each device of a multicast address. GPUs without it have no
 * such address either. */
static __device__ __forceinline__ void multicast_store16(vec16 *p, vec16 v)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("multimem.st.weak.global.v4.f32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(p), "f"(__uint_as_float(v.x)), "f"(__uint_as_float(v.y)),
                   "f"(__uint_as_float(v.z)), "f"(__uint_as_float(v.w))
                 : "memory");
#else
    __trap();
#endif
}

extern "C" __global__ void __launch_bounds__(1024, 1) multicast16(const gpu_copy_args args)
{
    vec16 *dst = (vec16 *)args.dst;
    const vec16 *src = (const vec16 *)args.src;
    const uint64_t n = args.bytes / 16, threads = (uint64_t)gridDim.x * blockDim.x;

    for (uint64_t pass = 0; pass < args.passes; pass++) {
        uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
        for (; i + 3 * threads < n; i += 4 * threads) {
            vec16 v[4];
#pragma unroll
            for (int k = 0; k < 4; k++)
                v[k] = load16<false>(src + i + k * threads);
#pragma unroll
            for (int k = 0; k < 4; k++)
                multicast_store16(dst + i + k * threads, v[k]);
        }
        for (; i < n; i += threads)
            multicast_store16(dst + i, load16<false>(src + i));
    }
}

extern "C" __global__ void copy1(const gpu_copy_args args)
{
    volatile unsigned char *dst = (unsigned char *)args.dst;
    const volatile unsigned char *src = (const unsigned char *)args.src;

    for (uint64_t pass = 0; pass < args.passes; pass++)
        for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < args.bytes;
             i += (uint64_t)gridDim.x * blockDim.x)
            dst[i] = src[i];
}

template <typename T> static __device__ __forceinline__ void fill_as(const gpu_fill_args &args)
{
    T *dst = (T *)args.dst;

    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < args.count;
         i += (uint64_t)gridDim.x * blockDim.x)
        dst[i] = (T)gpu_value_bits(args.type, args.kind, args.seed, args.first + i);
}

extern "C" __global__ void fill(const gpu_fill_args args)
{
    switch (gpu_value_bytes(args.type)) {
    case 8:
        fill_as<uint64_t>(args);
        break;
    case 4:
        fill_as<uint32_t>(args);
        break;
    case 2:
        fill_as<uint16_t>(args);
        break;
    default:
        fill_as<uint8_t>(args);
        break;
    }
}
