/* SPDX-License-Identifier: Apache-2.0 */
/* What causes cost here, for people and for programs: see measure.h. */
#include <math.h>
#include <string.h>

#include "core/text.h"
#include "harness/doctor/doctor.h"
#include "harness/doctor/measure.h"

/* By what it grows, or falls: "12 % more", "19 % less", "5.6 times". */
static const char *growth_text(double growth, char text[64])
{
    char percent[32];

    if (growth > 1)
        snprintf(text, 64, "%.3g times", 1 + growth);
    else
        snprintf(text, 64, "%s %% %s", exam_percent(fabs(growth), 3, percent),
                 growth > 0 ? "more" : "less");
    return text;
}

/* "memory bandwidth: 20.3 % less to 19.8 % less", "memory bandwidth: no cost seen, 1 % less to 1 %
 * more", or why there is none. */
static const char *measure_text(const struct measurement *m, char *text, size_t len)
{
    char from[64], to[64];
    double low, high;

    if (!measure_share(m, &low, &high)) {
        if (*m->reason)
            snprintf(text, len, "%s: %s", m->state == MEASURE_SKIPPED ? "skipped" : "failed",
                     m->reason);
        else if (m->state == MEASURE_TODO)
            snprintf(text, len, "not measured: interrupted");
        else
            snprintf(text, len, "not known: too few turns for an interval (%zu)", m->n_turns);
        return text;
    }
    /* How much the figure grows. */
    double least = m->more_is_better ? -high : low, most = m->more_is_better ? -low : high;

    snprintf(text, len, "%s: %s%s to %s", m->cause->lost,
             low > 0      ? ""
             : high < 0   ? "no cost, "
             : m->decides ? "no cost seen, "
                          : "inconclusive, ",
             growth_text(least, from), growth_text(most, to));
    return text;
}

static const char *const state_names[] = {"todo", "done", "stopped", "skipped", "failed"};

static json_t *real(double value)
{
    return isnan(value) ? json_null() : json_real(value);
}

json_t *measure_json(const struct measurement *m)
{
    double low = NAN, high = NAN;
    bool known = measure_share(m, &low, &high);
    json_t *turns = json_array(), *json;

    for (size_t i = 0; i < m->n_turns; i++) {
        const struct measure_turn *t = &m->turns[i];
        json_array_append_new(
            turns, json_pack("{s:s, s:[f,f,f,f]}", "first", t->with_first ? "with" : "without",
                             "values", t->values[0], t->values[1], t->values[2], t->values[3]));
    }
    json = json_pack(
        "{s:s, s:s*, s:s, s:s, s:s, s:s, s:s*, s:s, s:s?, s:s?, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:f, s:s, s:o}",
        "check", m->cause->check, "variable", m->variable, "cause", m->cause->cause, "lost",
        m->cause->lost, "pipe", m->cause->pipe, "state", state_names[m->state], "reason",
        *m->reason ? m->reason : NULL, "command", m->command ? m->command : "", "metric",
        m->cause->metric, "unit", *m->unit ? m->unit : NULL, "ratio", real(m->ratio), "ratio_low",
        real(m->low), "ratio_high", real(m->high), "share_low", real(known ? low : NAN),
        "share_high", real(known ? high : NAN), "of_time",
        *m->unit ? json_boolean(!m->more_is_better) : json_null(), "confidence", MEASURE_CONFIDENCE,
        "origin", m->simulated ? "simulated" : "measured", "turns", turns);
    return json;
}

void measurement_release(struct measurement *m)
{
    free(m->turns);
    free(m->command);
    free(m->variable);
}

json_t *measures_json(const struct measures *m)
{
    json_t *list = json_array();

    for (size_t i = 0; i < m->n; i++)
        json_array_append_new(list, measure_json(&m->all[i]));
    return list;
}

#define INDENT 6

static void print_priced(const struct measurement *m)
{
    char cost[600], text[800];

    measure_text(m, cost, sizeof(cost));
    snprintf(text, sizeof(text), "%s: %s", m->cause->check, m->cause->cause);
    doctor_entry(2, "", 2, text);
    snprintf(text, sizeof(text), "%s; %zu turn%s%s", cost, m->n_turns, m->n_turns == 1 ? "" : "s",
             m->simulated ? " [simulated]" : "");
    doctor_entry(INDENT, "", INDENT, m->n_turns ? text : cost);
    doctor_entry(INDENT, "", INDENT, m->command);
}

void measure_print(const struct measures *m)
{
    doctor_heading("COSTS MEASURED HERE, with and without the cause, in turn");
    for (size_t i = 0; i < m->n; i++)
        if (m->all[i].state != MEASURE_SKIPPED)
            print_priced(&m->all[i]);
    for (size_t i = 0; i < m->n; i++) {
        const struct measurement *one = &m->all[i], *last = i ? one - 1 : NULL;
        char text[700];

        if (one->state != MEASURE_SKIPPED ||
            (last && !strcmp(last->cause->check, one->cause->check) &&
             !strcmp(last->reason, one->reason)))
            continue; /* one line for those of one id and reason */
        snprintf(text, sizeof(text), "%s: skipped: %s", one->cause->check, one->reason);
        doctor_entry(2, "", 2, text);
    }
}

/* A cause of several figures has an entry for each: it is listed once. */
void measure_list(const struct bench_list *benches)
{
    const char *last = "";

    doctor_heading("causes that --measure=ID prices here");
    for (size_t i = 0; i < benches->n; i++)
        for (const struct bench_experiment *e = benches->benches[i].rows.experiments; e->check;
             last = e->check, e++)
            if (strcmp(last, e->check) != 0)
                doctor_entry(2, e->check, 21, e->cause);
    for (const struct measure_own *own = measure_own; own->cause.check; own++)
        doctor_entry(2, own->cause.check, 21, own->cause.cause);
}
