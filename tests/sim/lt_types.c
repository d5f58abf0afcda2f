/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of every type, exactly as doubles, and back with rounding to the nearest even. */
#include "tests/sim/lt.h"

#include <math.h>
#include <string.h>

static const struct form {
    unsigned bytes;
    int fraction, exponent; /* bits; 0: a whole number */
} forms[LT_TYPES] = {
    [LT_F64] = {8, 52, 11}, [LT_F32] = {4, 23, 8}, [LT_F16] = {2, 10, 5}, [LT_BF16] = {2, 7, 8},
    [LT_E4M3] = {1, 3, 4},  [LT_E5M2] = {1, 2, 5}, [LT_S8] = {1, 0, 0},   [LT_S32] = {4, 0, 0},
};

bool lt_type_of(cudaDataType_t type, enum lt_type *out)
{
    static const cudaDataType_t types[LT_TYPES] = {
        [LT_F64] = CUDA_R_64F,   [LT_F32] = CUDA_R_32F,      [LT_F16] = CUDA_R_16F,
        [LT_BF16] = CUDA_R_16BF, [LT_E4M3] = CUDA_R_8F_E4M3, [LT_E5M2] = CUDA_R_8F_E5M2,
        [LT_S8] = CUDA_R_8I,     [LT_S32] = CUDA_R_32I,
    };

    for (unsigned i = 0; i < LT_TYPES; i++)
        if (types[i] == type) {
            *out = (enum lt_type)i;
            return true;
        }
    return false;
}

unsigned lt_bytes(enum lt_type type)
{
    return forms[type].bytes;
}

/* A small float's bits as a number. Infinities and NaNs are not told apart: e4m3 has one NaN. */
static double small_float(const struct form *f, uint64_t bits)
{
    int bias = (1 << (f->exponent - 1)) - 1;
    int exponent = (int)(bits >> f->fraction) & ((1 << f->exponent) - 1);
    double fraction = (double)(bits & ((1u << f->fraction) - 1)), value;
    bool negative = bits >> (f->fraction + f->exponent) & 1;

    if (f->exponent == 4 ? (bits & 0x7f) == 0x7f : exponent == (1 << f->exponent) - 1)
        value = f->exponent != 4 && fraction == 0 ? INFINITY : NAN;
    else if (exponent)
        value = ldexp(ldexp(1, f->fraction) + fraction, exponent - bias - f->fraction);
    else
        value = ldexp(fraction, 1 - bias - f->fraction);
    return negative ? -value : value;
}

double lt_read(enum lt_type type, const void *at, uint64_t index)
{
    const struct form *f = &forms[type];
    uint64_t bits = 0;
    double f64;
    float f32;

    memcpy(&bits, (const char *)at + index * f->bytes, f->bytes);
    switch (type) {
    case LT_F64:
        memcpy(&f64, &bits, sizeof(f64));
        return f64;
    case LT_F32:
        memcpy(&f32, &bits, sizeof(f32));
        return (double)f32;
    case LT_S8:
        return (int8_t)bits;
    case LT_S32:
        return (int32_t)bits;
    default:
        return small_float(f, bits);
    }
}

/* f16 and bf16 */
static uint16_t to_small_float(const struct form *f, double value)
{
    int bias = (1 << (f->exponent - 1)) - 1, exponent;
    uint16_t sign = (uint16_t)((signbit(value) ? 1 : 0) << (f->fraction + f->exponent));
    uint16_t infinity = (uint16_t)(((1 << f->exponent) - 1) << f->fraction);
    double whole;

    if (isnan(value))
        return (uint16_t)(sign | infinity | 1);
    value = fabs(value);
    if (value == 0)
        return sign;
    frexp(value, &exponent);
    exponent -= 1; /* value = 1.x times 2^exponent */
    if (exponent < 1 - bias)
        exponent = 1 - bias;
    /* The fraction as a whole number, rounded; a carry goes into the exponent by itself. */
    whole = nearbyint(ldexp(value, f->fraction - exponent)) +
            ldexp((double)(exponent + bias - 1), f->fraction);
    return whole >= infinity ? (uint16_t)(sign | infinity) : (uint16_t)(sign | (uint16_t)whole);
}

void lt_write(enum lt_type type, void *at, uint64_t index, double value)
{
    const struct form *f = &forms[type];
    char *to = (char *)at + index * f->bytes;
    float f32 = (float)value;
    uint16_t half;
    int32_t s32;

    switch (type) {
    case LT_F64:
        memcpy(to, &value, sizeof(value));
        break;
    case LT_F32:
        memcpy(to, &f32, sizeof(f32));
        break;
    case LT_S32:
        s32 = (int32_t)(uint32_t)(int64_t)value; /* wraps, as the device's does */
        memcpy(to, &s32, sizeof(s32));
        break;
    case LT_F16:
    case LT_BF16:
        half = to_small_float(f, value);
        memcpy(to, &half, sizeof(half));
        break;
    default:
        break; /* no result is of such a type: lt_check */
    }
}

/* Rounded to 10 bits of fraction. */
double lt_tf32(double value)
{
    int exponent;

    if (value == 0 || !isfinite(value))
        return value;
    frexp(value, &exponent);
    return ldexp(nearbyint(ldexp(value, 11 - exponent)), exponent - 11);
}
