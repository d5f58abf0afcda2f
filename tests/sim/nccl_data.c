/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the simulated NCCL, and sums of them. */
#include "tests/sim/nccl.h"

#include <math.h>
#include <string.h>

size_t nccl_type_bytes(ncclDataType_t type)
{
    switch (type) {
    case ncclFloat32:
    case ncclInt32:
        return 4;
    case ncclFloat64:
        return 8;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    default:
        return 0;
    }
}

static double f16_read(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double value = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);

    return h & 0x8000 ? -value : value;
}

/* To the nearest, of numbers that are neither tiny nor beyond the largest. */
static uint16_t f16_write(double value)
{
    int exponent;
    double fraction = frexp(fabs(value), &exponent);
    uint16_t sign = value < 0 ? 0x8000 : 0;
    long bits = lrint(ldexp(fraction, 11)); /* 1024 to 2048 */

    if (bits == 2048) {
        bits = 1024;
        exponent++;
    }
    if (fraction == 0 || exponent < -13)
        return sign;
    if (exponent > 16)
        return sign | 0x7c00;
    return (uint16_t)(sign | (exponent + 14) << 10 | (bits - 1024));
}

static double bf16_read(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return (double)value;
}

static uint16_t bf16_write(double value)
{
    float narrow = (float)value;
    uint32_t bits;

    memcpy(&bits, &narrow, sizeof(bits));
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double together(ncclRedOp_t sum, double a, double b)
{
    return sum == ncclMax ? fmax(a, b) : a + b;
}

void nccl_reduce(ncclDataType_t type, ncclRedOp_t sum, void *to, const void *with, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        switch (type) {
        case ncclFloat32:
            ((float *)to)[i] =
                (float)together(sum, (double)((float *)to)[i], (double)((const float *)with)[i]);
            break;
        case ncclFloat64:
            ((double *)to)[i] = together(sum, ((double *)to)[i], ((const double *)with)[i]);
            break;
        case ncclInt32:
            ((int32_t *)to)[i] =
                (int32_t)together(sum, ((int32_t *)to)[i], ((const int32_t *)with)[i]);
            break;
        case ncclFloat16:
            ((uint16_t *)to)[i] = f16_write(together(sum, f16_read(((uint16_t *)to)[i]),
                                                     f16_read(((const uint16_t *)with)[i])));
            break;
        default:
            ((uint16_t *)to)[i] = bf16_write(together(sum, bf16_read(((uint16_t *)to)[i]),
                                                      bf16_read(((const uint16_t *)with)[i])));
            break;
        }
}
