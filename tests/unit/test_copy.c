/* SPDX-License-Identifier: Apache-2.0 */
/* What copy stands on: patterns, lanes and transfers. */
#include <sched.h>
#include <sys/mman.h>

#include "benches/copy/copy_work.h"
#include "core/hw/host_kernels.h"
#include "core/hw/topo.h"
#include "core/rng.h"
#include "tests/unit/unit.h"

/* Every byte of a pattern is looked at; a stamp marks both ends, and no more. */
TEST(test_patterns)
{
    const size_t sizes[] = {1, 7, 8, 9, 63, 127, 128, 129, 4096};
    static unsigned char at[4097], was[4097];

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        size_t bytes = sizes[s], changed = 0;
        pattern_fill(at, bytes, 5);
        assert_true(pattern_check(at, bytes, 5) == PATTERN_RIGHT);
        assert_true(pattern_check(at, bytes, 6) != PATTERN_RIGHT);
        for (size_t i = 0; i < bytes && i < 200; i++) {
            at[i] ^= 1;
            assert_int_equal(pattern_check(at, bytes, 5), i);
            at[i] ^= 1;
        }
        memset(at, 0, sizeof(at));
        pattern_stamp(at, bytes, 1);
        assert_true(pattern_check_stamp(at, bytes, 1) == PATTERN_RIGHT);
        memcpy(was, at, sizeof(at));
        pattern_stamp(at, bytes, 2);
        assert_int_equal(at[bytes], 0); /* not beyond the end */
        assert_true(pattern_check_stamp(at, bytes, 2) == PATTERN_RIGHT);
        assert_true(pattern_check_stamp(at, bytes, 1) != PATTERN_RIGHT);
        for (size_t i = 0; i < bytes; i++)
            changed += at[i] != was[i] ? 1 : 0;
        assert_in_range(changed, 1, 16 * 8);
        at[0] ^= 1;
        assert_int_equal(pattern_check_stamp(at, bytes, 2), 0);
        at[0] ^= 1;
        at[bytes - 1] ^= 1;
        assert_int_equal(pattern_check_stamp(at, bytes, 2), bytes - 1);
    }
}

struct fixture {
    struct topo *topo;
    unsigned cpus[2];
    cpu_set_t usable; /* as it was: a team leaves its caller bound */
};

static int open_fixture(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    assert_int_equal(sched_getaffinity(0, sizeof(f->usable), &f->usable), 0);
    assert_int_equal(topo_open(&f->topo), 0);
    if (topo_spread(f->topo, -1, 2, f->cpus)) {
        assert_int_equal(topo_spread(f->topo, -1, 1, f->cpus), 0);
        f->cpus[1] = f->cpus[0];
    }
    *state = f;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;

    topo_close(f->topo);
    sched_setaffinity(0, sizeof(f->usable), &f->usable);
    free(f);
    return 0;
}

/* A transfer of so many bytes. */
static void open_way(struct transfer *t, const struct fixture *f, size_t bytes, unsigned used,
                     bool corrupt)
{
    char error[160];

    *t = (struct transfer){.bytes = bytes, .used = used, .corrupt = corrupt};
    assert_int_equal(transfer_alloc(t, f->topo, HOST_PAGES_BASE, error, sizeof(error)), 0);
    assert_int_equal(transfer_open(t, f->topo, f->cpus, 3), 0);
}

/* One way and both; what is spoilt is found. */
TEST_WITH(test_transfers, open_fixture, close_fixture)
{
    for (unsigned used = 1; used <= 2; used++) {
        struct host_where where;
        uint64_t ns[3] = {0};
        struct transfer w;

        open_way(&w, *state, 100000, used, false);
        transfer_run(&w, 20, ns);
        assert_true(ns[0] >= 100); /* 20 times 100 KB are not there in no time */
        assert_true(used == 1 || (ns[1] >= 100 && ns[2] >= ns[0] && ns[2] >= ns[1]));
        transfer_verify(&w, 12);
        assert_int_equal(w.wrong, 0);
        for (unsigned end = 0; end < 2; end++) {
            transfer_where(&w, end, &where);
            assert_true(!where.huge_known || where.resident_bytes >= 100000 * used);
        }
        transfer_close(&w);
        open_way(&w, *state, 1000, used, true);
        transfer_run(&w, 1, ns);
        assert_int_equal(w.wrong, 1);
        transfer_close(&w);
    }
}

/* A destination of which the middle page is the last one again: only the last check can see it. */
TEST_WITH(test_all_bytes_are_verified, open_fixture, close_fixture)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int fd = memfd_create("page", MFD_CLOEXEC);
    struct transfer w;
    uint64_t ns[3];

    assert_int_equal(ftruncate(fd, (off_t)(3 * page)), 0);
    char *at = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(at != MAP_FAILED);
    assert_true(mmap(at + page, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                     (off_t)(2 * page)) == at + page);
    open_way(&w, *state, 3 * page, 1, false);
    void *own = w.lane[0].dst.at;
    w.lane[0].dst.at = at;
    transfer_verify(&w, 1);
    assert_int_equal(w.wrong, 1);
    w.lane[0].dst.at = own;
    transfer_run(&w, 1, ns);
    transfer_verify(&w, 1);
    assert_int_equal(w.wrong, 1);
    transfer_close(&w);
    munmap(at, 3 * page);
    close(fd);
}

TEST(test_copy_ceiling)
{
    _Alignas(64) static char src[4096], dst[4096];

    pattern_fill(src, sizeof(src), 4);
    assert_true(copy_ceiling(dst, src, sizeof(src)) > 0.01);
    assert_memory_equal(dst, src, sizeof(src));
    memset(dst, 0, sizeof(dst));
    assert_true(copy_ceiling(dst, src, 100) > 0.001);
    assert_memory_equal(dst, src, 100);
    for (int i = 100; i < 4096; i++)
        assert_int_equal(dst[i], 0);
}
