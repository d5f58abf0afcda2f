// SPDX-License-Identifier: Apache-2.0
// Memory that ends the program, and arrays that grow.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/alloc.h"

// Ends with its own status, and not with that of a verdict.
static void test_no_memory(void **state)
{
    volatile size_t too_many = SIZE_MAX / 2;
    char said[256] = "";
    int fds[2], status;

    (void)state;
#ifdef __SANITIZE_ADDRESS__
    print_message("the sanitizer ends the program itself\n");
    skip();
#endif
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(fds[1], 2);
        char *p = xrealloc(NULL, too_many);
        _exit(p != NULL);
    }
    close(fds[1]);
    assert_true(read(fds[0], said, sizeof(said) - 1) > 0);
    close(fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), EXIT_INCOMPLETE);
    assert_non_null(strstr(said, "no memory"));
}

static void test_array(void **state)
{
    unsigned *all = NULL, n = 0;

    (void)state;
    while (n < 1000) {
        unsigned value = 3 * n;
        *ARRAY_ADD(all, n) = value;
    }
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(all[i], 3 * i);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_memory),
                                       cmocka_unit_test(test_array)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
