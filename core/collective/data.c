/* SPDX-License-Identifier: Apache-2.0 */
/* Data of collectives: see data.h. */
#include "core/collective/data.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
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

static const struct reduce_isa *this_isa(void)
{
    const struct reduce_isa *const *isa = reduce_isas;

    while (isa[1] && !(*isa)->present()) /* the last is there on every machine */
        isa++;
    return *isa;
}

const char *data_lacks(const struct collective_point *p)
{
    /* fp8 has no loop, nor have averages: the mean of two means is not the mean of all. */
    if (!collective_reduces(p->op) || this_isa()->reduce[p->type][p->sum])
        return NULL;
    return p->sum == COLLECTIVE_AVG
               ? "averages are made by NCCL alone: take --redop sum, or --backend nccl"
               : "fp8 is reduced by NCCL alone: take another type, or --backend nccl";
}

void data_reduce(enum collective_type type, enum collective_sum sum, void *to, const void *a,
                 const void *b, uint64_t count)
{
    this_isa()->reduce[type][sum](to, a, b, count);
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

/* fp8 (OCP 8-bit floating point, 2023): a sign, exponent_bits of exponent, the rest fraction. Codes
 * without sign, up to that of the largest, are in the order of their values. */
struct fp8 {
    int exponent_bits, bias;
    uint8_t largest;
};
static const struct fp8 e4m3 = {4, 7, 0x7e}, e5m2 = {5, 15, 0x7b};

static double fp8_value(const struct fp8 *f, uint8_t code)
{
    int fraction_bits = 7 - f->exponent_bits, exponent = (code & 0x7f) >> fraction_bits;
    int fraction = code & ((1 << fraction_bits) - 1);
    double value = ldexp(exponent ? fraction + (1 << fraction_bits) : fraction,
                         (exponent ? exponent : 1) - f->bias - fraction_bits);

    if ((code & 0x7f) > f->largest)
        value = f == &e5m2 && (code & 0x7f) == 0x7c ? INFINITY : NAN;
    return code & 0x80 ? -value : value;
}

static uint8_t fp8_nearest(const struct fp8 *f, double value)
{
    uint8_t sign = signbit(value) ? 0x80 : 0, code = 0;
    double magnitude = fabs(value);

    while (code < f->largest && fp8_value(f, code + 1) <= magnitude)
        code++;
    if (code < f->largest) {
        double below = magnitude - fp8_value(f, code), above = fp8_value(f, code + 1) - magnitude;
        code += above < below || (above == below && code % 2);
    }
    return sign | code;
}

/* An element's value, by its type: `whole` or `real`. */
union element {
    int64_t whole;
    double real;
};

static bool is_whole(uint32_t type)
{
    return type == COLLECTIVE_I32 || type == COLLECTIVE_I8 || type == COLLECTIVE_I64;
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
    case COLLECTIVE_E4M3:
    case COLLECTIVE_E5M2:
        ((uint8_t *)at)[i] = fp8_nearest(type == COLLECTIVE_E4M3 ? &e4m3 : &e5m2, value);
        break;
    case COLLECTIVE_I8:
        ((int8_t *)at)[i] = (int8_t)value;
        break;
    case COLLECTIVE_I64:
        ((int64_t *)at)[i] = (int64_t)value;
        break;
    default:
        ((int32_t *)at)[i] = (int32_t)value;
    }
}

static void put(uint32_t type, void *at, uint64_t i, union element e)
{
    if (type == COLLECTIVE_I8)
        ((int8_t *)at)[i] = (int8_t)e.whole;
    else if (type == COLLECTIVE_I32)
        ((int32_t *)at)[i] = (int32_t)e.whole;
    else if (type == COLLECTIVE_I64)
        ((int64_t *)at)[i] = e.whole;
    else
        data_put(type, at, i, e.real);
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
    case COLLECTIVE_E4M3:
    case COLLECTIVE_E5M2:
        return fp8_value(type == COLLECTIVE_E4M3 ? &e4m3 : &e5m2, ((const uint8_t *)at)[i]);
    case COLLECTIVE_I8:
        return ((const int8_t *)at)[i];
    case COLLECTIVE_I64:
        return (double)((const int64_t *)at)[i];
    default:
        return ((const int32_t *)at)[i];
    }
}

/* The least for a largest value of a sum: below, members would often put in the same. Of fp8 there
 * is no room for that. */
