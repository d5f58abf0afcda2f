/* SPDX-License-Identifier: Apache-2.0 */
/* What copy stands on: patterns, lanes, groups of two processes, messages over wires and transfers. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "benches/copy/transfer.h"
#include "core/clock.h"
#include "core/hw/host_kernels.h"
#include "core/hw/topo.h"
#include "core/rng.h"

#define SLOW_NS 30000000u

static const struct wire_ops *const wires[] = {&wire_shm, &wire_pipe, &wire_cma, &wire_cma_write,
                                               NULL};

static void test_pattern_finds_every_byte(void **state)
{
    const size_t sizes[] = {1, 7, 8, 9, 63, 200};
    unsigned char at[200];

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        pattern_fill(at, sizes[s], 5);
        assert_true(pattern_check(at, sizes[s], 5) == PATTERN_RIGHT);
        assert_true(pattern_check(at, sizes[s], 6) != PATTERN_RIGHT);
        for (size_t i = 0; i < sizes[s]; i++) {
            at[i] ^= 1;
            assert_int_equal(pattern_check(at, sizes[s], 5), i);
            at[i] ^= 1;
        }
    }
}

static void test_stamps_mark_both_ends(void **state)
{
    const size_t sizes[] = {1, 7, 8, 9, 16, 127, 128, 129, 4096};
    static unsigned char at[4097], was[4097];

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        size_t bytes = sizes[s], changed = 0;
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

/* A conversation: every message has contents of its own, all of which the receiver checks. */
struct talk {
    const struct wire_ops *ops;
    struct group_link link;
    size_t bytes;
    bool both;
    unsigned char out[3000000], in[3000000];
};

static int talk(struct group *g, void *arg, uint64_t count, struct group_times *times)
{
    struct talk *t = arg;
    unsigned me = group_rank(g);
    bool sends = me == 0 || t->both, receives = me == 1 || t->both;
    int err = t->link.wire ? 0 : group_join(g, &t->link, t->ops, t->bytes, t->both, -1);

    for (uint64_t i = 0; !err && i < count; i++) {
        pattern_fill(t->out, t->bytes, 2 * i + me);
        memset(t->in, 0, t->bytes);
        err = transfer_move(t->link.wire->links, g, sends ? t->out : NULL, receives ? t->in : NULL,
                            t->bytes, 1, &times->arrived_ns);
        if (!err && receives && pattern_check(t->in, t->bytes, 2 * i + !me) != PATTERN_RIGHT)
            err = -EBADMSG;
    }
    return err;
}

static void test_wires_carry_bytes(void **state)
{
    const struct fixture *f = *state;
    const size_t sizes[] = {1, 8, 4096, 65537, 3000000}; /* the last is more than a pipe holds */
    static struct talk t;

    for (int i = 0; wires[i]; i++)
        for (int both = 0; both < 2; both++)
            for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
                struct group *g;
                struct group_times times[2];
                t.ops = wires[i];
                t.both = both;
                t.bytes = sizes[s];
                assert_int_equal(group_open(&g, f->topo, f->cpus, &t, 0), 0);
                int err = group_run(g, talk, 7, times);
                if (err == -EPERM && !strncmp(wires[i]->name, "cma", 3))
                    print_message("cross-memory attach is refused here\n");
                else if (err)
                    fail_msg("%s, %s, %zu bytes: error %d", wires[i]->name,
                             both ? "both ways" : "one way", sizes[s], err);
                assert_true(err || times[1].arrived_ns);
                assert_true(err || !times[0].arrived_ns == !both);
                group_close(g);
                group_leave(&t.link);
                no_child_is_left();
            }
}

/* A wire that counts what goes through it, bit by bit, and takes its time: for looking at the
 * driver. */
struct meter {
    size_t pushed, pulled, largest;
    struct wire_posts sends, receives;
};

static struct meter *meter_of(const struct wire_link *l)
{
    return l->state;
}

static int count_send(struct wire_link *l, const void *at, size_t bytes)
{
    struct meter *c = meter_of(l);

    c->largest = bytes > c->largest ? bytes : c->largest;
    return wire_posts_add(l, &c->sends, &l->out, at, bytes);
}

