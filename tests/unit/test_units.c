/* SPDX-License-Identifier: Apache-2.0 */
/* Units: what is read, what is refused, and the arithmetic of a row's value. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/units.h"

#define UNTOUCHED 0xdeadbeefu

static void check_size(const char *text, uint64_t want)
{
    uint64_t got = UNTOUCHED;

    if (units_parse_size(text, &got) || got != want)
        fail_msg("'%s' read as %llu, not %llu", text, (unsigned long long)got,
                 (unsigned long long)want);
}

static void test_sizes_are_binary(void **state)
{
    (void)state;
    check_size("0", 0);
    check_size("4096", 4096);
    check_size("7B", 7);
    check_size("16K", 16384);
    check_size("16k", 16384);
    check_size("16KB", 16384);
    check_size("16KiB", 16384);
    check_size("1.5M", 1572864);
    check_size("2GiB", UINT64_C(2) << 30);
    check_size("3T", UINT64_C(3) << 40);
    check_size("9007199254740993", UINT64_C(9007199254740993)); /* 2^53 + 1: no double holds it */
    check_size("18446744073709551615", UINT64_MAX);
}

static void test_sizes_refused(void **state)
{
    static const struct {
        const char *text;
        int err;
    } bad[] = {{"", -EINVAL},       {"K", -EINVAL},
               {"-1", -EINVAL},     {"+1", -EINVAL},
               {" 1", -EINVAL},     {"1 K", -EINVAL},
               {"1.5", -EINVAL},    {"0x10", -EINVAL},
               {"1iB", -EINVAL},    {"1Q", -EINVAL},
               {"1KK", -EINVAL},    {"1K ", -EINVAL},
               {"0.3K", -EINVAL},   {"nan", -EINVAL},
               {"inf", -EINVAL},    {"16T T", -EINVAL},
               {"1e3", -EINVAL},    {"8388608T", -ERANGE},
               {"1e400K", -ERANGE}, {"18446744073709551616", -ERANGE}};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t got = UNTOUCHED;
        int err = units_parse_size(bad[i].text, &got);
        if (err != bad[i].err || got != UNTOUCHED)
            fail_msg("'%s': error %d, value %llu", bad[i].text, err, (unsigned long long)got);
    }
}

static void test_durations(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {{"2s", 2000000000},      {"2", 2000000000},   {"500ms", 500000000},
                {"10us", 10000},         {"7ns", 7},          {"1m", 60000000000},
                {"1.5h", 5400000000000}, {"0.1s", 100000000}, {"0s", 0}};
    static const char *const bad[] = {"", "s", "-1s", "1 s", "1d", "1S", "1s2", "0x1s", "1M"};
    uint64_t ns;

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ns = UNTOUCHED;
        if (units_parse_duration(good[i].text, &ns) || ns != good[i].ns)
            fail_msg("'%s' read as %llu ns", good[i].text, (unsigned long long)ns);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (units_parse_duration(bad[i], &ns) != -EINVAL)
            fail_msg("'%s' was taken as %llu ns", bad[i], (unsigned long long)ns);
    assert_int_equal(units_parse_duration("3000000h", &ns), -ERANGE); /* 342 years */
}

static void test_fractions(void **state)
{
    double f = -1;

    (void)state;
    assert_int_equal(units_parse_fraction("1%", &f), 0);
    assert_float_equal(f, 0.01, 1e-15);
    assert_int_equal(units_parse_fraction("0.01", &f), 0);
    assert_float_equal(f, 0.01, 1e-15);
    assert_int_equal(units_parse_fraction("95%", &f), 0);
    assert_float_equal(f, 0.95, 1e-15);
    assert_int_equal(units_parse_fraction("1 %", &f), -EINVAL);
    assert_int_equal(units_parse_fraction("%", &f), -EINVAL);
    assert_int_equal(units_parse_fraction("", &f), -EINVAL);
    assert_int_equal(units_parse_fraction("-1%", &f), -EINVAL);
}

static void test_whole_numbers(void **state)
{
    static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "1K"};
    uint64_t v = UNTOUCHED;

    (void)state;
    assert_int_equal(units_parse_u64("18446744073709551615", &v), 0);
    assert_true(v == UINT64_MAX);
    assert_int_equal(units_parse_u64("18446744073709551616", &v), -ERANGE);
    assert_int_equal(units_parse_u64("010", &v), 0);
    assert_int_equal(v, 10); /* not octal */
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (units_parse_u64(bad[i], &v) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
}

