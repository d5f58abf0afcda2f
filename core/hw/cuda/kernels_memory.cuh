/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory operations: 16 bytes a step, U of them in flight per thread. A block takes a tile of U times
 * its threads, the grid the tiles in turn, and what is left over is taken one step at a time.
 *
 * Loads and stores are written down as instructions: what the compiler loads itself it may keep in a
 * register from one pass to the next, and then nothing would be read again. Loads go round the
 * first-level cache (cg; a plain streaming load, ld.cs, would not); CS marks lines as the first that L2
 * evicts. Loops are not unrolled: compilers would, until registers spill.
 */
#include "core/hw/gpu_kernels.h"

struct vec16 {
    unsigned x, y, z, w;
};

/* What L2 does with lines that are used once, where the GPU can be told (8.0 and newer). */
__device__ __forceinline__ uint64_t evict_first()
{
    uint64_t policy = 0;

#if __CUDA_ARCH__ >= 800
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#endif
    return policy;
}

template <bool CS> __device__ __forceinline__ vec16 load16(const vec16 *p)
{
    vec16 v;

#if __CUDA_ARCH__ >= 800
    if (CS) {
        asm volatile("ld.global.cg.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(p), "l"(evict_first()));
        return v;
    }
#endif
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    return v;
}

template <bool CS> __device__ __forceinline__ void store16(vec16 *p, vec16 v)
{
    if (CS)
        asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};"
                     :
                     : "l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                     : "memory");
    else
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                     :
                     : "l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                     : "memory");
}

/* 16 bytes as numbers, and back. */
template <typename T> union numbers16 {
    vec16 v;
    T t[16 / sizeof(T)];
};

__device__ __forceinline__ float fused(float a, float s, float b)
{
    return fmaf(s, b, a);
}

__device__ __forceinline__ double fused(double a, double s, double b)
{
    return fma(s, b, a);
}

/* What each operation does with 16 bytes of its arrays; A and B say which it reads. */
template <typename T> struct op_write {
    static const bool A = false, B = false;
    static __device__ __forceinline__ T of(T, T, T s)
    {
        return s;
    }
};

template <typename T> struct op_copy {
    static const bool A = true, B = false;
    static __device__ __forceinline__ T of(T a, T, T)
    {
        return a;
    }
};

template <typename T> struct op_scale {
    static const bool A = true, B = false;
    static __device__ __forceinline__ T of(T a, T, T s)
    {
        return s * a;
    }
};

template <typename T> struct op_add {
    static const bool A = true, B = true;
    static __device__ __forceinline__ T of(T a, T b, T)
    {
        return a + b;
    }
};

template <typename T> struct op_triad {
    static const bool A = true, B = true;
    static __device__ __forceinline__ T of(T a, T b, T s)
    {
        return fused(a, s, b);
    }
};

template <typename T, typename OP> __device__ __forceinline__ vec16 apply(vec16 a, vec16 b, T s)
{
    numbers16<T> x, y, r;

    x.v = a;
    y.v = b;
#pragma unroll
    for (int i = 0; i < (int)(16 / sizeof(T)); i++)
        r.t[i] = OP::of(x.t[i], y.t[i], s);
    return r.v;
}

/* N steps that lie `apart` from each other: all loads, then all stores. */
template <typename T, typename OP, int N, bool CS>
__device__ __forceinline__ void steps(vec16 *dst, const vec16 *a, const vec16 *b, uint64_t at,
                                      uint64_t apart, T s)
{
    vec16 va[N] = {}, vb[N] = {};

#pragma unroll
    for (int u = 0; u < N; u++) {
        if (OP::A)
            va[u] = load16<CS>(a + at + u * apart);
        if (OP::B)
            vb[u] = load16<CS>(b + at + u * apart);
    }
#pragma unroll
    for (int u = 0; u < N; u++)
        store16<CS>(dst + at + u * apart, apply<T, OP>(va[u], vb[u], s));
}

