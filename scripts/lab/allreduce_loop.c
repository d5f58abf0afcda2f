/* SPDX-License-Identifier: Apache-2.0 */
/* The bare loop that an MPI backend is held against: MPI_Barrier, then MPI_Allreduce so many times; prints the median over samples of the
 * slowest rank's time of one operation, in us.
 *
 *   mpicc -O2 scripts/lab/allreduce_loop.c -o allreduce_loop; mpirun -np 4 ./allreduce_loop BYTES OPERATIONS SAMPLES */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double sample(const float *in, float *out, int count, int operations)
{
    double slowest = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int i = 0; i < operations; i++)
        MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double took = MPI_Wtime() - begin;
    MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest / operations * 1e6;
}

int main(int argc, char **argv)
{
    int rank = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4) {
        fputs("usage: allreduce_loop BYTES OPERATIONS SAMPLES\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    int count = (int)(strtoul(argv[1], NULL, 10) / sizeof(float));
    int operations = (int)strtoul(argv[2], NULL, 10), samples = (int)strtoul(argv[3], NULL, 10);
    float *in = calloc((size_t)count, sizeof(*in)), *out = calloc((size_t)count, sizeof(*out));
    double *us = calloc((size_t)samples, sizeof(*us));
    if (!in || !out || !us || samples < 1) {
        free(in);
        free(out);
        free(us);
        MPI_Abort(MPI_COMM_WORLD, 2);
        return 2;
    }
    for (int i = 0; i < count; i++)
        in[i] = (float)(i % 7);
    sample(in, out, count, 1);
    for (int i = 0; i < samples; i++)
        us[i] = sample(in, out, count, operations);
    qsort(us, (size_t)samples, sizeof(*us), ascending);
    if (!rank)
        printf("%.3f\n",
               samples % 2 ? us[samples / 2] : (us[samples / 2 - 1] + us[samples / 2]) / 2);
    free(in);
    free(out);
    free(us);
    return MPI_Finalize();
}
