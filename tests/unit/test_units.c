/* SPDX-License-Identifier: Apache-2.0 */
/* Units: what is read, what is refused, and the arithmetic of a row's value. */
#include "core/units.h"
#include "tests/unit/unit.h"

#define UNTOUCHED 0xdeadbeefu
#define N(list)   (sizeof(list) / sizeof(*(list)))

TEST(test_sizes)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"0", 0},
                {"7B", 7},
                {"16K", 16384},
                {"16k", 16384},
                {"16KB", 16384},
                {"16KiB", 16384},
                {"1.5M", 1572864},
                {"2GiB", UINT64_C(2) << 30},
                {"3T", UINT64_C(3) << 40},
                {"9007199254740993", UINT64_C(9007199254740993)}, /* 2^53 + 1: no double holds it */
                {"18446744073709551615", UINT64_MAX}};
    static const char *const bad[] = {"",     "K",   "-1", "+1",  " 1",   "1 K", "1.5",
                                      "0x10", "1iB", "1Q", "1KK", "0.3K", "nan", "1e3"};
    static const char *const large[] = {"8388608T", "1e400K", "18446744073709551616"};

    for (size_t i = 0; i < N(good); i++) {
        uint64_t got = UNTOUCHED;

        if (units_parse_size(good[i].text, &got) || got != good[i].bytes)
            fail_msg("'%s' read as %llu", good[i].text, (unsigned long long)got);
    }
    for (size_t i = 0; i < N(bad) + N(large); i++) {
        uint64_t got = UNTOUCHED;
        const char *text = i < N(bad) ? bad[i] : large[i - N(bad)];
        int err = units_parse_size(text, &got);
        if (err != (i < N(bad) ? -EINVAL : -ERANGE) || got != UNTOUCHED)
            fail_msg("'%s': error %d, value %llu", text, err, (unsigned long long)got);
    }
}

TEST(test_durations)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {{"2s", 2000000000},      {"2", 2000000000},   {"500ms", 500000000},
                {"10us", 10000},         {"7ns", 7},          {"1m", 60000000000},
                {"1.5h", 5400000000000}, {"0.1s", 100000000}, {"0s", 0}};
    static const char *const bad[] = {"", "s", "-1s", "1 s", "1d", "1S", "1s2", "0x1s"};
    uint64_t ns;

    for (size_t i = 0; i < N(good); i++) {
        ns = UNTOUCHED;
        if (units_parse_duration(good[i].text, &ns) || ns != good[i].ns)
            fail_msg("'%s' read as %llu ns", good[i].text, (unsigned long long)ns);
    }
    for (size_t i = 0; i < N(bad); i++)
        if (units_parse_duration(bad[i], &ns) != -EINVAL)
            fail_msg("'%s' was taken as %llu ns", bad[i], (unsigned long long)ns);
    assert_int_equal(units_parse_duration("3000000h", &ns), -ERANGE); /* 342 years */
}

TEST(test_numbers)
{
    static const char *const no_fraction[] = {"1 %", "%", "", "-1%", "1%%"};
    static const char *const no_number[] = {"", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "1K"};
    static const char *const no_double[] = {"", " 1", "1 ", "nan", "inf", "-inf", "1e999", "1x"};
    uint64_t v = UNTOUCHED;
    double f = -1;

    assert_int_equal(units_parse_fraction("95%", &f), 0);
    assert_float_equal(f, 0.95, 1e-15);
    assert_int_equal(units_parse_fraction("0.01", &f), 0);
    assert_float_equal(f, 0.01, 1e-15);
    for (size_t i = 0; i < N(no_fraction); i++)
        assert_int_equal(units_parse_fraction(no_fraction[i], &f), -EINVAL);
    assert_int_equal(units_parse_u64("18446744073709551615", &v), 0);
    assert_true(v == UINT64_MAX);
    assert_int_equal(units_parse_u64("18446744073709551616", &v), -ERANGE);
    assert_int_equal(units_parse_u64("010", &v), 0);
    assert_int_equal(v, 10); /* not octal */
    for (size_t i = 0; i < N(no_number); i++)
        assert_int_equal(units_parse_u64(no_number[i], &v), -EINVAL);
    assert_int_equal(units_parse_double("-2.5e3", &f), 0);
    assert_float_equal(f, -2500, 0);
    for (size_t i = 0; i < N(no_double); i++)
        assert_int_equal(units_parse_double(no_double[i], &f), -EINVAL);
}

