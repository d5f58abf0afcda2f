/* SPDX-License-Identifier: Apache-2.0 */
/* What hosts answer before anything is measured: their clocks, programs and networks; and who is in a group. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/hosts/check.h"
#include "harness/hosts/hosts.h"
#include "harness/hosts/launcher.h"

/* What a host said, with a token of 00ff; its clock is asked between 1000 and 1000.2 of ours. */
static void answer(struct host *h, const char *text)
{
    *h = (struct host){.name = "n1", .offset_s = NAN};
    h->programs = calloc(2, sizeof(*h->programs));
    h->programs[0] = (struct host_program){.bench = "net", .path = strdup("/x/plumb-net")};
    h->programs[1] = (struct host_program){.bench = "allreduce"};
    h->n_programs = 2;
    assert_int_equal(check_take(h, text, "00ff", 1000, 1000.2), 0);
}

static void forget(struct host *h)
{
    struct hosts hosts = {.all = malloc(sizeof(*h)), .n = 1};

    h->name = NULL;
    hosts.all[0] = *h;
    hosts_release(&hosts);
}

static void takes_what_a_host_answers(void **state)
{
    struct host h;
    char text[100];

    (void)state;
    answer(&h, "Welcome\nplumb-begin 00ff n1.x|1000.6\nplumb-build 00ff 127|not found\n"
               "plumb-build 00ff 0|plumb-allreduce 0.1 (abc, gcc)\n"
               "plumb-net 00ff eth0|1000|10.0.0.1 fd00::1 \nplumb-net 00ff veth1||\n"
               "plumb-net 00ff mlx5_0:1|100G|\nplumb-done 00ff |\n");
    assert_string_equal(h.calls, "n1.x");
    assert_null(h.problem);
    assert_float_equal(h.offset_s, 0.5, 1e-6);
    assert_float_equal(h.spread_s, 0.1, 1e-6);
    assert_null(h.programs[0].version);
    assert_non_null(
        strstr(host_problem(&h, "net"), "'/x/plumb-net' does not start on 'n1' (n1.x)"));
    assert_null(host_problem(&h, "allreduce"));
    assert_string_equal(h.programs[1].version, "plumb-allreduce 0.1 (abc, gcc)");
    assert_string_equal(check_network(h.networks[0], text, sizeof(text)), "eth0 10.0.0.1 1 Gb/s");
    assert_string_equal(check_network(h.networks[1], text, sizeof(text)), "");
    assert_string_equal(check_network(h.networks[2], text, sizeof(text)), "mlx5_0:1 100 Gb/s");
    assert_null(h.networks[3]);
    forget(&h);
}

static void clock_is(const char *said, double offset_s, bool differs)
{
    char text[100];
    struct host h;

    snprintf(text, sizeof(text), "plumb-begin 00ff n1|%s\nplumb-done 00ff |\n", said);
    answer(&h, text);
    if (isnan(offset_s))
        assert_true(isnan(h.offset_s));
    else
        assert_float_equal(h.offset_s, offset_s, 1e-6);
    assert_int_equal(h.problem != NULL, differs);
    forget(&h);
}

/* Apart by more than a second as far as the round trip and a clock of whole seconds let it be told. */
static void tells_clocks_apart(void **state)
{
    (void)state;
    clock_is("1000.1", 0, false);
    clock_is("1001.19", 1.09, false);
    clock_is("1001.21", 1.11, true);
    clock_is("998.99", -1.11, true);
    clock_is("1000", 0.4, false);
    clock_is("1000.N", 0.4, false);
    clock_is("1000.%N", 0.4, false);
    clock_is("1001", 1.4, false);
    clock_is("1002", 2.4, true);
    clock_is("date: no", NAN, false);
}

static void who_is(const char *rows, const char *wanted)
{
    struct hosts h;
    char csv[512], error[256] = "";
    assert_int_equal(hosts_parse("f", "a slots=2\nb\n", &h, error, sizeof(error)), 0);
    struct hosts_run run = {.hosts = h, .launcher = launcher_find("mpirun")};

    h.all[0].calls = strdup("A");
    snprintf(csv, sizeof(csv), "rank,node,host,pid,cpus,build\n%s", rows);
    int err = check_who(&run, csv, strlen(csv), error, sizeof(error));
    assert_int_equal(err, wanted ? -EBADMSG : 0);
    if (wanted && !strstr(error, wanted))
        fail_msg("message '%s' lacks '%s'", error, wanted);
    hosts_release(&h);
}

static void looks_who_is_there(void **state)
{
    (void)state;
    who_is("0,0,A,1,2,x\n1,0,A,2,2,x\n2,1,anything,3,2,x\n", NULL);
    who_is("0,0,A,1,2,x\n", "1 of 3 ranks see each other");
    who_is("0,0,A,1,2,x\n2,0,A,2,2,x\n1,1,B,3,2,x\n", "rank 1 is missing or out of order");
    who_is("0,0,A,1,2,x\n1,1,B,2,2,x\n2,0,A,3,2,x\n",
           "rank 1 is on 'B', and by the hosts file it belongs on 'a' ('A'): see mpirun's own");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_what_a_host_answers),
        cmocka_unit_test(tells_clocks_apart),
        cmocka_unit_test(looks_who_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
