/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session of rank 0 with others, over a backend that reduces through shared memory: results, times, what is told, and
 * the proof of the path.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/program.h"
#include "tests/unit/session_fixture.h"

static void test_ops_and_sizes(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 4);
    for (unsigned n = 1; n <= 4; n *= 2)
        for (f.point.op = 0; f.point.op < COLLECTIVE_OPS; f.point.op++)
            for (f.point.in_place = 0; f.point.in_place < 2; f.point.in_place++) {
                if (f.point.in_place &&
                    (f.point.op == COLLECTIVE_ALL_TO_ALL || f.point.op == COLLECTIVE_SEND_RECEIVE))
                    continue;
                OK(whole(&f, n));
                assert_int_equal(fake->addresses[0], n);
                assert_false(session_broken(f.s));
            }
    stop(&f);
}

static void test_buffers_elsewhere(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 2);
    strcpy(f.point.backend, "fake-far");
    f.point.count = 50000;
    for (f.point.op = 0; f.point.op < COLLECTIVE_OPS; f.point.op++)
        OK(whole(&f, 2));
    for (unsigned i = 0; i < 2 && topo_cpus(f.topo) > 1; i++)
        assert_int_equal(fake->bound[i], ~0u); /* its own threads are to have all CPUs */
    stop(&f);
}

static void test_times(void **state)
{
    const struct collective_times *times;
    struct session_run what = {.operations = 5, .gap_ns = 30000000};
    uint64_t slowest, largest = 0;
    struct fixture f;

    (void)state;
    start(&f, 2);
    OK(begin(&f, 2));
    uint64_t begin_ns = clock_now_ns();
    OK(session_run(f.s, &what, &times, &slowest));
    uint64_t all_ns = clock_now_ns() - begin_ns;
    for (int i = 0; i < 2; i++) {
        assert_true(times[i].ns > 0 && times[i].slack_ns > 0);
        assert_true(times[i].cpu_ns > 0 && times[i].cpu_ns < times[i].ns);
        largest = times[i].ns > largest ? times[i].ns : largest;
    }
    assert_int_equal(slowest, largest);
    assert_true(all_ns >= 4 * what.gap_ns);
    assert_true(times[0].ns + 4 * what.gap_ns <= all_ns); /* gaps are not in it */
    stop(&f);
}

static void test_overlap(void **state)
{
    const struct collective_times *times;
    struct session_run what = {.operations = 3, .overlap_ns = 100000000};
    uint64_t slowest, alone = 0;
    struct fixture f;

    (void)state;
    start(&f, 2);
    OK(begin(&f, 2));
    OK(session_overlap_alone(f.s, what.overlap_ns, &alone));
    assert_true(alone >= what.overlap_ns / 4);
    OK(session_mark(f.s));
    OK(session_run(f.s, &what, &times, &slowest));
    assert_true(slowest >= what.operations * what.overlap_ns / 4); /* the work is in it */
    assert_true(fake->first_test_ns < what.overlap_ns / 2); /* while it is done, not after it */
    OK(session_end(f.s));                                   /* what came meanwhile is right */
    strcpy(f.point.backend, "fake-blocking");
    OK(begin(&f, 2));
    assert_int_equal(session_run(f.s, &what, &times, &slowest), -EOPNOTSUPP);
    assert_said(&f, "'fake-blocking' has no operations that do not block");
    stop(&f);
}

static void test_overlap_work(void **state)
{
    struct overlap o;

    (void)state;
    assert_int_equal(overlap_open(&o), 0);
    struct overlap_work work = overlap_work(&o, 10 * OVERLAP_SLICE_NS);
    assert_int_equal(work.slices, 10);
    assert_true(fabs((double)work.units_each * o.unit_ns - OVERLAP_SLICE_NS) <= o.unit_ns);
    work = overlap_work(&o, 1);
    assert_true(work.slices == 1 && work.units_each == 1);
    /* Rows of C = A B, against the plainest product that there is. */
    work = (struct overlap_work){.slices = 1, .units_each = 16};
    o.row = 0;
    overlap_slice(&o, &work);
    for (int i = 0; i < 64 * 64; i++) {
        float sum = 0;
        for (int k = 0; k < 64; k++)
            sum += o.matrices[i / 64 * 64 + k] * o.matrices[4096 + k * 64 + i % 64];
        assert_true(fabsf(sum - o.matrices[2 * 4096 + i]) < 1e-3f);
    }
    overlap_close(&o);
}

/* As many calls as may be, in frames of their own. */
static void test_many_calls(void **state)
{
    static struct collective_call calls[COLLECTIVE_CALLS_MAX];
    struct fixture f;

    (void)state;
    start(&f, 2);
    f.point.count = 0;
    for (unsigned i = 0; i < COLLECTIVE_CALLS_MAX; i++) {
        calls[i] = (struct collective_call){f.point.count, 1 + i % 3};
        f.point.count += calls[i].count;
    }
    OK(session_begin(f.s, &f.point, all_ranks, 2, calls, COLLECTIVE_CALLS_MAX));
    OK(run(&f, 1));
    OK(session_mark(f.s));
    OK(session_end(f.s));
    stop(&f);
}

