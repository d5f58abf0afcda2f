/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records kernels together with a yardstick: a chain of multiplications, which stands before and
 * behind each sample. The table of noise on stdout has three cases for each kernel: the kernel, the
 * yardstick, and their ratio. build/selftest/estimators compares them.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/selftest/recording.h"

#define SAMPLES    100
#define LAUNCHES   5
#define CHAIN      40000
#define TRIAD_L2   ((size_t)1 << 14) /* entries of each array */
#define TRIAD_DRAM ((size_t)1 << 22)
#define PART       ((size_t)1 << 17) /* of the larger arrays, in a sample */

struct state {
    double *a, *b, *c;
    size_t n, at;
    int to, from;
};

static void chain(void)
{
    volatile unsigned long seed = 1;
    unsigned long x = seed;

    for (int i = 0; i < CHAIN; i++)
        x = x * 6364136223846793005UL + 1442695040888963407UL;
    seed = x;
}

static void triad(struct state *s)
{
    size_t part = s->n < PART ? s->n : PART;

    for (int pass = s->n < PART ? 8 : 1; pass > 0; pass--)
        for (size_t i = s->at; i < s->at + part; i++)
            s->a[i] = s->b[i] + 3 * s->c[i];
    s->at = (s->at + part) % s->n;
}

static void multiply(struct state *s)
{
    enum { N = 96 };

    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++)
            for (size_t j = 0; j < N; j++)
                s->a[i * N + j] += s->b[i * N + k] * s->c[k * N + j];
}

static void turn(struct state *s)
{
    char byte = 1;

    for (int i = 0; i < 4; i++) {
        if (write(s->to, &byte, 1) != 1 || read(s->from, &byte, 1) != 1)
            abort();
    }
}

static const struct kernel {
    const char *name;
    size_t entries;
    void (*sample)(struct state *s);
} kernels[] = {
    {"triad in the L2 cache", TRIAD_L2, triad},
    {"triad in memory", TRIAD_DRAM, triad},
    {"matrix product in the L2 cache", TRIAD_L2, multiply},
    {"round trip over pipes", 1, turn},
};
#define KERNELS (sizeof(kernels) / sizeof(kernels[0]))

/* The other end of the pipes. */
static pid_t echo_start(struct state *s)
{
    int there[2], back[2];

    if (pipe(there) || pipe(back))
        abort();
    pid_t pid = fork();

    if (pid == 0) {
        char byte;

        close(there[1]);
        while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
            ;
        _exit(0);
    }
    close(there[0]);
    close(back[1]);
    s->to = there[1];
    s->from = back[0];
    return pid;
}

/* Times of the samples, and of the yardstick before each and behind the last, in ns. */
static void launch(const struct kernel *k, double times[SAMPLES], double yard[SAMPLES + 1])
{
    struct state s = {.n = k->entries};
    pid_t echo = echo_start(&s);

    s.a = calloc(3 * s.n, sizeof(*s.a));
    if (!s.a)
        abort();
    s.b = s.a + s.n;
    s.c = s.b + s.n;
    for (size_t i = 0; i < 3 * s.n; i++)
        s.a[i] = 1 + (double)(i % 7);
    k->sample(&s);
    for (size_t i = 0; i <= SAMPLES; i++) {
        uint64_t start = clock_now_ns();

        chain();
        uint64_t middle = clock_now_ns();

        yard[i] = (double)(middle - start);
        if (i == SAMPLES)
            break;
        k->sample(&s);
        times[i] = (double)(clock_now_ns() - middle);
    }
    close(s.to);
    close(s.from);
    waitpid(echo, NULL, 0);
    free(s.a);
}

static void add(struct recorded_case *c, const char *kernel, const char *what, size_t run,
                const double x[SAMPLES])
{
    struct recorded_launch l = {.n = SAMPLES, .run = run, .samples = calloc(SAMPLES, sizeof(*x))};

    c->launches = realloc(c->launches, (c->n + 1) * sizeof(*c->launches));
    if (!l.samples || !c->launches)
        abort();
    snprintf(c->id, sizeof(c->id), "%s%s", kernel, what);
    for (size_t i = 0; i < SAMPLES; i++)
        l.samples[i] = -log(x[i]);
    c->launches[c->n++] = l;
}

int main(int argc, char **argv)
{
    struct recorded_case cases[3 * KERNELS] = {0};
    struct recording r = {.cases = cases, .n = 3 * KERNELS};
    long runs = argc == 2 ? strtol(argv[1], NULL, 10) : 0;

    if (runs < 1) {
        fputs("usage: yardstick RUNS > TABLE\n", stderr);
        return 2;
    }
    for (size_t i = 0; i < (size_t)runs * LAUNCHES * KERNELS; i++) {
        size_t k = i % KERNELS, run = i / (LAUNCHES * KERNELS);
        double times[SAMPLES], yard[SAMPLES + 1], ratio[SAMPLES];

        launch(&kernels[k], times, yard);
        for (size_t at = 0; at < SAMPLES; at++)
            ratio[at] = times[at] / sqrt(yard[at] * yard[at + 1]);
        add(&cases[3 * k], kernels[k].name, "", run, times);
        add(&cases[3 * k + 1], kernels[k].name, ": its yardstick", run, yard);
        add(&cases[3 * k + 2], kernels[k].name, ": ratio to the yardstick", run, ratio);
        if (i % (LAUNCHES * KERNELS) == LAUNCHES * KERNELS - 1)
            usleep(500000);
    }
    recording_write(&r, stdout);
    return 0;
}
