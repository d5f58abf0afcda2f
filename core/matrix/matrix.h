/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products C = A B as data: types, operands, random contents, and the check of a result.
 * All matrices are row-major and dense: A is m x k, B is k x n (or, in layout nt, stored as its
 * transpose: n x k), C is m x n.
 *
 * What a type's operands and sums are made of differs by where it is multiplied: a "form". int8 is
 * u8 x s8 -> s32 on CPUs, the form that their dot-product instructions have. A holds 0..127 only:
 * so no sum of two products leaves 16 bits, and the result is exact on CPUs whose kernels go
 * through vpmaddubsw as well. On GPUs it is s8 x s8 -> s32.
 */
#ifndef PLUMB_CORE_MATRIX_MATRIX_H
#define PLUMB_CORE_MATRIX_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gemm_dtype {
    GEMM_F64,
    GEMM_F32,
    GEMM_TF32,
    GEMM_F16,
    GEMM_BF16,
    GEMM_E4M3,
    GEMM_E5M2,
    GEMM_INT8,
    GEMM_DTYPES
};

struct gemm_dtype_info {
    const char *name; /* "bf16" */
    const char *unit; /* a name of units_table */
};

extern const struct gemm_dtype_info gemm_dtypes[GEMM_DTYPES];
extern const char *const gemm_dtype_names[]; /* the same names, NULL-terminated: for an option */

enum gemm_element {
    GEMM_EL_F64,
    GEMM_EL_F32,
    GEMM_EL_F16,
    GEMM_EL_BF16,
    GEMM_EL_E4M3,
    GEMM_EL_E5M2,
    GEMM_EL_U8,
    GEMM_EL_S8,
    GEMM_EL_S32
};

unsigned gemm_element_bytes(enum gemm_element type);

/* How a product is rounded: what gemm_error_bound() goes by. */
struct gemm_rounding {
    double sum;   /* unit roundoff of the sums, 2^-24 for f32; 0: exact */
    bool narrow;  /* the sums have so few bits that the bound must go by their own size */
    uint64_t run; /* narrow: after so many terms at most they are added to an f32 sum; 0: never */
    double input; /* inputs are cut when they are read: to steps of this, relative; 0: not */
    double c;     /* unit roundoff of C; 0: C is of the sums' type */
};

/* Which sums are asked for. */
enum gemm_sums { GEMM_SUMS_DEFAULT, GEMM_SUMS_F32, GEMM_SUMS_FAST, GEMM_SUMS_F16 };
extern const char *const gemm_sums_names[]; /* NULL-terminated: for an option */

enum gemm_layout { GEMM_LAYOUT_AUTO, GEMM_NN, GEMM_NT };
extern const char *const gemm_layout_names[]; /* NULL-terminated: for an option */

/* What a product of some type is made of, in some place. */
struct gemm_form {
    const char *accumulate; /* "f32", "f32 fast" */
    uint64_t k_max;         /* above it the sums may overflow; 0: no such bound */
    struct gemm_rounding rounding;
    enum gemm_dtype dtype;
    enum gemm_sums sums; /* GEMM_SUMS_DEFAULT: the type has one kind of sum, which nobody chooses */
    enum gemm_element a, b, c;
    enum gemm_layout layout; /* by default; where it is nt, there is no other */
    int compute;             /* the place's own */
};

/* Of the types GEMM_EL_A x GEMM_EL_B -> GEMM_EL_C: members of a form. */
#define GEMM_ENTRIES(A, B, C, SUMS)                                                                \
    .a = GEMM_EL_##A, .b = GEMM_EL_##B, .c = GEMM_EL_##C, .accumulate = (SUMS)

/* The form for a type and sums, the first of its type where the default is asked for; NULL: none. A
 * table of forms ends with accumulate NULL. */
const struct gemm_form *gemm_form_find(const struct gemm_form *forms, enum gemm_dtype dtype,
                                       enum gemm_sums sums);

extern const struct gemm_form gemm_host_forms[];

struct gemm_shape {
    uint64_t m, n, k;
};

#define GEMM_DIM_MAX (UINT64_C(1) << 24)

/* Reads "1024x4096x512" (m, n, k). 0, or -EINVAL with the error said: fits struct opt's `parse`,
 * *value is a struct gemm_shape. */
int gemm_shape_parse(const char *text, void *value, char *error, size_t len);

/* 2mnk: a multiplication and an addition for each term. */
double gemm_operations(const struct gemm_shape *shape);

/* The bytes of A, B and C. */
double gemm_bytes(const struct gemm_form *form, const struct gemm_shape *shape);

/* The operands on the host, in layout nn. */
struct gemm_problem {
    enum gemm_dtype dtype;
    const struct gemm_form *form;
    struct gemm_shape shape;
    void *a, *b, *c;
    /* B may be laid out once as the library likes it, as the weights of a model that is used; else it
     * is taken as it lies, as in training, where every product has another */
    bool b_stays;
};

/* Allocates the three (2 MiB aligned and advised to huge pages where they are that large), fills A
 * and B with random values from `seed` (f32, f64, bf16: uniform in [-1, 1) without 0, bf16
 * rounded to nearest even), and C with what no product gives (NaN; INT32_MIN), so that an entry
 * which was not written is found. 0 or -ENOMEM; nothing is left behind on an error. The type must
 * have a form in gemm_host_forms. B stays. */
