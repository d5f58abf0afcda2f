/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: see plan.h. */
#include "harness/plan/plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "core/text.h"
#include "core/units.h"
#include "harness/plan/suite.h"

static const char *const states[] = {"todo", "done", "skip", "fail", "late"};
static const char *const turns[] = {"", "first", "second"}; /* by enum launch_turn */

static const char header[] = "state,rows,order,case,repeat,bench,arguments,timeout_s";
static const char header_of_hosts[] = ",from,to,hosts";
static const char header_of_margin[] = ",margin";
static const char header_of_turn[] = ",turn";

const char *launch_state_name(enum launch_state state)
{
    return states[state];
}

bool launch_state_parse(const char *text, enum launch_state *state)
{
    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
        if (!strcmp(states[i], text)) {
            *state = (enum launch_state)i;
            return true;
        }
    return false;
}

bool launch_turn_parse(const char *text, enum launch_turn *turn)
{
    for (*turn = TURN_NONE; *turn <= TURN_SECOND; ++*turn)
        if (!strcmp(turns[*turn], text))
            return true;
    return false;
}

/* The pairs of a tournament stay where the shuffle put any of them, bout by bout, so that launches
 * that follow each other are of other hosts; within a bout the shuffle holds. */
static void order_bouts(const struct suite *suite, uint32_t *order, size_t n)
{
    size_t at = 0;
    unsigned last = 0;

    for (size_t i = 0; i < n; i++)
        last = suite->cases[order[i]].bout > last ? suite->cases[order[i]].bout : last;
    uint32_t *sorted = xcalloc(n, sizeof(*sorted));
    for (unsigned bout = 1; bout <= last; bout++)
        for (size_t i = 0; i < n; i++)
            if (suite->cases[order[i]].bout == bout)
                sorted[at++] = order[i];
    at = 0;
    for (size_t i = 0; i < n; i++)
        if (suite->cases[order[i]].bout)
            order[i] = sorted[at++];
    free(sorted);
}

/* One round: every matching case that still has a repeat to go, in shuffled order. */
static void add_round(const struct suite *suite, struct rng *rng, const uint32_t *cases, size_t n,
                      unsigned repeat, struct plan *plan)
{
    uint32_t *order = xcalloc(n, sizeof(*order));
    size_t taken = 0;

    for (size_t i = 0; i < n; i++)
        if (suite->cases[cases[i]].repeats >= repeat)
            order[taken++] = cases[i];
    rng_shuffle_u32(rng, order, taken);
    order_bouts(suite, order, taken);
    for (size_t i = 0; i < taken; i++) {
        const struct suite_case *c = &suite->cases[order[i]];
        *ARRAY_ADD(plan->launches, plan->n) =
            (struct launch){.case_number = (order[i] + 1),
                            .repeat = repeat,
                            .bench = xstrdup(c->bench->name),
                            .arguments = xstrdup(c->arguments),
                            .from = xstrdup(c->from ? c->from : ""),
                            .to = xstrdup(c->to ? c->to : ""),
                            .hosts = xstrdup(c->hosts ? c->hosts : ""),
                            .timeout_ns = c->timeout_ns,
                            .margin = c->margin};
    }
    free(order);
}

/* What of a suite is planned. */
struct choice {
    uint64_t seed;
    const struct bench_list *benches;
    const char *only;
    uint32_t *cases;
    size_t n;
    unsigned rounds;
    bool *pairs; /* of pair_gpus GPUs, see suite.h; NULL: not asked for yet */
    unsigned pair_gpus, pair_count;
};

int plan_make(const struct suite *suite, uint64_t seed, const char *only, struct plan *plan)
{
    struct choice c = {.seed = seed, .benches = suite->benches, .only = only};
    struct rng rng;

    *plan = (struct plan){0};
    c.cases = xcalloc(suite->n, sizeof(*c.cases));
    for (size_t i = 0; i < suite->n; i++) {
        const struct suite_case *at = &suite->cases[i];
        unsigned gpus = at->pair_gpus;

        /* All GPUs of a suite are those of one machine, so that one drawing serves every case. */
        if (gpus && (!c.pairs || c.pair_gpus != gpus)) {
            free(c.pairs);
            c.pairs = pairs_choose(gpus, c.seed, &c.pair_count);
            c.pair_gpus = gpus;
        }
        if (plan_keeps(c.benches, c.only, at->bench->name, at->arguments) &&
            (!gpus || c.pairs[at->pair[0] * gpus + at->pair[1]])) {
            c.cases[c.n++] = (uint32_t)i;
            c.rounds = at->repeats > c.rounds ? at->repeats : c.rounds;
        }
    }
    unsigned all = c.pair_gpus * (c.pair_gpus - 1);

    if (c.pairs && c.pair_count < all) {
        plan->pairs = c.pair_count;
        plan->pairs_of = all;
    }
    rng_seed(&rng, seed);
    for (unsigned repeat = 1; repeat <= c.rounds; repeat++)
        add_round(suite, &rng, c.cases, c.n, repeat, plan);
    free(c.cases);
    free(c.pairs);
    return c.n ? 0 : -ENOENT;
}

void plan_release(struct plan *plan)
{
    for (size_t i = 0; i < plan->n; i++) {
        free(plan->launches[i].bench);
        free(plan->launches[i].arguments);
        free(plan->launches[i].from);
        free(plan->launches[i].to);
        free(plan->launches[i].hosts);
    }
    free(plan->launches);
    *plan = (struct plan){0};
}

