/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products in slices: see overlap.h. */
#include "benches/allreduce/overlap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"

#define N           64
#define ROWS        4
#define COLUMNS     8
#define BATCHES     20
#define BATCH_UNITS 64

/* Four floats: registers of any CPU with vectors have as many, and the compiler makes plain
 * arithmetic of it elsewhere. */
typedef float vector __attribute__((vector_size(16)));

static vector load(const float *at)
{
    vector v;

    memcpy(&v, at, sizeof(v));
    return v;
}

/* ROWS x COLUMNS of C; written out, so that the sums stay in registers. */
static void block(const float *a, const float *b, float *c)
{
    vector low0 = {0}, low1 = {0}, low2 = {0}, low3 = {0};
    vector high0 = {0}, high1 = {0}, high2 = {0}, high3 = {0};

    for (int k = 0; k < N; k++) {
        vector low = load(b + k * N), high = load(b + k * N + 4);
        low0 += a[k] * low;
        high0 += a[k] * high;
        low1 += a[N + k] * low;
        high1 += a[N + k] * high;
        low2 += a[2 * N + k] * low;
        high2 += a[2 * N + k] * high;
        low3 += a[3 * N + k] * low;
        high3 += a[3 * N + k] * high;
    }
    const vector sums[ROWS][2] = {{low0, high0}, {low1, high1}, {low2, high2}, {low3, high3}};
    for (int row = 0; row < ROWS; row++)
        memcpy(c + row * N, sums[row], sizeof(sums[row]));
}

static void unit(struct overlap *o)
{
    const float *a = o->matrices + o->row * N, *b = o->matrices + N * N;
    float *c = o->matrices + 2 * N * N + o->row * N;

    for (int column = 0; column < N; column += COLUMNS)
        block(a, b + column, c + column);
    o->row = (o->row + ROWS) % N;
}

/* The fastest of some batches: what the work takes when nothing else is in its way. The first ones
 * warm up. */
static double calibrate(struct overlap *o)
{
    uint64_t best_ns = UINT64_MAX;

    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t begin_ns = clock_now_ns();
        for (int i = 0; i < BATCH_UNITS; i++)
            unit(o);
        uint64_t ns = clock_now_ns() - begin_ns;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    return fmax(1, (double)best_ns) / BATCH_UNITS;
}

int overlap_open(struct overlap *o)
{
    size_t floats = 3 * N * N;

    *o = (struct overlap){.matrices = aligned_alloc(64, floats * sizeof(float))};
    if (!o->matrices)
        return -ENOMEM;
    for (size_t i = 0; i < floats; i++)
        o->matrices[i] = (float)(i % 7) / 8;
    o->unit_ns = calibrate(o);
    return 0;
}

void overlap_close(struct overlap *o)
{
    free(o->matrices);
    *o = (struct overlap){0};
}

struct overlap_work overlap_work(const struct overlap *o, uint64_t ns)
{
    double units = fmax(1, (double)ns / o->unit_ns);
    struct overlap_work work = {.slices = ns / OVERLAP_SLICE_NS ? ns / OVERLAP_SLICE_NS : 1};

    work.units_each = (uint64_t)fmax(1, round(units / (double)work.slices));
    return work;
}

void overlap_slice(struct overlap *o, const struct overlap_work *work)
{
    for (uint64_t i = 0; i < work->units_each; i++)
        unit(o);
}
