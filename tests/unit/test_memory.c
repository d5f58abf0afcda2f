/* SPDX-License-Identifier: Apache-2.0 */
/* What memory stands on: kernels, arrays, the pointer chase, cache levels, placement, host memory and
 * evidence. Machines with two nodes are hwloc's synthetic ones. */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "benches/memory/arrays.h"
#include "core/bench/bench.h"
#include "core/hw/host_buffer.h"
#include "core/hw/place.h"
#include "core/hw/topo.h"
#include "core/rng.h"
#include "core/row.h"

#define BYTES (4 * KERNEL_BLOCK)
#define GUARD 256

/* Three arrays with guards around dst, of the type's own entries. */
struct field {
    _Alignas(64) char before[GUARD];
    char dst[BYTES];
    char after[GUARD];
    _Alignas(64) char a[BYTES];
    _Alignas(64) char b[BYTES];
};

static double get(const char *at, int type, size_t i)
{
    return type == KERNEL_F32 ? (double)((const float *)at)[i] : ((const double *)at)[i];
}

static void put(char *at, int type, size_t i, double value)
{
    if (type == KERNEL_F32)
        ((float *)at)[i] = (float)value;
    else
        ((double *)at)[i] = value;
}

static size_t entry_bytes(int type)
{
    return type == KERNEL_F32 ? sizeof(float) : sizeof(double);
}

static void fill(struct field *f, int type)
{
    memset(f, 0xee, sizeof(*f));
    for (size_t i = 0; i < BYTES / entry_bytes(type); i++) {
        put(f->a, type, i, (double)(1 + i * 7 % 1000));
        put(f->b, type, i, (double)(1 + i * 13 % 1000));
    }
}

static double right(int op, double a, double b, double s)
{
    const double results[KERNEL_OPS] = {0, s, a, s * a, a + b, a + s * b};

    return results[op];
}

static struct kernel_args args_of(struct field *f, uint64_t passes)
{
    return (struct kernel_args){
        .dst = f->dst, .a = f->a, .b = f->b, .bytes = BYTES, .passes = passes, .scalar = 3};
}

static void guards_untouched(const struct field *f)
{
    for (size_t i = 0; i < GUARD; i++) {
        assert_int_equal((unsigned char)f->before[i], 0xee);
        assert_int_equal((unsigned char)f->after[i], 0xee);
    }
}

/* Calls `what` for every kernel that this CPU can run. */
static void each_kernel(void (*what)(kernel_fn *kernel, int op, int type))
{
    for (size_t i = 0; host_isas[i]; i++)
        for (int op = 0; host_isas[i]->present() && op < KERNEL_OPS; op++)
            for (int type = 0; type < KERNEL_TYPES; type++)
                for (int form = 0; form < KERNEL_FORMS; form++)
                    if (host_isas[i]->kernels[op][type][form])
                        what(host_isas[i]->kernels[op][type][form], op, type);
}

static void computes(kernel_fn *kernel, int op, int type)
{
    static struct field f;
    struct kernel_args args = args_of(&f, 2);

    if (op == KERNEL_READ)
        return;
    fill(&f, type);
    kernel(&args);
    for (size_t i = 0; i < BYTES / entry_bytes(type); i++) {
        double a = get(f.a, type, i), b = get(f.b, type, i);
        assert_true(a == (double)(1 + i * 7 % 1000) && b == (double)(1 + i * 13 % 1000));
        assert_true(get(f.dst, type, i) == right(op, a, b, 3));
    }
    guards_untouched(&f);
}

static void test_kernels_compute(void **state)
{
    (void)state;
    each_kernel(computes);
}

/* Bytes of the sources that change the outcome when they change, and of dst that are written: what
 * the operation really moves in a pass. */
static size_t bytes_moved(kernel_fn *kernel, int op, int type)
{
    static struct field before, after;
    size_t moved = 0, each = entry_bytes(type);
    struct kernel_args args = args_of(&before, 1);

    fill(&before, type);
    kernel(&args);
    uint64_t sum = args.sum;
    for (size_t i = 0; i < BYTES; i++)
        moved += (unsigned char)before.dst[i] != 0xee ? 1 : 0;
    for (int array = 0; array < 2; array++)
        for (size_t i = 0; i < BYTES / each; i++) {
            fill(&after, type);
            put(array ? after.b : after.a, type, i, 2000);
            args = args_of(&after, 1);
            kernel(&args);
            bool differs =
                op == KERNEL_READ ? args.sum != sum : memcmp(after.dst, before.dst, BYTES) != 0;
            moved += differs ? each : 0;
        }
    return moved;
}

static void moves_what_is_counted(kernel_fn *kernel, int op, int type)
{
    size_t counted = kernel_arrays((enum kernel_op)op) * (size_t)BYTES;

    if (op == KERNEL_WRITE) { /* some bytes of 3.0 could be those of the fill */
        assert_int_equal(bytes_moved(kernel, op, type), counted);
        return;
    }
    assert_in_range(bytes_moved(kernel, op, type), counted - counted / 20, counted);
}

static void test_counted_bytes_are_those_moved(void **state)
{
    (void)state;
    each_kernel(moves_what_is_counted);
}

static void every_pass_reads(kernel_fn *kernel, int op, int type)
{
    static struct field f;
    struct kernel_args args;
    uint64_t sum = 0;

    if (op != KERNEL_READ)
        return;
    fill(&f, type);
    for (size_t i = 0; i < BYTES; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, f.a + i, sizeof(word));
        sum += word;
    }
    for (uint64_t passes = 0; passes < 4; passes++) {
        args = args_of(&f, passes);
        kernel(&args);
        assert_true(args.sum == passes * sum);
    }
}

static void test_read_adds_up_every_pass(void **state)
{
    (void)state;
    each_kernel(every_pass_reads);
}

/* Words of the first `bytes`. */
static uint64_t sum_of(const char *at, size_t bytes)
{
    uint64_t sum = 0, word;

    for (size_t i = 0; i < bytes; i += sizeof(word)) {
        memcpy(&word, at + i, sizeof(word));
        sum += word;
    }
    return sum;
}