static void test_doubles_are_finite(void **state)
{
    static const char *const bad[] = {"", " 1", "1 ", "nan", "inf", "-inf", "1e999", "1x"};
    double v = 0;

    (void)state;
    assert_int_equal(units_parse_double("-2.5e3", &v), 0);
    assert_float_equal(v, -2500, 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (units_parse_double(bad[i], &v) != -EINVAL)
            fail_msg("'%s' was taken", bad[i]);
}

/* Each unit against a figure worked out by hand: one operation's quantity, 10 of them, in 2 ms. */
static void test_value_of_each_unit(void **state)
{
    static const struct {
        const char *unit;
        double quantity, want;
    } cases[] = {{"GB/s", 1e6, 5},     /* 1e7 bytes in 2e-3 s = 5e9 B/s */
                 {"Gb/s", 1e6, 40},    /* 8 bits a byte */
                 {"TFLOP/s", 2e9, 10}, /* 2e10 in 2e-3 s = 1e13 */
                 {"TOP/s", 2e9, 10},
                 {"samples/s", 32, 160000},
                 /* 320 in 2e-3 s */ {"Mop/s", 1, 5e-3}, /* 10 in 2e-3 s = 5e3 */
                 {"ns", 123, 2e5},
                 {"us", 123, 200},
                 {"ms", 123, 0.2}};
    /* What stands in a row as it was found: of these only the better side is asked for. */
    static const struct {
        const char *unit;
        bool higher_is_better;
    } figures[] = {{"s/GB", false},  {"cores", false},  {"MB", false},
                   {"count", false}, {"packets", true}, {"percent", false}};
    size_t n_cases = sizeof(cases) / sizeof(cases[0]);
    size_t n_figures = sizeof(figures) / sizeof(figures[0]), known = 0;

    (void)state;
    while (units_table[known].name)
        known++;
    assert_int_equal(known, n_cases + n_figures); /* a new unit wants a case here */
    for (size_t i = 0; i < n_cases; i++) {
        const struct unit *u = units_find(cases[i].unit);
        assert_non_null(u);
        double got = units_value(u, cases[i].quantity, 10, 2000000);
        if (fabs(got - cases[i].want) > 1e-12 * cases[i].want)
            fail_msg("%s: %.17g, not %.17g", u->name, got, cases[i].want);
        assert_int_equal(u->higher_is_better, u->rate); /* rates up, times down */
    }
    for (size_t i = 0; i < n_figures; i++) {
        const struct unit *u = units_find(figures[i].unit);
        assert_non_null(u);
        assert_false(u->rate);
        assert_int_equal(u->higher_is_better, figures[i].higher_is_better);
    }
    assert_null(units_find("GB"));
    assert_null(units_find("gb/s"));
}

static void test_no_time_is_no_number(void **state)
{
    (void)state;
    assert_true(isinf(units_value(units_find("GB/s"), 1, 1, 0)));
}

static void check_format(uint64_t bytes, const char *want)
{
    char text[24];

    assert_string_equal(units_format_size(bytes, text, sizeof(text)), want);
    check_size(text, bytes); /* and back */
}

static void test_sizes_written(void **state)
{
    (void)state;
    check_format(0, "0");
    check_format(1000, "1000");
    check_format(1023, "1023");
    check_format(1024, "1K");
    check_format(1536, "1536");
    check_format(1 << 20, "1M");
    check_format(UINT64_C(3) << 30, "3G");
    check_format(UINT64_C(5) << 40, "5T");
    check_format(UINT64_C(1) << 50, "1024T");
    check_format(UINT64_MAX, "18446744073709551615");
}

static void test_durations_written(void **state)
{
    static const struct {
        uint64_t ns;
        const char *want;
    } cases[] = {{0, "0 ns"},
                 {999, "999 ns"},
                 {1500, "1.5 us"},
                 {20000000, "20 ms"},
                 {1500000000, "1.5 s"},
                 {60000000000, "60 s"},
                 {125000000000, "2 min 05 s"}};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(units_format_duration(cases[i].ns, text, sizeof(text)), cases[i].want);
}

/* Exact, with at most two decimals. */
static void test_format_bytes(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *want;
    } cases[] = {{0, "0 B"},
                 {8, "8 B"},
                 {1000, "1000 B"},
                 {1024, "1 KiB"},
                 {1025, "1025 B"},
                 {1536, "1.5 KiB"},
                 {1280, "1.25 KiB"},
                 {1152, "1152 B"},
                 {1u << 20, "1 MiB"},
                 {(1u << 20) + 1024, "1025 KiB"},
                 {1u << 30, "1 GiB"},
                 {5ull << 40, "5 TiB"},
                 {UINT64_MAX, "18446744073709551615 B"}};
    char text[32];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(units_format_bytes(cases[i].bytes, text, sizeof(text)), cases[i].want);
}

static void test_format_interval(void **state)
{
    static const struct {
        double low, high, value;
        const char *want;
    } cases[] = {
        {99, 101, 100, "+/- 1 %"},
        {98.92, 101, 100, "+/- 1.1 %"}, /* the longer side */
        {99, 101.08, 100, "+/- 1.1 %"},
        {99, 101.2, 100, "-1 % to +1.2 %"},
        {39.88, 71.20, 43.75, "-8.8 % to +63 %"},
        {30, 103, 100, "-70 % to +3 %"},
        {0.3, 199.4, 100, "+/- 100 %"},
        {90, 2000, 100, "-10 % to over +1000 %"},
        {101, 105, 100, "+1 % to +5 %"}, /* the value lies beside it */
        {95, 98, 100, "-5 % to -2 %"},
        {100, 100, 100, "+/- 0 %"},
        {100, 103, 100, "-0 % to +3 %"},
        {NAN, 103, 100, ""},
        {100, NAN, 100, ""},
        {-1, 1, 0, ""},
        {-3000, 3100, 100, "+/- over 1000 %"},
    };
    char text[48];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(
            units_format_interval(cases[i].low, cases[i].high, cases[i].value, text, sizeof(text)),
            cases[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format_bytes),       cmocka_unit_test(test_format_interval),
        cmocka_unit_test(test_sizes_are_binary),   cmocka_unit_test(test_sizes_refused),
        cmocka_unit_test(test_durations),          cmocka_unit_test(test_fractions),
        cmocka_unit_test(test_whole_numbers),      cmocka_unit_test(test_doubles_are_finite),
        cmocka_unit_test(test_value_of_each_unit), cmocka_unit_test(test_no_time_is_no_number),
        cmocka_unit_test(test_sizes_written),      cmocka_unit_test(test_durations_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
