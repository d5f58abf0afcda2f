/* SPDX-License-Identifier: Apache-2.0 */
/* What a result says, to people and in JSON: see exam.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/exam/exam.h"

static bool is_same(const struct exam_result *a, const struct exam_result *b)
{
    return a->check == b->check && a->state == b->state && !strcmp(a->text, b->text) &&
           a->matters == b->matters;
}

bool exam_repeats(struct exam *x, const struct exam_result *r)
{
    for (const struct exam_result *at = exam_results(x); at != r; at = at->next)
        if (is_same(at, r))
            return true;
    return false;
}

static const char *device_name(struct exam *x, const char *address)
{
    const json_t *device = exam_device(x, address),
                 *gpu = fact_one_of(exam_peek(x, "gpus.devices"), "address", address);
    const char *name = fact_name(device, "name");

    if (*fact_name(gpu, "name"))
        return exam_format(x, "GPU %s", fact_name(gpu, "name"));
    if (fact_is(device, "kind", "nvme")) /* "NVMe SSD Controller PM9A1/PM9A3/980PRO" */
        return exam_format(x, "%s%.*s", strcasestr(name, "NVMe") ? "" : "NVMe disk ",
                           (int)strcspn(name, "/"), name);
    return name;
}

const char *exam_subject(struct exam *x, const struct exam_result *r)
{
    const char *name = device_name(x, r->subject);

    return *name ? exam_format(x, "%s (%s)", name, r->subject) : r->subject;
}

#define SUBJECTS_MAX 3 /* named of equal results; the others are counted */

const char *exam_sentence(struct exam *x, const struct exam_result *r)
{
    const char *text = "";
    size_t n = 0;

    for (const struct exam_result *at = r; at; at = at->next)
        if (is_same(at, r) && ++n <= SUBJECTS_MAX)
            text = exam_format(x, "%s%s%s", text, n > 1 ? ", " : "", exam_subject(x, at));
    if (n > SUBJECTS_MAX)
        text = exam_format(x, "%s and %zu more", text, n - SUBJECTS_MAX);
    return exam_format(x, "%s%s: %s", n > 1 ? "each of " : "", text, r->text);
}

const char *exam_percent(double share, int digits, char text[32])
{
    double percent = share * 100;

    if (fabs(percent) < 0.005)
        snprintf(text, 32, "0");
    else if (fabs(percent) < 99.5)
        snprintf(text, 32, "%.*g", digits, percent);
    else
        snprintf(text, 32, "%.0f", fmin(percent, 1e9));
    return text;
}

void exam_share_text(const struct exam_cost *cost, char *text, size_t len)
{
    char low[32], high[32];

    exam_percent(cost->high, 2, high);
    if (cost->high - cost->low < 0.005 * cost->high)
        snprintf(text, len, "%s %%", high);
    else
        snprintf(text, len, "%s to %s %%", exam_percent(cost->low, 2, low), high);
}

void exam_cost_text(const struct exam_cost *cost, char *text, size_t len)
{
    char share[80];

    if (cost->basis == EXAM_NOT_PRICED) {
        snprintf(text, len, "not known");
        return;
    }
    exam_share_text(cost, share, sizeof(share));
    if (cost->basis == EXAM_MEASURED && cost->low <= 0) {
        snprintf(text, len, "none seen in %s: %s (measured: %s)", cost->of, share, cost->source);
        return;
    }
    snprintf(text, len, "%s %s%s (%s: %s)", share, cost->of_time ? "longer: " : "of the ", cost->of,
             cost->basis == EXAM_COMPUTED   ? "computed"
             : cost->basis == EXAM_MEASURED ? "measured"
             : cost->controlled             ? "measured on another machine, with and without it"
                                            : "one report; other things may differ there, too",
             cost->source);
}

/* ---- JSON */

const char *exam_state_name(enum exam_state state)
{
    static const char *const names[] = {[EXAM_FINE] = "fine",
                                        [EXAM_FOUND] = "found",
                                        [EXAM_UNKNOWN] = "unknown",
                                        [EXAM_NOT_APPLICABLE] = "not applicable"};

    return names[state];
}

/* NULL where it is not priced. */
static json_t *cost_json(const struct exam_cost *cost)
{
    static const char *const bases[] = {
        [EXAM_CITED] = "cited", [EXAM_COMPUTED] = "computed", [EXAM_MEASURED] = "measured"};
    json_t *json;

    if (cost->basis == EXAM_NOT_PRICED)
        return json_null();
    json = json_pack("{s:s, s:s, s:s, s:f, s:f, s:s}", "basis", bases[cost->basis], "of", cost->of,
                     "change", cost->of_time ? "longer" : "lost", "low", cost->low, "high",
                     cost->high, "source", cost->source);
    if (cost->basis == EXAM_CITED)
        json_object_set_new(json, "controlled", json_boolean(cost->controlled));
    return json;
}

json_t *exam_result_json(const struct exam_result *r)
{
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:b, s:O}", "check", r->check->id, "area",
                             r->area, "subject", r->subject, "state", exam_state_name(r->state),
                             "matters", r->matters, "evidence", r->evidence);

    if (*r->text)
        json_object_set_new(json, "text", json_string(r->text));
    if (r->state == EXAM_FOUND) {
        json_object_set_new(json, "remedy", *r->remedy ? json_string(r->remedy) : json_null());
        json_object_set_new(json, "cost", cost_json(&r->cost));
    }
    return json;
}
