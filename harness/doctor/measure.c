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

static bool is_narrow(const struct measurement *m, double width)
{
    double most = width * fmax(1, m->ratio);

    return m->high - m->ratio <= most && m->ratio - m->low <= most;
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
        if (is_narrow(m, rule->width) || clock_now_ns() >= until_ns)
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

static const char *number_text(size_t n, char *text, size_t len)
{
    snprintf(text, len, "%zu", n);
    return text;
}

/* "1024": the least path MTU of RoCE that the interfaces leave room for. */
static const char *rdma_mtu_text(const json_t *machine, char *text, size_t len)
{
    const json_t *devices = json_object_get(machine, "rdma"), *device, *port;
    json_int_t least = 0;
    size_t i, k;

    json_array_foreach (devices, i, device)
        json_array_foreach (json_object_get(device, "ports"), k, port) {
            json_int_t mtu = json_integer_value(json_object_get(port, "roce_mtu_bytes"));
            least = mtu > 0 && (!least || mtu < least) ? mtu : least;
        }
    return least ? number_text((size_t)least, text, len) : NULL;
}

static const char *cpus_text(const json_t *machine, char *text, size_t len)
{
    double cpus = exam_cpus(exam_string(exam_at(machine, "virtualization.limits.allowed_cpus")));

    if (cpus <= 0)
        cpus = json_number_value(exam_at(machine, "cpu.threads"));
    return cpus > 0 ? number_text((size_t)cpus, text, len) : NULL;
}

static const char *nodes_text(const json_t *machine, char *text, size_t len)
{
    const json_t *nodes = exam_at(machine, "numa.nodes"), *node;
    size_t i, n = 0;

    json_array_foreach (nodes, i, node)
        n += json_number_value(json_object_get(node, "memory_bytes")) > 0;
    return n ? number_text(n, text, len) : NULL;
}

/* Those that CUDA shows; where it was not asked, only that there is none. */
static const char *gpus_text(const json_t *machine, char *text, size_t len)
{
    const json_t *shown = exam_at(machine, "gpus.cuda.devices");
    const json_t *all = exam_at(machine, "gpus.devices");

    if (json_is_integer(shown))
        return number_text((size_t)json_integer_value(shown), text, len);
    return json_is_array(all) && !json_array_size(all) ? "0" : NULL;
}

static const char *quota_text(const json_t *machine, char *text, size_t len)
{
    const json_t *quota = exam_at(machine, "virtualization.limits.cpu_quota");

    if (json_is_number(quota)) {
        snprintf(text, len, "%g", json_number_value(quota));
        return text;
    }
    return json_string_value(quota);
}

static const char *rdma_text(const json_t *machine, char *text, size_t len)
{
    const json_t *rdma = json_object_get(machine, "rdma");

    return json_is_array(rdma) ? number_text(json_array_size(rdma), text, len) : NULL;
}

static const char *huge_pages_text(const json_t *machine, char *text, size_t len)
{
    (void)text;
    (void)len;
    return json_string_value(exam_at(machine, "memory.transparent_huge_pages.enabled"));
}

static const char *guest_text(const json_t *machine, char *text, size_t len)
{
    const json_t *guest = exam_at(machine, "virtualization.guest");

    (void)text;
    (void)len;
    return !json_is_boolean(guest) ? NULL : json_is_true(guest) ? "true" : "false";
}

/* "+reno+cubic+" */
static const char *congestion_text(const json_t *machine, char *text, size_t len)
{
    const json_t *all = exam_at(machine, "tcp.congestion_controls"), *name;
    size_t i, used = (size_t)snprintf(text, len, "+");

    json_array_foreach (all, i, name)
        if (used < len)
            used += (size_t)snprintf(text + used, len - used, "%s+", json_string_value(name));
    return json_is_array(all) ? text : NULL;
}

static const struct {
    const char *name;
    const char *(*text)(const json_t *machine, char *text, size_t len);
} facts[] = {{"cpus", cpus_text},         {"nodes", nodes_text},
             {"gpus", gpus_text},         {"rdma", rdma_text},
             {"quota", quota_text},       {"huge_pages", huge_pages_text},
             {"guest", guest_text},       {"congestion", congestion_text},
             {"rdma_mtu", rdma_mtu_text}, {NULL, NULL}};

const char *measure_fact(const json_t *machine, const char *name, size_t len, char *text,
                         size_t text_len)
{
    for (size_t i = 0; facts[i].name; i++)
        if (strlen(facts[i].name) == len && !strncmp(facts[i].name, name, len))
            return facts[i].text(machine, text, text_len);
    return NULL;
}