/* A 64-bit division is some hundred instructions. A step at a time has no tiles, and so none: the loop over what is left over is then all of
 * the kernel, as one writes it first. */
template <int U> __device__ __forceinline__ uint64_t whole_tiles(uint64_t count, uint64_t tile)
{
    return U == 1 ? 0 : count / tile;
}

template <typename T, typename OP, int U, bool CS>
__device__ __forceinline__ void pass_kernel(const gpu_pass_args &args)
{
    vec16 *dst = (vec16 *)args.dst;
    const vec16 *a = (const vec16 *)args.a, *b = (const vec16 *)args.b;
    const uint64_t count = args.bytes / 16, tile = (uint64_t)U * blockDim.x;
    const uint64_t whole = whole_tiles<U>(count, tile);
    const T s = (T)args.scalar;

#pragma unroll 1
    for (uint64_t pass = 0; pass < args.passes; pass++) {
#pragma unroll 1
        for (uint64_t t = blockIdx.x; t < whole; t += gridDim.x)
            steps<T, OP, U, CS>(dst, a, b, t * tile + threadIdx.x, blockDim.x, s);
#pragma unroll 1
        for (uint64_t i = whole * tile + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
             i += (uint64_t)gridDim.x * blockDim.x)
            steps<T, OP, 1, CS>(dst, a, b, i, 0, s);
    }
}

/* Adds up over the threads of a warp, of which the last of a block may have fewer than 32; the sum is
 * the first thread's. */
__device__ __forceinline__ unsigned long long warp_sum(unsigned long long sum)
{
    const unsigned lane = threadIdx.x % 32, left = blockDim.x - threadIdx.x / 32 * 32;
    const unsigned lanes = left < 32 ? left : 32, mask = lanes == 32 ? ~0u : (1u << lanes) - 1;

    for (unsigned off = 16; off; off /= 2) {
        unsigned long long other = __shfl_down_sync(mask, sum, off);
        if (lane + off < lanes)
            sum += other;
    }
    return sum;
}

/* One atomic addition for the whole block: one for each warp would make a short pass longer. */
__device__ __forceinline__ void add_block_sum(unsigned long long *total, unsigned long long sum)
{
    __shared__ unsigned long long of_warp[32];
    const unsigned warps = (blockDim.x + 31) / 32;

    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x)
        return;
#pragma unroll 1 /* unrolled, it would take registers that fewer threads then have: reads in flight, lost */
    for (unsigned i = 1; i < warps; i++)
        sum += of_warp[i];
    atomicAdd(total, sum);
}

template <int N, bool CS>
__device__ __forceinline__ unsigned long long read_steps(const vec16 *a, uint64_t at,
                                                         uint64_t apart)
{
    vec16 v[N];
    unsigned long long sum = 0;

#pragma unroll
    for (int u = 0; u < N; u++)
        v[u] = load16<CS>(a + at + u * apart);
#pragma unroll
    for (int u = 0; u < N; u++)
        sum += (unsigned long long)v[u].x + v[u].y + v[u].z + v[u].w;
    return sum;
}

template <int U, bool CS> __device__ __forceinline__ void read_kernel(const gpu_pass_args &args)
{
    const vec16 *a = (const vec16 *)args.a;
    const uint64_t count = args.bytes / 16, tile = (uint64_t)U * blockDim.x;
    const uint64_t whole = whole_tiles<U>(count, tile);
    unsigned long long sum = 0;

#pragma unroll 1
    for (uint64_t pass = 0; pass < args.passes; pass++) {
#pragma unroll 1
        for (uint64_t t = blockIdx.x; t < whole; t += gridDim.x)
            sum += read_steps<U, CS>(a, t * tile + threadIdx.x, blockDim.x);
#pragma unroll 1
        for (uint64_t i = whole * tile + (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
             i += (uint64_t)gridDim.x * blockDim.x)
            sum += read_steps<1, CS>(a, i, 0);
    }
    add_block_sum((unsigned long long *)args.sum, sum);
}
