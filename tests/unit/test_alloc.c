// SPDX-License-Identifier: Apache-2.0
// Memory that ends the program, and arrays that grow.
#include <sys/wait.h>

#include "core/alloc.h"
#include "tests/unit/unit.h"

// Ends with its own status, and not with that of a verdict.
TEST(test_no_memory)
{
    volatile size_t too_many = SIZE_MAX / 2;
    char said[256] = "";
    int fds[2], status;

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

TEST(test_array)
{
    unsigned *all = NULL, n = 0;

    while (n < 1000) {
        unsigned value = 3 * n;
        *ARRAY_ADD(all, n) = value;
    }
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(all[i], 3 * i);
    free(all);
}
