/* SPDX-License-Identifier: Apache-2.0 */
/* Which choices of a benchmark are kept for a run, on a made-up benchmark and rows. */
#include "harness/run/launch.h"
#include "tests/unit/unit.h"

static const char *const units[] = {"auto", "wide", "narrow", NULL};

static struct opt options[] = {
    {.name = "vector-unit", .type = OPT_CHOICE, .flags = OPT_LIST | OPT_KEPT, .choices = units},
    {.name = "other-unit", .type = OPT_CHOICE, .choices = units},
    {.name = "threads", .type = OPT_U64, .flags = OPT_KEPT, .min = 1},
    {.name = NULL}};

static char *defaults[] = {"auto", "auto", "0", NULL};

static struct bench_info bench = {.name = "made-up", .options = options, .defaults = defaults};

static struct launch launch = {.state = LAUNCH_DONE, .case_number = 7, .repeat = 2};

static void read_rows(const char *cells, struct table *t)
{
    char text[512], error[256];

    snprintf(text, sizeof(text), "vector_unit,other_unit,threads\n%s", cells);
    assert_int_equal(table_parse("rows", text, strlen(text), t, error, sizeof(error)), 0);
}

/* What the rows agree on, of what the arguments left open, and the option takes. */
TEST(test_what_is_kept)
{
    static const char *const cases[][3] = {
        {"--size 8", "wide,narrow,\n", "--vector-unit wide"},
        {"", "wide,,\nwide,,\n", "--vector-unit wide"},
        {"", ",,\nwide,,\n,,\n", "--vector-unit wide"}, /* a row that says nothing of it */
        {"", "narrow,,4\n", "--vector-unit narrow --threads 4"},
        {"", "wide,,\nnarrow,,\n", ""},
        {"", "wide,,\nnarrow,,\nwide,,\n", ""},
        {"", ",,\n", ""},
        {"", "wide,,4\nnarrow,,4\n", "--threads 4"}, /* each option by itself */
        {"--vector-unit auto --size 8", "wide,,\n", "--vector-unit wide"},
        {"--vector-unit narrow", "narrow,,\n", ""},
        {"--size 8 --vector-unit=narrow", "wide,,\n", ""},
        {"--vector-unit automatic", "wide,,\n", ""},
        {"", "auto,,\n", ""},
        {"", "wider,,\n", ""},
        {"", "\"wide,narrow\",,\n", ""},
        {"", ",,many\n", ""},
        {"", ",,0\n", ""}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct launch l = launch;
        struct table t;

        l.arguments = (char *)cases[i][0];
        read_rows(cases[i][1], &t);
        char *text = kept_choices(&bench, &l, &t, 0, t.n_rows);
        assert_non_null(text);
        assert_string_equal(text, cases[i][2]);
        free(text);
        table_release(&t);
    }
}

/* The first launch that chose decides, for the later ones too, even that each of them chooses. */
TEST(test_who_decides)
{
    static const char *const cases[][3] = {{"wide,,\n", "narrow,,\n", "--vector-unit wide"},
                                           {",,\n", "narrow,,\n", "--vector-unit narrow"},
                                           {"wide,,\nnarrow,,\n", "narrow,,\n", ""}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct kept kept = {0};
        struct launch l = launch;

        l.arguments = "";
        for (int k = 0; k < 2; k++) {
            struct table t;
            read_rows(cases[i][k], &t);
            kept_learn(&kept, &bench, &l, &t, 0, t.n_rows);
            table_release(&t);
        }
        assert_string_equal(kept_of(&kept, &l), cases[i][2]);
        kept_release(&kept);
    }
}