#define WORTH_TELLING 7
#define LEAST_ACTIVE  2
/* Of a product: one member with a significand, the others with 2 or 1/2: e4m3 has 2^-6 to 2^8 */
#define PROD_ACTIVE 6

struct data_expected {
    const struct collective_point *point;
    unsigned members, me;
    size_t element_bytes;
    uint64_t count, block;
    bool none;   /* it has no result */
    bool blocks; /* of several members: each has its own values */
    bool range;  /* all from `values` to `high` is right */
    _Alignas(8) uint8_t values[DATA_PERIOD * 8], high[DATA_PERIOD * 8]; /* else: a period */
};

/* All whole numbers up to this one, and it, are exact. */
static uint64_t exact_to(uint32_t type)
{
    static const uint64_t largest[COLLECTIVE_TYPES] = {
        [COLLECTIVE_F32] = 1ull << 24, [COLLECTIVE_F16] = 1u << 11,  [COLLECTIVE_BF16] = 1u << 8,
        [COLLECTIVE_F64] = 1ull << 53, [COLLECTIVE_I32] = INT32_MAX, [COLLECTIVE_I8] = INT8_MAX,
        [COLLECTIVE_I64] = 1ull << 53, [COLLECTIVE_E4M3] = 1u << 4,  [COLLECTIVE_E5M2] = 1u << 3};

    return largest[type];
}

static int significand_bits(uint32_t type)
{
    static const uint8_t bits[COLLECTIVE_TYPES] = {
        [COLLECTIVE_F32] = 24, [COLLECTIVE_F16] = 11, [COLLECTIVE_BF16] = 8,
        [COLLECTIVE_F64] = 53, [COLLECTIVE_E4M3] = 4, [COLLECTIVE_E5M2] = 3};

    return bits[type];
}

static bool is_reduced_by(const struct collective_point *p, uint32_t sum)
{
    return collective_reduces(p->op) && p->sum == sum;
}

static union element of_whole(uint32_t type, int64_t whole)
{
    union element e;

    if (is_whole(type))
        e.whole = whole;
    else
        e.real = (double)whole;
    return e;
}

/* Of a product; j: this member's number among those at this place. */
static union element factor(uint32_t type, unsigned j, uint64_t random)
{
    int fraction_bits = significand_bits(type) - 1;
    double real = random >> 63 ? -1 : 1;

    if (is_whole(type))
        return (union element){.whole = (int64_t)(random | 1)};
    if (!j)
        real *= 1 + ldexp((double)(random & ((1ull << fraction_bits) - 1)), -fraction_bits);
    else if (j < PROD_ACTIVE)
        real *= random & 1 ? 2 : 0.5;
    return (union element){.real = real};
}

/* Of element i, which is less than a period. */
static union element value(const struct collective_point *p, unsigned members, unsigned m,
                           uint64_t i)
{
    uint64_t exact = exact_to(p->type), active = exact / WORTH_TELLING;
    uint64_t state = p->seed ^ (i + 1) * 0x9e3779b97f4a7c15u ^ (m + 1) * 0xd1b54a32d192ed03u;
    uint64_t random = rng_splitmix64(&state);
    unsigned j = (unsigned)((m + i) % members);

    if (is_reduced_by(p, COLLECTIVE_PROD))
        return factor(p->type, j, random);
    if (is_reduced_by(p, COLLECTIVE_MAX) || is_reduced_by(p, COLLECTIVE_MIN))
        return of_whole(p->type, (int64_t)(random % (exact / 2 * 2 + 1)) - (int64_t)(exact / 2));
    if (is_reduced_by(p, COLLECTIVE_AVG) && !is_whole(p->type))
        active = LEAST_ACTIVE;
    active = active < LEAST_ACTIVE ? LEAST_ACTIVE : active;
    active = active < members ? active : members;
    return of_whole(p->type, j >= active ? 0 : (int64_t)(random % (exact / active + 1)));
}

/* Member m's elements from `position` on, at most a period of them. */
static void values_of(void *at, uint64_t n, uint64_t position, const struct collective_point *p,
                      unsigned members, unsigned m)
{
    for (uint64_t i = 0; i < n; i++)
        put(p->type, at, i, value(p, members, m, (position + i) % DATA_PERIOD));
}

/* What makes another result, whatever the others put in: a sum that is larger, an extreme that is
 * theirs, a product whose sign, or whose last bits, are other ones. */