static int count_receive(struct wire_link *l, void *at, size_t bytes)
{
    return wire_posts_add(l, &meter_of(l)->receives, &l->in, at, bytes);
}

/* So much of the oldest. */
static size_t count_move(struct wire_posts *q, size_t most, unsigned *messages)
{
    size_t left = q->n ? wire_posts_at(q, 0)->bytes - q->done : 0, n = left < most ? left : most;

    *messages = wire_posts_moved(q, n);
    return n;
}

static int count_progress(struct wire_worker *k, enum wire_side sides, uint64_t wait_ns)
{
    struct meter *c = meter_of(k->links);
    size_t out = 0, in = 0;
    unsigned messages;

    (void)wait_ns;
    if (sides & WIRE_OUT && (out = count_move(&c->sends, 100, &messages)) > 0)
        wire_went(k->links, out, messages);
    if (sides & WIRE_IN && (in = count_move(&c->receives, 70, &messages)) > 0)
        wire_came(k->links, in, messages);
    c->pushed += out;
    c->pulled += in;
    return out || in;
}

static void test_moved_bytes_are_counted_bytes(void **state)
{
    const struct wire_ops ops = {.name = "counter",
                                 .send = count_send,
                                 .receive = count_receive,
                                 .progress = count_progress};
    struct wire w = {.ops = &ops, .options.message_most = 1000};
    struct wire_link *moved[2], l = {.worker = NULL};
    struct wire_worker k = {
        .wire = &w, .links = &l, .n_links = 1, .out.moved = &moved[0], .in.moved = &moved[1]};
    struct meter c = {0};
    char in[1000], out[1000] = {0};
    uint64_t arrived_ns = 0;

    (void)state;
    l.worker = &k;
    l.state = &c;
    assert_int_equal(transfer_move(&l, NULL, out, NULL, 1000, 3, &arrived_ns), 0);
    assert_int_equal(c.pushed, 3000);
    assert_int_equal(c.largest, 1000);
    assert_int_equal(c.pulled, 0);
    assert_int_equal(arrived_ns, 0);
    assert_int_equal(transfer_move(&l, NULL, NULL, in, 1000, 2, &arrived_ns), 0);
    assert_int_equal(c.pulled, 2000);
    assert_true(arrived_ns > 0);
    assert_int_equal(transfer_move(&l, NULL, out, in, 999, 4, &arrived_ns), 0);
    assert_int_equal(c.pushed, 3000 + 4 * 999);
    assert_int_equal(c.pulled, 2000 + 4 * 999);
    /* more than may be posted at once */
    assert_int_equal(transfer_move(&l, NULL, out, in, 10, 5 * WIRE_POSTS, &arrived_ns), 0);
    assert_int_equal(c.pushed, 3000 + 4 * 999 + 50 * WIRE_POSTS);
    assert_int_equal(c.pulled, 2000 + 4 * 999 + 50 * WIRE_POSTS);
}

static void make_lanes(const struct fixture *f, struct lanes *l, size_t bytes, unsigned used)
{
    char error[160];

    *l = (struct lanes){.ends = {{.gpu = false}, {.gpu = false}}, .bytes = bytes, .used = used};
    assert_int_equal(lanes_alloc(l, f->topo, HOST_PAGES_BASE, error, sizeof(error)), 0);
}

static struct transfer_config config_of(const struct fixture *f, const struct lanes *l,
                                        const struct wire_ops *wire)
{
    return (struct transfer_config){
        .topo = f->topo, .lanes = l, .cpus = {f->cpus[0], f->cpus[1]}, .wire = wire, .seed = 3};
}

