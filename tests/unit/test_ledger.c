/* SPDX-License-Identifier: Apache-2.0 */
/* The noise ledger: differences of two marks, thresholds of a disturbance, and what cannot be told. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/ledger.h"

/* A case of ten seconds in which nothing happened. */
static void quiet(struct ledger *l)
{
    *l = (struct ledger){.elapsed_s = 10, .cpu_mhz_low = 3000, .cpu_mhz_high = 3000};
}

static const char *disturbance(const struct ledger *l)
{
    static char text[256];

    memset(text, 'x', sizeof(text));
    assert_ptr_equal(ledger_disturbance(l, text, sizeof(text)), text);
    return text;
}

static void test_differences(void **state)
{
    struct ledger_mark before = {.at_ns = 1000000000,
                                 .steal_ticks = 100,
                                 .total_ticks = 1000,
                                 .ctx_involuntary = 5,
                                 .ctx_voluntary = 50,
                                 .faults_major = 1,
                                 .faults_minor = 1000,
                                 .cpu_mhz = 3000,
                                 .throttle_events = 7,
                                 .quota_throttled_ms = 20};
    struct ledger_mark after = {.at_ns = 3500000000,
                                .steal_ticks = 110,
                                .total_ticks = 1500,
                                .ctx_involuntary = 8,
                                .ctx_voluntary = 54,
                                .faults_major = 3,
                                .faults_minor = 1011,
                                .cpu_mhz = 2500,
                                .throttle_events = 9,
                                .quota_throttled_ms = 50,
                                .quota_used_ms = 70};
    struct ledger l;

    (void)state;
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
static void test_steal_is_of_the_time_that_was_wanted(void **state)
{
    static const struct {
        double seconds, user, idle, steal, percent;
        const char *why;
    } cases[] = {
        {10, 600, 63000, 400, 40, "one thread on 64 CPUs"},
        {10, 38400, 0, 25600, 40, "64 threads on 64 CPUs"},
        {10, 995, 62995, 10, 1, "an edge of one thread"},
        {10, 60, 63900, 40, 4, "a thread that mostly sleeps: of one CPU's time"},
        {0.2, 19, 1260, 1, 1, "one tick is what rounding may make"},
        {0.2, 19, 0, 1, 1, "and so on one CPU"},
        {0.2, 14, 1260, 6, 30, "six are none"},
        {10, 0, 64000, 0, 0, "nothing to steal, nothing stolen"},
    };

    (void)state;
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
        if (fabs(l.steal_percent - cases[i].percent) > 0.01)
            fail_msg("%s: %g %%", cases[i].why, l.steal_percent);
    }
}

static void test_what_the_system_hides_stays_unknown(void **state)
{
    struct ledger_mark hidden = {.steal_ticks = NAN,
                                 .total_ticks = NAN,
                                 .cpu_mhz = NAN,
                                 .throttle_events = NAN,
                                 .quota_throttled_ms = NAN};
    struct ledger_mark later = hidden;
    struct ledger l;

    (void)state;
    later.at_ns = 10000000000;
    ledger_between(&hidden, &later, &l);
    assert_true(isnan(l.steal_percent));
    assert_true(isnan(l.cpu_mhz_low));
    assert_true(isnan(l.cpu_mhz_high));
    assert_true(isnan(l.throttle_events));
    assert_true(isnan(l.quota_throttled_ms));
    assert_float_equal(l.faults_major, 0, 0);
    assert_string_equal(disturbance(&l), "");
}

static void test_too_short_for_a_tick(void **state)
{
    struct ledger_mark mark = {.steal_ticks = 5, .total_ticks = 100}, later = mark;
    struct ledger l;

    (void)state;
    ledger_between(&mark, &later, &l);
    assert_true(isnan(l.steal_percent)); /* 0 of 0 ticks is not 0 % */
    later.steal_ticks = 6;
    ledger_between(&mark, &later, &l);
    assert_true(isnan(l.steal_percent)); /* nor is 1 of 0 endless */
}