int gemm_problem_open(struct gemm_problem *p, enum gemm_dtype dtype, const struct gemm_shape *shape,
                      uint64_t seed);
/* The same for several shapes in turn: as much of A, B and C as the largest of each needs. The shape
 * is the caller's to set, and B does not stay. */
int gemm_problem_share(struct gemm_problem *p, enum gemm_dtype dtype,
                       const struct gemm_shape *shapes, size_t n, uint64_t seed);
double gemm_shared_bytes(enum gemm_dtype dtype, const struct gemm_shape *shapes, size_t n);
void gemm_problem_zero(struct gemm_problem *p);    /* A and B become 0 */
void gemm_problem_unwrite(struct gemm_problem *p); /* C is as it was at first */
void gemm_problem_close(struct gemm_problem *p);

uint16_t gemm_bf16_of(float value); /* round to nearest, ties to even; finite values */
float gemm_bf16_value(uint16_t bits);

/* Element i of an array of C's types (f64, f32, f16, bf16, s32), u8 or s8, exact; infinities and
 * NaN are what they are. */
double gemm_element_at(enum gemm_element type, const void *array, size_t i);

/* The entry (row, column) of A, B or C as a double: exact for every type. */
double gemm_a_at(const struct gemm_problem *p, size_t row, size_t column);
double gemm_b_at(const struct gemm_problem *p, size_t row, size_t column);

/* An entry of C as it should be, and the sizes of its terms a_il b_lj. */
struct gemm_terms {
    double sum, sum_abs, sum_squares;
};

/*
 * How far a right entry may lie from the exact one; the sum of up to three parts.
 *
 * Sums of f32 or f64: lambda sqrt(k) u sum |a_il b_lj|, lambda 8, u the roundoff of the sums. It
 * is the probabilistic bound of Higham and Mary (2019, "A New Approach to Probabilistic Rounding
 * Error Analysis", SIAM J. Sci. Comput. 41(5)): any order of summation keeps it but for a chance
 * of 2 k exp(-lambda^2 / 2), 3e-10 at k = 2^14. For random data as here it is about 6 k u of a
 * typical entry: 1.5e-3 for f32 at k = 4096, where the worst-case bound k u sum |ab| would pass
 * errors of several percent. Matrix units of GPUs cut where they should round (Fasi, Higham,
 * Mikaitis and Pranesh 2021, "Numerical behavior of NVIDIA tensor cores", PeerJ Comput. Sci. 7),
 * so that their errors do not cancel: each step loses up to 2u of a sum that is a typical entry at
 * most, in at most k steps: 2 k u of it at the very worst, which is still within.
 *
 * Narrow sums (14 bits of 8-bit floating products on Hopper's units: "DeepSeek-V3 Technical
 * Report", 2024, section 3.3.2; f16 sums): lambda sqrt(k) u r with r the root of sum (a_il
 * b_lj)^2. The bound above would be larger than the entry. Terms of random sign make partial sums
 * of the size of r, and an error of the standard deviation of 0.4 sqrt(k) u r where each step is
 * off by up to u; the bound is 20 of these, and 6 % of a typical entry at k = 4096, where DeepSeek
 * saw errors of 2 %. Where partial sums go over to f32 after `run` terms at most, the runs' errors
 * add up as those of one run of that length do: sqrt(run) for sqrt(k).
 *
 * Inputs cut to steps of d (tf32: 2^-10, cut or rounded): the part that is cut off has a mean of
 * d/2 for each factor, hence d |c|, and varies evenly around it, hence lambda d sqrt(1/6) r:
 * Hoeffding's bound with the variance of two even distributions of width d.
 *
 * C of a narrower type: u_C of the entry.
 *
 * 0 for int8, since integers are exact, and for zeros.
 */
double gemm_error_bound(const struct gemm_rounding *r, uint64_t k, const struct gemm_terms *terms);

/* A product whose result is to be checked, wherever it lies. */
struct gemm_source {
    struct gemm_shape shape;
    struct gemm_rounding rounding;
    /* A's row and B's column as doubles, k each. */
    void (*a_row)(const void *arg, size_t row, double *out);
    void (*b_column)(const void *arg, size_t column, double *out);
    double (*c_at)(const void *arg, size_t row, size_t column);
    /* Called before c_at with the rows that it will be asked for, ascending. 0 or -errno. NULL: C
     * is at hand. */
    int (*fetch)(void *arg, const size_t *rows, size_t n);
    void *arg;
};

struct gemm_check {
    size_t entries, wrong; /* entries looked at; outside of the bound */
    double worst;          /* largest error as a share of its bound; 0 or infinite for int8 */
    size_t row, column;    /* of the first wrong one */
    double got, want, bound;
};

#define GEMM_CHECK_LINES 32

/* Holds entries of C against A B in doubled f64 precision: all crossings of up to 32 rows with up
 * to 32 columns, one drawn from each 32nd part, the first and last of each among them, so that no
 * wrong block or left-out rim is missed. 0; -EBADMSG: wrong, see *out; -ENOMEM; or fetch's. */
int gemm_check_source(const struct gemm_source *s, uint64_t seed, struct gemm_check *out);
int gemm_check_result(const struct gemm_problem *p, uint64_t seed, struct gemm_check *out);

#endif
