/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line, and what a log is told: how many launches are done, and how long is left. */
#include "harness/run/progress.h"
#include "tests/unit/unit.h"

#define S 1000000000ull

static void check(const char *line, const char *want, const char *never)
{
    if (!strstr(line, want) || (*never && strstr(line, never)))
        fail_msg("%s: not '%s', or '%s'", line, want, never);
}

/* Of its own launches, not of an earlier start's; or of what is expected of each that is to come. */
TEST(test_line)
{
    static const struct {
        struct progress p;
        uint64_t ns;
        const char *want, *never;
    } cases[] = {
        {{.done = 12}, 30 * S, "[######..................] 12 of 48, 1:30 left  x", ""},
        {{.done = 24, .first = 24}, 30 * S, "24 of 48", "left"},
        {{.done = 36, .first = 24}, 3600 * S, "1:00:00 left", ""},
        {{.done = 48, .first = 24}, 3600 * S, "48 of 48", "left"},
        {{.done = 12, .left_at_ns = 10 * S, .left_ns = 120e9, .rest_ns = 80e9}, 10 * S, "2:00", ""},
        {{.done = 12, .left_at_ns = 10 * S, .left_ns = 120e9, .rest_ns = 80e9}, 40 * S, "1:30", ""},
        {{.done = 12, .left_at_ns = 10 * S, .left_ns = 120e9, .rest_ns = 80e9},
         900 * S, /* overdue: that takes nothing from the others */
         "1:20",
         ""},
    };
    char text[320];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct progress p = cases[i].p;

        p.total = 48;
        strcpy(p.now, "x");
        check(progress_line(&p, cases[i].ns, 200, text, sizeof(text)), cases[i].want,
              cases[i].never);
        assert_true(strlen(progress_line(&p, cases[i].ns, 20, text, sizeof(text))) == 20);
    }
}

/* Seconds under a minute and a half, then whole minutes, to the nearest. */
TEST(test_log_line)
{
    static const struct {
        size_t done;
        uint64_t ns; /* for these launches */
        const char *want, *never;
    } cases[] = {{12, 29666666667, " 89 s ", "min"}, {12, 30000000000, " 2 min", ""},
                 {12, 49666666667, " 2 min", ""},    {12, 50000000000, " 3 min", ""},
                 {0, 1, "0 of 48", "left"},          {48, 1, "48 of 48", "left"}};
    char text[320];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct progress p = {.total = 48, .done = cases[i].done, .now = "x"};

        check(progress_log_line(&p, cases[i].ns, text, sizeof(text)), cases[i].want,
              cases[i].never);
    }
}
