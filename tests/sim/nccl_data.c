/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the simulated NCCL, and sums of them, each step rounded as the real one does it (src/device/reduce_kernel.h). */
#include "tests/sim/nccl.h"

#include <math.h>

/* A sign, `exponent` bits, `fraction` bits. */
struct format {
    int exponent, fraction;
    double most; /* what is larger becomes this */
};
static const struct format f16 = {5, 10, INFINITY}, bf16 = {8, 7, INFINITY}, e4m3 = {4, 3, 448},
                           e5m2 = {5, 2, 57344};

static const struct format *format_of(ncclDataType_t type)
{
    switch ((int)type) {
    case ncclFloat16:
        return &f16;
    case ncclBfloat16:
        return &bf16;
    case 10:
        return &e4m3;
    case 11:
        return &e5m2;
    default:
        return NULL;
    }
}

size_t nccl_type_bytes(ncclDataType_t type)
{
    switch ((int)type) {
    case ncclFloat32:
    case ncclInt32:
        return 4;
    case ncclFloat64:
    case ncclInt64:
        return 8;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    case ncclInt8:
    case 10:
    case 11:
        return 1;
    default:
        return 0;
    }
}

static double read_bits(const struct format *f, unsigned bits)
{
    int bias = (1 << (f->exponent - 1)) - 1;
    int exponent = (int)(bits >> f->fraction) & ((1 << f->exponent) - 1);
    double fraction = bits & ((1u << f->fraction) - 1);
    double value = exponent ? ldexp(fraction + (1 << f->fraction), exponent - bias - f->fraction)
                            : ldexp(fraction, 1 - bias - f->fraction);

    return bits >> (f->exponent + f->fraction) & 1 ? -value : value;
}

/* To the nearest, ties to even. */
static unsigned write_bits(const struct format *f, double value)
{
    int bias = (1 << (f->exponent - 1)) - 1, exponent;
    unsigned sign = signbit(value) ? 1u << (f->exponent + f->fraction) : 0;
    double magnitude = fmin(fabs(value), f->most);

    frexp(magnitude, &exponent);
    exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    long units = lrint(ldexp(magnitude, f->fraction - exponent));
    if (isinf(magnitude))
        return sign | ((1u << f->exponent) - 1) << f->fraction;
    /* A unit carried over goes into the exponent by itself. */
    return sign | (units < 1L << f->fraction ? (unsigned)units
                                             : ((unsigned)(exponent + bias) << f->fraction) +
                                                   (unsigned)units - (1u << f->fraction));
}

static double read_one(ncclDataType_t type, const void *at, uint64_t i)
{
    const struct format *f = format_of(type);

    if (f)
        return read_bits(f, nccl_type_bytes(type) == 1 ? ((const uint8_t *)at)[i]
                                                       : ((const uint16_t *)at)[i]);
    return type == ncclFloat32 ? (double)((const float *)at)[i] : ((const double *)at)[i];
}

static void write_one(ncclDataType_t type, void *at, uint64_t i, double value)
{
    const struct format *f = format_of(type);

    if (f && nccl_type_bytes(type) == 1)
        ((uint8_t *)at)[i] = (uint8_t)write_bits(f, value);
    else if (f)
        ((uint16_t *)at)[i] = (uint16_t)write_bits(f, value);
    else if (type == ncclFloat32)
        ((float *)at)[i] = (float)value;
    else
        ((double *)at)[i] = value;
}

static int64_t read_whole(ncclDataType_t type, const void *at, uint64_t i)
{
    return type == ncclInt8    ? ((const int8_t *)at)[i]
           : type == ncclInt32 ? ((const int32_t *)at)[i]
                               : ((const int64_t *)at)[i];
}

static void write_whole(ncclDataType_t type, void *at, uint64_t i, int64_t value)
{
    if (type == ncclInt8)
        ((int8_t *)at)[i] = (int8_t)value;
    else if (type == ncclInt32)
        ((int32_t *)at)[i] = (int32_t)value;
    else
        ((int64_t *)at)[i] = value;
}

static bool is_whole(ncclDataType_t type)
{
    return type == ncclInt8 || type == ncclInt32 || type == ncclInt64;
}

static double together(ncclRedOp_t sum, double a, double b)
{
    switch (sum) {
    case ncclMax:
        return fmax(a, b);
    case ncclMin:
        return fmin(a, b);
    case ncclProd:
        return a * b;
    default:
        return a + b;
    }
}

static int64_t whole_together(ncclRedOp_t sum, int64_t a, int64_t b)
{
    switch (sum) {
    case ncclMax:
        return a > b ? a : b;
    case ncclMin:
        return a < b ? a : b;
    case ncclProd:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    default:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

/* fp8 is added and multiplied in half precision. */
static double step(ncclDataType_t type, double value)
{
    return nccl_type_bytes(type) == 1 ? read_bits(&f16, write_bits(&f16, value)) : value;
}

void nccl_reduce(ncclDataType_t type, ncclRedOp_t sum, void *to, const void *with, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (is_whole(type))
            write_whole(type, to, i,
                        whole_together(sum, read_whole(type, to, i), read_whole(type, with, i)));
        else
            write_one(type, to, i,
                      step(type, together(sum, read_one(type, to, i), read_one(type, with, i))));
}

/* An average multiplies floating-point numbers by 1/ranks, in their type, before they are added; whole ones are divided after. */
void nccl_before(ncclDataType_t type, ncclRedOp_t sum, int ranks, void *at, uint64_t count)
{
    double scale[1];

    if (sum != ncclAvg || is_whole(type))
        return;
    write_one(type, scale, 0, 1.0 / ranks);
    double by = read_one(type, scale, 0);
    for (uint64_t i = 0; i < count; i++)
        write_one(type, at, i, step(type, read_one(type, at, i) * by));
}

void nccl_after(ncclDataType_t type, ncclRedOp_t sum, int ranks, void *at, uint64_t count)
{
    for (uint64_t i = 0; i < count && sum == ncclAvg && is_whole(type); i++)
        write_whole(type, at, i, read_whole(type, at, i) / ranks);
}
