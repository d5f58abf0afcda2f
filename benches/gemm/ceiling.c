/* SPDX-License-Identifier: Apache-2.0 */
/* What the vector units can do at most: see library.h. */
#include "benches/gemm/library.h"

#include <errno.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/hw/topo.h"

#define RUN_NS      2000000u /* long against the microseconds that a team's start costs */
#define RUNS        25
#define RUNS_FIRST  5   /* of each loop */
#define NEAR        0.8 /* of the fastest: whether it stays there is not decided yet */
#define TURNS_FIRST 1000

static const struct ceiling_loop *const tables[] = {ceiling_amx, ceiling_x86, ceiling_arm,
                                                    ceiling_generic};

size_t ceiling_loops(enum gemm_dtype dtype, const struct cpu_features *f,
                     const struct ceiling_loop *loops[CEILING_LOOPS_MAX])
{
    size_t n = 0;

    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++)
        for (const struct ceiling_loop *loop = tables[t]; loop->run; loop++)
            if (loop->dtype == dtype && loop->usable(f) && n < CEILING_LOOPS_MAX)
                loops[n++] = loop;
    return n;
}

struct run {
    const struct ceiling_loop *loop;
    uint64_t turns;
    const void *in;
    char *out;         /* CEILING_OUT_BYTES for each thread */
    uint64_t *each_ns; /* of each thread */
};

static void run_member(void *arg, unsigned thread, unsigned threads)
{
    const struct run *run = arg;

    (void)threads;
    run->loop->run(run->turns, run->in, run->out + (size_t)thread * CEILING_OUT_BYTES);
}

static uint64_t run_once(struct team *team, struct run *run)
{
    uint64_t ns;

    team_run(team, run_member, run, &ns, run->each_ns);
    return ns;
}

static double best_rate(struct team *team, struct run *run, int runs)
{
    double best = 0;
    uint64_t ns = run_once(team, run);

    while (ns < RUN_NS / 2) { /* also brings the clock up */
        run->turns *= ns < RUN_NS / 16 ? 8 : 2;
        ns = run_once(team, run);
    }
    for (int i = 0; i < runs; i++) {
        run_once(team, run);
        /* Each thread at its own speed: cores of two kinds do not wait for each other. */
        double operations = run->loop->operations * (double)run->turns, rate = 0;
        for (unsigned k = 0; k < team_size(team); k++)
            rate += operations / (double)(run->each_ns[k] ? run->each_ns[k] : 1);
        best = rate > best ? rate : best;
    }
    return best;
}

/* All loops briefly, then those near the front for as long as a maximum needs: a wide unit may be
 * slower than a narrow one, and a type's own instruction than the detour by another type. */
static void race(struct team *team, struct run *run, const struct ceiling_loop *const *loops,
                 size_t n, struct ceiling_rate *best)
{
    double rates[CEILING_LOOPS_MAX] = {0}, front = 0;

    *best = (struct ceiling_rate){loops[0], 0, 0};
    for (size_t i = 0; i < n; i++) {
        run->loop = loops[i];
        run->turns = TURNS_FIRST;
        rates[i] = best_rate(team, run, RUNS_FIRST);
        front = rates[i] > front ? rates[i] : front;
        if (!loops[i]->is_detour && rates[i] > best->own_per_ns)
            best->own_per_ns = rates[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (rates[i] < NEAR * front)
            continue;
        run->loop = loops[i];
        run->turns = TURNS_FIRST;
        double rate = best_rate(team, run, RUNS);

        rate = rates[i] > rate ? rates[i] : rate;
        if (!loops[i]->is_detour && rate > best->own_per_ns)
            best->own_per_ns = rate;
        if (rate > best->operations_per_ns)
            *best = (struct ceiling_rate){loops[i], rate, best->own_per_ns};
    }
}

int ceiling_measure(const struct ceiling_loop *const *loops, size_t n_loops,
                    const struct topo *topo, const unsigned *cpus, unsigned n,
                    struct ceiling_rate *best)
{
    struct team *team;
    int err = !n_loops || n_loops > CEILING_LOOPS_MAX ? -EINVAL : team_open(&team, topo, cpus, n);

    if (err)
        return err;
    unsigned char *in = xaligned(64, CEILING_IN_BYTES);
    char *out = xaligned(64, (size_t)n * CEILING_OUT_BYTES);
    uint64_t *each_ns = xcalloc(n, sizeof(*each_ns));
    struct run run = {.in = in, .out = out, .each_ns = each_ns};
    /* Operands that keep sums finite: 0x3e.. read as a float, a bf16 or a double is a fraction;
     * read as bytes they are small. */
    for (unsigned i = 0; i < CEILING_IN_BYTES; i++)
        in[i] = (unsigned char)(i & 1 ? 0x3e : 0x10 + i % 61);
    race(team, &run, loops, n_loops, best);
    team_close(team);
    free(in);
    free(out);
    free(each_ns);
    return 0;
}
