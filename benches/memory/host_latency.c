/* SPDX-License-Identifier: Apache-2.0 */
/* Load latency of the host's memory: see host_latency.h. */
#include "benches/memory/host_latency.h"

#include <errno.h>

#include "core/units.h"

/* What there is room for, in whole pages, and what is to be said of it. */
static uint64_t chain_bytes(struct point *pt, const struct memory_params *p)
{
    uint64_t half = host_available() / 2, last = topo_last_cache_bytes(point_topo(pt));
    uint64_t bytes = p->size <= half ? p->size : half / CHASE_PAGE * CHASE_PAGE;
    char text[24];

    if (bytes < p->size)
        point_reason(pt, 0, "the chain has %s, half of the available memory, not what was asked",
                     units_format_size(bytes >> 20 << 20, text, sizeof(text)));
    if (last && bytes > last && bytes < LATENCY_FAR_TIMES * last)
        point_reason(pt, 0,
                     "the chain is %.2g times the last cache, which serves a part of the loads: "
                     "memory's own latency takes %d times",
                     (double)bytes / (double)last, LATENCY_FAR_TIMES);
    return bytes;
}

static int build(struct host_latency *l, struct point *pt, uint64_t bytes)
{
    struct chase_translation t;
    uint64_t seed = pt->common->seed;
    int err = chase_translation(l->buffer.at, bytes, seed, &t);

    if (err && err != -ERANGE)
        return err;
    /* Lines that a second-level cache cannot hold are slow by themselves, and would pass for small pages. */
    bool told = !err && topo_cache_bytes(point_topo(pt), 2) >= CHASE_TRANSLATION_CACHE;

    l->small_pages = told && chase_pages_are_small(&t);
    point_column(pt, "hardware_pages", "%s", !told ? "" : l->small_pages ? "small" : "huge");
    err = chase_build(&l->chains[LATENCY_RANDOM], l->buffer.at, bytes, seed);
    /* Of one page there is no order of pages. */
    return err || bytes < 2 * CHASE_PAGE
               ? err
               : chase_build_pages(&l->chains[LATENCY_BY_PAGE], l->buffer.at, bytes, seed);
}

int host_latency_open(struct host_latency *l, struct point *pt, const struct memory_params *p,
                      const struct placement *place)
{
    uint64_t bytes = chain_bytes(pt, p);
    char error[160] = "";
    int err = host_alloc(&l->buffer, point_topo(pt), bytes, (enum host_pages)p->pages,
                         place->memory_node, error, sizeof(error));

    if (err)
        return point_reason(pt, err, "%s", error);
    err = build(l, pt, bytes);
    if (err)
        return err;
    for (int i = 0; i < LATENCY_CHAINS; i++)
        if (l->chains[i].order &&
            chase_look(&l->chains[i])) /* a walk along it would end anywhere */
            return point_reason(pt, -EBADMSG,
                                "wrong data: a line of the chain does not lead to the next");
    return 0;
}

struct hops {
    struct chase *chase;
    uint64_t n;
};

static void run_hops(void *arg, unsigned thread, unsigned threads)
{
    struct hops *hops = arg;

    (void)thread;
    (void)threads;
    chase_run(hops->chase, hops->n);
}

void host_latency_sample(struct host_latency *l, struct team *team, uint64_t inner, uint64_t *ns)
{
    for (int i = 0; i < LATENCY_CHAINS; i++) {
        struct hops hops = {&l->chains[i], inner};

        if (l->chains[i].order)
            team_run(team, run_hops, &hops, &ns[i], NULL);
    }
}

int host_latency_check(const struct host_latency *l, struct point *pt)
{
    for (int i = 0; i < LATENCY_CHAINS; i++)
        if (l->chains[i].order && chase_check(&l->chains[i]))
            return point_reason(pt, -EBADMSG, "wrong data: the chain of pointers leads elsewhere");
    return 0;
}

void host_latency_judge_pages(const struct host_latency *l, struct point *pt, double share)
{
    if (l->small_pages && share >= 0.95)
        point_reason(pt, 0,
                     "huge pages of this system only: the hardware translates small ones, "
                     "and `latency` pays for that");
}

void host_latency_close(struct host_latency *l)
{
    for (int i = 0; i < LATENCY_CHAINS; i++)
        chase_release(&l->chains[i]);
    host_free(&l->buffer);
}