static union element spoiled(const struct collective_point *p, union element right)
{
    int64_t exact = (int64_t)exact_to(p->type);
    union element largest = of_whole(p->type, exact);

    if (is_reduced_by(p, COLLECTIVE_MIN))
        return of_whole(p->type, -exact);
    if (is_reduced_by(p, COLLECTIVE_PROD) && is_whole(p->type))
        return of_whole(p->type, (int64_t)((uint64_t)right.whole + 2));
    if (is_reduced_by(p, COLLECTIVE_PROD))
        return (union element){.real = -right.real};
    if (is_reduced_by(p, COLLECTIVE_AVG) && !is_whole(p->type))
        return (union element){.real = 8 * (double)exact};
    return right.whole == largest.whole ? of_whole(p->type, 0) : largest;
}

void data_fill(void *at, uint64_t n_elements, uint64_t position, const struct collective_point *p,
               unsigned members, unsigned m)
{
    size_t size = collective_type_bytes(p->type);
    uint64_t made = n_elements < DATA_PERIOD ? n_elements : DATA_PERIOD;

    values_of(at, made, position, p, members, m);
    for (uint64_t i = made; i < n_elements; i += made)
        memcpy((char *)at + i * size, at, (n_elements - i < made ? n_elements - i : made) * size);
    if (p->inject != COLLECTIVE_CORRUPT)
        return;
    /* One element in the middle. */
    bool only_root = p->op == COLLECTIVE_BROADCAST || p->op == COLLECTIVE_SCATTER;
    unsigned spoils = only_root ? p->root : members > 1;
    uint64_t place = collective_input_count(p->op, p->count, members) / 2, i = place - position;
    if (m == spoils && place >= position && i < n_elements)
        put(p->type, at, i, spoiled(p, value(p, members, m, place % DATA_PERIOD)));
}

/* Numbers that a result may be, from the least to the most. */
struct range {
    long double low, high;
};

static long double nearest(uint32_t type, long double value)
{
    uint64_t one[1];

    data_put(type, one, 0, (double)value);
    return data_get(type, one, 0);
}

/* More than what was rounded on the way moves a result by: here, in long double or double; a sum of
 * fp8 in half precision (nccl, src/device/reduce_kernel.h). Less than half a unit of the type. */
static long double slack(uint32_t type)
{
    return type == COLLECTIVE_F64 ? 0x1p-60L : significand_bits(type) < 8 ? 0x1p-11L : 0x1p-50L;
}

/* The result of a step that may have been rounded to the type. */
static struct range rounded(uint32_t type, long double low, long double high)
{
    long double a = nearest(type, low * (1 - slack(type)));
    long double b = nearest(type, high * (1 + slack(type)));

    return (struct range){a < low ? a : low, b > high ? b : high};
}

/* A mean of floating-point numbers that were multiplied by 1/n before they were added, or after. */
static struct range averaged(const struct collective_point *p, unsigned members, uint64_t i)
{
    struct range scale = rounded(p->type, 1.0L / members, 1.0L / members), sum = {0};

    for (unsigned m = 0; m < members; m++) {
        double x = value(p, members, m, i).real;
        if (x == 0)
            continue;
        struct range one = rounded(p->type, x * scale.low, x * scale.high);
        sum.low += one.low;
        sum.high += one.high;
    }
    return (struct range){nearest(p->type, sum.low * (1 - slack(p->type))),
                          nearest(p->type, sum.high * (1 + slack(p->type)))};
}

static union element combine(uint32_t type, uint32_t sum, union element a, union element b)
{
    bool whole = is_whole(type);

    switch (sum) {
    case COLLECTIVE_MAX:
        return (whole ? a.whole < b.whole : a.real < b.real) ? b : a;
    case COLLECTIVE_MIN:
        return (whole ? a.whole < b.whole : a.real < b.real) ? a : b;
    case COLLECTIVE_PROD:
        if (!whole)
            return (union element){.real = a.real * b.real};
        return (union element){.whole = (int64_t)((uint64_t)a.whole * (uint64_t)b.whole)};
    default:
        if (!whole)
            return (union element){.real = a.real + b.real};
        return (union element){.whole = a.whole + b.whole};
    }
}

/* Of all members, as the type has it: i32 and i8 read back what their bits are. */
static union element combined(const struct collective_point *p, unsigned members, uint64_t i)
{
    union element all = value(p, members, 0, i);
    uint64_t one[1];

