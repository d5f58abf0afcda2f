// SPDX-License-Identifier: Apache-2.0
/* The program around the tests of a file: see unit.h. */
#include "tests/unit/unit.h"

static struct CMUnitTest tests[64];
static size_t n_tests;
static CMFixtureFunction before, after;

void unit_add(struct CMUnitTest test)
{
    if (n_tests == sizeof(tests) / sizeof(*tests))
        abort();
    tests[n_tests++] = test;
}

void unit_around(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    before = set_up;
    after = tear_down;
}

void assert_says(const char *text, const char *wanted)
{
    char *copy = strdup(wanted), *at = copy;

    for (char *want; (want = strsep(&at, "|"));)
        if (*want == '!' ? strstr(text, want + 1) != NULL : !strstr(text, want))
            fail_msg("'%s' of:\n%s", want, text);
    free(copy);
}

bool is_gone(pid_t pid)
{
    for (int i = 0; i < 12000; i++) {
        char path[64], letter = 'Z';
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%*d %*s %c", &letter) != 1)
            letter = 'Z';
        if (f)
            fclose(f);
        if (letter == 'Z' || letter == 'X')
            return true;
        usleep(10000);
    }
    return false;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests(program_invocation_short_name, tests, n_tests, before, after);
}