/* 7 blocks: one is over for two streams and for three, and nothing behind the last one is read. */
static void test_read_streams(void **state)
{
    static _Alignas(64) char words[8 * KERNEL_BLOCK];
    struct rng rng;

    (void)state;
    rng_seed(&rng, 3);
    for (size_t i = 0; i < sizeof(words); i++)
        words[i] = (char)rng_u64(&rng);
    for (size_t i = 0; host_isas[i]; i++)
        for (size_t n = 1; host_isas[i]->present() && n <= KERNEL_STREAMS; n++) {
            struct kernel_args args = {.a = words, .bytes = 7 * KERNEL_BLOCK, .passes = 3};
            host_isas[i]->read_streams[n - 1](&args);
            assert_true(args.sum == 3 * sum_of(words, 7 / n * n * KERNEL_BLOCK));
        }
}

/* In place, each pass leaves its mark: no pass is left out. (write has no such mark; it is made from
 * the same macro.) copy moves everything one block down a pass. */
static void every_pass_stores(kernel_fn *kernel, int op, int type)
{
    static struct field f;
    const double results[KERNEL_OPS] = {[KERNEL_SCALE] = 27, [KERNEL_ADD] = 7, [KERNEL_TRIAD] = 19};
    size_t block = KERNEL_BLOCK / entry_bytes(type);
    struct kernel_args args = args_of(&f, 3);

    if (op == KERNEL_READ || op == KERNEL_WRITE)
        return;
    for (size_t i = 0; i < BYTES / entry_bytes(type); i++) {
        put(f.a, type, i, op == KERNEL_COPY ? (double)(unsigned)(i / block) : 1);
        put(f.b, type, i, 2);
    }
    args.dst = f.a;
    if (op == KERNEL_COPY) {
        args.a = f.a + KERNEL_BLOCK;
        args.bytes = BYTES - KERNEL_BLOCK;
    }
    kernel(&args);
    assert_true(get(f.a, type, 0) == (op == KERNEL_COPY ? 3 : results[op]));
}

static void test_kernels_make_every_pass(void **state)
{
    (void)state;
    each_kernel(every_pass_stores);
}

/* A gain of 1 or of 1.33, each measured 8 % wrong either way, gives one choice; so does one of 2. */
static void test_isa_choice_is_steady(void **state)
{
    static const struct {
        double gain;
        bool wide;
    } cpus[] = {{1, false}, {1.33, true}, {2, true}};
    uint64_t ns[8];

    (void)state;
    if (strcmp(host_isas[0]->name, "avx512") != 0)
        skip();
    for (int c = 0; c < 3; c++)
        for (double wrong = 0.92; wrong <= 1.081; wrong += 0.01) {
            ns[0] = (uint64_t)(100000 / cpus[c].gain * wrong);
            ns[1] = 100000;
            for (size_t i = 2; i < 8; i++)
                ns[i] = UINT64_MAX;
            assert_string_equal(host_isa_worth(ns)->name, cpus[c].wide ? "avx512" : "avx2");
        }
}

static void test_isa_choice(void **state)
{
    const struct host_isa *best =
        host_isa_best(); /* it measures: another time it may choose another */

    (void)state;
    assert_non_null(best);
    assert_true(best->present());
    assert_ptr_equal(host_isa_find(best->name), best);
    assert_null(host_isa_find("abacus"));
#if defined(__x86_64__)
    assert_string_not_equal(best->name, "generic");
    for (int op = KERNEL_WRITE; op < KERNEL_OPS; op++)
        assert_non_null(best->kernels[op][KERNEL_F64][KERNEL_NT]);
#endif
    assert_null(host_isa_find("generic")->kernels[KERNEL_COPY][KERNEL_F64][KERNEL_NT]);
}

struct fixture {
    struct topo *topo;
    struct team *team;
    unsigned threads;
    cpu_set_t cpus; /* as it was: a team leaves its caller bound */
};

static int open_team(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    unsigned cpus[2];

    assert_non_null(f);
    assert_int_equal(sched_getaffinity(0, sizeof(f->cpus), &f->cpus), 0);
    assert_int_equal(topo_open(&f->topo), 0);
    f->threads = topo_cpus(f->topo) > 1 ? 2 : 1;
    assert_int_equal(topo_spread(f->topo, -1, f->threads, cpus), 0);
    assert_int_equal(team_open(&f->team, f->topo, cpus, f->threads), 0);
    *state = f;
    return 0;
}

static int close_team(void **state)
{
    struct fixture *f = *state;

    team_close(f->team);
    topo_close(f->topo);
    sched_setaffinity(0, sizeof(f->cpus), &f->cpus);
    free(f);
    return 0;
}

static void open_arrays(const struct fixture *f, struct arrays *a, int op, int type, uint64_t bytes)
{
    struct arrays_config config = {.topo = f->topo,
                                   .op = (enum kernel_op)op,
                                   .type = (enum kernel_type)type,
                                   .bytes = bytes,
                                   .memory = HOST_PAGES_BASE,
                                   .node = -1,
                                   .seed = 7};
    char error[160] = "";

    assert_int_equal(arrays_open(a, &config, f->team, error, sizeof(error)), 0);
}

static void test_arrays_all_ops(void **state)
{
    const struct fixture *f = *state;
    char error[160];

    for (int op = 0; op < KERNEL_OPS; op++)
        for (int type = 0; type < KERNEL_TYPES; type++) {
            struct arrays a;
            uint64_t ns;
            open_arrays(f, &a, op, type, 300000);
            kernel_fn *kernel = host_isa_best()->kernels[op][type][KERNEL_FAR];
            arrays_time(&a, f->team, kernel, 3, 5, &ns);
            assert_true(ns > 0);
            assert_int_equal(arrays_check(&a, f->team, error, sizeof(error)), 0);
            arrays_spoil(&a);
            if (op == KERNEL_READ)
                arrays_time(&a, f->team, kernel, 1, 5, &ns);
            error[0] = 0;
            assert_int_equal(arrays_check(&a, f->team, error, sizeof(error)), -EBADMSG);
            assert_non_null(strstr(error, "wrong data"));
            arrays_close(&a);
        }
}

