/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment tells of a launcher: how many processes, or only that there may be others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/group/mpi.h"

/* All but how cmocka is to tell of it. */
static void clear(void)
{
    static char told[64];
    const char *how = getenv("CMOCKA_MESSAGE_OUTPUT");

    if (how && !*told)
        snprintf(told, sizeof(told), "CMOCKA_MESSAGE_OUTPUT=%s", how);
    clearenv();
    if (how)
        putenv(told);
}

static void set(char *const *variables)
{
    clear();
    for (; *variables; variables++)
        putenv(*variables);
}

#define SET(...) set((char *const[]){__VA_ARGS__, NULL})

static void test_sizes(void **state)
{
    (void)state;
    clear();
    assert_int_equal(mpi_launched(), 1);
    assert_null(mpi_unknown());
    SET("OMPI_COMM_WORLD_SIZE=4", "PMIX_RANK=3");
    assert_int_equal(mpi_launched(), 4);
    assert_null(mpi_unknown());
    SET("PMI_SIZE=3", "PMI_RANK=0", "MPI_LOCALNRANKS=2", "MPI_LOCALRANKID=0");
    assert_int_equal(mpi_launched(), 3); /* 2 of them on this node */
    SET("PMI_SIZE=24", "PALS_RANKID=3", "PALS_LOCAL_SIZE=12");
    assert_int_equal(mpi_launched(), 24);
    SET("FLUX_JOB_SIZE=8", "FLUX_TASK_RANK=7");
    assert_int_equal(mpi_launched(), 8);
    SET("JSM_NAMESPACE_SIZE=6", "JSM_NAMESPACE_RANK=0");
    assert_int_equal(mpi_launched(), 6);
    SET("SLURM_STEP_NUM_TASKS=1", "OMPI_COMM_WORLD_SIZE=5");
    assert_int_equal(mpi_launched(), 5);
    SET("PMI_SIZE=many", "OMPI_COMM_WORLD_SIZE=-3");
    assert_int_equal(mpi_launched(), 1);
}

static void test_ranks_alone(void **state)
{
    (void)state;
    SET("PMIX_RANK=0");
    assert_int_equal(mpi_launched(), 1);
    assert_string_equal(mpi_unknown(), "PMIX_RANK");
    SET("PALS_RANKID=1", "PALS_LOCAL_SIZE=2");
    assert_int_equal(mpi_launched(), 1);
    assert_string_equal(mpi_unknown(), "PALS_RANKID");
    SET("MPI_LOCALNRANKS=4");
    assert_int_equal(mpi_launched(), 1);
    assert_string_equal(mpi_unknown(), "MPI_LOCALNRANKS");
    SET("OMPI_COMM_WORLD_SIZE=1", "PMIX_RANK=0"); /* mpirun -np 1: this one is all */
    assert_null(mpi_unknown());
    SET("SLURM_STEP_NUM_TASKS=1", "PMIX_RANK=0");
    assert_null(mpi_unknown());
}

static void test_torchrun(void **state)
{
    (void)state;
    SET("WORLD_SIZE=4", "RANK=1", "LOCAL_RANK=1");
    assert_true(mpi_torchrun());
    assert_int_equal(mpi_launched(), 4);
    assert_null(mpi_unknown());
    SET("WORLD_SIZE=4", "RANK=1"); /* a pod of several */
    assert_false(mpi_torchrun());
    assert_int_equal(mpi_launched(), 1);
    assert_string_equal(mpi_unknown(), "RANK");
    SET("WORLD_SIZE=1", "RANK=0", "LOCAL_RANK=0");
    assert_false(mpi_torchrun());
    assert_null(mpi_unknown());
    SET("WORLD_SIZE=4");
    assert_int_equal(mpi_launched(), 1);
    assert_null(mpi_unknown());
    /* mpirun's ranks, of which a script tells torch */
    SET("WORLD_SIZE=8", "RANK=1", "LOCAL_RANK=1", "OMPI_COMM_WORLD_SIZE=4");
    assert_false(mpi_torchrun());
    assert_int_equal(mpi_launched(), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_ranks_alone),
        cmocka_unit_test(test_torchrun),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