    for (unsigned m = 0; m < members && is_whole(p->type); m++) {
        union element x = value(p, members, m, i);
        put(p->type, one, 0, x);
        x.whole = p->type == COLLECTIVE_I64 ? x.whole : (int64_t)data_get(p->type, one, 0);
        all = m ? combine(p->type, p->sum, all, x) : x;
    }
    for (unsigned m = 1; m < members && !is_whole(p->type); m++)
        all = combine(p->type, p->sum, all, value(p, members, m, i));
    if (members && p->sum == COLLECTIVE_AVG && is_whole(p->type))
        all.whole /= members;
    return all;
}

/* A period from element `first` on. */
static void expect_reduced(struct data_expected *x, uint64_t first)
{
    const struct collective_point *p = x->point;

    x->range = p->sum == COLLECTIVE_AVG && !is_whole(p->type);
    for (uint64_t i = 0; i < DATA_PERIOD; i++) {
        uint64_t at = (first + i) % DATA_PERIOD;
        if (x->range) {
            struct range r = averaged(p, x->members, at);
            data_put(p->type, x->values, i, (double)r.low);
            data_put(p->type, x->high, i, (double)r.high);
        } else {
            put(p->type, x->values, i, combined(p, x->members, at));
        }
    }
}

struct data_expected *data_expect(const struct collective_point *p, uint64_t count,
                                  unsigned members, unsigned m)
{
    uint64_t first = p->op == COLLECTIVE_REDUCE_SCATTER ? count / members * m : 0;
    struct data_expected *x = xcalloc(1, sizeof(*x));

    x->point = p;
    x->members = members;
    x->me = m;
    x->element_bytes = collective_type_bytes(p->type);
    x->count = count;
    x->block = count / members;
    x->none = !collective_has_result(p, m);
    x->blocks = p->op == COLLECTIVE_ALL_GATHER || p->op == COLLECTIVE_ALL_TO_ALL ||
                p->op == COLLECTIVE_GATHER;
    if (collective_reduces(p->op))
        expect_reduced(x, first);
    else if (!x->blocks)
        values_of(x->values, DATA_PERIOD, p->op == COLLECTIVE_SCATTER ? count / members * m : 0, p,
                  members,
                  p->op == COLLECTIVE_SEND_RECEIVE ? (m + members - 1) % members : p->root);
    return x;
}

void data_expect_free(struct data_expected *x)
{
    free(x);
}

static bool is_right(const struct data_expected *x, const uint8_t *wanted, uint64_t phase,
                     const char *at)
{
    size_t size = x->element_bytes;
    uint32_t type = x->point->type;

    if (!memcmp(at, wanted + phase * size, size))
        return true;
    double got = data_get(type, at, 0);
    return x->range && got >= data_get(type, x->values, phase) &&
           got <= data_get(type, x->high, phase);
}

/* Elements that repeat after a period; `period`: what is at position 0, `phase` of it where `at`
 * begins. */