/* One bit of one entry, wherever it is in whosever part of whichever array: found, and named. */
static void test_arrays_one_entry(void **state)
{
    const struct fixture *f = *state;
    char error[160], name[64];
    struct arrays a;
    uint64_t ns;

    open_arrays(f, &a, KERNEL_TRIAD, KERNEL_F64, 3u << 20);
    arrays_time(&a, f->team, host_isa_best()->kernels[KERNEL_TRIAD][KERNEL_F64][KERNEL_FAR], 2, 5,
                &ns);
    size_t n = a.part_bytes / sizeof(double), entries[] = {0, n / 2 - 1, n / 2, n - 1};
    for (unsigned t = 0; t < f->threads; t++) {
        const struct kernel_args *args = &a.parts[t].args;
        const void *const arrays[] = {args->dst, args->a, args->b};
        for (size_t k = 0; k < 3 * sizeof(entries) / sizeof(entries[0]); k++) {
            char *at = (char *)arrays[k % 3] + entries[k / 3] * sizeof(double);
            *at ^= 1;
            assert_int_equal(arrays_check(&a, f->team, error, sizeof(error)), -EBADMSG);
            *at ^= 1;
            snprintf(name, sizeof(name), "entry %zu%s of thread %u's", entries[k / 3],
                     k % 3 ? k % 3 == 1 ? " of a" : " of b" : "", t);
            assert_non_null(strstr(error, name));
        }
    }
    assert_int_equal(arrays_check(&a, f->team, error, sizeof(error)), 0);
    arrays_close(&a);
}

/* No part holds what another one holds, nor b what a does. */
static void test_arrays_differ(void **state)
{
    const struct fixture *f = *state;
    struct arrays a;
    const double *sources[4];
    unsigned n = 0;

    open_arrays(f, &a, KERNEL_TRIAD, KERNEL_F64, 3u << 16);
    for (unsigned t = 0; t < f->threads; t++) {
        sources[n++] = a.parts[t].args.a;
        sources[n++] = a.parts[t].args.b;
    }
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 0; k < i; k++)
            for (int shift = -8; shift <= 8; shift++) { /* generators run side by side */
                int same = 0;
                for (int at = 8; at < 1000; at++)
                    same += sources[i][at] == sources[k][at + shift] ? 1 : 0;
                assert_in_range(same, 0, 20); /* 1 by chance */
            }
    arrays_close(&a);
}

/* What an earlier sample, or nothing, left behind is not taken for a result. */
static void test_arrays_stale(void **state)
{
    const struct fixture *f = *state;
    char error[160];
    uint64_t ns;

    for (int op = KERNEL_WRITE; op < KERNEL_OPS; op++) {
        struct arrays a;
        kernel_fn *kernel = host_isa_best()->kernels[op][KERNEL_F32][KERNEL_NEAR];
        open_arrays(f, &a, op, KERNEL_F32, 16384);
        arrays_time(&a, f->team, kernel, 0, 3, &ns);
        assert_int_equal(arrays_check(&a, f->team, error, sizeof(error)), -EBADMSG);
        arrays_time(&a, f->team, kernel, 1, 3, &ns);
        assert_int_equal(arrays_check(&a, f->team, error, sizeof(error)), 0);
        arrays_time(&a, f->team, kernel, 0, 4, &ns);
        bool scaled = op == KERNEL_WRITE || op == KERNEL_SCALE || op == KERNEL_TRIAD;
        assert_int_equal(arrays_check(&a, f->team, error, sizeof(error)), scaled ? -EBADMSG : 0);
        arrays_close(&a);
    }
}

static void test_arrays_sizes(void **state)
{
    const struct fixture *f = *state;
    const uint64_t sizes[] = {16384, 100000, 1000000, 3u << 20};

    for (int op = 0; op < KERNEL_OPS; op++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            struct arrays a;
            unsigned arrays = kernel_arrays((enum kernel_op)op);
            open_arrays(f, &a, op, KERNEL_F64, sizes[i]);
            uint64_t set = arrays_set_bytes(&a);
            unsigned grain = a.part_bytes >= 65536 ? 4096 : KERNEL_BLOCK;
            assert_in_range(set + grain * arrays * f->threads, sizes[i] + 1,
                            sizes[i] + grain * arrays * f->threads);
            assert_true(set == (uint64_t)a.part_bytes * arrays * f->threads);
            assert_true(arrays_pass_bytes(&a) == set);
            for (unsigned t = 0; t < f->threads; t++) { /* a part in its own thread's buffer */
                const char *begin = a.buffers[t].at, *end = begin + a.part_bytes * arrays;
                const struct kernel_args *args = &a.parts[t].args;
                const char *used[] = {args->dst, args->a, args->b};
                unsigned n = 0;
                for (int k = 0; k < 3; k++) {
                    n += used[k] ? 1 : 0;
                    assert_true(!used[k] || (used[k] >= begin && used[k] + args->bytes <= end));
                }
                assert_int_equal(n, arrays);
            }
            arrays_close(&a);
        }
}

static void test_arrays_too_small(void **state)
{
    const struct fixture *f = *state;
    struct arrays_config config = {.topo = f->topo,
                                   .op = KERNEL_TRIAD,
                                   .bytes = 3 * KERNEL_BLOCK * f->threads - 1,
                                   .node = -1};
    struct arrays a;
    char error[160] = "";

    assert_int_equal(arrays_open(&a, &config, f->team, error, sizeof(error)), -ERANGE);
    assert_non_null(strstr(error, "block"));
    config.bytes++;
    assert_int_equal(arrays_open(&a, &config, f->team, error, sizeof(error)), 0);
    arrays_close(&a);
}

