/* SPDX-License-Identifier: Apache-2.0 */
/* What a cause costs here: turns, and what they say. See measure.h. */
#include "harness/doctor/measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "harness/decide/decide.h"
#include "harness/exam/exam.h"

/* ---- Turns ---- */

/* A turn is two pairs: each side goes first in one of them. */
static void judge(struct measurement *m)
{
    const struct decide_options options = {.confidence = MEASURE_CONFIDENCE};
    struct decide_overall overall;
    size_t n = 2 * m->n_turns;
    double *with = xcalloc(n, sizeof(*with)), *without = xcalloc(n, sizeof(*without));
    bool *without_first = xcalloc(n, sizeof(*without_first));

    for (size_t i = 0; i < n; i++) {
        const struct measure_turn *t = &m->turns[i / 2];
        const double *pair = &t->values[i % 2 * 2];

        without_first[i] = t->with_first == i % 2;
        with[i] = pair[without_first[i]];
        without[i] = pair[!without_first[i]];
    }
    struct decide_run a = {.values = without, .n = n, .went_first = without_first},
                      b = {.values = with, .n = n};
    struct decide_case c = {.a = {&a, 1},
                            .b = {&b, 1},
                            .margin = MEASURE_NEAR,
                            .higher_is_better = true,
                            .paired = true};

    if (m->n_turns >= MEASURE_TURNS_MIN && !decide_suite(&c, 1, &options, &overall)) {
        m->ratio = c.ratio;
        m->low = c.low;
        m->high = c.high;
        m->decides = c.proven || c.decision == DECISION_EQUIVALENT;
    }
    free(with);
    free(without);
    free(without_first);
}

static int measure_turn(struct measurement *m, measure_side_fn *side, void *arg)
{
    struct measure_turn t = {.with_first = m->n_turns % 2 == 0};
    int err = 0;

    for (int i = 0; !err && i < 4; i++) /* the first and the last are the same side */
        err = side(arg, m, (i == 0 || i == 3) == t.with_first, &t.values[i]);
    for (int i = 0; !err && i < 4; i++)
        if (!(t.values[i] > 0) || !isfinite(t.values[i])) {
            snprintf(m->reason, sizeof(m->reason), "it measured %g, which has no ratio",
                     t.values[i]);
            err = -EINVAL;
        }
    if (!err && m->cause->counts && !m->n_turns && !(m->counted > 0)) {
        snprintf(m->reason, sizeof(m->reason), "%s", m->cause->absent);
        return -EOPNOTSUPP;
    }
    if (!err)
        m->turns[m->n_turns++] = t;
    return err;
}

void measure_turns(struct measurement *m, const struct measure_rule *rule, measure_side_fn *side,
                   void *arg)
{
    uint64_t until_ns = clock_now_ns() + rule->budget_ns;
    size_t look = MEASURE_TURNS_MIN;
    int err = 0;

    m->ratio = m->low = m->high = NAN;
    m->turns = xcalloc(MEASURE_TURNS_MAX, sizeof(*m->turns));
    while (!err && m->n_turns < MEASURE_TURNS_MAX) {
        err = measure_turn(m, side, arg);
        if (err || m->n_turns < look)
            continue;
        judge(m);
        double most = rule->width * fmax(1, m->ratio);
        if ((m->high - m->ratio <= most && m->ratio - m->low <= most) || clock_now_ns() >= until_ns)
            break;
        look += look / 2;
    }
    if (!err)
        m->state = MEASURE_DONE;
    else if (err == -ECANCELED)
        m->state = m->n_turns ? MEASURE_STOPPED : MEASURE_TODO;
    else
        m->state = err == -EOPNOTSUPP ? MEASURE_SKIPPED : MEASURE_FAILED;
    judge(m);
}

bool measure_share(const struct measurement *m, double *low, double *high)
{
    if ((m->state != MEASURE_DONE && m->state != MEASURE_STOPPED) || isnan(m->low))
        return false;
    *low = m->more_is_better ? 1 - m->high : m->low - 1;
    *high = m->more_is_better ? 1 - m->low : m->high - 1;
    return true;
}

bool measure_is_of(const struct measurement *m, const char *check, const char *subject)
{
    return !strcmp(m->cause->check, check) && (!m->variable || !strcmp(m->variable, subject));
}

/* ---- Facts of the machine ---- */

/* The least path MTU of RoCE that the interfaces leave room for; 0: not known. */
static double rdma_mtu(const json_t *machine)
{
    double least = 0;

    FACT_EACH (json_object_get(machine, "rdma"), device)
        FACT_EACH (json_object_get(device, "ports"), port) {
            double mtu = fact_number(port, "roce_mtu_bytes", 0);
            least = mtu > 0 && (!(least > 0) || mtu < least) ? mtu : least;
        }
    return least;
}

/* Nodes with memory; 0: not known. */
static double count_nodes(const json_t *machine)
{
    double n = 0;

    FACT_EACH (fact_at(machine, "numa.nodes"), node)
        n += fact_number(node, "memory_bytes", 0) > 0;
    return n;
}

static void set_number(json_t *facts, const char *name, double value, bool known)
{
    if (known)
        json_object_set_new(facts, name, json_sprintf("%g", value));
}

json_t *measure_facts(const json_t *machine, const char *peer)
{
    const json_t *gpus = fact_at(machine, "gpus.devices"), *rdma = fact_at(machine, "rdma"),
                 *quota = fact_at(machine, "virtualization.limits.cpu_quota"),
                 *guest = fact_at(machine, "virtualization.guest"),
                 *pages = fact_at(machine, "memory.transparent_huge_pages.enabled"),
                 *controls = fact_at(machine, "tcp.congestion_controls");
    double allowed = fact_cpus(fact_name(machine, "virtualization.limits.allowed_cpus")),
           cpus = allowed > 0 ? allowed : fact_number(machine, "cpu.threads", 0),
           cuda = fact_number(machine, "gpus.cuda.devices", -1);
    json_t *facts = json_object(), *all = json_string("+");

    set_number(facts, "cpus", cpus, cpus > 0);
    set_number(facts, "nodes", count_nodes(machine), count_nodes(machine) > 0);
    /* those that CUDA shows; where it was not asked, only that there is none */
    set_number(facts, "gpus", fmax(cuda, 0),
               cuda >= 0 || (json_is_array(gpus) && !json_array_size(gpus)));
    set_number(facts, "rdma", (double)json_array_size(rdma), json_is_array(rdma));
    set_number(facts, "rdma_mtu", rdma_mtu(machine), rdma_mtu(machine) > 0);
    set_number(facts, "quota", json_number_value(quota), json_is_number(quota));
    if (json_is_string(quota))
        json_object_set(facts, "quota", (json_t *)quota);
    if (json_is_boolean(guest))
        json_object_set_new(facts, "guest", json_string(json_is_true(guest) ? "true" : "false"));
    if (json_is_string(pages))
        json_object_set(facts, "huge_pages", (json_t *)pages);
    FACT_EACH (controls, name) { /* "+reno+cubic+" */
        json_t *more = json_sprintf("%s%s+", json_string_value(all), fact_word(name));

        json_decref(all);
        all = more;
    }
    if (json_is_array(controls))
        json_object_set(facts, "congestion", all);
    json_decref(all);
    json_object_set_new(facts, "peer", json_string(peer ? peer : ""));
    return facts;
}