static uint64_t compare(const struct data_expected *x, const uint8_t *period, const char *at,
                        uint64_t n, uint64_t phase, double *got, double *wanted)
{
    size_t size = x->element_bytes;

    for (uint64_t i = 0; i < n;) {
        uint64_t run = DATA_PERIOD - phase < n - i ? DATA_PERIOD - phase : n - i;
        bool same = !memcmp(at + i * size, period + phase * size, run * size);
        for (uint64_t k = 0; k < run && !same; k++) {
            if (is_right(x, period, phase + k, at + (i + k) * size))
                continue;
            *got = data_get(x->point->type, at, i + k);
            *wanted = data_get(x->point->type, period, phase + k);
            return i + k;
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
    if (x->none)
        return DATA_RIGHT;
    uint64_t wrong =
        x->blocks ? compare_blocks(x, at, n_elements, position, got, wanted)
                  : compare(x, x->values, at, n_elements, position % DATA_PERIOD, got, wanted);

    return wrong == DATA_RIGHT ? wrong : position + wrong;
}

/* ---- Whole buffers, piece by piece: through the backend where they are not in this process' memory
 * ---- */

#define PIECE_BYTES (1u << 20)

/* Elements of one call's input or result, in the buffer. */
struct span {
    uint64_t first, count;
};

/* A buffer of blocks alone, or in place this member's block of the vector. */
static struct span block_of(const struct collective *c, const struct collective_call *call,
                            uint64_t count)
{
    uint64_t first = c->point->in_place ? call->first + c->me * count : call->first / c->n;

    return (struct span){first, count};
}

/* Walks over pieces of a span. */
struct piece {
    uint64_t position, count; /* elements, of the span */
    uint64_t offset;          /* bytes, of the buffer */
    size_t bytes;
};

static bool next_piece(const struct collective *c, const struct span *s, struct piece *p)
{
    size_t each = collective_type_bytes(c->point->type);
    uint64_t most = PIECE_BYTES / each;

    p->position += p->count;
    p->count = s->count - p->position < most ? s->count - p->position : most;
    p->offset = (s->first + p->position) * each;
    p->bytes = p->count * each;
    return p->count > 0;
}

static int attend(struct collective *c)
{
    return c->attend ? c->attend(c, 0) : 0;
}

static int fill_call(struct collective *c, const struct collective_point *p,
                     const struct collective_call *call, void *buffer)
{
    uint64_t count = collective_input_count(c->point->op, call->count, c->n);
    bool one = c->point->op == COLLECTIVE_ALL_GATHER || c->point->op == COLLECTIVE_GATHER;
    struct span s = one ? block_of(c, call, count) : (struct span){call->first, count};
    int err = 0;

    for (struct piece x = {0}; !err && next_piece(c, &s, &x);) {
        void *at = c->ops->write ? buffer : (char *)c->input + x.offset;
        data_fill(at, x.count, x.position, p, c->n, c->me);
        if (c->ops->write)
            err = c->ops->write(c, x.offset, buffer, x.bytes);
        if (!err)
            err = attend(c);
    }
    return err;
}

/* Each call is a vector of its own. */
static struct collective_point point_of(const struct collective *c, unsigned call, uint64_t seed)
{
    struct collective_point p = *c->point;

    p.seed = seed;
    p.count = c->calls[call].count;
    return p;
}

int collective_fill(struct collective *c, uint64_t seed)
{
    if (c->ops->fill)
        return c->ops->fill(c, seed);
    void *buffer = xcalloc(1, PIECE_BYTES);
    int err = 0;

    for (unsigned i = 0; i < c->n_calls && !err; i++) {
        struct collective_point p = point_of(c, i, seed);
        err = fill_call(c, &p, &c->calls[i], buffer);
    }
    free(buffer);
    return err;
}

static int wrong(struct collective *c, unsigned call, uint64_t place, uint64_t count, double got,
                 double wanted)
{
    char bucket[48] = "";

    if (c->n_calls > 1)
        snprintf(bucket, sizeof(bucket), "call %u of %u: ", call + 1, c->n_calls);
    return collective_fail(c, -EBADMSG, "%selement %llu of %llu is %.9g, must be %.9g", bucket,
                           (unsigned long long)place, (unsigned long long)count, got, wanted);
}

static int compare_call(struct collective *c, unsigned call, const struct data_expected *expected,
                        void *buffer)
{
    uint64_t count = collective_result_count(c->point->op, c->calls[call].count, c->n);
    bool one = c->point->op == COLLECTIVE_REDUCE_SCATTER || c->point->op == COLLECTIVE_SCATTER;
    struct span s =
        one ? block_of(c, &c->calls[call], count) : (struct span){c->calls[call].first, count};
    int err = 0;

    for (struct piece x = {0}; !err && next_piece(c, &s, &x);) {
        const void *at = c->ops->read ? buffer : (char *)c->result + x.offset;
        double got = 0, wanted = 0;
        if (c->ops->read)
            err = c->ops->read(c, x.offset, buffer, x.bytes);
        if (err)
            break;
        uint64_t place = data_check(expected, at, x.count, x.position, &got, &wanted);
        if (place != DATA_RIGHT)
            return wrong(c, call, place, s.count, got, wanted);
        err = attend(c);
    }
    return err;
}

int collective_compare(struct collective *c, uint64_t seed)
{
    if (c->ops->compare)
        return c->ops->compare(c, seed);
    void *buffer = xcalloc(1, PIECE_BYTES);
    int err = 0;

    for (unsigned i = 0; i < c->n_calls && !err; i++) {
        struct collective_point p = point_of(c, i, seed);
        struct data_expected *expected = data_expect(&p, c->calls[i].count, c->n, c->me);
        err = compare_call(c, i, expected, buffer);
        data_expect_free(expected);
    }
    free(buffer);
    return err;
}