static void test_ceiling_leaves_arrays(void **state)
{
    const struct fixture *f = *state;
    struct arrays a;
    char error[160];
    uint64_t ns;

    open_arrays(f, &a, KERNEL_TRIAD, KERNEL_F64, 100000);
    struct arrays_ceiling ceiling = {0};
    double first = ((const double *)a.parts[0].args.a)[7];
    arrays_ceiling(&a, f->team, &ceiling);
    assert_true(isfinite(ceiling.read_gbps) && ceiling.read_gbps > 0);
    assert_true(isfinite(ceiling.write_gbps) && ceiling.write_gbps > 0);
    assert_in_range(ceiling.read_form, 1, 2 * KERNEL_STREAMS);
    assert_in_range(ceiling.write_form, 1, 2 * KERNEL_FORMS);
    assert_true(((const double *)a.parts[0].args.a)[7] == first); /* the same data, not constants */
    arrays_time(&a, f->team, host_isa_best()->kernels[KERNEL_TRIAD][KERNEL_F64][KERNEL_NEAR], 1, 3,
                &ns);
    assert_int_equal(arrays_check(&a, f->team, error, sizeof(error)), 0);
    arrays_close(&a);
}

/* Of loads alone: nothing was written, and the operation's array is as before. */
static void test_ceiling_of_loads(void **state)
{
    const struct fixture *f = *state;
    struct arrays_ceiling ceiling = {0}, again;
    struct arrays a;
    char error[160];
    uint64_t ns;

    open_arrays(f, &a, KERNEL_READ, KERNEL_F64, 100000);
    arrays_ceiling(&a, f->team, &ceiling);
    assert_true(ceiling.read_gbps > 0 && ceiling.read_form > 0 && !ceiling.write_form);
    for (unsigned t = 0; t < f->threads; t++) {
        assert_null(a.parts[t].args.dst);
        assert_true(a.parts[t].args.bytes == a.part_bytes);
    }
    arrays_time(&a, f->team, host_isa_best()->kernels[KERNEL_READ][KERNEL_F64][KERNEL_NEAR], 3, 3,
                &ns);
    assert_int_equal(arrays_check(&a, f->team, error, sizeof(error)), 0);
    arrays_ceiling_again(&a, f->team, &ceiling, &again);
    assert_true(again.read_gbps > 0 && !again.write_form);
    assert_int_equal(again.read_form, ceiling.read_form);
    arrays_close(&a);
}

/* Zeros are stored faster than data by some memory: the ceiling of stores is not theirs. */
static void test_ceiling_stores_no_zeros(void **state)
{
    const struct fixture *f = *state;
    struct arrays_ceiling ceiling = {0}, again;
    struct arrays a;

    open_arrays(f, &a, KERNEL_WRITE, KERNEL_F64, 100000);
    arrays_ceiling(&a, f->team, &ceiling);
    arrays_ceiling_again(&a, f->team, &ceiling, &again); /* what it stored is still there */
    const uint32_t *words = a.buffers[0].at;
    for (size_t i = 0; i < a.part_bytes / sizeof(*words); i++)
        assert_int_not_equal(words[i], 0);
    arrays_close(&a);
}

/* Only what the operation needs and is not known yet. */
static void test_ceiling_of_what_is_needed(void **state)
{
    const struct fixture *f = *state;
    struct arrays_ceiling ceiling = {0};
    struct arrays a;

    open_arrays(f, &a, KERNEL_WRITE, KERNEL_F64, 100000);
    arrays_ceiling(&a, f->team, &ceiling);
    assert_true(ceiling.write_gbps > 0 && ceiling.write_form > 0 && !ceiling.read_form);
    arrays_close(&a);
    open_arrays(f, &a, KERNEL_COPY, KERNEL_F64, 100000);
    ceiling.write_gbps = -1; /* kept as it is, and so is the data */
    *(char *)a.parts[0].args.a ^= 1;
    char first = *(const char *)a.parts[0].args.a;
    arrays_ceiling(&a, f->team, &ceiling);
    assert_true(ceiling.write_gbps == -1 && ceiling.read_gbps > 0 && ceiling.read_form > 0);
    assert_int_equal(*(const char *)a.parts[0].args.a, first);
    ceiling.read_gbps = -1;
    arrays_ceiling(&a, f->team, &ceiling);
    assert_true(ceiling.read_gbps == -1);
    arrays_close(&a);
}