void plan_repeat(struct plan *plan, size_t i)
{
    struct launch *more = ARRAY_ADD(plan->launches, plan->n);

    *more = plan->launches[i];
    more->state = LAUNCH_TODO;
    more->rows = 0;
    more->repeat = 0;
    for (size_t k = 0; k + 1 < plan->n; k++)
        if (plan->launches[k].case_number == more->case_number &&
            plan->launches[k].repeat > more->repeat)
            more->repeat = plan->launches[k].repeat;
    more->repeat++;
    char **const texts[] = {&more->bench, &more->arguments, &more->from, &more->to, &more->hosts};
    for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++)
        if (*texts[k])
            *texts[k] = xstrdup(*texts[k]);
}

void plan_mark_text(const struct launch *l, char text[PLAN_MARK_BYTES + 1])
{
    snprintf(text, PLAN_MARK_BYTES + 1, "%s,%04u", states[l->state], l->rows % (PLAN_ROWS_MAX + 1));
}

bool launch_needs_host(const struct launch *l, const char *name)
{
    size_t n = strlen(name);

    if (launch_has_pair(l))
        return !strcmp(l->from, name) || !strcmp(l->to, name);
    for (const char *at = l->hosts; at && *at; at += *at == ';') {
        size_t size = strcspn(at, ";");
        if (size == n && !strncmp(at, name, n))
            return true;
        at += size;
    }
    return false;
}

bool plan_has_pairs(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n; i++)
        if (launch_has_pair(&plan->launches[i]))
            return true;
    return false;
}

bool plan_has_groups(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n; i++)
        if (launch_has_group(&plan->launches[i]))
            return true;
    return false;
}

bool plan_has_hosts(const struct plan *plan)
{
    return plan_has_pairs(plan) || plan_has_groups(plan);
}

static bool has_margins(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n; i++)
        if (plan->launches[i].margin > 0)
            return true;
    return false;
}

static bool has_turns(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n; i++)
        if (plan->launches[i].turn)
            return true;
    return false;
}

int plan_print(FILE *out, struct plan *plan)
{
    bool hosts = plan_has_hosts(plan), margins = has_margins(plan), in_turn = has_turns(plan);

    fprintf(out, "%s%s%s%s\n", header, hosts ? header_of_hosts : "",
            margins ? header_of_margin : "", in_turn ? header_of_turn : "");
    for (size_t i = 0; i < plan->n; i++) {
        struct launch *l = &plan->launches[i];
        char mark[PLAN_MARK_BYTES + 1];
        l->mark_at = (uint64_t)ftell(out);
        plan_mark_text(l, mark);
        fprintf(out, "%s,%zu,%u,%u,", mark, i + 1, l->case_number, l->repeat);
        csv_print(out, l->bench);
        fputc(',', out);
        csv_print(out, l->arguments);
        fprintf(out, ",%.3f", (double)l->timeout_ns * 1e-9);
        if (hosts) {
            fputc(',', out);
            csv_print(out, l->from);
            fputc(',', out);
            csv_print(out, l->to);
            fputc(',', out);
            csv_print(out, l->hosts);
        }
        if (margins)
            fputc(',', out);
        if (margins && l->margin > 0)
            fprintf(out, "%g", l->margin);
        if (in_turn)
            fprintf(out, ",%s", turns[l->turn]);
        fputc('\n', out);
    }
    return ferror(out) ? -EIO : 0;
}

static int read_margin(const char *text, double *margin)
{
    *margin = NAN;
    return *text ? units_parse_double(text, margin) : 0;
}

static int read_launch(const struct table *t, size_t row, struct launch *l)
{
    uint64_t rows, number, repeat;

    if (!launch_state_parse(table_text(t, row, "state"), &l->state) ||
        units_parse_u64(table_text(t, row, "rows"), &rows) ||
        units_parse_u64(table_text(t, row, "case"), &number) ||
        units_parse_u64(table_text(t, row, "repeat"), &repeat) ||
        units_parse_duration(table_text(t, row, "timeout_s"), &l->timeout_ns) ||
        read_margin(table_text(t, row, "margin"), &l->margin) ||
        !launch_turn_parse(table_text(t, row, "turn"), &l->turn))
        return -EBADMSG;
    l->rows = (unsigned)rows;
    l->case_number = (unsigned)number;
    l->repeat = (unsigned)repeat;
    l->bench = xstrdup(table_text(t, row, "bench"));
    l->arguments = xstrdup(table_text(t, row, "arguments"));
    l->from = xstrdup(table_text(t, row, "from"));
    l->to = xstrdup(table_text(t, row, "to"));
    l->hosts = xstrdup(table_text(t, row, "hosts"));
    l->mark_at = row ? t->ends[row - 1] : t->header_end;
    return 0;
}

int plan_from_table(const struct table *t, struct plan *plan, char *error, size_t len)
{
    int err = 0;

    *plan = (struct plan){0};
    for (size_t i = 0; !err && i < t->n_rows; i++) {
        struct launch *l = ARRAY_ADD(plan->launches, plan->n);
        *l = (struct launch){.bench = NULL};
        err = read_launch(t, i, l);
    }
    if (err) {
        snprintf(error, len, "plan.csv: line %zu is damaged", plan->n + 1);
        plan_release(plan);
    }
    return err;
}