static void test_many(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, FAKE_RANKS);
    OK(whole(&f, FAKE_RANKS));
    assert_int_equal(fake->addresses[63], FAKE_RANKS); /* of two frames */
    OK(whole(&f, 2));
    stop(&f);
}

/* Seats: as many CPUs as members get one each, more share them all. */
static void test_cpu_ranks(void **state)
{
    struct fixture f;

    (void)state;
    start(&f, 4);
    unsigned cpus = topo_cpus(f.topo);
    f.point.crowded = 1;
    for (unsigned n = 1; n <= 4; n++) {
        OK(whole(&f, n));
        for (unsigned i = 0; i < n; i++) {
            assert_int_equal(fake->crowded[i], n > cpus);
            assert_true((fake->bound[i] == ~0u) == (n > cpus && cpus > 1));
            for (unsigned k = 0; k < i && n <= cpus; k++)
                assert_int_not_equal(fake->bound[i], fake->bound[k]);
        }
    }
    stop(&f);
}

/* What is told is of since the mark; the operation that is checked is not in it. */
static void test_told(void **state)
{
    const struct session_node *nodes = NULL;
    struct fixture f;

    (void)state;
    start(&f, 2);
    strcpy(fake->device, "shm");
    fake->flow_bytes = 1000;
    strcpy(fake->gpu, "0000:18:00.0");
    OK(begin(&f, 2));
    OK(run(&f, 4));
    OK(session_mark(f.s));
    assert_null(session_report(f.s, 0));
    OK(run(&f, 3));
    OK(session_end(f.s));
    for (unsigned i = 0; i < 2; i++) {
        const struct collective_report *told = session_report(f.s, i);
        assert_string_equal(told->algorithm, "through memory");
        assert_int_equal(told->flows[0].out_bytes, 3000);
        assert_int_equal(told->flows[0].in_messages, 3);
        assert_int_equal(told->facts[0].value, 3);
        assert_int_equal(told->facts[1].value, 5);
        assert_string_equal(session_gpu_address(f.s, i), "0000:18:00.0");
    }
    assert_int_equal(session_nodes(f.s, &nodes), 1);
    assert_int_equal(nodes[0].member, 0);
    assert_true(nodes[0].line_out_bytes == 0 && nodes[0].line_in_bytes == 0);
    assert_true(isnan(nodes[0].busy_cores)); /* the idle machine was not watched */
    assert_true(session_seconds(f.s) > 0);
    session_finish(f.s);
    stop(&f);
}

static void test_machine(void **state)
{
    const struct session_node *nodes = NULL;
    struct fixture f;

    (void)state;
    start(&f, 2);
    session_close(f.s);
    world_close(f.w);
    static const struct session_service service = {.find = fake_find};
    char error[256];
    assert_int_equal(world_fork(&f.w, 2, session_serve, (void *)&service, error, sizeof(error)), 0);
    assert_int_equal(session_open(&f.s, f.w, f.topo, 100000000), 0);
    session_find(f.s, fake_find);
    OK(whole(&f, 2));
    assert_int_equal(session_nodes(f.s, &nodes), 1);
    assert_true(nodes[0].busy_cores >= 0 && nodes[0].softirq_cores >= 0);
    stop(&f);
}

static void test_nodes(void **state)
{
    const struct session_node *nodes = NULL;
    struct fixture f;

    (void)state;
    start(&f, 4);
    make_two_nodes(&f);
    strcpy(fake->device, "nodevice0");
    fake->flow_bytes = 1000;
    fake->other_node = 1;
    OK(whole(&f, 4));
    assert_int_equal(session_nodes(f.s, &nodes), 2);
    assert_int_equal(nodes[1].member, 2);
    assert_string_equal(nodes[1].host, "node2");
    assert_int_equal(nodes[1].line_out_bytes, 2 * 3000);
    assert_int_equal(nodes[0].line_in_bytes, 2 * 3000);
    assert_true(isnan(nodes[1].busy_cores));
    assert_int_equal(nodes[1].proof.verdict, PATH_UNKNOWN);
    assert_non_null(strstr(nodes[1].proof.text, "16 kB are too few to tell"));
    fake->inexact = 1;
    OK(whole(&f, 4));
    assert_int_equal(session_nodes(f.s, &nodes), 2);
    assert_true(isnan(nodes[1].line_out_bytes));
    fake->device[0] = 0; /* nobody knows over what: what moved is told */
    OK(whole(&f, 4));
    session_nodes(f.s, &nodes);
    assert_int_equal(nodes[1].proof.verdict, PATH_UNKNOWN);
    assert_true(strlen(nodes[1].proof.text) > 0);
    assert_null(strstr(nodes[1].proof.text, "too few"));
    fake->fault = FAKE_WRONG;
    fake->fault_rank = 3;
    fake->fault_run = 4;
    assert_int_equal(whole(&f, 4), -EBADMSG);
    assert_said(&f, "rank 3 (node2): element 7 of 4096 is ");
    stop(&f);
}