/* Worked by hand: loads at 60, stores at 20 GB/s. */
static void test_limit(void **state)
{
    const struct arrays_ceiling c = {.read_gbps = 60, .write_gbps = 20},
                                even = {.read_gbps = 60, .write_gbps = 60},
                                no_fill = {.read_gbps = 60, .write_gbps = 120},
                                only_loads = {.read_gbps = 60}, only_stores = {.write_gbps = 20};
    const struct {
        enum kernel_op op;
        bool fills;
        const struct arrays_ceiling *c;
        double gbps;
    } cases[] = {
        {KERNEL_READ, false, &c, 60},
        {KERNEL_WRITE, false, &c, 20},
        {KERNEL_COPY, false, &c, 40},        /* 2 / max(1/60, 1/20) */
        {KERNEL_TRIAD, false, &c, 60},       /* 3 / max(2/60, 1/20) */
        {KERNEL_COPY, true, &c, 40},         /* 2 / max(2/60, 1/20) */
        {KERNEL_TRIAD, true, &c, 60},        /* 3 / max(3/60, 1/20) */
        {KERNEL_COPY, false, &even, 120},    /* 2 / max(1/60, 1/60) */
        {KERNEL_COPY, true, &even, 60},      /* 2 / max(2/60, 1/60) */
        {KERNEL_TRIAD, false, &even, 90},    /* 3 / max(2/60, 1/60) */
        {KERNEL_TRIAD, true, &even, 60},     /* 3 / max(3/60, 1/60) */
        {KERNEL_COPY, true, &no_fill, 80},   /* 2 / max(1.5/60, 1/120) */
        {KERNEL_TRIAD, true, &no_fill, 72},  /* 3 / max(2.5/60, 1/120) */
        {KERNEL_WRITE, true, &no_fill, 120}, /* loads are of no account */
        {KERNEL_WRITE, true, &only_stores, 20},
        {KERNEL_WRITE, false, &only_stores, 20},
        {KERNEL_READ, true, &only_loads, 60},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_true(fabs(arrays_limit(cases[i].op, cases[i].fills, cases[i].c) - cases[i].gbps) <
                    1e-9);
}

/* A part whose rate is not known leaves the whole unknown; one that is not used does not. */
static void test_limit_of_unknown_parts(void **state)
{
    const struct limit_parts loads = {.rate = {60, NAN}, .share = 1},
                             stores = {.rate = {NAN, 20}, .share = 0},
                             no_loads = {.rate = {NAN, 20}, .share = 2.0 / 3, .fill = 1.0 / 3},
                             no_stores = {.rate = {60, NAN}, .share = 2.0 / 3};

    (void)state;
    assert_true(limit_of_parts(&loads) == 60 && limit_of_parts(&stores) == 20);
    assert_true(isnan(limit_of_parts(&no_loads)) && isnan(limit_of_parts(&no_stores)));
}

/* Places that differ in anything are different; one that cannot be told whole is none. */
static void test_ceiling_places(void **state)
{
    const unsigned cpus[] = {0, 1, 2, 8};
    unsigned odd[120];
    char place[CEILING_PLACE], other[CEILING_PLACE];

    (void)state;
    ceiling_place(place, "loads", cpus, 4, "%d bytes", 4096);
    assert_string_equal(place, "loads, CPUs 0-2,8, 4096 bytes");
    ceiling_place(other, "loads", cpus, 3, "%d bytes", 4096);
    assert_string_not_equal(place, other);
    for (unsigned i = 0; i < 120; i++)
        odd[i] = 2 * i + 1;
    ceiling_place(other, "loads", odd, 120, "%d bytes", 4096);
    assert_string_equal(other, "");
    ceiling_place(other, "loads", cpus, 4, "%0*d", CEILING_PLACE, 1);
    assert_string_equal(other, "");
}

/* A machine made of two ports, each of which moves one line at a time: one brings lines in, the other takes lines out. With `fills` a line is
 * brought in before it is stored; of those a share of `left_out` tenths is not. Bytes that the program names, over the time. */
static double walk_lines(unsigned loads, unsigned stores, bool fills, unsigned left_out,
                         double in_ns, double out_ns)
{
    enum { LINES = 10000 };
    double in_free = 0, out_free = 0;

    for (unsigned i = 0; i < LINES; i++) {
        in_free += loads * in_ns;
        for (unsigned k = 0; k < stores; k++) {
            if (fills && i % 10 >= left_out)
                in_free += in_ns;
            out_free = fmax(out_free, in_free) + out_ns;
        }
    }
    return 64.0 * LINES * (loads + stores) / fmax(in_free, out_free);
}

/* No machine of that kind exceeds the limit made of what it reached by loads alone and stores alone; where none of the fills is left out, it
 * reaches it. */
static void test_limit_of_machines(void **state)
{
    static const enum kernel_op ops[] = {KERNEL_READ, KERNEL_WRITE, KERNEL_COPY, KERNEL_TRIAD};

    (void)state;
    for (unsigned m = 0; m < 2 * 10 * 7; m++) {
        bool fills = m % 2;
        unsigned left_out = m / 2 % 10;
        double in_ns = 1, out_ns = 0.25 * (1 + m / 20 % 7);
        const struct arrays_ceiling c = {
            .read_gbps = walk_lines(1, 0, fills, left_out, in_ns, out_ns),
            .write_gbps = walk_lines(0, 1, fills, left_out, in_ns, out_ns)};
        for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
            unsigned writes = kernel_stores(ops[i]) ? 1 : 0,
                     reads = (unsigned)kernel_arrays(ops[i]) - writes;
            double reached = walk_lines(reads, writes, fills, left_out, in_ns, out_ns),
                   limit = arrays_limit(ops[i], fills, &c);
            if (!left_out || !fills)
                assert_true(reached <= 1.001 * limit && reached >= 0.999 * limit);
            else if (out_ns <=
                     in_ns * (10 - left_out) / 10) /* its stores alone show what is left out */
                assert_true(reached <= 1.001 * limit);
        }
    }
}

/* Of stores round the caches and of regular ones: each by its own kind of loop. */
static void test_ceiling_of_own_stores(void **state)
{
    const struct fixture *f = *state;
    const struct host_isa *best = host_isa_best();
    struct arrays a;

    for (int nt = 0; nt < 2; nt++) {
        struct arrays_ceiling ceiling = {0};
        if (nt && !best->kernels[KERNEL_WRITE][KERNEL_F32][KERNEL_NT])
            continue;
        open_arrays(f, &a, KERNEL_WRITE, KERNEL_F64, 100000);
        a.config.nt = nt;
        arrays_ceiling(&a, f->team, &ceiling);
        assert_true(ceiling.write_gbps > 0);
        /* two widths of vectors: one form each round the caches, two each through them */
        assert_in_range(ceiling.write_form, 1, nt ? 2 : 4);
        arrays_close(&a);
    }
}

static void test_best_of_two_ceilings(void **state)
{
    const struct arrays_ceiling a = {.read_gbps = 60, .write_gbps = 20, .read_form = 2},
                                b = {.read_gbps = 50, .write_gbps = 30, .read_form = 2};
    struct arrays_ceiling best = arrays_ceiling_best(&a, &b);

    (void)state;
    assert_true(best.read_gbps == 60 && best.write_gbps == 30 && best.read_form == 2);
}

