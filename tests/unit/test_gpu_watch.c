/* SPDX-License-Identifier: Apache-2.0 */
/* The watch over GPUs, on a made-up NVML: what a case's row is told, and when it is called disturbed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/clock.h"
#include "core/hw/gpu_watch.h"
#include "core/hw/nvml.h"

struct nvml_device { /* what the made-up library says of it */
    const char *address;
    unsigned sm_mhz, memory_mhz, celsius, milliwatts, replays;
    unsigned long long reasons, power_ns, brake_ns, corrected, uncorrected, millijoules;
    double watts; /* its counter grows by so much; 0: it is millijoules */
};

static struct nvml_device cards[2];

static int by_address(const char *address, struct nvml_device **device)
{
    for (size_t i = 0; i < 2; i++)
        if (!strcmp(cards[i].address, address)) {
            *device = &cards[i];
            return 0;
        }
    return 6; /* not found */
}

static int clock_of(struct nvml_device *device, int which, unsigned *mhz)
{
    *mhz = which == NVML_CLOCK_MEMORY ? device->memory_mhz : device->sm_mhz;
    return 0;
}

static int reasons_of(struct nvml_device *device, unsigned long long *bits)
{
    *bits = device->reasons;
    return 0;
}

static int violation_of(struct nvml_device *device, int policy, struct nvml_violation *violation)
{
    assert_true(policy >= 0);
    violation->ns = device->power_ns;
    return policy == NVML_POLICY_POWER ? 0 : NVML_UNSUPPORTED;
}

static unsigned told_field; /* the number of the one that the made-up library knows */

static int fields_of(struct nvml_device *device, int count, struct nvml_field *fields)
{
    for (int i = 0; i < count; i++) {
        fields[i].status = fields[i].field == told_field ? 0 : NVML_UNSUPPORTED;
        fields[i].value.wide = device->brake_ns;
    }
    return 0;
}

static int temperature_of(struct nvml_device *device, struct nvml_temperature *temperature)
{
    assert_int_equal(temperature->version, 0x100000c); /* 12 bytes, version 1 */
    temperature->celsius = (int)device->celsius;
    return 0;
}

static int old_temperature_of(struct nvml_device *device, int sensor, unsigned *celsius)
{
    *celsius = device->celsius + (unsigned)sensor;
    return 0;
}

static int power_of(struct nvml_device *device, unsigned *milliwatts)
{
    *milliwatts = device->milliwatts;
    return 0;
}

static int ecc_of(struct nvml_device *device, int kind, int scope, unsigned long long *count)
{
    assert_int_equal(scope, NVML_SINCE_LOAD);
    *count = kind == NVML_CORRECTED ? device->corrected : device->uncorrected;
    return 0;
}

static int memory_errors_of(struct nvml_device *device, int kind, int scope, int place,
                            unsigned long long *count)
{
    assert_int_equal(place, NVML_DRAM);
    return ecc_of(device, kind, scope, count);
}

static int replays_of(struct nvml_device *device, unsigned *count)
{
    *count = device->replays;
    return 0;
}

/* Where a device takes so long to answer, its counter is of the middle of that time. */
static unsigned answer_us;
static uint64_t slowest_ns; /* answer */

static int energy_of(struct nvml_device *device, unsigned long long *millijoules)
{
    uint64_t begin_ns = clock_now_ns();

    usleep(answer_us / 2);
    *millijoules = device->watts
                       ? (unsigned long long)(device->watts * 1e-6 * (double)clock_now_ns())
                       : device->millijoules;
    usleep(answer_us / 2);
    uint64_t ns = clock_now_ns() - begin_ns;
    slowest_ns = ns > slowest_ns ? ns : slowest_ns;
    return 0;
}

static const struct nvml whole = {
    .driver = 590,
    .by_address = by_address,
    .clock = clock_of,
    .reasons = reasons_of,
    .violation = violation_of,
    .fields = fields_of,
    .temperature = temperature_of,
    .power = power_of,
    .energy = energy_of,
    .ecc_total = ecc_of,
    .pcie_replays = replays_of,
};

static const struct nvml old = {
    .by_address = by_address,
    .reasons_old = reasons_of,
    .temperature_old = old_temperature_of,
    .memory_errors = memory_errors_of,
};

static const struct nvml mute = {.by_address = by_address};

