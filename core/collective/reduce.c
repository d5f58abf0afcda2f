/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses a vector unit, and half-precision numbers one by one. */
#include "core/collective/reduce.h"

#include <string.h>

#include "core/collective/data.h"

extern const struct reduce_isa reduce_avx512, reduce_avx2, reduce_generic;

const struct reduce_isa *const reduce_isas[] = {
#if defined(__x86_64__)
    &reduce_avx512,
    &reduce_avx2,
#endif
    &reduce_generic,
    NULL,
};

void data_reduce(enum collective_type type, enum collective_sum sum, void *to, const void *a,
                 const void *b, uint64_t count)
{
    const struct reduce_isa *const *isa = reduce_isas;

    while (isa[1] && !(*isa)->present()) /* the last is there on every machine */
        isa++;
    (*isa)->reduce[type][sum](to, a, b, count);
}

static float float_of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t bits_of_float(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

float reduce_float_of_f16(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, magnitude = x & 0x7fffu;

    if (magnitude >= 0x7c00) /* infinite or not a number */
        return float_of_bits(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    /* The exponent's place, then its bias by a product, which is exact, also of numbers below the
     * normal ones. */
    return float_of_bits(sign | bits_of_float(float_of_bits(magnitude << 13) * 0x1p112f));
}

uint16_t reduce_f16_of_float(float x)
{
    uint32_t bits = bits_of_float(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;

    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (magnitude >= 0x477ff000) /* 65520: nearer to what does not exist than to 65504 */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) /* below the normal ones: a sum whose unit is theirs rounds it */
        return (uint16_t)(sign |
                          (bits_of_float(float_of_bits(magnitude) + 0.5f) - bits_of_float(0.5f)));
    return (uint16_t)(sign | (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

float reduce_float_of_bf16(uint16_t x)
{
    return float_of_bits((uint32_t)x << 16);
}

uint16_t reduce_bf16_of_float(float x)
{
    uint32_t bits = bits_of_float(x);

    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
