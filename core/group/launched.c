/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment tells of a launcher: see mpi.h. */
#include <stdio.h>
#include <stdlib.h>

#include "core/group/mpi.h"

/* Of all processes that were started together. What is per node (MPI_LOCALNRANKS, PALS_LOCAL_SIZE) is not among them. */
static const char *const sizes[] = {
    "OMPI_COMM_WORLD_SIZE", /* Open MPI: mpirun */
    "PMI_SIZE",             /* PMI-1: MPICH's and Intel's mpiexec, PALS, Flux */
    "MV2_COMM_WORLD_SIZE",  /* MVAPICH2 */
    "SLURM_STEP_NUM_TASKS", /* srun */
    "FLUX_JOB_SIZE",        /* flux run, with or without PMI-1 */
    "JSM_NAMESPACE_SIZE",   /* LSF: jsrun */
    NULL,
};

/* Which process this is, by launchers that may leave it at that. */
static const char *const ranks[] = {
    "PMIX_RANK",       "PALS_RANKID",     "PMI_RANK", "FLUX_TASK_RANK",
    "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL,
};

static unsigned number(const char *name)
{
    const char *text = getenv(name);
    long n = text ? strtol(text, NULL, 10) : 0;

    return n > 0 && n < (1 << 30) ? (unsigned)n : 0;
}

/* The size that counts: a launcher of one process may have been started by one of several. 0: none tells it. */
static unsigned told_size(void)
{
    unsigned most = 0;

    for (size_t i = 0; sizes[i] && most < 2; i++)
        most = number(sizes[i]) > most ? number(sizes[i]) : most;
    return most;
}

/* torchrun sets all of these. WORLD_SIZE and RANK alone are set in each pod of a job of Kubernetes, for a torchrun or the like to come. */
bool mpi_torchrun(void)
{
    return told_size() < 2 && number("WORLD_SIZE") > 1 && getenv("RANK") && getenv("LOCAL_RANK");
}

unsigned mpi_launched(void)
{
    unsigned size = told_size();

    if (mpi_torchrun())
        size = number("WORLD_SIZE");
    return size > 1 ? size : 1;
}

const char *mpi_unknown(void)
{
    if (told_size() || mpi_torchrun())
        return NULL;
    for (size_t i = 0; ranks[i]; i++)
        if (getenv(ranks[i]))
            return ranks[i];
    return number("WORLD_SIZE") > 1 && getenv("RANK") ? "RANK" : NULL;
}

bool mpi_unknown_says(char *text, size_t len)
{
    const char *name = mpi_unknown();

    if (name)
        snprintf(text, len,
                 "a launcher set %s, but nothing tells how many processes it started: each would "
                 "measure for itself. Start them by mpirun or srun; where this one is alone all "
                 "the same, leave %s out (env -u %s)",
                 name, name, name);
    return name != NULL;
}