static void test_none_is_all_unknown(void **state)
{
    struct ledger l;
    const double *value = (const double *)&l;

    (void)state;
    ledger_none(&l);
    for (size_t i = 0; i < sizeof(l) / sizeof(*value); i++)
        assert_true(isnan(value[i]));
    assert_string_equal(disturbance(&l), "");
}

static void test_quiet_case_is_not_disturbed(void **state)
{
    struct ledger l;

    (void)state;
    quiet(&l);
    l.ctx_voluntary = 1e6; /* waiting is no disturbance, nor is touching fresh memory */
    l.faults_minor = 1e6;
    assert_string_equal(disturbance(&l), "");
}

/* Each threshold from just below and just above; case of 10 s, clock of 3000 MHz. */
static void test_thresholds(void **state)
{
    static const struct {
        size_t offset;
        double below, above;
        const char *text;
    } cases[] = {
        {offsetof(struct ledger, steal_percent), 1.0, 1.1, "steal 1.1 %"},
        {offsetof(struct ledger, ctx_involuntary), 1000, 1001, "1001 involuntary context switches"},
        {offsetof(struct ledger, faults_major), 0, 1, "1 major page faults"},
        {offsetof(struct ledger, cpu_mhz_low), 2851, 2849, "clock 2849 to 3000 MHz"},
        {offsetof(struct ledger, throttle_events), 0, 2, "2 thermal throttle events"},
        {offsetof(struct ledger, quota_throttled_ms), 10, 11, "CPU quota held it 11 ms"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ledger l;
        quiet(&l);
        double *member = (double *)((char *)&l + cases[i].offset);
        *member = cases[i].below;
        assert_string_equal(disturbance(&l), "");
        *member = cases[i].above;
        assert_string_equal(disturbance(&l), cases[i].text);
    }
}

static void test_few_switches_of_a_short_case(void **state)
{
    struct ledger l;

    (void)state;
    quiet(&l);
    l.elapsed_s = 0.01;
    l.ctx_involuntary = 5; /* 500 a second, but five events are no pattern */
    assert_string_equal(disturbance(&l), "");
    l.ctx_involuntary = 6;
    assert_string_equal(disturbance(&l), "6 involuntary context switches");
}

static void test_all_at_once_and_a_short_text(void **state)
{
    struct ledger l;
    char text[24];

    (void)state;
    l = (struct ledger){.elapsed_s = 1,
                        .steal_percent = 3.14,
                        .ctx_involuntary = 200,
                        .faults_major = 2,
                        .cpu_mhz_low = 2600,
                        .cpu_mhz_high = 3400,
                        .throttle_events = 4,
                        .quota_throttled_ms = 120};
    assert_string_equal(
        disturbance(&l),
        "steal 3.1 %, 200 involuntary context switches, 2 major page faults, "
        "clock 2600 to 3400 MHz, 4 thermal throttle events, CPU quota held it 120 ms");
    memset(text, 'x', sizeof(text));
    ledger_disturbance(&l, text, sizeof(text));
    assert_non_null(memchr(text, 0, sizeof(text))); /* ends within its buffer */
    assert_int_equal(strncmp(text, "steal 3.1 %", 11), 0);
}

static void test_marks_count_real_events(void **state)
{
    enum { PAGES = 64 };
    struct ledger_mark before, after;
    struct ledger l;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct timespec nap = {0, 2000000};

    (void)state;
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
    assert_true(l.elapsed_s >= 0.006 && l.elapsed_s < 60);
}

/* No bound on speed is meant: only that it is a clock of a CPU, in MHz. */
static void test_clock_is_plausible(void **state)
{
    double mhz = ledger_cpu_mhz();

    (void)state;
#if defined(__x86_64__) || defined(__aarch64__)
    assert_true(mhz > 100 && mhz < 20000);
#else
    assert_true(isnan(mhz));
#endif
}

/* The other end of a copy lives until after the last mark: what it sees counts all the same. */
static void test_a_child_that_still_runs_counts(void **state)
{
    char path[64];
    struct ledger_mark before, after;
    struct ledger l;
    int fds[2];
    char done;

    (void)state;
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
static void test_steal_of_some_cpus(void **state)
{
    static char text[] = "cpu  3000 0 0 300 0 0 0 500 0 0\n"
                         "cpu0 1000 0 0 100 0 0 0 0 0 0\n"
                         "cpu1 300 0 100 50 50 0 0 500 0 0\n"
                         "cpu10 1000 0 0 100 0 0 0 0 0 0\n"
                         "intr 5\n";
    static const unsigned one[] = {1}, three[] = {0, 1, 10}, absent[] = {1, 2};
    struct ledger_ticks t;
    FILE *f = fmemopen(text, sizeof(text) - 1, "r");

    (void)state;
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

static void put_in(const char *folder, const char *path, const char *text)
{
    char command[700];

    snprintf(command, sizeof(command), "mkdir -p $(dirname %s/%s) && printf '%s' > %s/%s", folder,
             path, text, folder, path);
    assert_int_equal(system(command), 0);
}

static void remove_all(const char *folder)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void put(const char *folder, const char *zone, const char *file, const char *text)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/%s", folder, zone);
    mkdir(path, 0777);
    snprintf(path, sizeof(path), "%s/%s/%s", folder, zone, file);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    fprintf(out, "%s\n", text);
    fclose(out);
}

static void put_zone(const char *folder, const char *zone, const char *name,
                     const char *microjoules)
{
    put(folder, zone, "name", name);
    put(folder, zone, "energy_uj", microjoules);
    put(folder, zone, "max_energy_range_uj", "262143328850");
}

/* Two packages and the memory of one: cores are in their package, the same package stands twice, and
 * psys is everything again. */
static void test_energy_of_packages(void **state)
{
    char folder[] = "/tmp/powercap-XXXXXX";
    struct ledger_energy before, after;

    (void)state;
    assert_non_null(mkdtemp(folder));
    ledger_energy(folder, &before);
    assert_int_equal(before.n, 0);
    put_zone(folder, "intel-rapl:0", "package-0", "1000000000");
    put_zone(folder, "intel-rapl:0:0", "core", "500000000");
    put_zone(folder, "intel-rapl:0:1", "dram", "70000000");
    put_zone(folder, "intel-rapl:1", "package-1", "262143000000");
    put_zone(folder, "intel-rapl:2", "psys", "9000000000");
    put_zone(folder, "intel-rapl-mmio:0", "package-0", "1000000000");
    ledger_energy(folder, &before);
    assert_int_equal(before.n, 3);
    /* 200 J, 10 J and, beyond the end of its range, 0.32885 + 99.67115 J, in two seconds */
    put(folder, "intel-rapl:0", "energy_uj", "1200000000");
    put(folder, "intel-rapl:0:1", "energy_uj", "80000000");
    put(folder, "intel-rapl:1", "energy_uj", "99671150");
    ledger_energy(folder, &after);
    assert_float_equal(ledger_watts(&before, &after, 2), 310 / 2., 1e-6);
    /* in 262 s a package of 1 kW is through its range */
    assert_false(isnan(ledger_watts(&before, &after, 262)));
    assert_true(isnan(ledger_watts(&before, &after, 263)));
    /* a part that cannot be read: no sum */
    put(folder, "intel-rapl:1", "energy_uj", "");
    ledger_energy(folder, &after);
    assert_int_equal(after.n, 0);
    assert_true(isnan(ledger_watts(&before, &after, 2)));
    remove_all(folder);
}

/* A package that is too hot slows its cores though none of them counts that. */
static void test_heat_of_packages(void **state)
{
    char folder[] = "/tmp/cpus-XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_true(isnan(ledger_throttles(folder, 2)));
    put_in(folder, "cpu0/thermal_throttle/core_throttle_count", "3\\n");
    put_in(folder, "cpu1/thermal_throttle/core_throttle_count", "4\\n");
    assert_float_equal(ledger_throttles(folder, 2), 7, 0);
    put_in(folder, "cpu0/thermal_throttle/package_throttle_count", "50\\n");
    put_in(folder, "cpu1/thermal_throttle/package_throttle_count", "50\\n");
    assert_float_equal(ledger_throttles(folder, 2), 107, 0);
    remove_all(folder);
}

/* Held for 1.5 s, and at work for 2 s, in microseconds or in nanoseconds. */
static void test_quota_of_both_versions(void **state)
{
    static const char *const files[][6][2] = {
        {{"proc/self/cgroup", "0::/a\\n"},
         {"sys/fs/cgroup/a/cpu.stat",
          "usage_usec 2000000\\nuser_usec 7\\nnr_throttled 9\\nthrottled_usec 1500000\\n"},
         {"sys/fs/cgroup/cpu.stat", "usage_usec 9\\n"}},
        {{"proc/self/cgroup", "4:cpu,cpuacct:/a\\n3:cpuset:/\\n0::/b\\n"},
         {"sys/fs/cgroup/cpu,cpuacct/a/cpu.stat", "nr_throttled 9\\nthrottled_time 1500000000\\n"},
         {"sys/fs/cgroup/cpu,cpuacct/a/cpuacct.usage", "2000000000\\n"}},
        {{"proc/self/cgroup", "3:cpuset:/x\\n2:cpuacct:/a\\n1:cpu:/a\\n0::/\\n"},
         {"sys/fs/cgroup/cpu/a/cpu.stat", "throttled_time 1500000000\\n"},
         {"sys/fs/cgroup/cpuacct/a/cpuacct.usage", "2000000000\\n"}},
        /* A quota above, of which the groups below count nothing; and one of its own. */
        {{"proc/self/cgroup", "0::/a/b/c\\n"},
         {"sys/fs/cgroup/a/cpu.max", "50000 100000\\n"},
         {"sys/fs/cgroup/a/cpu.stat", "usage_usec 2000000\\nthrottled_usec 1500000\\n"},
         {"sys/fs/cgroup/a/b/cpu.max", "max 100000\\n"},
         {"sys/fs/cgroup/a/b/c/cpu.max", "max 100000\\n"},
         {"sys/fs/cgroup/a/b/c/cpu.stat", "usage_usec 1000000\\nthrottled_usec 0\\n"}},
        {{"proc/self/cgroup", "0::/a/b\\n"},
         {"sys/fs/cgroup/a/cpu.max", "50000 100000\\n"},
         {"sys/fs/cgroup/a/cpu.stat", "usage_usec 9\\nthrottled_usec 0\\n"},
         {"sys/fs/cgroup/a/b/cpu.max", "20000 100000\\n"},
         {"sys/fs/cgroup/a/b/cpu.stat", "usage_usec 2000000\\nthrottled_usec 1500000\\n"}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char folder[] = "/tmp/cgroup-XXXXXX";
        struct ledger_mark mark;

        assert_non_null(mkdtemp(folder));
        for (size_t k = 0; k < 6 && files[i][k][0]; k++)
            put_in(folder, files[i][k][0], files[i][k][1]);
        ledger_quota(folder, &mark);
        assert_float_equal(mark.quota_throttled_ms, 1500, 1e-9);
        assert_float_equal(mark.quota_used_ms, 2000, 1e-9);
        remove_all(folder);
        ledger_quota(folder, &mark);
        assert_true(isnan(mark.quota_throttled_ms) && isnan(mark.quota_used_ms));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_steal_is_of_the_time_that_was_wanted),
        cmocka_unit_test(test_what_the_system_hides_stays_unknown),
        cmocka_unit_test(test_too_short_for_a_tick),
        cmocka_unit_test(test_none_is_all_unknown),
        cmocka_unit_test(test_quiet_case_is_not_disturbed),
        cmocka_unit_test(test_thresholds),
        cmocka_unit_test(test_few_switches_of_a_short_case),
        cmocka_unit_test(test_all_at_once_and_a_short_text),
        cmocka_unit_test(test_marks_count_real_events),
        cmocka_unit_test(test_clock_is_plausible),
        cmocka_unit_test(test_a_child_that_still_runs_counts),
        cmocka_unit_test(test_steal_of_some_cpus),
        cmocka_unit_test(test_energy_of_packages),
        cmocka_unit_test(test_heat_of_packages),
        cmocka_unit_test(test_quota_of_both_versions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
