/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as CSV: a line a case, whatever became of it; an empty cell is what cannot be told. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "harness/compare/view.h"

static const char header[] =
    "pipe,key,label,state,verdict,proven,beyond,ratio,ratio_low,ratio_high,margin,a_value,b_value,"
    "unit,a_runs,a_launches,b_runs,b_launches,p_worse,p_better,more,more_of,smallest_loss_shown,"
    "reason,differs,by_pairs\n";

static void put_text(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', out);
}

static void put_number(FILE *out, double value)
{
    fputc(',', out);
    if (isfinite(value))
        fprintf(out, "%.9g", value);
}

static void put_count(FILE *out, const struct decide_side *side)
{
    size_t runs = 0, launches = 0;

    for (size_t i = 0; i < side->n; i++) {
        runs += side->runs[i].n > 0;
        launches += side->runs[i].n;
    }
    fprintf(out, ",%zu,%zu", runs, launches);
}

static void put_decision(FILE *out, const struct pair *pair)
{
    const struct decide_case *c = &pair->decide;

    fprintf(out, ",%s,%s,%s", decision_name(c->decision), c->proven ? "yes" : "no",
            c->beyond ? "yes" : "no");
    put_number(out, c->ratio);
    put_number(out, c->low);
    put_number(out, c->high);
    put_number(out, c->margin);
    put_number(out, c->a_value);
    put_number(out, c->b_value);
    fputc(',', out);
    put_text(out, pair->c->unit);
    put_count(out, &c->a);
    put_count(out, &c->b);
    put_number(out, c->p_worse);
    put_number(out, c->p_better);
    if (c->more_launches)
        fprintf(out, ",%zu,%s", c->more_launches, c->by_runs ? "runs" : "launches");
    else
        fputs(",,", out);
    put_number(out, c->smallest);
}

static const char *state_name(const struct pair *pair)
{
    static const char *const names[] = {[PAIR_READY] = "compared",
                                        [PAIR_REFUSED] = "not comparable",
                                        [PAIR_LOST_A] = "no value in A",
                                        [PAIR_LOST_B] = "no value in B",
                                        [PAIR_LOST_BOTH] = "no value in either",
                                        [PAIR_TAKEN] = "taken CPU",
                                        [PAIR_LEFT_OUT] = "left out"};

    return pair->state == PAIR_LOST_B && pair->failed_b ? "B failed" : names[pair->state];
}

int view_print_csv(FILE *out, struct view *v)
{
    fputs(header, out);
    for (size_t i = 0; i < v->p->n; i++) {
        const struct pair *pair = &v->p->all[i];
        const char *texts[] = {pair->pipe, pair->key, pair->label, state_name(pair)};

        for (size_t k = 0; k < 4; k++) {
            fputs(k ? "," : "", out);
            put_text(out, texts[k]);
        }
        if (pair->state == PAIR_READY)
            put_decision(out, pair);
        else
            fputs(",,,,,,,,,,,,,,,,,,,", out);
        fputc(',', out);
        put_text(out, pair->reason);
        fputc(',', out);
        put_text(out, pair->differs);
        fprintf(out, ",%s\n",
                pair->state != PAIR_READY ? ""
                : pair->decide.by_pairs   ? "yes"
                                          : "no");
    }
    return ferror(out) ? -EIO : 0;
}
