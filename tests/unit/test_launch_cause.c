/* SPDX-License-Identifier: Apache-2.0 */
/* Whose failure began it, by recorded outputs of launches whose ranks were killed, stopped and cut off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "harness/run/launch_cause.h"

static void check(const char *said, const char *cause)
{
    char text[400];

    assert_string_equal(launch_cause(said, text, sizeof(text)), cause);
}

/* Open MPI's mpirun, rank 0 killed. */
static void test_leader_killed(void **state)
{
    (void)state;
    check("localhost: Killed\n"
          "localhost rank 2: rank 2 (vm): rank 0 (vm) is gone: it was killed, or has ended: this "
          "process ends\n"
          "localhost: Terminated\n"
          "localhost rank 1: rank 1 (vm): rank 0 (vm) is gone: it was killed, or has ended: this "
          "process ends\n"
          "localhost: mpirun has exited due to process rank 0 with PID 0 on\n"
          "localhost: node vm exiting improperly. There are three reasons this could occur:\n"
          "localhost: You can avoid this message by specifying -quiet on the mpirun command line.\n"
          "on 'localhost' it ended with status 137: Killed\n",
          "rank 0 (vm) is gone: it was killed, or has ended (said by rank 2)");
}

/* The same, rank 0 stopped: today's last line was mpirun's advice. */
static void test_leader_stopped(void **state)
{
    (void)state;
    check("localhost rank 2: rank 2 (vm): rank 0 (vm) does not answer: it hangs or was cut off: "
          "this process ends\n"
          "localhost rank 1: rank 1 (vm): rank 0 (vm) does not answer: it hangs or was cut off: "
          "this process ends\n"
          "localhost: mpirun has exited due to process rank 2 with PID 0 on\n"
          "localhost: node vm exiting improperly. There are three reasons this could occur:\n"
          "localhost: You can avoid this message by specifying -quiet on the mpirun command line.\n"
          "the connection to 'localhost' broke before its rows had come: You can avoid this "
          "message by specifying -quiet on the mpirun command line.\n",
          "rank 0 (vm) does not answer: it hangs or was cut off (said by rank 2)");
}

/* MPICH's: rank 1 was killed, and all others for its sake. */
static void test_others_follow(void **state)
{
    static const char first[] = "localhost rank 0: rank 1 (vm) is gone: it was killed, or has "
                                "ended\n";
    static const char later[] = "localhost: Killed\n"
                                "localhost rank 2: rank 2 (vm): rank 0 (vm) is gone: it was "
                                "killed, or has ended: this process ends\n";
    static const char last[] = "on 'localhost' it ended with status 137: rank 2: rank 2 (vm): rank "
                               "0 (vm) is gone: it was killed, or has ended: this process ends\n";
    static const char cause[] = "rank 1 (vm) is gone: it was killed, or has ended (said by rank 0)";
    char said[1024];

    (void)state;
    snprintf(said, sizeof(said), "%s%s%s", first, later, last);
    check(said, cause);
    snprintf(said, sizeof(said), "%s%s%s", later, first, last); /* as the streams may come */
    check(said, cause);
    snprintf(said, sizeof(said), "%s%slocalhost rank 0: rank 2 (vm) is gone: it too\n", first,
             later);
    check(said, cause);
    snprintf(said, sizeof(said), "%s%s", later, last);
    check(said, "rank 0 (vm) is gone: it was killed, or has ended (said by rank 2)");
}

/* Who slept blames all the others. */
static void test_sleeper(void **state)
{
    (void)state;
    check("b rank 1: rank 1 (b): rank 1 (b) itself stood still for 12 s; after that, rank 0 (a) is "
          "gone: it was killed, or has ended: this process ends\n",
          "");
    check("a rank 0: rank 0 (a) itself stood still for 12 s; after that, rank 2 (c) does not "
          "answer: it hangs or was cut off\n"
          "c rank 2: rank 2 (c): rank 0 (a) does not answer: it hangs or was cut off: this process "
          "ends\n",
          "rank 0 (a) does not answer: it hangs or was cut off (said by rank 2)");
}

static void test_nobody(void **state)
{
    (void)state;
    check("", "");
    check("alpha rank 0: plumb-allreduce: listening on 127.0.0.1 port 18608\n", "");
    check("localhost: mpirun has exited due to process rank 0 with PID 0 on\n"
          "on 'beta' the rank of 2 from 1 on ended with status 9, and rank 0 says nothing of it\n",
          "");
    check("no signs of life can be had from rank 1 (b), rank 2 (c) (TCP to rank 0, any port): a "
          "rank that hangs is found late, and perhaps not named\n",
          "");
    check("a rank 3: rank 3 (a): 'mpi' has not ended after 40 s: this process ends\n", "");
    check("a rank that hangs: rank 2 (c) is gone: nobody says it\n", "");
    check("rank", "");
    check("rank 4 (", "");
    check("rank 4 (b) is gone: nobody says it\n", "");
}

/* With a name, or a pattern of them: these tests alone. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leader_killed), cmocka_unit_test(test_leader_stopped),
        cmocka_unit_test(test_others_follow), cmocka_unit_test(test_sleeper),
        cmocka_unit_test(test_nobody),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
