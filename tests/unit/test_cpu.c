/* SPDX-License-Identifier: Apache-2.0 */
/* CPU accounting of the machine and of threads, and which machine it is. */
#include <pthread.h>
#include <stdatomic.h>

#include "core/clock.h"
#include "core/hw/machine.h"
#include "tests/unit/scratch_tree.h"
#include "tests/unit/unit.h"

/* user nice system idle iowait irq softirq steal guest guest_nice: guests are in user and nice already. */
TEST(test_sums)
{
    struct cpu_reading r;
    struct scratch s;

    scratch_open(&s);
    scratch_put(&s, "proc/stat", "cpu  100 20 30 5000 600 4 7 900 80 10\ncpu0 1 2 3 4 5 6 7 8\n");
    assert_int_equal(cpu_read_at(&r, s.root), 0);
    assert_int_equal(r.busy_ns, (100 + 20 + 30 + 4 + 7) * cpu_tick_ns());
    assert_int_equal(r.softirq_ns, 7 * cpu_tick_ns());
    assert_int_equal(r.steal_ns, 900 * cpu_tick_ns());
    assert_true(r.at_ns > 0);
    scratch_put(&s, "proc/stat", "cpu 1 2 3\n");
    assert_int_equal(cpu_read_at(&r, s.root), -ENODATA);
    assert_int_equal(r.busy_ns, 0);
    scratch_close(&s);
    assert_int_equal(cpu_read_at(&r, s.root), -ENOENT);
}

TEST(test_rates)
{
    struct cpu_reading a = {.busy_ns = 1000, .softirq_ns = 10, .at_ns = 5000};
    struct cpu_reading b = {.busy_ns = 4000, .softirq_ns = 510, .at_ns = 7000};

    assert_true(fabs(cpu_busy(&a, &b) - 1.5) < 1e-12);
    assert_true(fabs(cpu_softirq(&a, &b) - 0.25) < 1e-12);
    b.busy_ns = 900; /* a CPU was taken off */
    assert_true(fabs(cpu_busy(&a, &b) - 0) < 1e-12);
    assert_true(isnan(cpu_busy(&a, &a)));
}

static _Atomic bool stop;

static void *spin(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop))
        ;
    return NULL;
}

/* A busy thread's clock runs; the machine's count has it, to a tick for each CPU and what was stolen. */
TEST(test_a_busy_thread)
{
    const uint64_t work_ns = 100000000u;
    uint64_t ticks_ns = cpu_tick_ns() * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    struct cpu_reading before, after;
    pthread_t busy;

    assert_int_equal(cpu_read(&before), 0);
    assert_int_equal(pthread_create(&busy, NULL, spin, NULL), 0);
    while (cpu_of_thread(busy) < work_ns)
        usleep(5000);
    assert_true(cpu_of_thread(pthread_self()) < cpu_of_thread(busy));
    assert_int_equal(cpu_read(&after), 0);
    atomic_store(&stop, true);
    pthread_join(busy, NULL);
    uint64_t steal_ns = after.steal_ns - before.steal_ns;
    assert_true(after.busy_ns - before.busy_ns + steal_ns + 2 * ticks_ns >= work_ns);
}

TEST(test_watch)
{
    uint64_t begin_ns = clock_now_ns();
    double cores, softirq;

    cpu_watch(50000000, &cores, &softirq);
    assert_true(clock_now_ns() - begin_ns >= 50000000);
    assert_true(cores >= 0);
}

TEST(test_machine)
{
    char a[MACHINE_ID_BYTES], b[MACHINE_ID_BYTES];

    machine_id(a);
    machine_id(b);
    assert_string_equal(a, b);
    assert_true(!a[0] || machine_same(a, b));
    assert_false(machine_same("", "")); /* both unknown: nobody knows */
    assert_false(machine_same("1c6a2e8e", "1c6a2e8f"));
}