static int reset(void **state)
{
    (void)state;
    cards[0] = (struct nvml_device){.address = "0000:3b:00.0",
                                    .sm_mhz = 1980,
                                    .memory_mhz = 2619,
                                    .celsius = 40,
                                    .milliwatts = 350000,
                                    .power_ns = 5000000000u,
                                    .corrected = 7};
    cards[1] = cards[0];
    cards[1].address = "0000:86:00.0";
    told_field = 271; /* the power brake, of driver 590 */
    return 0;
}

static struct gpu_watch *watch_on(const struct nvml *nvml, size_t n)
{
    struct gpu_watch *watch;

    assert_int_equal(gpu_watch_open_on(&watch, nvml), 0);
    for (size_t i = 0; i < n; i++)
        gpu_watch_add(watch, cards[i].address);
    gpu_watch_begin(watch);
    return watch;
}

/* Waits until the watch is willing. */
static void look(struct gpu_watch *watch)
{
    for (int i = 0; i < 2000; i++) {
        if (gpu_watch_look(watch))
            return;
        usleep(1000);
    }
    fail_msg("the watch does not look");
}

static struct gpu_ledger finish(struct gpu_watch *watch)
{
    struct gpu_ledger l;

    gpu_watch_end(watch, &l);
    gpu_watch_close(watch);
    return l;
}

static void assert_calm(const struct gpu_ledger *l)
{
    char text[256];

    assert_string_equal(gpu_ledger_disturbance(l, text, sizeof(text)), "");
}

static void assert_says(const struct gpu_ledger *l, const char *words)
{
    char text[256];

    gpu_ledger_disturbance(l, text, sizeof(text));
    if (!strstr(text, words))
        fail_msg("'%s' is not in '%s'", words, text);
}

/* 0.31 s in which one device took 20 J and the other 10 J: the first drew the most. The time is this clock's. */
static void test_energy_is_a_mean(void **state)
{
    uint64_t before_ns = clock_now_ns();
    struct gpu_watch *watch = watch_on(&whole, 2);
    uint64_t begin_ns = clock_now_ns();

    (void)state;
    usleep(310000);
    cards[0].millijoules += 20000;
    cards[1].millijoules += 10000;
    double least_s = (double)(clock_now_ns() - begin_ns) * 1e-9;
    struct gpu_ledger l = finish(watch);
    double most_s = (double)(clock_now_ns() - before_ns) * 1e-9;

    assert_true(l.energy_s >= least_s && l.energy_s <= most_s);
    assert_float_equal(l.mean_watts, 20 / l.energy_s, 1e-6 * l.mean_watts);
    /* one that stood still, or that begins anew, tells nothing */
    watch = watch_on(&whole, 1);
    cards[0].millijoules -= 5;
    l = finish(watch);
    assert_true(isnan(l.mean_watts) && isnan(l.energy_s));
    l = finish(watch_on(&whole, 1));
    assert_true(isnan(l.mean_watts));
    l = finish(watch_on(&old, 1));
    assert_true(isnan(l.mean_watts));
    /* of too short a time nobody knows how many updates it had */
    begin_ns = clock_now_ns();
    watch = watch_on(&whole, 1);
    cards[0].millijoules += 20000;
    l = finish(watch);
    assert_true((isnan(l.mean_watts) && isnan(l.energy_s)) ||
                clock_now_ns() - begin_ns > 300000000);
    /* of two processes: the highest, and its time */
    struct gpu_ledger sum, more;
    gpu_ledger_none(&sum);
    gpu_ledger_none(&more);
    more.mean_watts = 300;
    more.energy_s = 2;
    gpu_ledger_add(&sum, &more);
    more.mean_watts = 200;
    more.energy_s = 1;
    gpu_ledger_add(&sum, &more);
    assert_true(sum.mean_watts == 300 && sum.energy_s == 2);
}

/* Two devices of 100 and 300 W, each of which answers only after 100 ms: by one time of both, the first would have 4/3 of its power. */
static void test_energy_over_its_own_time(void **state)
{
    (void)state;
    cards[0].watts = 300;
    cards[1].watts = 100;
    answer_us = 100000;
    slowest_ns = 0;
    struct gpu_watch *watch = watch_on(&whole, 2);
    usleep(300000);
    struct gpu_ledger l = finish(watch);
    answer_us = 0;
    assert_float_equal(l.mean_watts, 300, 300 * (double)slowest_ns * 1e-9 / l.energy_s);
    assert_true(l.energy_s > 0.39);
}

