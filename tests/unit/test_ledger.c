/* SPDX-License-Identifier: Apache-2.0 */
/* The noise ledger: differences of two marks, thresholds of a disturbance, and what cannot be told. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "core/ledger.h"
#include "tests/unit/scratch_tree.h"
#include "tests/unit/unit.h"

static const char *disturbance(const struct ledger *l)
{
    static char text[256];

    memset(text, 'x', sizeof(text));
    assert_ptr_equal(ledger_disturbance(l, text, sizeof(text)), text);
    return text;
}

TEST(test_differences)
{
    struct ledger_mark before = {1000000000, 100, 1000, 0, 5, 50, 1, 1000, 3000, 7, 20, 0, {0}};
    struct ledger_mark after = {3500000000, 110, 1500, 0, 8, 54, 3, 1011, 2500, 9, 50, 70, {0}};
    struct ledger l;

    ledger_between(&before, &after, &l);
    assert_float_equal(l.elapsed_s, 2.5, 1e-12);
    assert_float_equal(l.steal_percent, 2, 1e-12); /* 10 of 500 ticks */
    assert_float_equal(l.ctx_involuntary, 3, 0);
    assert_float_equal(l.ctx_voluntary, 4, 0);
    assert_float_equal(l.faults_major, 2, 0);
    assert_float_equal(l.faults_minor, 11, 0);
    assert_float_equal(l.cpu_mhz_low, 2500, 0);
    assert_float_equal(l.cpu_mhz_high, 3000, 0);
    assert_float_equal(l.throttle_events, 2, 0);
    assert_float_equal(l.quota_throttled_ms, 30, 1e-12);
    assert_float_equal(l.quota_percent, 30, 1e-12); /* 70 ms ran, 30 did not */
}

/* An idle CPU has nothing that could be stolen. */
TEST(test_steal_is_of_the_time_that_was_wanted)
{
    static const struct {
        double seconds, user, idle, steal, percent; /* NAN: not known */
        const char *why;
    } cases[] = {
        {10, 600, 63000, 400, 40, "one thread on 64 CPUs"},
        {10, 38400, 0, 25600, 40, "64 threads on 64 CPUs"},
        {10, 60, 63900, 40, 4, "a thread that mostly sleeps: of one CPU's time"},
        {0.2, 19, 1260, 1, 1, "one tick is what rounding may make"},
        {0.2, 18, 0, 2, 10, "two are none"},
        {10, 0, 64000, 0, 0, "nothing to steal, nothing stolen"},
        {0, 0, 0, 0, NAN, "0 of 0 ticks is not 0 %"},
        {0, -1, 0, 1, NAN, "nor is 1 of 0 endless"},
    };

    assert_int_equal(sysconf(_SC_CLK_TCK), 100);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct ledger_mark before = {.steal_ticks = 70, .total_ticks = 5000, .idle_ticks = 3000};
        struct ledger_mark after = before;
        struct ledger l;

        after.at_ns = (uint64_t)(cases[i].seconds * 1e9);
        after.steal_ticks += cases[i].steal;
        after.idle_ticks += cases[i].idle;
        after.total_ticks += cases[i].user + cases[i].idle + cases[i].steal;
        ledger_between(&before, &after, &l);
        if (isnan(cases[i].percent) ? !isnan(l.steal_percent)
                                    : !(fabs(l.steal_percent - cases[i].percent) <= 0.01))
            fail_msg("%s: %g %%", cases[i].why, l.steal_percent);
    }
}

