/* SPDX-License-Identifier: Apache-2.0 */
/* What a cause costs here: turns, and what they say. See measure.h. */
#include "harness/doctor/measure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/stats.h"
#include "harness/exam/exam.h"

/* ---- Turns ---- */

static double mean_of(const struct measure_turn *t, bool with)
{
    int outer = with == t->with_first;

    return outer ? sqrt(t->values[0] * t->values[3]) : sqrt(t->values[1] * t->values[2]);
}

static void summarise(struct measurement *m)
{
    double *with = xcalloc(m->n_turns, sizeof(*with));
    double *without = xcalloc(m->n_turns, sizeof(*without));
    struct median_ci ci;

    for (size_t i = 0; i < m->n_turns; i++) {
        with[i] = mean_of(&m->turns[i], true);
        without[i] = mean_of(&m->turns[i], false);
    }
    if (m->n_turns && !stats_ci_ratio(with, without, m->n_turns, MEASURE_CONFIDENCE, &ci)) {
        m->ratio = ci.median;
        m->low = ci.low;
        m->high = ci.high;
    }
    free(with);
    free(without);
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
        summarise(m);
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
    summarise(m);
}

bool measure_share(const struct measurement *m, double *low, double *high)
{
    if ((m->state != MEASURE_DONE && m->state != MEASURE_STOPPED) || isnan(m->low))
        return false;
    *low = m->more_is_better ? 1 - m->high : m->low - 1;
    *high = m->more_is_better ? 1 - m->low : m->high - 1;
    return true;
}

bool measure_decides(const struct measurement *m)
{
    double low, high;

    return measure_share(m, &low, &high) &&
           (low > 0 || high < 0 || fmax(high, -low) <= MEASURE_NEAR);
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

static double count_cpus(const json_t *machine)
{
    double cpus = fact_cpus(fact_word(fact_at(machine, "virtualization.limits.allowed_cpus")));

    return cpus > 0 ? cpus : json_number_value(fact_at(machine, "cpu.threads"));
}

/* "+reno+cubic+" */
static const char *congestion_text(const json_t *machine, char *text, size_t len)
{
    const json_t *all = fact_at(machine, "tcp.congestion_controls");
    size_t used = (size_t)snprintf(text, len, "+");

    FACT_EACH (all, name)
        if (used < len)
            used += (size_t)snprintf(text + used, len - used, "%s+", json_string_value(name));
    return json_is_array(all) ? text : NULL;
}

const char *measure_fact(const json_t *machine, const char *name, size_t len, char *text,
                         size_t text_len)
{
    const json_t *quota = fact_at(machine, "virtualization.limits.cpu_quota"),
                 *guest = fact_at(machine, "virtualization.guest"),
                 *gpus = fact_at(machine, "gpus.devices"), *rdma = json_object_get(machine, "rdma");
    double cuda = fact_number(fact_at(machine, "gpus.cuda"), "devices", -1);
    const struct {
        const char *name;
        double number; /* below 0: not known */
    } numbers[] = {{"cpus", count_cpus(machine) > 0 ? count_cpus(machine) : -1},
                   {"nodes", count_nodes(machine) > 0 ? count_nodes(machine) : -1},
                   /* those that CUDA shows; where it was not asked, only that there is none */
                   {"gpus", cuda < 0 && json_is_array(gpus) && !json_array_size(gpus) ? 0 : cuda},
                   {"rdma", json_is_array(rdma) ? (double)json_array_size(rdma) : -1},
                   {"rdma_mtu", rdma_mtu(machine) > 0 ? rdma_mtu(machine) : -1},
                   {"quota", json_is_number(quota) ? json_number_value(quota) : -1}};
    const struct {
        const char *name, *text; /* NULL: not known */
    } texts[] = {
        {"quota", json_string_value(quota)},
        {"guest", json_is_boolean(guest) ? (json_is_true(guest) ? "true" : "false") : NULL},
        {"huge_pages",
         json_string_value(fact_at(machine, "memory.transparent_huge_pages.enabled"))}};

    if (len == strlen("congestion") && !strncmp(name, "congestion", len))
        return congestion_text(machine, text, text_len);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        if (strlen(numbers[i].name) == len && !strncmp(numbers[i].name, name, len) &&
            numbers[i].number >= 0) {
            snprintf(text, text_len, "%g", numbers[i].number);
            return text;
        }
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (strlen(texts[i].name) == len && !strncmp(texts[i].name, name, len))
            return texts[i].text;
    return NULL;
}
