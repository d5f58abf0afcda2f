/* SPDX-License-Identifier: Apache-2.0 */
/* Data of collectives: see data.h. */
#include "core/collective/data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

/* ---- Chooses a vector unit, and half-precision numbers one by one ---- */

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

#define WORTH_TELLING                                                                              \
    7 /* the least for a largest value: below, members would often put in the same */

struct data_expected {
    const struct collective_point *point;
    unsigned members, me;
    size_t element_bytes;
    uint64_t count, block;
    bool blocks;                  /* of several members: each has its own values */
    _Alignas(8) uint8_t values[]; /* else: a period */
};

/* All whole numbers up to this one, and it, are exact. */
static uint64_t exact_to(uint32_t type)
{
    static const uint64_t largest[COLLECTIVE_TYPES] = {[COLLECTIVE_F32] = 1ull << 24,
                                                       [COLLECTIVE_F16] = 1u << 11,
                                                       [COLLECTIVE_BF16] = 1u << 8,
                                                       [COLLECTIVE_F64] = 1ull << 53,
                                                       [COLLECTIVE_I32] = INT32_MAX};

    return largest[type];
}

/* Of element i, which is less than a period: only `active` of the members, others at each place,
 * put in more than 0. */
static uint64_t value(const struct collective_point *p, unsigned members, unsigned m, uint64_t i)
{
    uint64_t exact = exact_to(p->type), active = exact / WORTH_TELLING;
    uint64_t state = p->seed ^ (i + 1) * 0x9e3779b97f4a7c15u ^ (m + 1) * 0xd1b54a32d192ed03u;

    active = active < members ? active : members;
    if ((m + i) % members >= active)
        return 0;
    return rng_splitmix64(&state) % (exact / active + 1);
}

void data_put(enum collective_type type, void *at, uint64_t i, double value)
{
    switch (type) {
    case COLLECTIVE_F32:
        ((float *)at)[i] = (float)value;
        break;
    case COLLECTIVE_F16:
        ((uint16_t *)at)[i] = reduce_f16_of_float((float)value);
        break;
    case COLLECTIVE_BF16:
        ((uint16_t *)at)[i] = reduce_bf16_of_float((float)value);
        break;
    case COLLECTIVE_F64:
        ((double *)at)[i] = value;
        break;
    default:
        ((int32_t *)at)[i] = (int32_t)value;
    }
}

double data_get(enum collective_type type, const void *at, uint64_t i)
{
    switch (type) {
    case COLLECTIVE_F32:
        return ((const float *)at)[i];
    case COLLECTIVE_F16:
        return reduce_float_of_f16(((const uint16_t *)at)[i]);
    case COLLECTIVE_BF16:
        return reduce_float_of_bf16(((const uint16_t *)at)[i]);
    case COLLECTIVE_F64:
        return ((const double *)at)[i];
    default:
        return ((const int32_t *)at)[i];
    }
}

/* Member m's elements from `position` on, at most a period of them. */
static void values_of(void *at, uint64_t n, uint64_t position, const struct collective_point *p,
                      unsigned members, unsigned m)
{
    for (uint64_t i = 0; i < n; i++)
        data_put(p->type, at, i, (double)value(p, members, m, (position + i) % DATA_PERIOD));
}

/* One element in the middle of what counts is larger than any may be; where all members may put in
 * that much, none. */
static void corrupt(void *at, uint64_t n, uint64_t position, const struct collective_point *p,
                    unsigned members, unsigned m)
{
    bool only_first = p->op == COLLECTIVE_BROADCAST || members == 1;
    uint64_t place = collective_input_count(p->op, p->count, members) / 2, i = place - position;

    if (m != !only_first || place < position || i >= n)
        return;
    uint64_t right = value(p, members, m, place % DATA_PERIOD), exact = exact_to(p->type);
    data_put(p->type, at, i, right == exact ? 0 : (double)exact);
}

void data_fill(void *at, uint64_t n_elements, uint64_t position, const struct collective_point *p,
               unsigned members, unsigned m)
{
    size_t size = collective_type_bytes(p->type);
    uint64_t made = n_elements < DATA_PERIOD ? n_elements : DATA_PERIOD;

    values_of(at, made, position, p, members, m);
    for (uint64_t i = made; i < n_elements; i += made)
        memcpy((char *)at + i * size, at, (n_elements - i < made ? n_elements - i : made) * size);
    if (p->inject == COLLECTIVE_CORRUPT)
        corrupt(at, n_elements, position, p, members, m);
}

