/* SPDX-License-Identifier: Apache-2.0 */
/* What memory stands on: kernels, arrays, the pointer chase, cache levels, placement, host memory and
 * evidence. Machines with two nodes are hwloc's synthetic ones. */
#include <sched.h>

#include "benches/memory/arrays.h"
#include "core/bench/bench.h"
#include "core/hw/host_buffer.h"
#include "core/hw/place.h"
#include "core/hw/topo.h"
#include "core/rng.h"
#include "core/row.h"
#include "tests/unit/unit.h"

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

static uint64_t sum_of(const char *at, size_t bytes)
{
    uint64_t sum = 0, word;

    for (size_t i = 0; i < bytes; i += sizeof(word)) {
        memcpy(&word, at + i, sizeof(word));
        sum += word;
    }
    return sum;
}

static void read_adds_up_every_pass(kernel_fn *kernel, struct field *f)
{
    for (uint64_t passes = 0; passes < 4; passes++) {
        struct kernel_args args = {.a = f->a, .bytes = BYTES, .passes = passes};
        kernel(&args);
        assert_true(args.sum == passes * sum_of(f->a, BYTES));
    }
}

static void stores_what_it_computes(kernel_fn *kernel, struct field *f, int op, int type)
{
    struct kernel_args args = {
        .dst = f->dst, .a = f->a, .b = f->b, .bytes = BYTES, .passes = 2, .scalar = 3};

    kernel(&args);
    for (size_t i = 0; i < BYTES / entry_bytes(type); i++) {
        double a = (double)(1 + i * 7 % 1000), b = (double)(1 + i * 13 % 1000);
        const double right[KERNEL_OPS] = {0, 3, a, 3 * a, a + b, a + 3 * b};
        assert_true(get(f->a, type, i) == a && get(f->b, type, i) == b);
        assert_true(get(f->dst, type, i) == right[op]);
    }
    for (size_t i = 0; i < GUARD; i++)
        assert_true((unsigned char)f->before[i] == 0xee && (unsigned char)f->after[i] == 0xee);
}

/* In place, each pass leaves its mark; copy moves everything one block down a pass. */
static void makes_every_pass(kernel_fn *kernel, struct field *f, int op, int type)
{
    const double results[KERNEL_OPS] = {
        [KERNEL_COPY] = 3, [KERNEL_SCALE] = 27, [KERNEL_ADD] = 7, [KERNEL_TRIAD] = 19};
    size_t block = KERNEL_BLOCK / entry_bytes(type), shift = op == KERNEL_COPY ? KERNEL_BLOCK : 0;
    struct kernel_args args = {.dst = f->a,
                               .a = f->a + shift,
                               .b = f->b,
                               .bytes = BYTES - shift,
                               .passes = 3,
                               .scalar = 3};

    for (size_t i = 0; i < BYTES / entry_bytes(type); i++) {
        put(f->a, type, i, op == KERNEL_COPY ? (double)(unsigned)(i / block) : 1);
        put(f->b, type, i, 2);
    }
    kernel(&args);
    assert_true(get(f->a, type, 0) == results[op]);
}

/* Every kernel that this CPU can run. */
TEST(test_kernels)
{
    static struct field f;

    for (size_t n = 0; n < 64 * KERNEL_OPS * KERNEL_TYPES * KERNEL_FORMS; n++) {
        int form = n % KERNEL_FORMS, type = n / KERNEL_FORMS % KERNEL_TYPES,
            op = n / KERNEL_FORMS / KERNEL_TYPES % KERNEL_OPS;
        const struct host_isa *isa = host_isas[n / KERNEL_FORMS / KERNEL_TYPES / KERNEL_OPS];
        if (!isa)
            break;
        kernel_fn *kernel = isa->kernels[op][type][form];
        if (!isa->present() || !kernel)
            continue;
        fill(&f, type);
        if (op == KERNEL_READ)
            read_adds_up_every_pass(kernel, &f);
        else
            stores_what_it_computes(kernel, &f, op, type);
        if (op != KERNEL_READ && op != KERNEL_WRITE)
            makes_every_pass(kernel, &f, op, type);
    }
}

