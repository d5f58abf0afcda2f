/* SPDX-License-Identifier: Apache-2.0 */
/* The watch over GPUs, on a made-up NVML: what a case's row is told, and when it is called disturbed. */
#include "core/clock.h"
#include "core/hw/gpu_watch.h"
#include "core/hw/nvml.h"
#include "tests/unit/unit.h"

struct nvml_device { /* what the made-up library says of it */
    const char *address;
    unsigned sm_mhz, memory_mhz, celsius, milliwatts, replays;
    unsigned long long reasons, power_ns, brake_ns, corrected, uncorrected, millijoules;
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

static int replays_of(struct nvml_device *device, unsigned *count)
{
    *count = device->replays;
    return 0;
}

static int energy_of(struct nvml_device *device, unsigned long long *millijoules)
{
    *millijoules = device->millijoules;
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
    struct gpu_watch *watch = gpu_watch_open_on(nvml);

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

static void disturbed_by(const struct gpu_ledger *l, const char *number)
{
    char text[256];

    assert_says(gpu_ledger_disturbance(l, text, sizeof(text)), number);
}

/* Clocks are still rising at first, and are steered by touching the limit: that is no throttling. */
TEST_WITH(test_calm, reset, NULL)
{
    uint64_t begin_ns = clock_now_ns();
    struct gpu_watch *watch = watch_on(&whole, 1);

    look(watch);
    assert_true(clock_now_ns() - begin_ns >= 20000000);
    begin_ns = clock_now_ns();
    look(watch);
    assert_true(clock_now_ns() - begin_ns >= GPU_WATCH_EVERY_NS * 9 / 10);
    cards[0].power_ns += 50000;
    struct gpu_ledger l = finish(watch);
    assert_true(l.clock_mhz_low == 1980 && l.clock_mhz_high == 1980);
    assert_true(l.memory_clock_mhz == 2619 && l.temperature_c == 40 && l.power_watts == 350);
    assert_true(l.looks == 2 && l.throttled_looks == 0 && l.throttled_ms == 0.05);
    assert_true(l.ecc_errors == 0 && l.pcie_replays == 0);
    assert_string_equal(l.throttle, "");
    assert_calm(&l);
    watch = watch_on(&whole, 1); /* too short for a look: one at its end, of a GPU at rest */
    cards[0].reasons = NVML_REASON_IDLE;
    l = finish(watch);
    assert_true(l.looks == 1 && l.temperature_c == 40 && isnan(l.clock_mhz_low));
    begin_ns = clock_now_ns(); /* much of a short case: nobody knows when, so always */
    watch = watch_on(&whole, 1);
    cards[0].power_ns += 900000;
    gpu_watch_end(watch, &l);
    if (clock_now_ns() - begin_ns < 80000000) { /* else it is little of a long case */
        assert_int_equal(gpu_watch_held(watch, begin_ns, begin_ns), NVML_REASON_POWER_CAP);
        assert_string_equal(l.throttle, "power cap");
    }
    gpu_watch_close(watch);
}

/* By its looks, by its counters between them, and by errors that are new. */
TEST_WITH(test_disturbed, reset, NULL)
{
    struct gpu_watch *watch = watch_on(&whole, 1);

    look(watch);
    cards[0].reasons = NVML_REASON_POWER_CAP | NVML_REASON_APPLICATION_CLOCKS;
    cards[0].sm_mhz = 1500;
    cards[0].power_ns += 90000000;
    cards[0].corrected += 2;
    cards[0].uncorrected += 1;
    cards[0].replays += 40;
    look(watch);
    struct gpu_ledger l = finish(watch);
    assert_true(l.looks == 2 && l.throttled_looks == 1 && l.throttled_ms == 90);
    assert_true(l.clock_mhz_low == 1500 && l.clock_mhz_high == 1980);
    assert_true(l.ecc_errors == 3 && l.pcie_replays == 40);
    assert_string_equal(l.throttle, "power cap");
    assert_string_equal(l.clocks_set, "application clocks");
    disturbed_by(&l, "1 of 2|1500 to 1980|3 new|40 PCIe");
    l.samples = 200;
    l.throttled_samples = 37;
    disturbed_by(&l, "37 of 200");
    reset(state);
    watch = watch_on(&whole, 1);
    look(watch);
    cards[0].brake_ns = 20000000;
    l = finish(watch);
    assert_true(l.throttled_looks == 0 && l.throttled_ms == 20);
    assert_string_equal(l.throttle, "power brake");
    disturbed_by(&l, "20 ms");
    watch = watch_on(&whole, 1); /* counters that begin anew tell nothing */
    cards[0].corrected = cards[0].power_ns = cards[0].brake_ns = 0;
    l = finish(watch);
    assert_true(isnan(l.ecc_errors));
    assert_calm(&l);
}

static double watts_of(const struct nvml *nvml, int grown_by, unsigned us)
{
    struct gpu_watch *watch = watch_on(nvml, 1);

    usleep(us);
    cards[0].millijoules += (unsigned long long)grown_by;
    struct gpu_ledger l = finish(watch);
    assert_true(isnan(l.mean_watts) == isnan(l.energy_s));
    return l.mean_watts;
}

/* 0.31 s in which one device took 20 J and the other 10 J: the first drew the most, by this clock. A
 * counter that stood still or begins anew tells nothing, nor does one of too short a time. */
TEST_WITH(test_energy_is_a_mean, reset, NULL)
{
    uint64_t before_ns = clock_now_ns();
    struct gpu_watch *watch = watch_on(&whole, 2);
    uint64_t begin_ns = clock_now_ns();

    usleep(310000);
    cards[0].millijoules += 20000;
    cards[1].millijoules += 10000;
    double least_s = (double)(clock_now_ns() - begin_ns) * 1e-9;
    struct gpu_ledger l = finish(watch);
    double most_s = (double)(clock_now_ns() - before_ns) * 1e-9;

    assert_true(l.energy_s >= least_s && l.energy_s <= most_s);
    assert_float_equal(l.mean_watts, 20 / l.energy_s, 1e-6 * l.mean_watts);
    assert_true(isnan(watts_of(&whole, -5, 310000)));
    assert_true(isnan(watts_of(&whole, 0, 310000)));
    assert_true(isnan(watts_of(&mute, 20000, 0)));
    begin_ns = clock_now_ns();
    double brief = watts_of(&whole, 20000, 0);
    assert_true(isnan(brief) || clock_now_ns() - begin_ns > 300000000);
}

/* Bits that come together are told once; bits that nobody knows yet are not named. */
TEST_WITH(test_names, reset, NULL)
{
    static const struct {
        unsigned bits;
        const char *throttle, *set;
    } cases[] = {
        {NVML_REASON_HW_SLOWDOWN | NVML_REASON_HW_THERMAL, "thermal slowdown", ""},
        {NVML_REASON_HW_SLOWDOWN, "hardware slowdown", ""},
        {NVML_REASON_HW_SLOWDOWN | NVML_REASON_POWER_BRAKE, "power brake", ""},
        {NVML_REASON_BOARD_LIMIT | NVML_REASON_RELIABILITY | NVML_REASON_IDLE, "", ""},
        {NVML_REASON_SYNC_BOOST | NVML_REASON_DISPLAY_CLOCKS, "", "sync boost, display clocks"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gpu_watch *watch = watch_on(&whole, 1);
        cards[0].reasons = cases[i].bits;
        struct gpu_ledger l = finish(watch);
        assert_string_equal(l.throttle, cases[i].throttle);
        assert_string_equal(l.clocks_set, cases[i].set);
        assert_true(l.throttled_looks == (*cases[i].throttle ? 1 : 0));
        if (!*cases[i].throttle)
            assert_calm(&l);
    }
}

/* What a number means, by the header of each driver's time. With the numbers of another driver's time
 * come settings of power smoothing, in mW/s and percent, which are no time. */
TEST_WITH(test_fields_of_each_driver, reset, NULL)
{
    static const char thermal[] = "thermal slowdown", brake[] = "power brake";
    static const struct {
        unsigned driver, field;
        const char *throttle;
    } cases[] = {
        {570, 75, thermal},  {570, 252, ""},      {570, 253, ""},      {570, 270, ""},
        {570, 271, ""},      {575, 251, thermal}, {575, 252, thermal}, {580, 253, brake},
        {589, 253, brake},   {580, 269, ""},      {580, 270, ""},      {580, 271, ""},
        {590, 251, ""},      {590, 252, ""},      {590, 253, ""},      {590, 269, thermal},
        {590, 270, thermal}, {610, 271, brake},   {0, 253, ""},        {0, 271, ""},
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

/* Over two devices: the highest heat, the lowest clock; a look finds one or both held back. The next
 * case knows nothing of it. */
TEST_WITH(test_two_devices, reset, NULL)
{
    struct gpu_watch *watch = watch_on(&whole, 2);
    struct gpu_ledger l;

    gpu_watch_add(watch, cards[0].address); /* once is enough */
    gpu_watch_begin(watch);
    cards[0].corrected++;
    cards[0].celsius = 71;
    cards[1].sm_mhz = 1950;
    cards[0].memory_mhz = 2600;
    cards[0].milliwatts = 700500;
    cards[0].reasons = cards[1].reasons = NVML_REASON_SW_THERMAL;
    look(watch);
    gpu_watch_end(watch, &l);
    assert_true(l.temperature_c == 71 && l.power_watts == 700.5 && l.memory_clock_mhz == 2600);
    assert_true(l.clock_mhz_low == 1950 && l.clock_mhz_high == 1980);
    assert_true(l.looks == 1 && l.throttled_looks == 1 && l.ecc_errors == 1);
    cards[0].reasons = 0;
    gpu_watch_clear(watch);
    gpu_watch_add(watch, cards[0].address);
    gpu_watch_begin(watch);
    look(watch);
    l = finish(watch);
    assert_true(l.looks == 1 && l.throttled_looks == 0 && l.ecc_errors == 0);
    assert_string_equal(l.throttle, "");
}

/* A library that tells nothing, or shows no such device, leaves all unknown. */
TEST_WITH(test_nothing_known, reset, NULL)
{
    struct gpu_watch *watch = watch_on(&mute, 1);

    look(watch);
    struct gpu_ledger l = finish(watch);
    assert_true(l.looks == 1 && isnan(l.throttled_looks) && isnan(l.temperature_c));
    assert_calm(&l);
    watch = watch_on(&whole, 0);
    gpu_watch_add(watch, "0000:ff:00.0");
    assert_false(gpu_watch_look(watch));
    l = finish(watch);
    assert_true(isnan(l.looks) && isnan(l.ecc_errors));
    assert_calm(&l);
}

/* A sample is marked from the last look without the reason to the first one without it again; before
 * the first look and after the last one what they found holds. */
TEST_WITH(test_marks, reset, NULL)
{
    struct gpu_watch *watch = watch_on(&whole, 1);
    uint64_t at[7];

    for (size_t i = 0; i < 6; i++) {
        cards[0].reasons = i == 2   ? NVML_REASON_HW_THERMAL | NVML_REASON_APPLICATION_CLOCKS
                           : i == 5 ? NVML_REASON_POWER_CAP
                                    : 0;
        at[i] = clock_now_ns();
        look(watch);
    }
    at[6] = clock_now_ns();
    const struct {
        uint64_t from, to;
        unsigned reasons;
    } cases[] = {{0, at[1], 0},
                 {at[0], at[1], 0},
                 {at[1] + 1, at[2], NVML_REASON_HW_THERMAL},
                 {at[2], at[2], NVML_REASON_HW_THERMAL},
                 {at[3], at[3], NVML_REASON_HW_THERMAL},
                 {at[4], at[4], 0},
                 {at[5], at[5], NVML_REASON_POWER_CAP},
                 {at[6], UINT64_MAX, NVML_REASON_POWER_CAP},
                 {0, UINT64_MAX, NVML_REASON_HW_THERMAL | NVML_REASON_POWER_CAP}};
    struct gpu_ledger l;
    gpu_watch_end(watch, &l);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        if (gpu_watch_held(watch, cases[i].from, cases[i].to) != cases[i].reasons)
            fail_msg("case %zu", i);
    gpu_watch_begin(watch); /* the next case */
    assert_int_equal(gpu_watch_held(watch, 0, UINT64_MAX), 0);
    finish(watch);
}

/* The device's counters tell of what no look met: between the looks where they grew. */
TEST_WITH(test_marks_by_counters, reset, NULL)
{
    struct gpu_watch *watch = watch_on(&whole, 1);
    struct gpu_ledger l;

    look(watch);
    uint64_t first_ns = clock_now_ns();
    cards[0].power_ns += 30000000;
    look(watch);
    uint64_t second_ns = clock_now_ns();
    look(watch);
    gpu_watch_end(watch, &l);
    assert_int_equal(gpu_watch_held(watch, first_ns, first_ns), NVML_REASON_POWER_CAP);
    assert_int_equal(gpu_watch_held(watch, second_ns, UINT64_MAX), 0);
    assert_true(l.throttled_looks == 0);
    gpu_watch_close(watch);
}

/* Ever other windows: the last one stands for all that found no room. */
TEST_WITH(test_marks_without_room, reset, NULL)
{
    static struct gpu_held held;

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

/* Of two processes: one that knows nothing adds nothing, and numbers that cannot be are refused. */
TEST(what_others_saw)
{
    struct gpu_ledger all, none, other;

    gpu_ledger_none(&none);
    gpu_ledger_none(&other);
    all = other;
    other.clock_mhz_low = 900;
    other.clock_mhz_high = 1500;
    other.looks = 4;
    other.throttled_looks = 3;
    other.seen = NVML_REASON_POWER_CAP;
    other.mean_watts = 300;
    other.energy_s = 2;
    assert_true(gpu_ledger_sound(&other) && gpu_ledger_sound(&none));
    gpu_ledger_add(&all, &none);
    assert_true(isnan(all.clock_mhz_low) && isnan(all.looks));
    assert_string_equal(all.throttle, "");
    gpu_ledger_add(&all, &other);
    other.clock_mhz_low = 1200;
    other.clock_mhz_high = 1900;
    other.seen = NVML_REASON_SW_THERMAL;
    other.mean_watts = 200;
    other.energy_s = 1;
    gpu_ledger_add(&all, &other);
    assert_true(all.clock_mhz_low == 900 && all.clock_mhz_high == 1900);
    assert_true(all.looks == 8 && all.throttled_looks == 6);
    assert_true(all.mean_watts == 300 && all.energy_s == 2); /* the highest, and its time */
    assert_string_equal(all.throttle, "power cap, thermal slowdown");
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
TEST(what_others_saw_of_one_gpu)
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
