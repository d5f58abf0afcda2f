/* SPDX-License-Identifier: Apache-2.0 */
/* A line of each case, for programs: see summary.h. */
#include <math.h>
#include <string.h>

#include "harness/document/record.h"
#include "harness/report/page.h"
#include "harness/report/summary.h"

enum { FIELDS_MAX = 20 };

static const struct bench_headline *rule_of(const struct report_bench *b,
                                            const struct report_case *c)
{
    for (const struct bench_headline *rule = b->described->headlines; rule->pipe; rule++)
        if (case_is_gpu(b, c) == !!(rule->flags & HEADLINE_GPU) &&
            described_matches(b, c, rule->where))
            return rule;
    return NULL;
}

/* What failed or is of other origin comes first; then what is slow beside its like; then the limit. */
static const char *word_of(struct report *r, const struct headlines *h, size_t run,
                           const struct report_bench *b, const struct report_case *c)
{
    struct verdict v = verdict_make(r, run, b, c, rule_of(b, c));
    bool looks_slow = false;

    if (v.tone == TONE_BAD || v.kind == VERDICT_OTHER_ORIGIN)
        return v.word;
    for (size_t i = 0; i < h->comparisons.n; i++) {
        const struct comparison *k = &h->comparisons.all[i];

        if (k->c != c || k->run != run || k->n_own > 1)
            continue;
        if (k->slow)
            return "slow";
        looks_slow |= k->looks_slow;
    }
    return looks_slow ? "looks slow" : v.word;
}

/* The code of the first row that has one. */
static const char *code_of(const struct report_bench *b, const struct report_point *p, size_t run)
{
    for (size_t i = 0; i < p->n_rows; i++)
        if (*row_text(&b->rows[run], p->rows[i], FIELD_CODE))
            return row_text(&b->rows[run], p->rows[i], FIELD_CODE);
    return "";
}

static struct record_field text(const char *name, const char *value)
{
    return *value ? record_text(name, value) : record_missing(name);
}

static size_t fields_of(struct report *r, const struct headlines *h, size_t run,
                        const struct report_bench *b, const struct report_case *c,
                        struct record_field *fields)
{
    const struct report_point *p = &c->points[run];
    const struct record_field all[] = {
        text("run", r->names[run]),
        text("machine", row_text(&b->rows[run], p->rows[0], FIELD_HOST)),
        text("benchmark", b->name),
        text("component", described_pipe(r, b, c)),
        text("label", case_text(r, b, c)),
        text("metric", c->metric),
        text("unit", c->unit),
        record_number("value", p->value),
        record_number("ci_low", p->low),
        record_number("ci_high", p->high),
        record_number("sustained", p->sustained.value),
        record_count("repetitions", p->n_values),
        record_number("limit", p->limit),
        record_number("percent_of_limit", p->percent),
        record_yes("limit_is_reference", p->reference),
        text("word", word_of(r, h, run, b, c)),
        text("status", p->status),
        text("code", code_of(b, p, run)),
        text("origin", p->origin)};

    memcpy(fields, all, sizeof(all));
    return sizeof(all) / sizeof(*all);
}

void summary_lines(FILE *csv, FILE *json, struct report *r, const struct headlines *h)
{
    json_t *list = json_array();
    struct record_field fields[FIELDS_MAX];
    size_t n = 0;

    for (const struct report_bench *b = r->benches; b < r->benches + r->n_benches; b++)
        for (const struct report_case *c = b->cases; c < b->cases + b->n_cases; c++)
            for (size_t run = 0; run < r->n_runs; run++) {
                json_t *one;

                if (!c->points[run].n_rows)
                    continue;
                bool first = !n;
                n = fields_of(r, h, run, b, c, fields);
                if (csv && first)
                    record_csv_head(csv, fields, n);
                if (csv)
                    record_csv(csv, fields, n);
                one = json_object();
                record_json(&r->pool, one, fields, n);
                json_array_append_new(list, one);
            }
    if (json)
        json_write(list, json);
    else
        json_decref(list);
}
