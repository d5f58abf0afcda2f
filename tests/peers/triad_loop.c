/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What scripts/crosscheck holds plumb-memory against: the triad as
 * anyone would write it, and nothing of Plumbline. Arguments: entries of an array, repetitions.
 * Prints the best and the median GB/s, 24 bytes an entry (the STREAM rule).
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void triad(double *restrict c, const double *restrict a, const double *restrict b, double s,
                  long n)
{
#pragma omp parallel for
    for (long i = 0; i < n; i++)
        c[i] = a[i] + s * b[i];
}

static int run(double *a, double *b, double *c, double *seconds, long n, int times)
{
#pragma omp parallel for
    for (long i = 0; i < n; i++) {
        a[i] = (double)(1 + i % 1000);
        b[i] = (double)(1 + i % 777);
        c[i] = 0;
    }
    triad(c, a, b, 3, n); /* warm */
    for (int t = 0; t < times; t++) {
        double begin = now_s();
        triad(c, a, b, 3, n);
        seconds[t] = now_s() - begin;
    }
    for (long i = 0; i < n; i++)
        if (c[i] != a[i] + 3 * b[i]) {
            fprintf(stderr, "triad_loop: entry %ld is wrong\n", i);
            return 1;
        }
    qsort(seconds, (size_t)times, sizeof(*seconds), by_size);
    printf("%.4f %.4f\n", 24e-9 * (double)n / seconds[0], 24e-9 * (double)n / seconds[times / 2]);
    return 0;
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 0;
    int times = argc > 2 ? atoi(argv[2]) : 0;

    if (n < 1 || times < 2) {
        fputs("usage: triad_loop ENTRIES TIMES\n", stderr);
        return 2;
    }
    double *a = malloc((size_t)n * sizeof(*a)), *b = malloc((size_t)n * sizeof(*b)),
           *c = malloc((size_t)n * sizeof(*c)), *seconds = malloc((size_t)times * sizeof(*seconds));
    int status = a && b && c && seconds ? run(a, b, c, seconds, n, times) : 2;
    free(a);
    free(b);
    free(c);
    free(seconds);
    if (status == 2)
        fputs("triad_loop: out of memory\n", stderr);
    return status;
}