static void test_chase_is_one_cycle(void **state)
{
    enum { LINES = 1000 };
    _Alignas(64) static char at[LINES * CHASE_LINE];
    static unsigned visits[LINES];
    struct chase c;
    unsigned neighbours = 0;

    (void)state;
    assert_int_equal(chase_build(&c, at, sizeof(at), 3), 0);
    char *start = (char *)c.now;
    for (int i = 0; i < LINES; i++) {
        char *was = (char *)c.now;
        visits[(was - at) / CHASE_LINE]++;
        chase_run(&c, 1);
        assert_int_equal(((char *)c.now - at) % CHASE_LINE, 0);
        neighbours += (char *)c.now - was == CHASE_LINE ? 1 : 0;
        assert_int_equal(chase_check(&c), 0);
    }
    assert_ptr_equal(c.now, start);
    for (int i = 0; i < LINES; i++)
        assert_int_equal(visits[i], 1);
    assert_in_range(neighbours, 0, 20);
    for (uint64_t hops = 0; hops < 40; hops++) { /* whole blocks and what is left over */
        chase_run(&c, hops);
        assert_int_equal(chase_check(&c), 0);
    }
    c.hops++;
    assert_int_equal(chase_check(&c), -EBADMSG);
    assert_int_equal(chase_look(&c), 0);
    for (int i = 0; i < LINES; i++) { /* any one link, to another line than the next */
        void **link = (void **)(at + (size_t)i * CHASE_LINE), *next = *link;
        *link = link;
        assert_int_equal(chase_look(&c), -EBADMSG);
        *link = next;
    }
    assert_int_equal(chase_look(&c), 0);
    chase_release(&c);
    assert_int_equal(chase_build(&c, at, CHASE_LINE, 3), -EINVAL);
}

/* All pages once, 32 loads from each before the next, never both lines of a pair; beside the random cycle. */
static void test_chase_goes_page_by_page(void **state)
{
    enum { PAGES = 50, HOPS = 32 };
    _Alignas(4096) static char at[PAGES * CHASE_PAGE];
    static bool pages[PAGES], pairs[PAGES * HOPS];
    unsigned in_order = 0;
    struct chase random, c;

    (void)state;
    assert_int_equal(chase_build(&random, at, sizeof(at), 3), 0);
    assert_int_equal(chase_build_pages(&c, at, sizeof(at), 4), 0);
    for (int p = 0; p < PAGES; p++) {
        size_t page = (size_t)((char *)c.now - at) / CHASE_PAGE;

        assert_false(pages[page]);
        pages[page] = true;
        for (int i = 0; i < HOPS; i++) {
            size_t offset = (size_t)((char *)c.now - at), pair = offset / (2 * CHASE_LINE);

            assert_int_equal(offset / CHASE_PAGE, page);
            assert_false(pairs[pair]);
            pairs[pair] = true;
            chase_run(&c, 1);
            in_order += (size_t)((char *)c.now - at) / (2 * CHASE_LINE) == pair + 1;
        }
    }
    assert_in_range(in_order, 0, PAGES * HOPS / 8);
    assert_int_equal(chase_check(&c), 0);
    assert_int_equal(chase_look(&c), 0);
    assert_int_equal(chase_look(&random), 0);
    assert_ptr_not_equal(c.now, random.now);
    chase_release(&c);
    chase_release(&random);
    assert_int_equal(chase_build_pages(&c, at, CHASE_PAGE, 4), -EINVAL);
}

/* Loads far apart as fast as near ones: one translation serves them. */
static void test_small_pages_are_told_by_their_cost(void **state)
{
    struct chase_translation t;
    char at[CHASE_LINE];

    (void)state;
    assert_true(chase_pages_are_small(&(struct chase_translation){16, 5}));
    assert_true(chase_pages_are_small(&(struct chase_translation){9.5, 5}));
    assert_false(chase_pages_are_small(&(struct chase_translation){5, 5}));
    assert_false(chase_pages_are_small(&(struct chase_translation){6, 5}));
    assert_int_equal(chase_translation(at, sizeof(at), 1, &t), -ERANGE);
}

/* A TLB that always takes the entry used longest ago, of so many entries for aligned pages of that size. Misses of
 * the second time round the chain. */
static unsigned misses_of(struct chase *c, unsigned entries, uint64_t page_bytes)
{
    static uint64_t used[1 << 18], tags[1 << 18]; /* by page: when; the entries in use, in order */
    uint64_t now = 0, pages = 0;
    unsigned missed = 0;

    memset(used, 0, sizeof(used));
    for (uint64_t i = 0; i < 2 * c->lines; i++) {
        uint64_t page = (uint64_t)((char *)c->now - c->at) / page_bytes, younger = 0;

        assert_true(page < 1 << 18);
        /* How many others were used since: more than there are entries, and it is gone. */
        for (uint64_t k = pages; used[page] && k && used[tags[k - 1]] > used[page]; k--)
            younger++;
        missed += i >= c->lines && (!used[page] || younger >= entries);
        uint64_t at = used[page] ? pages - 1 - younger : pages++;
        memmove(tags + at, tags + at + 1, (pages - 1 - at) * sizeof(*tags));
        tags[pages - 1] = page;
        used[page] = ++now;
        chase_run(c, 1);
    }
    return missed;
}

/* Far loads miss the largest TLB of small pages, even where it joins four neighbours; of huge pages they need no
 * more entries than near ones, which hardly miss anything. */
static void test_translation_defeats_joined_pages(void **state)
{
    size_t bytes = (size_t)CHASE_TRANSLATION_LINES * CHASE_TRANSLATION_GROUP;
    char *at = aligned_alloc(2 << 20, bytes);
    struct chase far, near;

    (void)state;
    assert_non_null(at);
    assert_int_equal(chase_translation_build(at, bytes, 5, &far, &near), 0);
    assert_int_equal(chase_look(&far), 0);
    assert_int_equal(chase_look(&near), 0);
    assert_true(misses_of(&far, 4096, 4 * 4096) > far.lines * 9 / 10);
    assert_int_equal(misses_of(&near, 256, 4096), 0);
    assert_int_equal(misses_of(&far, 64, 2 << 20), 0);
    assert_int_equal(misses_of(&near, 64, 2 << 20), 0);
    assert_int_equal(misses_of(&near, 16, 2 << 20) > 0, misses_of(&far, 16, 2 << 20) > 0);
    chase_release(&far);
    chase_release(&near);
    assert_int_equal(chase_translation_build(at, bytes - 1, 5, &far, &near), -ERANGE);
    free(at);
}

/* Two packages, a node and an L3 of 8 MiB each, four cores with 1 MiB and 32 KiB. */
#define TWO_NODES                                                                                  \
    "pack:2 [numa(memory=8GB)] l3:1(size=8388608) l2:4(size=1048576) l1:1(size=32768) core:1 pu:1"

