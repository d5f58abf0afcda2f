/* SPDX-License-Identifier: Apache-2.0 */
/* The line of a measurement that goes on: whole at every width. */
#include <math.h>

#include "core/status_line.h"
#include "tests/unit/unit.h"

TEST(test_widths)
{
    static const char long_label[] = "memory triad nt DRAM node0 local f64 thp 2 threads";
    static const struct {
        size_t width;
        const char *label, *estimate;
        double left_s;
        const char *want;
    } cases[] = {
        {79, "memory triad DRAM", "42.9 GB/s +/- 2.4 %", 70,
         "[ 37/174] memory triad DRAM  42.9 GB/s +/- 2.4 %   about 1:10 left"},
        {59, "memory triad DRAM", "42.9 GB/s +/- 2.4 %", 70,
         "[ 37/174] memory triad DRAM  42.9 GB/s +/- 2.4 %  1:10 left"},
        {159, long_label, "42.9 GB/s", 3700,
         "[ 37/174] memory triad nt DRAM node0 local f64 thp 2 threads  42.9 GB/s   about 1:01:40 "
         "left"},
        {59, long_label, "42.9 GB/s", 9,
         "[ 37/174] memory triad nt DRAM node0  42.9 GB/s  0:09 left"},
        {40, long_label, "42.9 GB/s +/- 2.4 %", 70, "[ 37/174] memory triad nt  1:10 left"},
        {24, "memory", "", NAN, "[ 37/174] memory"},
        {8, "memory", "", NAN, ""},
    };
    char text[STATUS_LINE_BYTES];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct status_line line = {37, 174, cases[i].label, cases[i].estimate,
                                         cases[i].left_s};

        assert_string_equal(status_line(&line, cases[i].width, text), cases[i].want);
    }
}

TEST(test_never_wider)
{
    const struct status_line line = {9, 10, "gemm f32 onednn 2048 and a word", "340 GFLOP/s", 100};
    char text[STATUS_LINE_BYTES];

    for (size_t width = 1; width < 120; width++)
        assert_true(strlen(status_line(&line, width, text)) <= width);
}
