/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session of rank 0 with others, over a backend that reduces through shared memory: results, times, what is told, and
 * the proof of the path.
 */
#include <sys/wait.h>

#include "core/program.h"
#include "tests/unit/session_fixture.h"
#include "tests/unit/unit.h"

/* Every operation between 1, 2 and 4 ranks, in place or not, and with buffers that are elsewhere. */
TEST(test_ops_and_sizes)
{
    struct fixture f;

    start(&f, 4);
    for (unsigned n = 1; n <= 4; n *= 2)
        for (f.point.op = 0; f.point.op < COLLECTIVE_OPS; f.point.op++)
            for (unsigned k = 0; k < 3; k++) {
                f.point.in_place = k == 1;
                strcpy(f.point.backend, k == 2 ? "fake-far" : "fake");
                if (k == 1 &&
                    (f.point.op == COLLECTIVE_ALL_TO_ALL || f.point.op == COLLECTIVE_SEND_RECEIVE))
                    continue;
                OK(whole(&f, n));
                assert_int_equal(fake->addresses[0], n);
            }
    assert_false(session_broken(f.s));
    for (unsigned i = 0; i < 2 && topo_cpus(f.topo) > 1; i++)
        assert_int_equal(fake->bound[i], ~0u); /* its own threads are to have all CPUs */
    stop(&f);
}

TEST(test_times)
{
    const struct collective_times *times;
    struct session_run what = {.operations = 5, .gap_ns = 30000000};
    uint64_t slowest, largest = 0;
    struct fixture f;

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

/* Work beside operations is in their time, and they go on while it is done. */
TEST(test_overlap)
{
    const struct collective_times *times;
    struct session_run what = {.operations = 3, .overlap_ns = 100000000};
    uint64_t slowest, alone = 0;
    struct fixture f;

    start(&f, 2);
    OK(begin(&f, 2));
    OK(session_overlap_alone(f.s, what.overlap_ns, &alone));
    assert_true(alone >= what.overlap_ns / 4);
    OK(session_mark(f.s));
    OK(session_run(f.s, &what, &times, &slowest));
    assert_true(slowest >= what.operations * what.overlap_ns / 4);
    assert_true(fake->first_test_ns < what.overlap_ns / 2);
    OK(session_end(f.s)); /* what came meanwhile is right */
    strcpy(f.point.backend, "fake-blocking");
    OK(begin(&f, 2));
    assert_int_equal(session_run(f.s, &what, &times, &slowest), -EOPNOTSUPP);
    stop(&f);
}

/* As many ranks, and as many calls, as there may be, in frames of their own. */
TEST(test_many)
{
    static struct collective_call calls[COLLECTIVE_CALLS_MAX];
    struct fixture f;

    start(&f, FAKE_RANKS);
    OK(whole(&f, FAKE_RANKS));
    assert_int_equal(fake->addresses[63], FAKE_RANKS); /* of two frames */
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

/* Seats: as many CPUs as members get one each, more share them all. */
TEST(test_cpu_ranks)
{
    struct fixture f;

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
TEST(test_told)
{
    const struct session_node *nodes = NULL;
    struct fixture f;

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
        assert_int_equal(told->flows[0].out_bytes, 3000);
        assert_int_equal(told->flows[0].in_bytes, 3000);
        assert_int_equal(told->facts[0].value, 3);
        assert_int_equal(told->facts[1].value, 5);
        assert_string_equal(session_gpu_address(f.s, i), "0000:18:00.0");
    }
    assert_int_equal(session_nodes(f.s, &nodes), 1);
    assert_int_equal(nodes[0].member, 0);
    assert_true(isnan(nodes[0].busy_cores)); /* the idle machine was not watched */
    assert_true(session_seconds(f.s) > 0);
    session_finish(f.s);
    stop(&f);
}

/* Of two nodes: how they are named, and what is said of who is wrong. */
TEST(test_nodes)
{
    const struct session_node *nodes = NULL;
    struct fixture f;

    start(&f, 4);
    make_two_nodes(&f);
    strcpy(fake->device, "nodevice0");
    fake->flow_bytes = 1000;
    fake->other_node = 1;
    OK(whole(&f, 4));
    assert_int_equal(session_nodes(f.s, &nodes), 2);
    assert_int_equal(nodes[1].member, 2);
    assert_string_equal(nodes[1].host, "node2");
    assert_int_equal(nodes[1].proof.verdict, PATH_UNKNOWN);
    fake->fault = FAKE_WRONG;
    fake->fault_rank = 3;
    fake->fault_run = 4;
    assert_int_equal(whole(&f, 4), -EBADMSG);
    assert_said(&f, "rank 3 (node2)");
    stop(&f);
}

/* Bytes that go over lo: proved where that is claimed, found where another device is. Others may move much over lo: then again. */
TEST(test_path)
{
    static const struct session_node none;
    const struct session_node *nodes = &none;
    struct fixture f;

    start(&f, 2);
    strcpy(fake->device, "lo");
    fake->loopback_bytes = 64 << 20;
    fake->flow_bytes = (double)fake->loopback_bytes / 2; /* each of two members */
    for (int i = 0; i < 20 && nodes->proof.verdict != PATH_PROVED; i++) {
        OK(whole(&f, 2));
        session_nodes(f.s, &nodes);
    }
    assert_int_equal(nodes[0].proof.verdict, PATH_PROVED);
    f.point.inject = COLLECTIVE_ELSEWHERE;
    int err = 0;
    for (int i = 0; i < 20 && !err; i++)
        err = whole(&f, 2);
    assert_int_equal(err, -EBADMSG);
    assert_said(&f, "rank 0 (");
    stop(&f);
}

/* What a peer sends packed: of more members than there are, of none, or cut anywhere, it is refused whole. */
TEST(test_addresses)
{
    struct address_list list = {0}, taken = {0};
    const uint8_t *bytes;
    unsigned member;
    size_t at = 0, len;

    assert_int_equal(addresses_add(&list, 1, "abc", 3), 0);
    assert_int_equal(addresses_add(&list, 0, "", 0), 0);
    assert_int_equal(addresses_add(&list, 0, "", COLLECTIVE_ADDRESS_MAX + 1), -EMSGSIZE);
    size_t first = list.packed.len - 8; /* of the second there is the head alone */
    assert_int_equal(addresses_take(&taken, list.packed.bytes, first, 1), -EPROTO); /* member 1 */
    for (size_t cut = 1; cut < list.packed.len; cut++)
        if (cut != first)
            assert_int_equal(addresses_take(&taken, list.packed.bytes, cut, 2), -EPROTO);
    assert_int_equal(taken.n, 0);
    assert_int_equal(addresses_take(&taken, list.packed.bytes, list.packed.len, 2), 0);
    assert_int_equal(addresses_take(&taken, list.packed.bytes, list.packed.len, 2), -EPROTO);
    assert_int_equal(taken.n, 2);
    assert_true(addresses_next(&taken, &at, &member, &bytes, &len));
    assert_true(member == 1 && len == 3 && !memcmp(bytes, "abc", 3));
    assert_true(addresses_next(&taken, &at, &member, &bytes, &len) && member == 0 && len == 0);
    assert_false(addresses_next(&taken, &at, &member, &bytes, &len));
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
            if (act)
                act(d);
            usleep(50000);
        }
        watchdog_close(d);
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(test_watchdog)
{
    assert_int_equal(watched(NULL), EXIT_INCOMPLETE);
    assert_int_equal(watched(watchdog_rest), 0);
    watchdog_feed(NULL);
    watchdog_rest(NULL);
    watchdog_close(NULL);
}
