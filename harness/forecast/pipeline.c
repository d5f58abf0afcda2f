/* SPDX-License-Identifier: Apache-2.0 */
/* When the stages of a pipeline end their passes: see step.h. */
#include <math.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "harness/forecast/step.h"

struct stage {
    size_t forward, backward; /* passes that it has begun */
    double free_s, sent_s;    /* when its last pass ended, and its last message */
    double *in_s, *back_s;    /* when inputs are there, and gradients; NAN: not known yet */
};

struct simulation {
    const struct pipeline *p;
    size_t micro;
    struct stage *stages;
};

/* A message leaves behind those that its stage has sent before, of either direction. */
static double send_s(const struct simulation *r, struct stage *s)
{
    s->sent_s = fmax(s->sent_s, s->free_s) + r->p->message_s;
    if (r->p->waits)
        s->free_s = s->sent_s;
    return s->sent_s;
}

/* One forward, one backward: forward as long as fewer micro-batches are on their way than stages
 * follow. False: what it needs is not there yet, or all is done. */
static bool pass(struct simulation *r, size_t at)
{
    struct stage *s = &r->stages[at];
    size_t last = r->p->stages - 1;
    bool forward = s->forward < r->micro && s->forward - s->backward < r->p->stages - at;

    if (!forward && s->backward == r->micro)
        return false;
    double from = forward ? s->in_s[s->forward] : s->back_s[s->backward];
    if (isnan(from))
        return false;
    s->free_s = fmax(s->free_s, from) + (forward ? r->p->forward_s[at] : r->p->backward_s[at]);
    if (!forward && at > 0)
        r->stages[at - 1].back_s[s->backward] = send_s(r, s);
    else if (forward)
        *(at < last ? &r->stages[at + 1].in_s[s->forward] : &s->back_s[s->forward]) =
            at < last ? send_s(r, s) : s->free_s;
    *(forward ? &s->forward : &s->backward) += 1;
    return true;
}

/* Fills in end_s for so many micro-batches. */
static void run_micro(struct simulation *r, size_t micro, double *times, double *end_s)
{
    bool any = true;

    r->micro = micro;
    for (size_t at = 0; at < r->p->stages; at++) {
        r->stages[at] =
            (struct stage){.in_s = times + 2 * at * micro, .back_s = times + (2 * at + 1) * micro};
        for (size_t i = 0; i < micro; i++) {
            r->stages[at].in_s[i] = at ? NAN : 0;
            r->stages[at].back_s[i] = NAN;
        }
    }
    while (any) {
        any = false;
        for (size_t at = 0; at < r->p->stages; at++)
            while (pass(r, at))
                any = true;
    }
    for (size_t at = 0; at < r->p->stages; at++)
        end_s[at] = r->stages[at].free_s;
}

/* Of more micro-batches than this, the further ones take as long each as those of the second half of
 * these. */
#define PASSES_MOST 65536

void pipeline_run(const struct pipeline *p, double *end_s)
{
    size_t most = PASSES_MOST / p->stages;

    if (most < 4 * p->stages)
        most = 4 * p->stages;
    size_t micro = p->micro < most ? p->micro : most;
    double *times = xcalloc(2 * micro * p->stages, sizeof(*times));
    double *half_s = xcalloc(p->stages, sizeof(*half_s));
    struct simulation r = {.p = p, .stages = xcalloc(p->stages, sizeof(*r.stages))};

    run_micro(&r, micro, times, end_s);
    if (p->micro > micro) {
        size_t half = micro / 2;

        run_micro(&r, half, times, half_s);
        for (size_t at = 0; at < p->stages; at++)
            end_s[at] +=
                (end_s[at] - half_s[at]) / (double)(micro - half) * (double)(p->micro - micro);
    }
    free(times);
    free(half_s);
    free(r.stages);
}