static void test_lanes(void **state)
{
    const struct fixture *f = *state;
    struct lanes l;

    make_lanes(f, &l, 1000, 1);
    assert_non_null(lanes_out(&l, 0));
    assert_non_null(lanes_in(&l, 1));
    assert_null(lanes_out(&l, 1));
    assert_null(lanes_in(&l, 0));
    lanes_fill(&l, 0, 9);
    lanes_fill(&l, 1, 9);
    assert_true(lanes_check(&l, 1, 9) != PATTERN_RIGHT);
    memcpy(lanes_in(&l, 1), lanes_out(&l, 0), 1000);
    assert_true(lanes_check(&l, 1, 9) == PATTERN_RIGHT);
    assert_true(lanes_check(&l, 1, 8) != PATTERN_RIGHT);
    lanes_free(&l);
    make_lanes(f, &l, 1000, 2);
    lanes_fill(&l, 0, 9);
    lanes_fill(&l, 1, 9);
    assert_memory_not_equal(lanes_out(&l, 0), lanes_out(&l, 1), 1000);
    memcpy(lanes_in(&l, 0), lanes_out(&l, 1), 1000);
    assert_true(lanes_check(&l, 0, 9) == PATTERN_RIGHT);
    lanes_free(&l);
}

static void run_transfer(const struct fixture *f, const struct wire_ops *ops, unsigned used)
{
    struct lanes l;
    struct transfer *t;
    struct host_where where[2];
    uint64_t ns[3] = {0};
    char text[160];

    make_lanes(f, &l, 100000, used);
    struct transfer_config config = config_of(f, &l, ops);
    int err = transfer_open(&t, &config);
    if (err == -EPERM) { /* cross-memory attach may be refused */
        lanes_free(&l);
        return;
    }
    assert_int_equal(err, 0);
    assert_int_equal(transfer_run(t, 20, ns), 0);
    assert_in_range(ns[0], 100, 10000000000u); /* 20 times 100 KB are not there in no time */
    if (used == 2) {
        assert_in_range(ns[1], 100, 10000000000u);
        assert_true(ns[2] >= ns[0] && ns[2] >= ns[1]);
    }
    assert_int_equal(transfer_verify(t, 12), 0);
    assert_int_equal(transfer_wrong(t), 0);
    assert_int_equal(transfer_where(t, where), 0);
    for (int end = 0; end < 2; end++)
        assert_true(!where[end].huge_known || where[end].resident_bytes >= 100000 * used);
    assert_true(strlen(transfer_describe(t, text, sizeof(text))) > 5);
    transfer_close(t);
    lanes_free(&l);
    no_child_is_left();
}

static void test_transfers(void **state)
{
    for (unsigned used = 1; used <= 2; used++) {
        run_transfer(*state, NULL, used);
        for (int i = 0; wires[i]; i++)
            run_transfer(*state, wires[i], used);
    }
}

static void test_wrong_data_is_found(void **state)
{
    const struct fixture *f = *state;
    const struct wire_ops *some[] = {NULL, &wire_shm, &wire_pipe};
    uint64_t ns[3];

    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        struct lanes l;
        struct transfer *t;
        make_lanes(f, &l, 1000, 1);
        struct transfer_config config = config_of(f, &l, some[i]);
        config.fault = TRANSFER_CORRUPT;
        assert_int_equal(transfer_open(&t, &config), 0);
        uint64_t before = transfer_wrong(t);
        assert_int_equal(transfer_run(t, 1, ns), 0);
        assert_true(transfer_wrong(t) == before + 1);
        transfer_close(t);
        lanes_free(&l);
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
    const struct fixture *f = *state;
    struct wire_ops ops = wire_pipe;
    struct lanes l;
    struct transfer *t;

    ops.receive = forgetful_receive;
    ops.progress = forgetful_progress;
    make_lanes(f, &l, 50000, 1);
    struct transfer_config config = config_of(f, &l, &ops);
    assert_int_equal(transfer_open(&t, &config), 0);
    assert_int_equal(transfer_wrong(t), 0);
    assert_int_equal(transfer_verify(t, 1), 0);
    assert_int_equal(transfer_wrong(t), 1);
    transfer_close(t);
    lanes_free(&l);
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
    const struct fixture *f = *state;
    struct wire_ops ops = wire_pipe;
    struct lanes l;
    struct transfer *t;
    uint64_t ns[3];

    ops.progress = slow_progress;
    make_lanes(f, &l, 1000, 1);
    struct transfer_config config = config_of(f, &l, &ops);
    assert_int_equal(transfer_open(&t, &config), 0);
    assert_int_equal(transfer_run(t, 1, ns), 0);
    assert_true(ns[0] >= SLOW_NS);
    transfer_close(t);
    lanes_free(&l);
}