static uint64_t combined(const struct collective_point *p, unsigned members, uint64_t i)
{
    uint64_t sum = 0, max = 0;

    for (unsigned m = 0; m < members; m++) {
        uint64_t x = value(p, members, m, i);
        sum += x;
        max = x > max ? x : max;
    }
    return p->sum == COLLECTIVE_MAX ? max : sum;
}

int data_expect(struct data_expected **x, const struct collective_point *p, uint64_t count,
                unsigned members, unsigned m)
{
    size_t size = collective_type_bytes(p->type);
    uint64_t first = p->op == COLLECTIVE_REDUCE_SCATTER ? count / members * m : 0;

    *x = calloc(1, sizeof(**x) + DATA_PERIOD * size);
    if (!*x)
        return -ENOMEM;
    (*x)->point = p;
    (*x)->members = members;
    (*x)->me = m;
    (*x)->element_bytes = size;
    (*x)->count = count;
    (*x)->block = count / members;
    (*x)->blocks = p->op == COLLECTIVE_ALL_GATHER || p->op == COLLECTIVE_ALL_TO_ALL;
    if (collective_reduces(p->op))
        for (uint64_t i = 0; i < DATA_PERIOD; i++)
            data_put(p->type, (*x)->values, i,
                     (double)combined(p, members, (first + i) % DATA_PERIOD));
    else if (!(*x)->blocks)
        values_of((*x)->values, DATA_PERIOD, 0, p, members,
                  p->op == COLLECTIVE_BROADCAST ? 0 : (m + members - 1) % members);
    return 0;
}

void data_expect_free(struct data_expected *x)
{
    free(x);
}

/* Elements that repeat after a period; `period`: what is at position 0, `phase` of it where `at`
 * begins. */
static uint64_t compare(const struct data_expected *x, const uint8_t *period, const char *at,
                        uint64_t n, uint64_t phase, double *got, double *wanted)
{
    size_t size = x->element_bytes;

    for (uint64_t i = 0; i < n;) {
        uint64_t run = DATA_PERIOD - phase < n - i ? DATA_PERIOD - phase : n - i;
        if (memcmp(at + i * size, period + phase * size, run * size)) {
            while (!memcmp(at + i * size, period + phase * size, size)) {
                i++;
                phase++;
            }
            *got = data_get(x->point->type, at, i);
            *wanted = data_get(x->point->type, period, phase);
            return i;
        }
        i += run;
        phase = 0;
    }
    return DATA_RIGHT;
}

/* Block by block, each from a member of its own; `i`: its first element in the vector. */
static uint64_t compare_blocks(const struct data_expected *x, const char *at, uint64_t n,
                               uint64_t position, double *got, double *wanted)
{
    uint64_t period[DATA_PERIOD]; /* as large as the widest type asks for */

    for (uint64_t i = position; i < position + n;) {
        uint64_t from = i / x->block, inside = i % x->block, run = x->block - inside;
        run = run < position + n - i ? run : position + n - i;
        uint64_t first = x->point->op == COLLECTIVE_ALL_TO_ALL ? x->me * x->block : 0;
        values_of(period, run < DATA_PERIOD ? run : DATA_PERIOD, first + inside, x->point,
                  x->members, (unsigned)from);
        uint64_t wrong = compare(x, (const uint8_t *)period, at + (i - position) * x->element_bytes,
                                 run, 0, got, wanted);
        if (wrong != DATA_RIGHT)
            return i - position + wrong;
        i += run;
    }
    return DATA_RIGHT;
}

uint64_t data_check(const struct data_expected *x, const void *at, uint64_t n_elements,
                    uint64_t position, double *got, double *wanted)
{
    uint64_t wrong =
        x->blocks ? compare_blocks(x, at, n_elements, position, got, wanted)
                  : compare(x, x->values, at, n_elements, position % DATA_PERIOD, got, wanted);

    return wrong == DATA_RIGHT ? wrong : position + wrong;
}