static void test_calm(void **state)
{
    struct gpu_watch *watch = watch_on(&whole, 1);

    (void)state;
    look(watch);
    struct gpu_ledger l = finish(watch);

    assert_true(l.clock_mhz_low == 1980 && l.clock_mhz_high == 1980);
    assert_true(l.memory_clock_mhz == 2619);
    assert_true(l.temperature_c == 40 && l.power_watts == 350);
    assert_true(l.looks == 1 && l.throttled_looks == 0 && l.throttled_ms == 0);
    assert_true(l.ecc_errors == 0 && l.pcie_replays == 0);
    assert_string_equal(l.throttle, "");
    assert_calm(&l);
}

/* On a machine that stands still for so long in between, nothing is said. */
static void assert_unwilling(struct gpu_watch *watch, uint64_t since_ns, uint64_t for_ns)
{
    bool looked = gpu_watch_look(watch);

    if (clock_now_ns() - since_ns < for_ns)
        assert_false(looked);
}

static void test_not_too_often(void **state)
{
    uint64_t since_ns = clock_now_ns();
    struct gpu_watch *watch = watch_on(&whole, 1);

    (void)state;
    assert_unwilling(watch, since_ns, 20000000); /* clocks are still rising */
    look(watch);
    since_ns = clock_now_ns();
    assert_unwilling(watch, since_ns, GPU_WATCH_EVERY_NS * 9 / 10);
    finish(watch);
}

static void test_short_case(void **state)
{
    struct gpu_watch *watch = watch_on(&whole, 1);

    (void)state;
    cards[0].reasons = NVML_REASON_IDLE;
    struct gpu_ledger l = finish(watch);
    assert_true(l.looks == 1 && l.temperature_c == 40);
    assert_true(isnan(l.clock_mhz_low)); /* at work, or not at all */
}

static void test_held_back(void **state)
{
    struct gpu_watch *watch = watch_on(&whole, 1);

    (void)state;
    look(watch);
    cards[0].reasons = NVML_REASON_POWER_CAP | NVML_REASON_APPLICATION_CLOCKS;
    cards[0].sm_mhz = 1500;
    cards[0].power_ns += 90000000;
    look(watch);
    struct gpu_ledger l = finish(watch);

    assert_true(l.looks == 2 && l.throttled_looks == 1);
    assert_true(l.throttled_ms == 90);
    assert_true(l.clock_mhz_low == 1500 && l.clock_mhz_high == 1980);
    assert_string_equal(l.throttle, "power cap");
    assert_string_equal(l.clocks_set, "application clocks");
    assert_says(&l, "GPU held back in 1 of 2 looks (power cap)");
    assert_says(&l, "GPU clock 1500 to 1980 MHz");
}

