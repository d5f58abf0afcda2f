/* SPDX-License-Identifier: Apache-2.0 */
/* An MPI program for a rehearsal: every rank prints its host's name and the sum of all ranks' numbers. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    char host[MPI_MAX_PROCESSOR_NAME];
    int rank, sum = 0, len;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_processor_name(host, &len);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%s: %d\n", host, sum);
    return MPI_Finalize();
}
