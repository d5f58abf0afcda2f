/* SPDX-License-Identifier: Apache-2.0 */
/* A benchmark that exists only as its description, for tests of suites and plans. Its program is /bin/true, which accepts every custom text. */
#ifndef PLUMB_TESTS_FAKE_BENCH_H
#define PLUMB_TESTS_FAKE_BENCH_H

#include "harness/plan/bench_info.h"

static int fake_accept(const char *text, void *value, char *error, size_t len)
{
    (void)text, (void)value, (void)error, (void)len;
    return 0;
}

static const char *const fake_ops[] = {"read", "write", "triad", NULL};

static struct opt fake_options[] = {
    {.name = "op",
     .type = OPT_CHOICE,
     .flags = OPT_LIST | OPT_COLUMN,
     .choices = fake_ops,
     .help = "what to do"},
    {.name = "size",
     .type = OPT_SIZE,
     .flags = OPT_LIST | OPT_COLUMN,
     .min = 1,
     .max = 1ull << 40,
     .help = "bytes"},
    {.name = "threads",
     .type = OPT_U64,
     .flags = OPT_LIST | OPT_COLUMN,
     .min = 1,
     .max = 1024,
     .help = "threads"},
    {.name = "check", .type = OPT_FLAG, .help = "look twice"},
    {.name = "shape",
     .type = OPT_CUSTOM,
     .flags = OPT_LIST | OPT_COLUMN,
     .parse = fake_accept,
     .help = "shapes"},
    {.name = "budget", .type = OPT_DURATION, .help = "time"},
    {.name = "csv", .type = OPT_FLAG, .help = "rows"},
    {.name = NULL},
};

static char *fake_defaults[] = {"read,write", "4096", "1", "no", "", "5s", "", NULL};
static char *fake_columns[] = {"op", "size", "threads", "shape", NULL};

static struct bench_info fake_benches[] = {{.name = "fake",
                                            .path = "/bin/true",
                                            .help = "a fake",
                                            .needs = "",
                                            .options = fake_options,
                                            .defaults = fake_defaults,
                                            .n_own = 5,
                                            .columns = fake_columns,
                                            .n_columns = 4}};

static const struct bench_list fake_list = {.benches = fake_benches, .n = 1, .problems = ""};

#endif
