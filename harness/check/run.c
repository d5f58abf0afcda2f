/* SPDX-License-Identifier: Apache-2.0 */
/* plumb check: from a run and a baseline to a verdict. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/check/cmd.h"
#include "harness/compare/steal.h"

#define CHECK_RUN_NAME "this run"

static int exit_of(int err)
{
    switch (err) {
    case -EBADMSG:
        return EXIT_DAMAGED;
    default:
        return EXIT_USAGE;
    }
}

static int load(struct check_command *c, const struct baseline *b, struct pairs *p)
{
    const struct check_options *o = &c->options;
    struct pairs_options options = {.margin = o->margin,
                                    .forced = c->forced,
                                    .steal_limit = steal_limit(o->steal),
                                    .only = c->only && *c->only && !o->accept ? c->only : NULL,
                                    .decide = {.unchanged = true, .b_stays = true},
                                    .name_a = b->n ? "the baseline" : CHECK_RUN_NAME,
                                    .name_b = CHECK_RUN_NAME,
                                    .roles = b->choice.roles,
                                    .n_roles = b->choice.n_roles};
    /* Without a baseline the run stands on both sides, so that its cases are known. */
    const char *const *a = b->n ? (const char *const *)b->paths : &c->run;
    int err = pairs_load(p, a, b->n ? b->n : 1, &c->run, 1, &options, c->error, sizeof(c->error));

    if (!err && b->n)
        err = pairs_refuse_same(p, c->error,
                                sizeof(c->error)); /* a copy of the run in its baseline */
    if (!err && o->best_of && b->n)
        err = gate_pick_best(p, o->best_of, &options.decide);
    if (err == -ENOMEM)
        snprintf(c->error, sizeof(c->error), "out of memory");
    if (!err && !p->n) {
        snprintf(c->error, sizeof(c->error),
                 "no case matches --only '%s': see plumb check RUN "
                 "--json - for the keys",
                 options.only ? options.only[0] : "");
        err = -ENOENT;
    }
    return err;
}

static bool in_history(const struct check_options *o)
{
    return o->update || o->accept;
}

static const char *best_text(struct pool *pool, uint64_t n, const struct baseline *b)
{
    if (baseline_levels(b) == 1)
        return b->text;
    if (n == 1)
        return pool_text(pool, "the last of %s", b->text);
    return pool_text(pool, "the best, case by case, of the last %" PRIu64 " of %s", n, b->text);
}

/* Of a level that was accepted nothing is left to complain of, but of the other cases. That some of these could not be decided
 * is not why somebody called. */
static int exit_of_rest(const struct check_kept *kept)
{
    enum gate_verdict verdict = kept->rest.verdict;

    return kept->acceptance.n_keys && (verdict == GATE_LOST || verdict == GATE_INCOMPLETE)
               ? gate_exit(verdict)
               : EXIT_GOOD;
}

/* What was judged, judged anew. A loss is never hidden behind a file that could not be written, but one
 * that was accepted is none. */
static int tell(struct check_command *c, struct check_result *r)
{
    const struct check_options *o = &c->options;
    int err = in_history(o) ? check_update(c, &r->gate, &r->kept) : 0;

    if (r->kept.taken && r->gate.options.first)
        r->advice = ""; /* it told of the baseline that this run would be */
    r->accepted = o->accept && !err;
    r->exit = r->accepted ? exit_of_rest(&r->kept) : gate_exit(r->gate.verdict);
    if (err) {
        fprintf(stderr, "plumb check: %s\n", c->error);
        r->advice = "";
    }
    int unwritten = check_write(c, r);
    if (unwritten)
        fprintf(stderr, "plumb check: %s\n", c->error);
    return (err || unwritten) && (!r->exit || r->exit == 3) ? exit_of(err) : r->exit;
}

/* What the baseline has and the run has not is asked for every night from now on. */
static const char *advice_of(const struct check_options *o, const struct baseline *b,
                             const struct gate *g)
{
    if (*b->advice || !g->counts[GATE_MISSING] || o->accept)
        return b->advice;
    return baseline_is_history(o->baseline)
               ? "if a case was taken out of the suite on purpose: --accept, once, makes this run "
                 "the start of later ones"
               : "if a case was taken out of the suite on purpose: take a baseline without it";
}

static int judge(struct check_command *c, const struct baseline *b, struct pairs *p)
{
    const struct check_options *o = &c->options;
    const struct gate_options options = {.see = o->see, .strict = o->strict, .first = !b->n};
    struct check_result r = {.run = c->run,
                             .baseline = b->text,
                             .baseline_of = b,
                             .best_of = (unsigned)o->best_of,
                             .margin = o->margin,
                             .kept = {.sentence = ""}};
    const char *const *keys;
    size_t n_keys;

    if (o->best_of && b->n)
        r.baseline = best_text(
            &p->report.pool, o->best_of < baseline_levels(b) ? o->best_of : baseline_levels(b), b);
    int err = gate_make(&r.gate, p, &options);
    if (!err && b->n)
        r.n_differences = pairs_machine_differences(p, &r.differences);
    if (err || p->report.pool.failed) {
        fputs("plumb check: out of memory\n", stderr);
        return EXIT_USAGE;
    }
    r.advice = advice_of(o, b, &r.gate);
    err = o->accept ? check_accepted_keys(c, &r.gate, &keys, &n_keys) : 0;
    if (!err)
        return tell(c, &r);
    fprintf(stderr, "plumb check: %s\n", c->error);
    return EXIT_USAGE;
}

int check_run(struct check_command *c)
{
    const struct check_options *o = &c->options;
    const struct baseline_asked asked = {.spec = o->baseline,
                                         .history = o->history,
                                         .run = c->run,
                                         .update = in_history(o),
                                         .steal_limit = steal_limit(o->steal),
                                         .least = o->best_of ? o->best_of : BASELINE_LAST};
    struct pairs p = {0};
    struct baseline b = {0};
    int status, err = baseline_find(&b, &asked, c->error, sizeof(c->error));

    if (!err) {
        err = load(c, &b, &p);
        /* Runs in which nothing was measured. */
        status = err == -EINVAL ? EXIT_INCOMPLETE : exit_of(err);
    } else {
        status = exit_of(err);
    }
    if (err)
        fprintf(stderr, "plumb check: %s\n", c->error);
    else
        status = judge(c, &b, &p);
    pairs_release(&p);
    baseline_release(&b);
    return status;
}