static struct topo *open_synthetic(const char *text)
{
    struct topo *topo;

    setenv("HWLOC_SYNTHETIC", text, 1);
    assert_int_equal(topo_open(&topo), 0);
    unsetenv("HWLOC_SYNTHETIC");
    return topo;
}

static void test_cache_levels(void **state)
{
    struct topo *topo = open_synthetic(TWO_NODES);
    const unsigned one[] = {0}, near[] = {0, 1}, far[] = {0, 4};

    (void)state;
    assert_string_equal(cache_level(topo, one, 1, 32768), "L1");
    assert_string_equal(cache_level(topo, one, 1, 32769), "L2");
    assert_string_equal(cache_level(topo, one, 1, 1 << 20), "L2");
    assert_string_equal(cache_level(topo, one, 1, 8 << 20), "L3");
    assert_string_equal(cache_level(topo, one, 1, (8 << 20) + 1), "DRAM");
    assert_string_equal(cache_level(topo, near, 2, 32768), "L1");
    assert_string_equal(cache_level(topo, near, 2, 8 << 20), "DRAM"); /* one L3 for two */
    assert_string_equal(cache_level(topo, near, 2, 4 << 20), "L3");
    assert_string_equal(cache_level(topo, far, 2, 8 << 20), "L3"); /* one each */
    topo_close(topo);
    topo = open_synthetic("pack:1 core:2 pu:1");
    assert_string_equal(cache_level(topo, one, 1, 1024), ""); /* hidden */
    topo_close(topo);
}

static void test_placement(void **state)
{
    struct topo *topo = open_synthetic(TWO_NODES);
    struct placement p;
    char error[160];

    (void)state;
    assert_int_equal(placement_resolve(topo, 0, -1, PLACEMENT_LOCAL, &p, error, sizeof(error)), 0);
    assert_int_equal(p.threads, 8);
    assert_int_equal(p.memory_node, -1);
    placement_release(&p);
    assert_int_equal(placement_resolve(topo, 0, 1, PLACEMENT_REMOTE, &p, error, sizeof(error)), 0);
    assert_int_equal(p.threads, 4);
    assert_int_equal(p.cpus[0], 4);
    assert_int_equal(p.memory_node, 0);
    placement_release(&p);
    assert_int_equal(placement_resolve(topo, 2, 0, 1, &p, error, sizeof(error)), 0);
    assert_int_equal(p.threads, 2);
    assert_int_equal(p.memory_node, 1);
    placement_release(&p);
    assert_int_equal(placement_resolve(topo, 1, -1, PLACEMENT_REMOTE, &p, error, sizeof(error)), 0);
    assert_int_equal(p.memory_node, 1);
    placement_release(&p);
    const struct {
        unsigned threads;
        int node, memory;
        const char *says;
    } wrong[] = {{0, -1, PLACEMENT_REMOTE, "--node"},
                 {0, 2, PLACEMENT_LOCAL, "no NUMA node 2 for threads"},
                 {0, 0, 7, "no NUMA node 7 for memory"},
                 {5, 0, PLACEMENT_LOCAL, "5 threads"},
                 {9, -1, PLACEMENT_LOCAL, "only 8 CPUs"}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(placement_resolve(topo, wrong[i].threads, wrong[i].node, wrong[i].memory,
                                           &p, error, sizeof(error)),
                         -EOPNOTSUPP);
        assert_non_null(strstr(error, wrong[i].says));
        placement_release(&p);
    }
    topo_close(topo);
    topo = open_synthetic("pack:1 core:2 pu:1");
    assert_int_equal(placement_resolve(topo, 1, -1, PLACEMENT_REMOTE, &p, error, sizeof(error)),
                     -EOPNOTSUPP);
    assert_non_null(strstr(error, "one NUMA node"));
    placement_release(&p);
    topo_close(topo);
}

static void test_placement_words(void **state)
{
    char error[160];
    int value = 99;

    (void)state;
    assert_int_equal(placement_parse_node("any", &value, error, sizeof(error)), 0);
    assert_int_equal(value, PLACEMENT_ANY);
    assert_int_equal(placement_parse_node("3", &value, error, sizeof(error)), 0);
    assert_int_equal(value, 3);
    assert_int_equal(placement_parse_node("local", &value, error, sizeof(error)), -EINVAL);
    assert_non_null(strstr(error, "'local'"));
    assert_non_null(strstr(error, "any"));
    assert_int_equal(placement_parse_memory("remote", &value, error, sizeof(error)), 0);
    assert_int_equal(value, PLACEMENT_REMOTE);
    assert_int_equal(placement_parse_memory("-1", &value, error, sizeof(error)), -EINVAL);
}

static void test_places(void **state)
{
    struct topo *topo = open_synthetic(TWO_NODES);
    struct place place;
    char error[160];

    (void)state;
    assert_int_equal(place_find("node1", topo, &place, error, sizeof(error)), 0);
    assert_false(place.gpu);
    assert_int_equal(place.index, 1);
    assert_int_equal(place_find("node2", topo, &place, error, sizeof(error)), -ENODEV);
    assert_non_null(strstr(error, "node0, node1"));
    assert_int_equal(place_find("node", topo, &place, error, sizeof(error)), -EINVAL);
    assert_int_equal(place_find("moon1", topo, &place, error, sizeof(error)), -EINVAL);
    assert_non_null(strstr(error, "'moon1'"));
    topo_close(topo);
}

static bool thp_is_off(void)
{
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    char line[80] = "[never]";

    if (f && !fgets(line, sizeof(line), f))
        line[0] = 0;
    if (f)
        fclose(f);
    return strstr(line, "[never]") != NULL;
}