/* Bits that come together are told once; bits that nobody knows yet are not named. */
static void test_names(void **state)
{
    static const struct {
        unsigned bits;
        const char *throttle, *set;
        double held;
    } cases[] = {
        {NVML_REASON_HW_SLOWDOWN | NVML_REASON_HW_THERMAL, "thermal slowdown", "", 1},
        {NVML_REASON_HW_SLOWDOWN, "hardware slowdown", "", 1},
        {NVML_REASON_HW_SLOWDOWN | NVML_REASON_POWER_BRAKE, "power brake", "", 1},
        {NVML_REASON_BOARD_LIMIT | NVML_REASON_RELIABILITY, "", "",
         0}, /* of a later driver: unknown */
        {NVML_REASON_SYNC_BOOST | NVML_REASON_DISPLAY_CLOCKS, "", "sync boost, display clocks", 0},
        {NVML_REASON_APPLICATION_CLOCKS, "", "application clocks", 0},
        {NVML_REASON_IDLE, "", "", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gpu_watch *watch = watch_on(&whole, 1);
        cards[0].reasons = cases[i].bits;
        look(watch);
        struct gpu_ledger l = finish(watch);
        assert_string_equal(l.throttle, cases[i].throttle);
        assert_string_equal(l.clocks_set, cases[i].set);
        assert_true(l.throttled_looks == cases[i].held);
        if (!cases[i].held)
            assert_calm(&l);
    }
}

/* Seen by the device's own counters, between looks. */
static void test_counters_alone(void **state)
{
    struct gpu_watch *watch = watch_on(&whole, 1);

    (void)state;
    look(watch);
    cards[0].brake_ns = 20000000;
    struct gpu_ledger l = finish(watch);
    assert_true(l.throttled_looks == 0 && l.throttled_ms == 20);
    assert_string_equal(l.throttle, "power brake");
    assert_says(&l, "GPU held back for 20 ms (power brake)");
}

/* What a number means, by the header of each driver's time. With the numbers of another driver's time
 * come settings of power smoothing, in mW/s and percent, which are no time. */
static void test_fields_of_each_driver(void **state)
{
    static const struct {
        unsigned driver, field;
        const char *throttle;
    } cases[] = {
        {570, 75, "thermal slowdown"},
        {570, 252, ""},
        {570, 253, ""},
        {570, 270, ""},
        {570, 271, ""},
        {575, 251, "thermal slowdown"},
        {575, 252, "thermal slowdown"},
        {580, 253, "power brake"},
        {589, 253, "power brake"},
        {580, 269, ""},
        {580, 270, ""},
        {580, 271, ""},
        {590, 251, ""},
        {590, 252, ""},
        {590, 253, ""},
        {590, 269, "thermal slowdown"},
        {590, 270, "thermal slowdown"},
        {610, 271, "power brake"},
        {0, 253, ""},
        {0, 271, ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct nvml nvml = whole;

        reset(state);
        nvml.driver = cases[i].driver;
        told_field = cases[i].field;
        struct gpu_watch *watch = watch_on(&nvml, 1);
        cards[0].brake_ns += 3600000000000;
        struct gpu_ledger l = finish(watch);
        assert_string_equal(l.throttle, cases[i].throttle);
        assert_true(l.throttled_ms == (*cases[i].throttle ? 3600000 : 0));
    }
}

/* Clocks are steered by touching the limit: that is no throttling. */
static void test_touching_the_limit(void **state)
{
    struct gpu_watch *watch = watch_on(&whole, 1);

    (void)state;
    look(watch);
    cards[0].power_ns += 50000;
    struct gpu_ledger l = finish(watch);
    assert_true(l.throttled_ms == 0.05);
    assert_calm(&l);
}

static void test_errors(void **state)
{
    struct gpu_watch *watch = watch_on(&whole, 2);

    (void)state;
    cards[0].corrected += 2;
    cards[1].uncorrected += 1;
    cards[1].replays += 40;
    struct gpu_ledger l = finish(watch);
    assert_true(l.ecc_errors == 3 && l.pcie_replays == 40);
    assert_says(&l, "3 new memory errors of a GPU");
    assert_says(&l, "40 PCIe packets of a GPU sent again");
}

static void test_reset_counters(void **state)
{
    struct nvml alone = whole;

    (void)state;
    alone.fields = NULL;
    struct gpu_watch *watch = watch_on(&alone, 1);
    cards[0].corrected = 0;
    cards[0].power_ns = 0;
    struct gpu_ledger l = finish(watch);
    assert_true(isnan(l.ecc_errors) && isnan(l.throttled_ms));
    assert_calm(&l);
}

/* Over two devices: the highest heat, the lowest clock; a look finds one or both held back. */
static void test_two_devices(void **state)
{
    struct gpu_watch *watch = watch_on(&whole, 2);

    (void)state;
    gpu_watch_add(watch, cards[0].address); /* once is enough */
    gpu_watch_begin(watch);
    cards[0].corrected++;
    cards[0].celsius = 71;
    cards[1].sm_mhz = 1950;
    cards[0].memory_mhz = 2600;
    cards[0].milliwatts = 700500;
    cards[0].reasons = cards[1].reasons = NVML_REASON_SW_THERMAL;
    look(watch);
    struct gpu_ledger l = finish(watch);
    assert_true(l.temperature_c == 71 && l.power_watts == 700.5 && l.memory_clock_mhz == 2600);
    assert_true(l.clock_mhz_low == 1950 && l.clock_mhz_high == 1980);
    assert_true(l.looks == 1 && l.throttled_looks == 1 && l.ecc_errors == 1);
}

static void test_next_case(void **state)
{
    struct gpu_watch *watch = watch_on(&whole, 2);
    struct gpu_ledger l;

    (void)state;
    cards[1].reasons = NVML_REASON_POWER_CAP;
    cards[1].corrected += 5;
    look(watch);
    gpu_watch_end(watch, &l);
    gpu_watch_clear(watch);
    gpu_watch_add(watch, cards[0].address);
    gpu_watch_begin(watch);
    look(watch);
    l = finish(watch);
    assert_true(l.looks == 1 && l.throttled_looks == 0 && l.ecc_errors == 0);
    assert_string_equal(l.throttle, "");
}

static void test_old_library(void **state)
{
    struct gpu_watch *watch = watch_on(&old, 1);

    (void)state;
    cards[0].reasons = NVML_REASON_HW_THERMAL;
    cards[0].uncorrected = 1;
    look(watch);
    struct gpu_ledger l = finish(watch);
    assert_true(l.temperature_c == 40 && l.throttled_looks == 1 && l.ecc_errors == 1);
    assert_true(isnan(l.clock_mhz_high) && isnan(l.power_watts) && isnan(l.throttled_ms));
    assert_true(isnan(l.pcie_replays));
}

static void test_nothing_known(void **state)
{
    struct gpu_watch *watch = watch_on(&mute, 1);

    (void)state;
    look(watch);
    struct gpu_ledger l = finish(watch);
    assert_true(l.looks == 1 && isnan(l.throttled_looks) && isnan(l.temperature_c));
    assert_calm(&l);

    watch = watch_on(&whole, 0); /* no device: one that the library does not show */
    gpu_watch_add(watch, "0000:ff:00.0");
    assert_false(gpu_watch_look(watch));
    l = finish(watch);
    assert_true(isnan(l.looks) && isnan(l.ecc_errors));
    assert_calm(&l);
}

/* No library on this machine, or none that knows such a device: nothing known, nothing fails. */
static void test_no_library(void **state)
{
    struct gpu_watch *watch;
    struct gpu_ledger l;

    (void)state;
    assert_int_equal(gpu_watch_open(&watch), 0);
    gpu_watch_add(watch, "ffff:ff:1f.7");
    gpu_watch_begin(watch);
    assert_false(gpu_watch_look(watch));
    gpu_watch_end(watch, &l);
    gpu_watch_close(watch);
    assert_true(isnan(l.looks));
}

/* A sample is marked from the last look without the reason to the first one without it again, not
 * before and not after. */
static void test_marks(void **state)
{
    struct gpu_watch *watch = watch_on(&whole, 1);
    uint64_t at[5];
    char text[96];

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        cards[0].reasons = i == 2 ? NVML_REASON_HW_THERMAL | NVML_REASON_APPLICATION_CLOCKS : 0;
        usleep(1000);
        at[i] = clock_now_ns();
        usleep(1000);
        look(watch);
    }
    struct gpu_ledger l;
    gpu_watch_end(watch, &l);
    assert_int_equal(gpu_watch_held(watch, 0, at[1]), 0);
    assert_int_equal(gpu_watch_held(watch, at[0], at[1]), 0);
    assert_int_equal(gpu_watch_held(watch, at[1], at[2]), NVML_REASON_HW_THERMAL);
    assert_int_equal(gpu_watch_held(watch, at[2], at[2]), NVML_REASON_HW_THERMAL);
    assert_int_equal(gpu_watch_held(watch, at[2], at[3]), NVML_REASON_HW_THERMAL);
    assert_int_equal(gpu_watch_held(watch, at[3], at[3]), NVML_REASON_HW_THERMAL);
    assert_int_equal(gpu_watch_held(watch, 0, UINT64_MAX), NVML_REASON_HW_THERMAL);
    assert_int_equal(gpu_watch_held(watch, at[4], UINT64_MAX), 0);
    assert_string_equal(gpu_watch_reasons(NVML_REASON_HW_THERMAL, text, sizeof(text)),
                        "thermal slowdown");
    assert_string_equal(gpu_watch_reasons(0, text, sizeof(text)), "");
    gpu_watch_begin(watch); /* the next case */
    assert_int_equal(gpu_watch_held(watch, 0, UINT64_MAX), 0);
    finish(watch);
}

/* Before the first look and after the last one there is no other: what they found holds. */
static void test_marks_at_the_ends(void **state)
{
    struct gpu_watch *watch = watch_on(&whole, 1);
    struct gpu_ledger l;

    (void)state;
    uint64_t begin_ns = clock_now_ns();
    cards[0].reasons = NVML_REASON_POWER_CAP;
    look(watch);
    usleep(2000);
    uint64_t end_ns = clock_now_ns();
    gpu_watch_end(watch, &l);
    assert_int_equal(gpu_watch_held(watch, begin_ns, begin_ns), NVML_REASON_POWER_CAP);
    assert_int_equal(gpu_watch_held(watch, end_ns, end_ns), NVML_REASON_POWER_CAP);
    gpu_watch_close(watch);
}

/* The device's counters tell of what no look met: between the looks where they grew. */
static void test_marks_by_counters(void **state)
{
    struct gpu_watch *watch = watch_on(&whole, 1);
    struct gpu_ledger l;

    (void)state;
    look(watch);
    uint64_t first_ns = clock_now_ns();
    usleep(2000);
    cards[0].power_ns += 30000000;
    look(watch);
    usleep(1000);
    uint64_t second_ns = clock_now_ns();
    usleep(1000);
    look(watch);
    gpu_watch_end(watch, &l);
    assert_int_equal(gpu_watch_held(watch, first_ns, first_ns), NVML_REASON_POWER_CAP);
    assert_int_equal(gpu_watch_held(watch, second_ns, UINT64_MAX), 0);
    assert_true(l.throttled_looks == 0);
    gpu_watch_close(watch);
}

/* Much of a short case, little of any time between looks: nobody knows when, so always. */
static void test_marks_of_a_short_case(void **state)
{
    struct gpu_watch *watch = watch_on(&whole, 1);
    uint64_t begin_ns = clock_now_ns();
    struct gpu_ledger l;

    (void)state;
    cards[0].power_ns += 900000;
    gpu_watch_end(watch, &l);
    if (clock_now_ns() - begin_ns < 80000000) { /* else it is little of a long case */
        assert_int_equal(gpu_watch_held(watch, begin_ns, begin_ns), NVML_REASON_POWER_CAP);
        assert_string_equal(l.throttle, "power cap");
    }
    gpu_watch_close(watch);
}

/* Ever other windows: the last one stands for all that found no room. */
static void test_marks_without_room(void **state)
{
    static struct gpu_held held;

    (void)state;
    for (unsigned i = 0; i < GPU_HELD_WINDOWS + 10; i++)
        gpu_held_add(&held, 10 * i, 10 * i + 5,
                     i % 2 ? NVML_REASON_POWER_CAP : NVML_REASON_SW_THERMAL);
    assert_int_equal(held.n, GPU_HELD_WINDOWS);
    assert_int_equal(gpu_held_between(&held, 20, 22), NVML_REASON_SW_THERMAL);
    assert_int_equal(gpu_held_between(&held, 26, 28), 0);
    assert_int_equal(gpu_held_between(&held, 26, 30), NVML_REASON_POWER_CAP);
    uint64_t last = 10 * (GPU_HELD_WINDOWS + 9);
    assert_int_equal(gpu_held_between(&held, last, last),
                     NVML_REASON_POWER_CAP | NVML_REASON_SW_THERMAL);
    assert_int_equal(gpu_held_between(&held, last + 6, UINT64_MAX), 0);
}

static void test_samples_in_words(void **state)
{
    struct gpu_ledger l;

    (void)state;
    gpu_ledger_none(&l);
    l.looks = 30;
    l.throttled_looks = 12;
    snprintf(l.throttle, sizeof(l.throttle), "power cap");
    snprintf(l.clocks_set, sizeof(l.clocks_set), "sync boost");
    l.samples = 200;
    l.throttled_samples = 37;
    assert_says(&l, "GPU held back in 12 of 30 looks (power cap), 37 of 200 samples");
}

/* Of two processes: one that knows nothing adds nothing, and numbers that cannot be are refused. */
static void what_others_saw(void **state)
{
    struct gpu_ledger all, none, other;
    char text[200];

    (void)state;
    gpu_ledger_none(&none);
    gpu_ledger_none(&other);
    all = other;
    other.clock_mhz_low = 900;
    other.clock_mhz_high = 1500;
    other.looks = 4;
    other.throttled_looks = 3;
    other.seen = NVML_REASON_POWER_CAP;
    assert_true(gpu_ledger_sound(&other) && gpu_ledger_sound(&none));
    gpu_ledger_add(&all, &none);
    assert_true(isnan(all.clock_mhz_low) && isnan(all.looks));
    assert_string_equal(all.throttle, "");
    gpu_ledger_add(&all, &other);
    other.clock_mhz_low = 1200;
    other.clock_mhz_high = 1900;
    other.seen = NVML_REASON_SW_THERMAL;
    gpu_ledger_add(&all, &other);
    assert_true(all.clock_mhz_low == 900 && all.clock_mhz_high == 1900 && all.looks == 8);
    assert_string_equal(all.throttle, "power cap, thermal slowdown");
    gpu_ledger_disturbance(&all, text, sizeof(text));
    assert_non_null(strstr(text, "in 6 of 8 looks"));
    other.looks = -1;
    assert_false(gpu_ledger_sound(&other));
    other.looks = 1;
    other.power_watts = INFINITY;
    assert_false(gpu_ledger_sound(&other));
    memset(none.throttle, 'x', sizeof(none.throttle));
    assert_true(gpu_ledger_sound(&none) && strlen(none.throttle) == sizeof(none.throttle) - 1);
}

/* Ranks 0, 1 and 4 share a GPU, 2 and 5 one at the same address of another machine, 3 has one of its own: errors of
 * a GPU are there once, however many read its counters. */
static void what_others_saw_of_one_gpu(void **state)
{
    static const struct {
        unsigned machine;
        const char *address;
        double errors, replays;
    } ranks[] = {
        {0, "0000:18:00.0", 3, 20}, {0, "0000:18:00.0", 3, 19}, {1, "0000:18:00.0", 5, NAN},
        {0, "0000:2a:00.0", 7, 1},  {0, "0000:18:00.0", 4, 20}, {1, "0000:18:00.0", 5, 2},
        {0, "", NAN, NAN}};
    struct gpu_ledger each[7], same, others, all;
    struct gpu_sight sights[7];

    (void)state;
    for (size_t i = 0; i < 7; i++) {
        gpu_ledger_none(&each[i]);
        each[i].ecc_errors = ranks[i].errors;
        each[i].pcie_replays = ranks[i].replays;
        each[i].looks = 2;
        sights[i] = (struct gpu_sight){ranks[i].machine, ranks[i].address, i ? &each[i] : NULL};
    }
    gpu_ledger_join(sights, 7, &same, &others);
    assert_true(same.ecc_errors == 4 && same.pcie_replays == 20 && same.looks == 4);
    assert_true(others.ecc_errors == 5 + 7 && others.pcie_replays == 2 + 1 && others.looks == 8);
    all = each[0];
    gpu_ledger_add_same(&all, &same);
    gpu_ledger_add(&all, &others);
    assert_true(all.ecc_errors == 16 && all.pcie_replays == 23 && all.looks == 14);
    gpu_ledger_join(sights, 1, &same, &others);
    assert_true(isnan(same.ecc_errors) && isnan(others.ecc_errors));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_others_saw_of_one_gpu),
        cmocka_unit_test(what_others_saw),
        cmocka_unit_test_setup(test_energy_is_a_mean, reset),
        cmocka_unit_test_setup(test_energy_over_its_own_time, reset),
        cmocka_unit_test_setup(test_calm, reset),
        cmocka_unit_test_setup(test_not_too_often, reset),
        cmocka_unit_test_setup(test_short_case, reset),
        cmocka_unit_test_setup(test_held_back, reset),
        cmocka_unit_test_setup(test_names, reset),
        cmocka_unit_test_setup(test_counters_alone, reset),
        cmocka_unit_test_setup(test_fields_of_each_driver, reset),
        cmocka_unit_test_setup(test_touching_the_limit, reset),
        cmocka_unit_test_setup(test_errors, reset),
        cmocka_unit_test_setup(test_reset_counters, reset),
        cmocka_unit_test_setup(test_two_devices, reset),
        cmocka_unit_test_setup(test_next_case, reset),
        cmocka_unit_test_setup(test_old_library, reset),
        cmocka_unit_test_setup(test_nothing_known, reset),
        cmocka_unit_test_setup(test_no_library, reset),
        cmocka_unit_test_setup(test_marks, reset),
        cmocka_unit_test_setup(test_marks_at_the_ends, reset),
        cmocka_unit_test_setup(test_marks_by_counters, reset),
        cmocka_unit_test_setup(test_marks_of_a_short_case, reset),
        cmocka_unit_test_setup(test_marks_without_room, reset),
        cmocka_unit_test_setup(test_samples_in_words, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
