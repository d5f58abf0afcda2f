/* SPDX-License-Identifier: Apache-2.0 */
/* What a log is told: how many launches are done, and how long is left. */
#include "harness/run/progress.h"
#include "tests/unit/unit.h"

#define S 1000000000ull

static void check(const char *line, const char *want, const char *never)
{
    if (!strstr(line, want) || (*never && strstr(line, never)))
        fail_msg("%s: not '%s', or '%s'", line, want, never);
}

/* Of its own launches, not of an earlier start's; or of what is expected of each that is to come. */
TEST(test_left)
{
    static const struct {
        struct progress p;
        uint64_t ns;
        const char *want, *never;
    } cases[] = {
        {{.done = 12}, 20 * S, "12 of 48 launches done, about 60 s left; now x", ""},
        {{.done = 24, .first = 24}, 30 * S, "24 of 48", "left"},
        {{.done = 36, .first = 24}, 3600 * S, " 60 min", ""},
        {{.done = 48, .first = 24}, 3600 * S, "48 of 48", "left"},
        {{.done = 12, .left_at_ns = 10 * S, .left_ns = 80e9, .rest_ns = 40e9}, 10 * S, " 80 s", ""},
        {{.done = 12, .left_at_ns = 10 * S, .left_ns = 80e9, .rest_ns = 40e9}, 30 * S, " 60 s", ""},
        {{.done = 12, .left_at_ns = 10 * S, .left_ns = 80e9, .rest_ns = 40e9},
         900 * S, /* overdue: that takes nothing from the others */
         " 40 s",
         ""},
    };
    char text[320];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct progress p = cases[i].p;

        p.total = 48;
        strcpy(p.now, "x");
        check(progress_log_line(&p, cases[i].ns, text, sizeof(text)), cases[i].want,
              cases[i].never);
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