/* The share on huge pages follows what was asked for, and only touched memory counts. */
static void test_host_memory(void **state)
{
    const struct fixture *f = *state;
    struct host_buffer b[2];
    struct host_where w;
    char error[160];
    const size_t bytes = (size_t)5 << 20;

    assert_int_equal(host_alloc(&b[0], f->topo, bytes, HOST_PAGES_BASE, -1, error, 160), 0);
    assert_int_equal(host_alloc(&b[1], f->topo, bytes, HOST_PAGES_THP, -1, error, 160), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal((uintptr_t)b[i].at % (2u << 20), 0);
    host_where(b, 2, &w);
    assert_true(w.huge_known);
    assert_true(w.resident_bytes == 0 && w.looked_at == 0);
    assert_true(isnan(host_huge_share(&w)));
    for (int i = 0; i < 2; i++)
        memset(b[i].at, 1, bytes);
    host_where(&b[0], 1, &w);
    assert_true(w.resident_bytes == bytes && w.huge_bytes == 0);
    if (w.nodes_known)
        assert_int_equal(w.looked_at, 256);
    host_where(&b[1], 1, &w);
    if (thp_is_off())
        assert_true(w.huge_bytes == 0);
    else
        assert_true(host_huge_share(&w) > 0.5 && host_huge_share(&w) <= 1);
    host_where(b, 2, &w);
    assert_true(w.resident_bytes >= 2 * bytes);
    for (int i = 0; i < 2; i++)
        host_free(&b[i]);
    host_free(&b[0]); /* a freed one is left alone */
}

static void test_host_refuses(void **state)
{
    const struct fixture *f = *state;
    struct host_buffer b;
    char error[160] = "";

    assert_true(host_available() > 1 << 20);
    int err = host_alloc(&b, f->topo, (size_t)1 << 46, HOST_PAGES_HUGETLB, -1, error, 160);
    assert_int_equal(err, -EOPNOTSUPP); /* 64 TiB of reserved pages */
    assert_non_null(strstr(error, "vm.nr_hugepages"));
    assert_null(b.at);
}

static void test_evidence_text(void **state)
{
    struct host_where w = {.huge_known = true,
                           .resident_bytes = 400,
                           .huge_bytes = 100,
                           .nodes_known = true,
                           .looked_at = 10,
                           .elsewhere = 1,
                           .on_node = {[1] = 9}};
    char text[128];

    (void)state;
    assert_string_equal(host_where_text(&w, text, sizeof(text)),
                        "node1 9/10 pages looked at, other nodes 1/10, 25 % on huge pages");
    w = (struct host_where){0};
    assert_string_equal(host_where_text(&w, text, sizeof(text)),
                        "node unknown (move_pages refused), page size unknown (no smaps)");
    char tiny[8] = "";
    evidence_add(tiny, sizeof(tiny), "much too long");
    assert_string_equal(tiny, "much to");
    evidence_add(tiny, sizeof(tiny), "more");
    assert_string_equal(tiny, "much to");
}

static void test_ceilings(void **state)
{
    struct ceilings c = {0};
    double value = 0;

    (void)state;
    assert_int_equal(ceilings_find(&c, "a", &value), -ENOENT);
    assert_int_equal(ceilings_add(&c, "a", 1), 0);
    assert_int_equal(ceilings_add(&c, "b", 2), 0);
    assert_int_equal(ceilings_find(&c, "a", &value), 0);
    assert_true(value == 1);
    assert_int_equal(ceilings_find(&c, "b", &value), 0);
    assert_true(value == 2);
    assert_int_equal(ceilings_raise(&c, "b", 1), 0);
    assert_int_equal(ceilings_raise(&c, "a", 3), 0);
    assert_int_equal(ceilings_raise(&c, "c", 4), 0);
    assert_true(!ceilings_find(&c, "b", &value) && value == 2);
    assert_true(!ceilings_find(&c, "a", &value) && value == 3);
    assert_true(!ceilings_find(&c, "c", &value) && value == 4);
    ceilings_release(&c);
    assert_int_equal(ceilings_find(&c, "a", &value), -ENOENT);
    ceilings_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_compute),
        cmocka_unit_test(test_counted_bytes_are_those_moved),
        cmocka_unit_test(test_read_adds_up_every_pass),
        cmocka_unit_test(test_read_streams),
        cmocka_unit_test(test_kernels_make_every_pass),
        cmocka_unit_test(test_isa_choice_is_steady),
        cmocka_unit_test(test_isa_choice),
        cmocka_unit_test_setup_teardown(test_arrays_all_ops, open_team, close_team),
        cmocka_unit_test_setup_teardown(test_arrays_one_entry, open_team, close_team),
        cmocka_unit_test_setup_teardown(test_arrays_differ, open_team, close_team),
        cmocka_unit_test_setup_teardown(test_arrays_stale, open_team, close_team),
        cmocka_unit_test_setup_teardown(test_arrays_sizes, open_team, close_team),
        cmocka_unit_test_setup_teardown(test_arrays_too_small, open_team, close_team),
        cmocka_unit_test_setup_teardown(test_ceiling_leaves_arrays, open_team, close_team),
        cmocka_unit_test_setup_teardown(test_ceiling_of_loads, open_team, close_team),
        cmocka_unit_test_setup_teardown(test_ceiling_stores_no_zeros, open_team, close_team),
        cmocka_unit_test_setup_teardown(test_ceiling_of_what_is_needed, open_team, close_team),
        cmocka_unit_test_setup_teardown(test_ceiling_of_own_stores, open_team, close_team),
        cmocka_unit_test(test_chase_is_one_cycle),
        cmocka_unit_test(test_chase_goes_page_by_page),
        cmocka_unit_test(test_small_pages_are_told_by_their_cost),
        cmocka_unit_test(test_translation_defeats_joined_pages),
        cmocka_unit_test(test_cache_levels),
        cmocka_unit_test(test_placement),
        cmocka_unit_test(test_placement_words),
        cmocka_unit_test(test_places),
        cmocka_unit_test_setup_teardown(test_host_memory, open_team, close_team),
        cmocka_unit_test_setup_teardown(test_host_refuses, open_team, close_team),
        cmocka_unit_test(test_evidence_text),
        cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_limit_of_unknown_parts),
        cmocka_unit_test(test_ceiling_places),
        cmocka_unit_test(test_limit_of_machines),
        cmocka_unit_test(test_best_of_two_ceilings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
