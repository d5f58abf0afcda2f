/* SPDX-License-Identifier: Apache-2.0 */
/* What copy stands on: patterns, lanes, groups of two processes, messages over wires and transfers. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "benches/copy/transfer.h"
#include "core/hw/host_kernels.h"
#include "core/hw/topo.h"
#include "core/rng.h"

#define SLOW_NS 30000000u

static const struct wire_ops *const wires[] = {&wire_shm, &wire_pipe, &wire_cma, &wire_cma_write,
                                               NULL};

/* Every byte of a pattern is looked at; a stamp marks both ends, and no more. */
static void test_patterns(void **state)
{
    const size_t sizes[] = {1, 7, 8, 9, 63, 127, 128, 129, 4096};
    static unsigned char at[4097], was[4097];

    (void)state;
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
    cpu_set_t usable; /* as it was: a group leaves its caller bound */
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

static void no_child_is_left(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* A transfer of so many bytes through a wire, or by memcpy. */
struct way {
    struct lanes lanes;
    struct transfer *t;
};

static int open_way(struct way *w, const struct fixture *f, const struct wire_ops *wire,
                    size_t bytes, unsigned used, int fault)
{
    struct transfer_config config = {.topo = f->topo,
                                     .lanes = &w->lanes,
                                     .cpus = {f->cpus[0], f->cpus[1]},
                                     .wire = wire,
                                     .seed = 3,
                                     .fault = fault};
    char error[160];

    w->lanes =
        (struct lanes){.ends = {{.gpu = false}, {.gpu = false}}, .bytes = bytes, .used = used};
    w->t = NULL;
    assert_int_equal(lanes_alloc(&w->lanes, f->topo, HOST_PAGES_BASE, error, sizeof(error)), 0);
    return transfer_open(&w->t, &config);
}

static void close_way(struct way *w)
{
    if (w->t)
        transfer_close(w->t);
    lanes_free(&w->lanes);
    no_child_is_left();
}

/* By memcpy and over every wire, one way and both; what is spoilt is found. */
static void test_transfers(void **state)
{
    for (int n = 0; n < 2 * 5; n++) {
        const struct wire_ops *wire = n / 2 ? wires[n / 2 - 1] : NULL;
        unsigned used = 1 + n % 2;
        struct host_where where[2];
        uint64_t ns[3] = {0};
        struct way w;
        int err = open_way(&w, *state, wire, 100000, used, 0);

        if (err == -EPERM) { /* cross-memory attach may be refused */
            close_way(&w);
            continue;
        }
        assert_int_equal(err, 0);
        assert_int_equal(transfer_run(w.t, 20, ns), 0);
        assert_true(ns[0] >= 100); /* 20 times 100 KB are not there in no time */
        assert_true(used == 1 || (ns[1] >= 100 && ns[2] >= ns[0] && ns[2] >= ns[1]));
        assert_int_equal(transfer_verify(w.t, 12), 0);
        assert_int_equal(transfer_wrong(w.t), 0);
        assert_int_equal(transfer_where(w.t, where), 0);
        for (int end = 0; end < 2; end++)
            assert_true(!where[end].huge_known || where[end].resident_bytes >= 100000 * used);
        close_way(&w);
        if (used == 2)
            continue;
        assert_int_equal(open_way(&w, *state, wire, 1000, 1, TRANSFER_CORRUPT), 0);
        uint64_t before = transfer_wrong(w.t);
        assert_int_equal(transfer_run(w.t, 1, ns), 0);
        assert_int_equal(transfer_wrong(w.t), before + 1);
        assert_int_equal(transfer_run(w.t, 5 * WIRE_POSTS, ns), 0); /* more than may be posted */
        close_way(&w);
    }
}

/* A pipe whose receiver forgets the middle of a long message: only the last check can see it. */
static char *received_at;

static int forgetful_receive(struct wire_link *l, void *at, size_t bytes)
{
    received_at = at;
    return wire_pipe.receive(l, at, bytes);
}

static int forgetful_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    uint64_t before = k->links->in.through;
    int rc = wire_pipe.progress(k, sides, wait_ns);

    if (k->links->in.through - before > 2000)
        received_at[before % 50000 + 1000] ^= 1;
    return rc;
}

static void test_all_bytes_are_verified(void **state)
{
    struct wire_ops ops = wire_pipe;
    struct way w;

    ops.receive = forgetful_receive;
    ops.progress = forgetful_progress;
    assert_int_equal(open_way(&w, *state, &ops, 50000, 1, 0), 0);
    assert_int_equal(transfer_wrong(w.t), 0);
    assert_int_equal(transfer_verify(w.t, 1), 0);
    assert_int_equal(transfer_wrong(w.t), 1);
    close_way(&w);
}

/* The sender of a pipe is rid of its bytes at once; the time must be that of a slow receiver. */
static int slow_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    struct timespec nap = {0, SLOW_NS};
    int rc = wire_pipe.progress(k, sides, wait_ns);

    if (sides & WIRE_IN)
        nanosleep(&nap, NULL); /* after the bytes came: before, the sender might not have begun */
    return rc;
}