/* Others may move much over lo at the same moment: then nothing is said of the path, and it is tried again. */
static int whole_told(struct fixture *f, const struct session_node **nodes)
{
    int err = 0;

    for (int i = 0; i < 10; i++) {
        err = whole(f, 2);
        if (err || (session_nodes(f->s, nodes) && (*nodes)->proof.verdict != PATH_UNKNOWN))
            break;
        print_message("%s\n", (*nodes)->proof.text);
    }
    return err;
}

/* Bytes that go over lo: proved where that is claimed, found where another device is. */
static void test_path(void **state)
{
    static const struct session_node none;
    const struct session_node *nodes = &none;
    struct fixture f;

    (void)state;
    start(&f, 2);
    strcpy(fake->device, "lo");
    fake->loopback_bytes = 64 << 20;
    fake->flow_bytes = (double)fake->loopback_bytes / 2; /* each of two members */
    OK(whole_told(&f, &nodes));
    assert_ptr_not_equal(nodes, &none);
    assert_int_equal(nodes[0].proof.verdict, PATH_PROVED);
    assert_non_null(strstr(nodes[0].proof.text, "lo sent "));
    f.point.inject = COLLECTIVE_ELSEWHERE;
    assert_int_equal(whole_told(&f, &nodes), -EBADMSG);
    assert_said(&f, "the bytes went another way: at rank 0 (");
    assert_said(&f, "lo moved ");
    stop(&f);
}

static void test_addresses(void **state)
{
    struct address_list list = {0}, taken = {0};
    uint8_t address[COLLECTIVE_ADDRESS_MAX + 1] = {1, 2, 3};
    const uint8_t *bytes;
    unsigned member;
    size_t at = 0, len;

    (void)state;
    assert_int_equal(addresses_add(&list, 1, address, 3), 0);
    assert_int_equal(addresses_add(&list, 0, address, 0), 0);
    assert_int_equal(addresses_add(&list, 0, address, sizeof(address)), -EMSGSIZE);
    assert_int_equal(addresses_take(&taken, list.packed.bytes, list.packed.len, 2), 0);
    assert_int_equal(taken.n, 2);
    assert_true(addresses_next(&taken, &at, &member, &bytes, &len));
    assert_true(member == 1 && len == 3 && !memcmp(bytes, address, 3));
    assert_true(addresses_next(&taken, &at, &member, &bytes, &len));
    assert_true(member == 0 && len == 0);
    assert_false(addresses_next(&taken, &at, &member, &bytes, &len));
    assert_int_equal(addresses_take(&taken, list.packed.bytes, list.packed.len, 2),
                     -EPROTO); /* too many */
    addresses_free(&taken);
    assert_int_equal(addresses_take(&taken, list.packed.bytes, list.packed.len, 1),
                     -EPROTO); /* no such member */
    for (size_t cut = 1; cut < list.packed.len; cut++)
        if (cut != 11)
            assert_int_equal(addresses_take(&taken, list.packed.bytes, cut, 2), -EPROTO);
    assert_int_equal(taken.n, 0);
    addresses_free(&taken);
    addresses_free(&list);
}

/* The status of a child whose dog has 200 ms, and which does this for a second. */
static int watched(void (*act)(struct watchdog *d))
{
    int status = 0;
    pid_t child = fork();

    if (!child) {
        struct watchdog *d = NULL;
        if (!freopen("/dev/null", "w", stderr) || watchdog_open(&d))
            _exit(1);
        watchdog_set(d, 200000000, "a test");
        for (int i = 0; i < 20; i++) {
            act(d);
            usleep(50000);
        }
        watchdog_close(d);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void starve(struct watchdog *d)
{
    (void)d;
}

static void test_watchdog(void **state)
{
    (void)state;
    assert_int_equal(watched(starve), EXIT_INCOMPLETE);
    assert_int_equal(watched(watchdog_rest), 0);
    watchdog_feed(NULL);
    watchdog_rest(NULL);
    watchdog_close(NULL);
}

/* With a name, or a pattern of them: these tests alone. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops_and_sizes), cmocka_unit_test(test_buffers_elsewhere),
        cmocka_unit_test(test_times),         cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_overlap_work),  cmocka_unit_test(test_many_calls),
        cmocka_unit_test(test_many),          cmocka_unit_test(test_cpu_ranks),
        cmocka_unit_test(test_told),          cmocka_unit_test(test_machine),
        cmocka_unit_test(test_nodes),         cmocka_unit_test(test_path),
        cmocka_unit_test(test_addresses),     cmocka_unit_test(test_watchdog),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