TEST(test_what_the_system_hides_stays_unknown)
{
    struct ledger_mark hidden = {.steal_ticks = NAN,
                                 .total_ticks = NAN,
                                 .cpu_mhz = NAN,
                                 .throttle_events = NAN,
                                 .quota_throttled_ms = NAN};
    struct ledger_mark later = hidden;
    struct ledger l, none;
    const double *value = (const double *)&none;

    later.at_ns = 10000000000;
    ledger_between(&hidden, &later, &l);
    assert_true(isnan(l.steal_percent) && isnan(l.cpu_mhz_low) && isnan(l.cpu_mhz_high));
    assert_true(isnan(l.throttle_events) && isnan(l.quota_throttled_ms));
    assert_float_equal(l.faults_major, 0, 0);
    assert_string_equal(disturbance(&l), "");
    ledger_none(&none);
    for (size_t i = 0; i < sizeof(none) / sizeof(*value); i++)
        assert_true(isnan(value[i]));
    assert_string_equal(disturbance(&none), "");
}

/* Each threshold from just below and just above, with its number in the text; clock of 3000 MHz. */
TEST(test_thresholds)
{
    static const struct {
        double elapsed_s;
        size_t offset;
        double below, above;
        const char *text;
    } cases[] = {
        {10, offsetof(struct ledger, steal_percent), 1.0, 1.1, "steal 1.1"},
        {10, offsetof(struct ledger, ctx_involuntary), 1000, 1001, "1001 inv"},
        {0.01, offsetof(struct ledger, ctx_involuntary), 5, 6, "6 inv"}, /* five are no pattern */
        {10, offsetof(struct ledger, faults_major), 0, 1, "1 major"},
        {10, offsetof(struct ledger, cpu_mhz_low), 2851, 2849, "2849 to 3000"},
        {10, offsetof(struct ledger, throttle_events), 0, 2, "2 thermal"},
        {10, offsetof(struct ledger, quota_throttled_ms), 10, 11, "11 ms"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        /* Waiting is no disturbance, nor is touching fresh memory. */
        struct ledger l = {.elapsed_s = cases[i].elapsed_s,
                           .cpu_mhz_low = 3000,
                           .cpu_mhz_high = 3000,
                           .ctx_voluntary = 1e6,
                           .faults_minor = 1e6};
        double *member = (double *)((char *)&l + cases[i].offset);
        *member = cases[i].below;
        assert_string_equal(disturbance(&l), "");
        *member = cases[i].above;
        assert_non_null(strstr(disturbance(&l), cases[i].text));
        assert_null(strchr(disturbance(&l), ','));
    }
}

TEST(test_all_at_once_and_a_short_text)
{
    const struct ledger l = {.elapsed_s = 1,
                             .steal_percent = 3.14,
                             .ctx_involuntary = 200,
                             .faults_major = 2,
                             .cpu_mhz_low = 2600,
                             .cpu_mhz_high = 3400,
                             .throttle_events = 4,
                             .quota_throttled_ms = 120};
    char text[24];
    int commas = 0;

    for (const char *at = disturbance(&l); (at = strchr(at, ',')); at++)
        commas++;
    assert_int_equal(commas, 5);
    memset(text, 'x', sizeof(text));
    ledger_disturbance(&l, text, sizeof(text));
    assert_non_null(memchr(text, 0, sizeof(text))); /* ends within its buffer */
    assert_non_null(strstr(text, "3.1"));
}

TEST(test_marks_count_real_events)
{
    enum { PAGES = 64 };
    struct ledger_mark before, after;
    struct ledger l;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct timespec nap = {0, 2000000};

    ledger_mark(&before);
    char *memory =
        mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    madvise(memory, PAGES * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < PAGES; i++)
        memory[i * page] = 1;
    for (int i = 0; i < 3; i++)
        nanosleep(&nap, NULL);
    ledger_mark(&after);
    munmap(memory, PAGES * page);
    ledger_between(&before, &after, &l);
    assert_true(l.faults_minor >= PAGES);
    assert_true(l.ctx_voluntary >= 3);
    assert_true(l.ctx_involuntary >= 0);
    assert_true(l.elapsed_s >= 0.006);
#if defined(__x86_64__) || defined(__aarch64__)
    assert_true(after.cpu_mhz > 100 && after.cpu_mhz < 20000); /* a clock of a CPU, in MHz */
#else
    assert_true(isnan(after.cpu_mhz));
#endif
}

/* The other end of a copy lives until after the last mark: what it sees counts all the same. */
TEST(test_a_child_that_still_runs_counts)
{
    char path[64];
    struct ledger_mark before, after;
    struct ledger l;
    int fds[2];
    char done;

    snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
    if (access(path, R_OK)) {
        print_message("skipped: this kernel does not list a task's children\n");
        skip();
    }
    assert_int_equal(pipe(fds), 0);
    ledger_mark(&before);
    pid_t child = fork();
    if (child == 0) {
        for (struct rusage u = {0}; u.ru_nvcsw < 200; getrusage(RUSAGE_SELF, &u))
            usleep(100); /* gives up the CPU, unless a busy machine is late and the time is over */
        if (write(fds[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(fds[1]);
    ssize_t told = read(fds[0], &done, 1);
    ledger_mark(&after);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(fds[0]);
    assert_int_equal(told, 1);
    ledger_between(&before, &after, &l);
    assert_true(l.ctx_voluntary >= 200);
}

/* Other CPUs are idle, or another's: they are no part of what our threads lost. */
TEST(test_steal_of_some_cpus)
{
    static char text[] = "cpu  3000 0 0 300 0 0 0 500 0 0\n"
                         "cpu0 1000 0 0 100 0 0 0 0 0 0\n"
                         "cpu1 300 0 100 50 50 0 0 500 0 0\n"
                         "cpu10 1000 0 0 100 0 0 0 0 0 0\n"
                         "intr 5\n";
    static const unsigned one[] = {1}, three[] = {0, 1, 10}, absent[] = {1, 2};
    struct ledger_ticks t;
    FILE *f = fmemopen(text, sizeof(text) - 1, "r");

    ledger_ticks(f, one, 1, &t);
    assert_true(t.steal == 500 && t.idle == 100 && t.total == 1000);
    rewind(f);
    ledger_ticks(f, three, 3, &t);
    assert_true(t.steal == 500 && t.idle == 300 && t.total == 3200);
    rewind(f);
    ledger_ticks(f, absent, 2, &t);
    assert_true(isnan(t.steal) && isnan(t.total));
    fclose(f);
}

/* Two packages and the memory of one: cores are in their package, the same package stands twice, and psys is
 * everything again. The second package begins anew at the end of its range. */
TEST(test_energy_of_packages)
{
    static const char *const zones[][3] = {
        {"intel-rapl:0", "package-0", "1000000000"},
        {"intel-rapl:0:0", "core", "500000000"},
        {"intel-rapl:0:1", "dram", "70000000"},
        {"intel-rapl:1", "package-1", "262143000000"},
        {"intel-rapl:2", "psys", "9000000000"},
        {"intel-rapl-mmio:0", "package-0", "1000000000"},
    };
    struct ledger_energy before, after;
    struct scratch s;

    scratch_open(&s);
    ledger_energy(s.root, &before);
    assert_int_equal(before.n, 0);
    for (size_t i = 0; i < sizeof(zones) / sizeof(*zones); i++) {
        char path[64];

        snprintf(path, sizeof(path), "%s/name", zones[i][0]);
        scratch_put(&s, path, zones[i][1]);
        snprintf(path, sizeof(path), "%s/energy_uj", zones[i][0]);
        scratch_put(&s, path, zones[i][2]);
        snprintf(path, sizeof(path), "%s/max_energy_range_uj", zones[i][0]);
        scratch_put(&s, path, "262143328850");
    }
    ledger_energy(s.root, &before);
    assert_int_equal(before.n, 3);
    /* 200 J, 10 J and 0.32885 + 99.67115 J, in two seconds */
    scratch_put(&s, "intel-rapl:0/energy_uj", "1200000000");
    scratch_put(&s, "intel-rapl:0:1/energy_uj", "80000000");
    scratch_put(&s, "intel-rapl:1/energy_uj", "99671150");
    ledger_energy(s.root, &after);
    assert_float_equal(ledger_watts(&before, &after, 2), 310 / 2., 1e-6);
    /* in 262 s a package of 1 kW is through its range */
    assert_false(isnan(ledger_watts(&before, &after, 262)));
    assert_true(isnan(ledger_watts(&before, &after, 263)));
    /* a part that cannot be read: no sum */
    scratch_put(&s, "intel-rapl:1/energy_uj", "");
    ledger_energy(s.root, &after);
    assert_int_equal(after.n, 0);
    assert_true(isnan(ledger_watts(&before, &after, 2)));
    scratch_close(&s);
}

/* A package that is too hot slows its cores though none of them counts that. */
TEST(test_heat_of_packages)
{
    struct scratch s;

    scratch_open(&s);
    assert_true(isnan(ledger_throttles(s.root, 2)));
    scratch_put(&s, "cpu0/thermal_throttle/core_throttle_count", "3\n");
    scratch_put(&s, "cpu1/thermal_throttle/core_throttle_count", "4\n");
    assert_float_equal(ledger_throttles(s.root, 2), 7, 0);
    scratch_put(&s, "cpu0/thermal_throttle/package_throttle_count", "50\n");
    scratch_put(&s, "cpu1/thermal_throttle/package_throttle_count", "50\n");
    assert_float_equal(ledger_throttles(s.root, 2), 107, 0);
    scratch_close(&s);
}

/* Held for 1.5 s, and at work for 2 s, in microseconds or in nanoseconds. */
TEST(test_quota_of_both_versions)
{
    static const char *const files[][6][2] = {
        {{"proc/self/cgroup", "0::/a\n"},
         {"a/cpu.stat", "usage_usec 2000000\nuser_usec 7\nthrottled_usec 1500000\n"},
         {"cpu.stat", "usage_usec 9\n"}},
        {{"proc/self/cgroup", "4:cpu,cpuacct:/a\n3:cpuset:/\n0::/b\n"},
         {"cpu,cpuacct/a/cpu.stat", "nr_throttled 9\nthrottled_time 1500000000\n"},
         {"cpu,cpuacct/a/cpuacct.usage", "2000000000\n"}},
        {{"proc/self/cgroup", "3:cpuset:/x\n2:cpuacct:/a\n1:cpu:/a\n0::/\n"},
         {"cpu/a/cpu.stat", "throttled_time 1500000000\n"},
         {"cpuacct/a/cpuacct.usage", "2000000000\n"}},
        /* A quota above, of which the groups below count nothing; and one of its own. */
        {{"proc/self/cgroup", "0::/a/b/c\n"},
         {"a/cpu.max", "50000 100000\n"},
         {"a/cpu.stat", "usage_usec 2000000\nthrottled_usec 1500000\n"},
         {"a/b/cpu.max", "max 100000\n"},
         {"a/b/c/cpu.max", "max 100000\n"},
         {"a/b/c/cpu.stat", "usage_usec 1000000\nthrottled_usec 0\n"}},
        {{"proc/self/cgroup", "0::/a/b\n"},
         {"a/cpu.max", "50000 100000\n"},
         {"a/cpu.stat", "usage_usec 9\nthrottled_usec 0\n"},
         {"a/b/cpu.max", "20000 100000\n"},
         {"a/b/cpu.stat", "usage_usec 2000000\nthrottled_usec 1500000\n"}},
    };

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        struct ledger_mark mark;
        struct scratch s;

        scratch_open(&s);
        for (size_t k = 0; k < 6 && files[i][k][0]; k++) {
            char path[128];

            snprintf(path, sizeof(path), "%s%s", k ? "sys/fs/cgroup/" : "", files[i][k][0]);
            scratch_put(&s, path, files[i][k][1]);
        }
        ledger_quota(s.root, &mark);
        assert_float_equal(mark.quota_throttled_ms, 1500, 1e-9);
        assert_float_equal(mark.quota_used_ms, 2000, 1e-9);
        scratch_close(&s);
        ledger_quota(s.root, &mark);
        assert_true(isnan(mark.quota_throttled_ms) && isnan(mark.quota_used_ms));
    }
}