static void test_time_ends_at_the_receiver(void **state)
{
    struct wire_ops ops = wire_pipe;
    struct way w;
    uint64_t ns[3];

    ops.progress = slow_progress;
    assert_int_equal(open_way(&w, *state, &ops, 1000, 1, 0), 0);
    assert_int_equal(transfer_run(w.t, 1, ns), 0);
    assert_true(ns[0] >= SLOW_NS);
    close_way(&w);
}

static int fail_in_peer(struct group *g, void *arg, uint64_t count, struct group_times *times)
{
    (void)arg;
    (void)count;
    (void)times;
    return group_rank(g) ? -EDOM : 0;
}

/* A peer's death over every wire, its error, and its silence. */
static void test_errors_of_the_peer(void **state)
{
    const struct fixture *f = *state;
    struct group_wait wait = {.since_ns = 1}; /* long ago */
    struct group_times times[2];
    struct group *g;
    uint64_t ns[3];
    int err = 0;

    for (int n = 0; n < 2 * 4; n++) {
        struct way w;
        err = open_way(&w, f, wires[n / 2], 1 << 20, 1 + n % 2, TRANSFER_PEER_DIES);
        for (int run = 0; !err && run < 5; run++)
            err = transfer_run(w.t, 3, ns);
        assert_true(err == -ECONNRESET || err == -EPERM);
        close_way(&w);
    }
    assert_int_equal(group_open(&g, f->topo, f->cpus, NULL, 0), 0);
    assert_int_equal(group_run(g, fail_in_peer, 0, times), -EDOM);
    group_close(g);
    assert_int_equal(group_open(&g, f->topo, f->cpus, NULL, 0), 0);
    err = 0;
    for (int i = 0; !err && i < 100000; i++)
        err = group_pause(g, &wait);
    assert_int_equal(err, -ETIMEDOUT);
    group_close(g);
    no_child_is_left();
}

static void test_copy_ceiling(void **state)
{
    _Alignas(64) static char src[4096], dst[4096];

    (void)state;
    pattern_fill(src, sizeof(src), 4);
    assert_true(copy_ceiling(dst, src, sizeof(src)) > 0.01);
    assert_memory_equal(dst, src, sizeof(src));
    memset(dst, 0, sizeof(dst));
    assert_true(copy_ceiling(dst, src, 100) > 0.001);
    assert_memory_equal(dst, src, 100);
    for (int i = 100; i < 4096; i++)
        assert_int_equal(dst[i], 0);
}

#define IN_FIXTURE(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),         IN_FIXTURE(test_transfers),
        IN_FIXTURE(test_all_bytes_are_verified), IN_FIXTURE(test_time_ends_at_the_receiver),
        IN_FIXTURE(test_errors_of_the_peer),     cmocka_unit_test(test_copy_ceiling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