/* Each unit against a figure worked out by hand: one operation's quantity, 10 of them, in 2 ms; NAN: it stands in a
 * row as it was found, and only the better side is asked for. */
TEST(test_value_of_each_unit)
{
    static const struct {
        const char *unit;
        double quantity, want;
        bool higher_is_better;
    } cases[] = {
        {"GB/s", 1e6, 5, true},  /* 1e7 bytes in 2e-3 s = 5e9 B/s */
        {"Gb/s", 1e6, 40, true}, /* 8 bits a byte */
        {"TFLOP/s", 2e9, 10, true}, {"TOP/s", 2e9, 10, true}, {"samples/s", 32, 160000, true},
        {"Mop/s", 1, 5e-3, true},   {"ns", 123, 2e5, false},  {"us", 123, 200, false},
        {"ms", 123, 0.2, false},    {"s/GB", 0, NAN, false},  {"cores", 0, NAN, false},
        {"MB", 0, NAN, false},      {"count", 0, NAN, false}, {"packets", 0, NAN, true},
        {"percent", 0, NAN, false}};
    size_t known = 0;

    while (units_table[known].name)
        known++;
    assert_int_equal(known, N(cases)); /* a new unit wants a case here */
    for (size_t i = 0; i < N(cases); i++) {
        const struct unit *u = units_find(cases[i].unit);
        assert_non_null(u);
        double got = units_value(u, cases[i].quantity, 10, 2000000);
        if (fabs(got - cases[i].want) > 1e-12 * cases[i].want)
            fail_msg("%s: %.17g, not %.17g", u->name, got, cases[i].want);
        assert_int_equal(u->higher_is_better, cases[i].higher_is_better);
        assert_int_equal(u->rate, cases[i].higher_is_better && !isnan(cases[i].want));
    }
    assert_null(units_find("GB"));
    assert_null(units_find("gb/s"));
    assert_true(isinf(units_value(units_find("GB/s"), 1, 1, 0)));
}

/* Sizes are exact: read back, and with at most two decimals. */
TEST(test_written)
{
    static const struct {
        uint64_t bytes;
        const char *option, *people;
    } sizes[] = {{0, "0", "0 B"},
                 {1000, "1000", "1000 B"},
                 {1023, "1023", "1023 B"},
                 {1024, "1K", "1 KiB"},
                 {1025, "1025", "1025 B"},
                 {1152, "1152", "1152 B"},
                 {1280, "1280", "1.25 KiB"},
                 {1u << 20, "1M", "1 MiB"},
                 {(1u << 20) + 1024, "1025K", "1025 KiB"},
                 {UINT64_C(3) << 30, "3G", "3 GiB"},
                 {UINT64_C(1) << 50, "1024T", "1024 TiB"},
                 {UINT64_MAX, "18446744073709551615", "18446744073709551615 B"}};
    static const struct {
        uint64_t ns;
        const char *want;
    } durations[] = {{0, "0 ns"},
                     {999, "999 ns"},
                     {1500, "1.5 us"},
                     {20000000, "20 ms"},
                     {1500000000, "1.5 s"},
                     {60000000000, "60 s"},
                     {125000000000, "2 min 05 s"}};
    char text[32];

    for (size_t i = 0; i < N(sizes); i++) {
        uint64_t back = UNTOUCHED;

        assert_string_equal(units_format_size(sizes[i].bytes, text, sizeof(text)), sizes[i].option);
        assert_int_equal(units_parse_size(text, &back), 0);
        assert_true(back == sizes[i].bytes);
        assert_string_equal(units_format_bytes(sizes[i].bytes, text, sizeof(text)),
                            sizes[i].people);
    }
    for (size_t i = 0; i < N(durations); i++)
        assert_string_equal(units_format_duration(durations[i].ns, text, sizeof(text)),
                            durations[i].want);
}

TEST(test_format_interval)
{
    static const struct {
        double low, high, value;
        const char *want;
    } cases[] = {
        {98.92, 101, 100, "+/- 1.1 %"}, /* the longer side */
        {99, 101.08, 100, "+/- 1.1 %"},
        {99, 101.2, 100, "-1 % to +1.2 %"},
        {39.88, 71.20, 43.75, "-8.8 % to +63 %"},
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

    for (size_t i = 0; i < N(cases); i++)
        assert_string_equal(
            units_format_interval(cases[i].low, cases[i].high, cases[i].value, text, sizeof(text)),
            cases[i].want);
}
