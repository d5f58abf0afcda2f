/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment tells of a launcher: how many processes, or only that there may be others. */
#include "core/group/mpi.h"
#include "tests/unit/unit.h"

/* Nothing but these in the environment, and how cmocka is to tell of it. */
static void set(char *variables)
{
    static char told[64];
    const char *how = getenv("CMOCKA_MESSAGE_OUTPUT");
    char *save = NULL;

    if (how && !*told)
        snprintf(told, sizeof(told), "CMOCKA_MESSAGE_OUTPUT=%s", how);
    clearenv();
    if (*told)
        putenv(told);
    for (char *v = strtok_r(variables, " ", &save); v; v = strtok_r(NULL, " ", &save))
        putenv(v);
}

TEST(test_launchers)
{
    static const struct {
        const char *variables;
        unsigned launched;
        const char *unknown; /* the variable that tells of others, but not how many */
        bool torchrun;
    } cases[] = {
        {"", 1, NULL, false},
        {"OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=3", 4, NULL, false},
        /* 2 of them on this node */
        {"PMI_SIZE=3 PMI_RANK=0 MPI_LOCALNRANKS=2 MPI_LOCALRANKID=0", 3, NULL, false},
        {"PMI_SIZE=24 PALS_RANKID=3 PALS_LOCAL_SIZE=12", 24, NULL, false},
        {"FLUX_JOB_SIZE=8 FLUX_TASK_RANK=7", 8, NULL, false},
        {"JSM_NAMESPACE_SIZE=6 JSM_NAMESPACE_RANK=0", 6, NULL, false},
        {"SLURM_STEP_NUM_TASKS=1 OMPI_COMM_WORLD_SIZE=5", 5, NULL, false},
        {"PMI_SIZE=many OMPI_COMM_WORLD_SIZE=-3", 1, NULL, false},
        {"PMIX_RANK=0", 1, "PMIX_RANK", false},
        {"PALS_RANKID=1 PALS_LOCAL_SIZE=2", 1, "PALS_RANKID", false},
        {"MPI_LOCALNRANKS=4", 1, "MPI_LOCALNRANKS", false},
        {"OMPI_COMM_WORLD_SIZE=1 PMIX_RANK=0", 1, NULL, false}, /* mpirun -np 1: this one is all */
        {"SLURM_STEP_NUM_TASKS=1 PMIX_RANK=0", 1, NULL, false},
        {"WORLD_SIZE=4 RANK=1 LOCAL_RANK=1", 4, NULL, true},
        {"WORLD_SIZE=4 RANK=1", 1, "RANK", false}, /* a pod of several */
        {"WORLD_SIZE=1 RANK=0 LOCAL_RANK=0", 1, NULL, false},
        {"WORLD_SIZE=4", 1, NULL, false},
        /* mpirun's ranks, of which a script tells torch */
        {"WORLD_SIZE=8 RANK=1 LOCAL_RANK=1 OMPI_COMM_WORLD_SIZE=4", 4, NULL, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char variables[128];

        strcpy(variables, cases[i].variables);
        set(variables);
        if (mpi_launched() != cases[i].launched || mpi_torchrun() != cases[i].torchrun)
            fail_msg("%s: %u ranks", cases[i].variables, mpi_launched());
        if (cases[i].unknown)
            assert_string_equal(mpi_unknown(), cases[i].unknown);
        else
            assert_null(mpi_unknown());
        set((char[]){""}); /* before its strings are gone */
    }
}