static void test_dead_peer_is_an_error(void **state)
{
    const struct fixture *f = *state;
    uint64_t ns[3], begin = clock_now_ns();

    for (int i = 0; wires[i]; i++)
        for (unsigned used = 1; used <= 2; used++) {
            struct lanes l;
            struct transfer *t;
            int err;
            make_lanes(f, &l, 1 << 20, used);
            struct transfer_config config = config_of(f, &l, wires[i]);
            config.fault = TRANSFER_PEER_DIES;
            err = transfer_open(&t, &config);
            for (int run = 0; !err && run < 5; run++)
                err = transfer_run(t, 3, ns);
            assert_true(err == -ECONNRESET || err == -EPERM);
            if (err == -ECONNRESET)
                transfer_close(t);
            lanes_free(&l);
            no_child_is_left();
        }
    assert_true(clock_now_ns() - begin < 30000000000u); /* GROUP_STILL_NS each, if none were told */
}

static int fail_in_peer(struct group *g, void *arg, uint64_t count, struct group_times *times)
{
    (void)arg;
    (void)count;
    (void)times;
    return group_rank(g) ? -EDOM : 0;
}

static void test_error_of_the_peer_is_told(void **state)
{
    const struct fixture *f = *state;
    struct group_times times[2];
    struct group *g;

    assert_int_equal(group_open(&g, f->topo, f->cpus, NULL, 0), 0);
    assert_int_equal(group_run(g, fail_in_peer, 0, times), -EDOM);
    group_close(g);
    no_child_is_left();
}

static void test_standstill_is_an_error(void **state)
{
    const struct fixture *f = *state;
    struct group_wait wait = {.since_ns = 1}; /* long ago */
    struct group *g;
    int err = 0;

    assert_int_equal(group_open(&g, f->topo, f->cpus, NULL, 0), 0);
    for (int i = 0; !err && i < 100000; i++)
        err = group_pause(g, &wait);
    assert_int_equal(err, -ETIMEDOUT);
    group_close(g);
}

/* A parent that is killed takes its peer along: the peer's end is seen by this process, which both
 * are handed to. */
static void test_no_orphan(void **state)
{
    const struct fixture *f = *state;
    int pipefd[2], status;
    pid_t peer = 0;

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe(pipefd), 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct group *g;
        if (!group_open(&g, f->topo, f->cpus, NULL, 0))
            peer = group_peer(g);
        if (write(pipefd[1], &peer, sizeof(peer)) != sizeof(peer))
            _exit(1);
        pause();
        _exit(1);
    }
    assert_int_equal(read(pipefd[0], &peer, sizeof(peer)), sizeof(peer));
    assert_true(peer > 0);
    usleep(20000); /* the peer is past its first lines */
    kill(parent, SIGKILL);
    assert_int_equal(waitpid(parent, &status, 0), parent);
    pid_t seen = 0;
    for (int i = 0; !seen && i < 200; i++) {
        usleep(10000);
        seen = waitpid(peer, &status, WNOHANG);
    }
    assert_int_equal(seen, peer);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    close(pipefd[0]);
    close(pipefd[1]);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pattern_finds_every_byte),
        cmocka_unit_test(test_stamps_mark_both_ends),
        cmocka_unit_test_setup_teardown(test_wires_carry_bytes, open_fixture, close_fixture),
        cmocka_unit_test(test_moved_bytes_are_counted_bytes),
        cmocka_unit_test_setup_teardown(test_lanes, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_transfers, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_wrong_data_is_found, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_all_bytes_are_verified, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_time_ends_at_the_receiver, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(test_dead_peer_is_an_error, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_error_of_the_peer_is_told, open_fixture,
                                        close_fixture),
        cmocka_unit_test_setup_teardown(test_standstill_is_an_error, open_fixture, close_fixture),
        cmocka_unit_test_setup_teardown(test_no_orphan, open_fixture, close_fixture),
        cmocka_unit_test(test_copy_ceiling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