/* 7 blocks: one is over for two streams and for three, and nothing behind the last one is read. */
TEST(test_read_streams)
{
    static _Alignas(64) char words[8 * KERNEL_BLOCK];
    struct rng rng;

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

/* Gains of 1, 1.33 and 2, each measured 8 % wrong either way. */
TEST(test_isa_choice_is_steady)
{
    const double gains[] = {1, 1.33, 2};
    const struct host_isa *best = host_isa_best();
    uint64_t ns[8] = {0, 100000, [2 ... 7] = UINT64_MAX};

    assert_true(best && best->present() && host_isa_find(best->name) == best);
    assert_null(host_isa_find("abacus"));
    if (strcmp(host_isas[0]->name, "avx512") != 0)
        skip();
    for (int c = 0; c < 3; c++)
        for (int wrong = -1; wrong <= 1; wrong++) {
            ns[0] = (uint64_t)(100000 / gains[c] * (1 + 0.08 * wrong));
            assert_ptr_equal(host_isa_worth(ns), host_isas[c ? 0 : 1]);
        }
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

static kernel_fn *best_kernel(int op, int type, int form)
{
    return host_isa_best()->kernels[op][type][form];
}

static int wrong(struct arrays *a, const struct fixture *f)
{
    char error[160];

    return arrays_check(a, f->team, error, sizeof(error));
}

/* What was never computed, or computed by an earlier sample with another scalar, or spoilt, is wrong. */
TEST_WITH(test_arrays_all_ops, open_team, close_team)
{
    const struct fixture *f = *state;

    for (int op = 0; op < KERNEL_OPS; op++)
        for (int type = 0; type < KERNEL_TYPES; type++) {
            kernel_fn *kernel = best_kernel(op, type, type ? KERNEL_FAR : KERNEL_NEAR);
            bool scaled = op == KERNEL_WRITE || op == KERNEL_SCALE || op == KERNEL_TRIAD;
            struct arrays a;
            uint64_t ns = 0;
            open_arrays(f, &a, op, type, type ? 300000 : 16384);
            if (op != KERNEL_READ) {
                arrays_time(&a, f->team, kernel, 0, 3, &ns);
                assert_int_equal(wrong(&a, f), -EBADMSG);
            }
            arrays_time(&a, f->team, kernel, 3, 3, &ns);
            assert_true(ns > 0);
            assert_int_equal(wrong(&a, f), 0);
            if (op != KERNEL_READ) {
                arrays_time(&a, f->team, kernel, 0, 4, &ns);
                assert_int_equal(wrong(&a, f), scaled ? -EBADMSG : 0);
            }
            arrays_spoil(&a);
            if (op == KERNEL_READ)
                arrays_time(&a, f->team, kernel, 1, 5, &ns);
            assert_int_equal(wrong(&a, f), -EBADMSG);
            arrays_close(&a);
        }
}

/* One bit of one entry, wherever it is in whosever part of whichever array; no array holds what
 * another one holds, shifted or not: generators run side by side. */
TEST_WITH(test_arrays_one_entry, open_team, close_team)
{
    const struct fixture *f = *state;
    char error[160], name[64];
    struct arrays a;
    uint64_t ns;

    open_arrays(f, &a, KERNEL_TRIAD, KERNEL_F64, 3u << 18);
    arrays_time(&a, f->team, best_kernel(KERNEL_TRIAD, KERNEL_F64, KERNEL_FAR), 2, 5, &ns);
    size_t n = a.part_bytes / sizeof(double), entries[] = {0, n / 2 - 1, n / 2, n - 1};
    for (unsigned t = 0; t < f->threads; t++) {
        const struct kernel_args *args = &a.parts[t].args;
        const void *const arrays[] = {args->dst, args->a, args->b};
        for (size_t k = 0; k < 3 * 4; k++) {
            char *at = (char *)arrays[k % 3] + entries[k / 3] * sizeof(double);
            *at ^= 1;
            assert_int_equal(arrays_check(&a, f->team, error, sizeof(error)), -EBADMSG);
            *at ^= 1;
            snprintf(name, sizeof(name), "entry %zu", entries[k / 3]);
            assert_non_null(strstr(error, name));
        }
        const double *first = a.parts[0].args.a, *others[] = {args->b, args->a};
        for (int shift = -8; shift <= 8; shift++)
            for (int k = 0; k < (t ? 2 : 1); k++) {
                int same = 0;
                for (int at = 8; at < 1000; at++)
                    same += first[at] == others[k][at + shift] ? 1 : 0;
                assert_in_range(same, 0, 20); /* 1 by chance */
            }
    }
    assert_int_equal(wrong(&a, f), 0);
    arrays_close(&a);
}

/* As much as was asked or a grain less, each part in its own thread's buffer; a block a part at least. */
TEST_WITH(test_arrays_sizes, open_team, close_team)
{
    const struct fixture *f = *state;
    struct arrays_config config = {.topo = f->topo,
                                   .op = KERNEL_TRIAD,
                                   .bytes = 3 * KERNEL_BLOCK * f->threads - 1,
                                   .node = -1};
    struct arrays a;
    char error[160];

    for (int n = 0; n < 2 * KERNEL_OPS; n++) {
        uint64_t size = n % 2 ? 1000000 : 16384;
        unsigned arrays = kernel_arrays((enum kernel_op)(n / 2));
        open_arrays(f, &a, n / 2, KERNEL_F64, size);
        uint64_t set = arrays_set_bytes(&a);
        unsigned grain = (a.part_bytes >= 65536 ? 4096 : KERNEL_BLOCK) * arrays * f->threads;
        assert_true(set <= size && set + grain > size);
        assert_true(set == (uint64_t)a.part_bytes * arrays * f->threads);
        for (unsigned t = 0; t < f->threads; t++) {
            const char *begin = a.buffers[t].at, *end = begin + a.part_bytes * arrays;
            const struct kernel_args *args = &a.parts[t].args;
            const char *used[] = {args->dst, args->a, args->b};
            for (int k = 0; k < 3; k++)
                assert_true(!used[k] || (used[k] >= begin && used[k] + args->bytes <= end));
        }
        arrays_close(&a);
    }
    assert_int_equal(arrays_open(&a, &config, f->team, error, sizeof(error)), -ERANGE);
    config.bytes++;
    assert_int_equal(arrays_open(&a, &config, f->team, error, sizeof(error)), 0);
    arrays_close(&a);
}

/* A ceiling of loads alone writes nothing; one of stores stores no zeros; what is known is not measured
 * again; the operation goes on with its own data after either. */
TEST_WITH(test_ceiling_leaves_arrays, open_team, close_team)
{
    static const struct {
        int op;
        bool nt;
    } cases[] = {
        {KERNEL_READ, false}, {KERNEL_WRITE, false}, {KERNEL_WRITE, true}, {KERNEL_TRIAD, false}};
    const struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct arrays_ceiling ceiling = {0}, again;
        int op = cases[i].op;
        bool loads = op != KERNEL_WRITE, stores = op != KERNEL_READ;
        struct arrays a;
        uint64_t ns;
        if (cases[i].nt && !best_kernel(KERNEL_WRITE, KERNEL_F32, KERNEL_NT))
            continue;
        open_arrays(f, &a, op, KERNEL_F64, 100000);
        a.config.nt = cases[i].nt;
        arrays_ceiling(&a, f->team, &ceiling);
        assert_true((ceiling.read_form > 0 && ceiling.read_gbps > 0) == loads);
        assert_true((ceiling.write_form > 0 && ceiling.write_gbps > 0) == stores);
        assert_true(isfinite(ceiling.read_gbps) && isfinite(ceiling.write_gbps));
        /* two widths of vectors: one form each round the caches, two each through them */
        assert_in_range(ceiling.write_form, stores, cases[i].nt ? 2 : 4);
        assert_in_range(ceiling.read_form, loads, 2 * KERNEL_STREAMS);
        assert_true(stores || !a.parts[0].args.dst);
        arrays_time(&a, f->team, best_kernel(op, KERNEL_F64, KERNEL_NEAR), 3, 3, &ns);
        assert_int_equal(wrong(&a, f), 0);
        arrays_ceiling_again(&a, f->team, &ceiling, &again);
        assert_int_equal(again.read_form, ceiling.read_form);
        assert_int_equal(again.write_form, ceiling.write_form);
        const uint32_t *words = a.buffers[0].at;
        for (size_t k = 0; !loads && k < a.part_bytes / sizeof(*words); k++)
            assert_int_not_equal(words[k], 0);
        again.read_gbps = again.write_gbps = -1;
        arrays_ceiling(&a, f->team, &again);
        assert_true(!loads || again.read_gbps == -1);
        assert_true(!stores || again.write_gbps == -1);
        arrays_close(&a);
    }
}

/* Worked by hand: loads at 60, stores at 20, 60 or 120 GB/s. */
TEST(test_limit)
{
    const struct arrays_ceiling c = {.read_gbps = 60, .write_gbps = 20, .read_form = 2},
                                even = {.read_gbps = 60, .write_gbps = 60},
                                no_fill = {.read_gbps = 50, .write_gbps = 120, .read_form = 2},
                                only_loads = {.read_gbps = 60}, only_stores = {.write_gbps = 20};
    const struct {
        enum kernel_op op;
        bool fills;
        const struct arrays_ceiling *c;
        double gbps;
    } cases[] = {
        {KERNEL_COPY, false, &c, 40},                       /* 2 / max(1/60, 1/20) */
        {KERNEL_TRIAD, false, &c, 60},                      /* 3 / max(2/60, 1/20) */
        {KERNEL_COPY, true, &c, 40},                        /* 2 / max(2/60, 1/20) */
        {KERNEL_TRIAD, false, &even, 90},                   /* 3 / max(2/60, 1/60) */
        {KERNEL_TRIAD, true, &even, 60},                    /* 3 / max(3/60, 1/60) */
        {KERNEL_COPY, true, &no_fill, 200 / (2 + 5.0 / 6)}, /* 2 / (1/50 + 1/120) */
        {KERNEL_WRITE, true, &no_fill, 120},                /* loads are of no account */
        {KERNEL_WRITE, false, &only_stores, 20},
        {KERNEL_READ, true, &only_loads, 60},
    };
    /* A part whose rate is not known leaves the whole unknown; one that is not used does not. */
    const struct limit_parts loads = {.rate = {60, NAN}, .share = 1},
                             stores = {.rate = {NAN, 20}, .share = 0},
                             no_loads = {.rate = {NAN, 20}, .share = 2.0 / 3, .fill = 1.0 / 3},
                             no_stores = {.rate = {60, NAN}, .share = 2.0 / 3};
    struct arrays_ceiling best = arrays_ceiling_best(&c, &no_fill);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_float_equal(arrays_limit(cases[i].op, cases[i].fills, cases[i].c), cases[i].gbps,
                           1e-9);
    assert_true(limit_of_parts(&loads) == 60 && limit_of_parts(&stores) == 20);
    assert_true(isnan(limit_of_parts(&no_loads)) && isnan(limit_of_parts(&no_stores)));
    assert_true(best.read_gbps == 60 && best.write_gbps == 120 && best.read_form == 2);
}

/* Places that differ in anything are different; one that cannot be told whole is none. */
TEST(test_ceiling_places)
{
    const unsigned cpus[] = {0, 1, 2, 8};
    unsigned odd[120];
    char place[CEILING_PLACE], other[CEILING_PLACE];

    ceiling_place(place, "loads", cpus, 4, "%d bytes", 4096);
    assert_true(strstr(place, "loads") && strstr(place, "0-2,8") && strstr(place, "4096"));
    ceiling_place(other, "loads", cpus, 3, "%d bytes", 4096);
    assert_string_not_equal(place, other);
    for (unsigned i = 0; i < 120; i++)
        odd[i] = 2 * i + 1;
    ceiling_place(other, "loads", odd, 120, "%d bytes", 4096);
    assert_string_equal(other, "");
    ceiling_place(other, "loads", cpus, 4, "%0*d", CEILING_PLACE, 1);
    assert_string_equal(other, "");
}

/* Each line once, in no order of addresses; a link that leads elsewhere is found. */
TEST(test_chase_is_one_cycle)
{
    enum { LINES = 1000 };
    _Alignas(64) static char at[LINES * CHASE_LINE];
    static bool visited[LINES];
    struct chase c;
    unsigned neighbours = 0;

    assert_int_equal(chase_build(&c, at, sizeof(at), 3), 0);
    char *start = (char *)c.now;
    for (int i = 0; i < LINES; i++) {
        char *was = (char *)c.now;
        assert_false(visited[(was - at) / CHASE_LINE]);
        visited[(was - at) / CHASE_LINE] = true;
        chase_run(&c, 1);
        assert_int_equal(((char *)c.now - at) % CHASE_LINE, 0);
        neighbours += (char *)c.now - was == CHASE_LINE ? 1 : 0;
    }
    assert_ptr_equal(c.now, start);
    assert_in_range(neighbours, 0, 20);
    for (uint64_t hops = 0; hops < 40; hops++) { /* whole blocks and what is left over */
        chase_run(&c, hops);
        assert_int_equal(chase_check(&c), 0);
    }
    c.hops++;
    assert_int_equal(chase_check(&c), -EBADMSG);
    for (int i = 0; i < LINES; i += 111) { /* the first and the last too */
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
TEST(test_chase_goes_page_by_page)
{
    enum { PAGES = 50, HOPS = 32 };
    _Alignas(4096) static char at[PAGES * CHASE_PAGE];
    static bool pages[PAGES], pairs[PAGES * HOPS];
    unsigned in_order = 0;
    size_t page = 0;
    struct chase random, c;

    assert_int_equal(chase_build(&random, at, sizeof(at), 3), 0);
    assert_int_equal(chase_build_pages(&c, at, sizeof(at), 4), 0);
    for (int n = 0; n < PAGES * HOPS; n++) {
        size_t offset = (size_t)((char *)c.now - at), pair = offset / (2 * CHASE_LINE);

        assert_true(n % HOPS ? offset / CHASE_PAGE == page : !pages[offset / CHASE_PAGE]);
        page = offset / CHASE_PAGE;
        pages[page] = true;
        assert_false(pairs[pair]);
        pairs[pair] = true;
        chase_run(&c, 1);
        in_order += (size_t)((char *)c.now - at) / (2 * CHASE_LINE) == pair + 1;
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

/* How many pages of that size the lines of a chain lie on. */
static unsigned pages_of(struct chase *c, uint64_t page_bytes)
{
    static bool seen[1 << 18];
    unsigned pages = 0;

    memset(seen, 0, sizeof(seen));
    for (uint64_t i = 0; i < c->lines; i++, chase_run(c, 1)) {
        uint64_t page = (uint64_t)((char *)c->now - c->at) / page_bytes;

        assert_true(page < sizeof(seen));
        pages += !seen[page];
        seen[page] = true;
    }
    return pages;
}

/* Far loads exceed the largest TLB of small pages even where it joins four neighbours; of huge pages
 * they need no more than near ones. */
TEST(test_translation_defeats_joined_pages)
{
    size_t bytes = (size_t)CHASE_TRANSLATION_LINES * CHASE_TRANSLATION_GROUP;
    char *at = aligned_alloc(2 << 20, bytes);
    struct chase far, near;

    assert_non_null(at);
    assert_int_equal(chase_translation_build(at, bytes, 5, &far, &near), 0);
    assert_int_equal(chase_look(&far), 0);
    assert_int_equal(chase_look(&near), 0);
    assert_true(pages_of(&far, 4 * 4096) > far.lines * 9 / 10 && far.lines * 9 / 10 > 4096);
    assert_in_range(pages_of(&near, 4096), 1, 256);
    assert_in_range(pages_of(&far, 2 << 20), 1, 64);
    assert_int_equal(pages_of(&near, 2 << 20) > 16, pages_of(&far, 2 << 20) > 16);
    chase_release(&far);
    chase_release(&near);
    assert_int_equal(chase_translation_build(at, bytes - 1, 5, &far, &near), -ERANGE);
    free(at);
    assert_true(chase_pages_are_small(&(struct chase_translation){9.5, 5}));
    assert_false(chase_pages_are_small(&(struct chase_translation){6, 5}));
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

TEST(test_placement)
{
    static const struct {
        unsigned threads;
        int node, memory, err;
        unsigned n, first; /* CPUs, and the first of them */
        int memory_node;
    } cases[] = {
        {0, -1, PLACEMENT_LOCAL, 0, 8, 0, -1},
        {0, 1, PLACEMENT_REMOTE, 0, 4, 4, 0},
        {2, 0, 1, 0, 2, 0, 1},
        {8, -1, PLACEMENT_LOCAL, 0, 8, 0, -1},
        {1, -1, PLACEMENT_REMOTE, 0, 1, 0, 1},
        {0, -1, PLACEMENT_REMOTE, -EOPNOTSUPP, 0, 0, 0}, /* remote from where? */
        {0, 2, PLACEMENT_LOCAL, -EOPNOTSUPP, 0, 0, 0},
        {0, 0, 2, -EOPNOTSUPP, 0, 0, 0},
        {5, 0, PLACEMENT_LOCAL, -EOPNOTSUPP, 0, 0, 0},
        {9, -1, PLACEMENT_LOCAL, -EOPNOTSUPP, 0, 0, 0},
    };
    struct topo *topo = open_synthetic(TWO_NODES);
    struct placement p;
    char error[160];
    int value = 99;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int err = placement_resolve(topo, cases[i].threads, cases[i].node, cases[i].memory, &p,
                                    error, sizeof(error));
        if (err != cases[i].err ||
            (!err && (p.threads != cases[i].n || p.cpus[0] != cases[i].first ||
                      p.memory_node != cases[i].memory_node)))
            fail_msg("case %zu: %d, %u threads, memory of %d", i, err, p.threads, p.memory_node);
        placement_release(&p);
    }
    topo_close(topo);
    assert_int_equal(placement_parse_node("any", &value, error, sizeof(error)), 0);
    assert_int_equal(value, PLACEMENT_ANY);
    assert_int_equal(placement_parse_node("3", &value, error, sizeof(error)), 0);
    assert_int_equal(value, 3);
    assert_int_equal(placement_parse_node("local", &value, error, sizeof(error)), -EINVAL);
    assert_int_equal(placement_parse_memory("remote", &value, error, sizeof(error)), 0);
    assert_int_equal(value, PLACEMENT_REMOTE);
    assert_int_equal(placement_parse_memory("-1", &value, error, sizeof(error)), -EINVAL);
}

/* Raised, and never lowered. */
TEST(test_ceilings)
{
    static const struct {
        const char *place;
        double gbps, kept;
    } cases[] = {{"a", 2, 2}, {"b", 5, 5}, {"a", 1, 2}, {"a", 3, 3}};
    struct ceilings c = {0};
    double value = 0;

    assert_int_equal(ceilings_find(&c, "a", &value), -ENOENT);
    for (size_t i = 0; i < 4; i++) {
        ceilings_raise(&c, cases[i].place, cases[i].gbps);
        assert_int_equal(ceilings_find(&c, cases[i].place, &value), 0);
        assert_true(value == cases[i].kept);
    }
    ceilings_release(&c);
    assert_int_equal(ceilings_find(&c, "a", &value), -ENOENT);
}
