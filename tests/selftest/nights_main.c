/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plumb check says of nights whose truth is known: how often it alarms where nothing changed, what it finds, what it
 * hides, over worlds that know nothing of how it decides (worlds.h). Prints the tables of docs/deciding.md.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/selftest/nights.h"
#include "tests/selftest/promise.h"

#define BROAD_LOSS 0.06 /* in a share of the cases */
#define PROMISED   0.01
#define MISSED     0.05 /* of series with a loss */
/* Suites of a cell, and series of a season: in the short form; in the full form where a promise is clear by then, and at
 * most. The tables of docs/deciding.md have the most of each. */
#define SHORT_SUITES 20
#define FIRST_SUITES 250
#define FULL_SUITES  1000
#define SHORT_SERIES 1
#define FIRST_SERIES 15
#define FULL_SERIES  60

struct effort {
    struct promises *said;
    size_t suites; /* 0: as many as it takes */
    bool markdown;
    const char *only;
    uint64_t seed;
    size_t alarms, of; /* where nothing changed, of all cells that promise something */
};

static double percent(size_t n, size_t of)
{
    return of ? 100 * (double)n / (double)of : NAN;
}

/* Of `of` trials `wrong` broke what holds in all but a share of them. */
static bool tell(struct effort *e, const char *name, const char *what, size_t wrong, size_t of,
                 double share)
{
    return promise_tell(e->said, promise_breaks(e->said, wrong, of, share), "%s: %s: %zu of %zu",
                        name, what, wrong, of);
}

/* Suites in which nothing changed, until it is clear what they say. */
static struct tally quiet(struct effort *e, struct stage *s, const struct nightly *n, uint64_t seed,
                          bool promised)
{
    size_t suites = e->suites ? e->suites : e->said->brief ? SHORT_SUITES : FIRST_SUITES;
    struct tally t = {0};
    struct dice d;

    dice_seed(&d, e->seed + seed);
    nights_judge(s, n, suites, &d, &t);
    while (promised && !e->suites && !e->said->brief && t.suites < FULL_SUITES &&
           !promise_is_clear(t.lost, t.suites, PROMISED))
        nights_judge(s, n, t.suites, &d, &t);
    e->alarms += promised ? t.lost : 0;
    e->of += promised ? t.suites : 0;
    return t;
}

/* Suites with a loss: half as many as without. */
static struct tally lossy(const struct effort *e, struct stage *s, const struct nightly *n,
                          uint64_t seed)
{
    size_t suites = e->suites ? e->suites : e->said->brief ? SHORT_SUITES : FIRST_SUITES;
    struct tally t = {0};
    struct dice d;

    dice_seed(&d, e->seed + seed);
    nights_judge(s, n, suites / 2, &d, &t);
    return t;
}

static void print_start(const struct effort *e, const char *name)
{
    if (!e->said->tap)
        printf(e->markdown ? "| %s |" : "%-34s", name);
}

static void print_end(const struct effort *e)
{
    if (!e->said->tap)
        putchar('\n');
    fflush(stdout);
}

static bool is_wanted(const struct effort *e, const char *table)
{
    return !e->only || !strncmp(table, e->only, strcspn(e->only, "/"));
}

/* --only TABLE/TEXT: the rows whose name holds that text */
static bool is_row_wanted(const struct effort *e, const char *name)
{
    const char *text = e->only ? strchr(e->only, '/') : NULL;

    return !text || strstr(name, text + 1);
}

static void print_head(const struct effort *e, const char *title, const char *first,
                       const char *const *columns, size_t n)
{
    if (e->said->tap)
        return;
    printf(e->markdown ? "\n%s\n\n| %s |" : "\n%s\n%-34s", title, first);
    for (size_t i = 0; i < n; i++)
        printf(e->markdown ? " %s |" : " %-24s", columns[i]);
    if (e->markdown) {
        printf("\n|---|");
        for (size_t i = 0; i < n; i++)
            printf("---|");
    }
    putchar('\n');
}

static const size_t baselines[] = {1, 2, 5, 10};
static const char *const baseline_names[] = {"1 baseline", "2", "5", "10"};
#define BASELINES 4

/* --- table: quiet worlds and one loss --- */

/* A cell: nothing changed, alarms / undecided / share of the cases that are decided; one case lost: found. */
static void quiet_cell(struct effort *e, struct stage *s, const struct world *w, bool promised,
                       uint64_t seed)
{
    struct nightly n = {.w = *w};
    char name[160];

    if (e->said->tap && !promised)
        return;
    struct tally none = quiet(e, s, &n, seed, promised);

    snprintf(name, sizeof(name), "%s, %zu cases, %zu baselines", w->name, w->cases, w->baselines);
    if (promised)
        tell(e, name, "alarms where nothing changed", none.lost, none.suites, PROMISED);
    if (e->said->tap)
        return;
    n.truth = (struct truth){.n_lost = 1, .loss = ONE_LOSS};
    struct tally one = lossy(e, s, &n, seed + 1);
    const char *mark = !promised ? "*" : e->markdown ? "**" : "";

    printf(e->markdown ? " %s%.3g%s, %.3g, %.3g; %.3g |" : " %s%.1f%s %.0f %.0f; %-8.0f",
           promised ? mark : "", percent(none.lost, none.suites), mark,
           percent(none.undecided, none.suites), 100 * none.decided / (double)none.suites,
           percent(one.found, one.suites));
}

static void print_ratios(struct effort *e, struct stage *s)
{
    static const double ratios[] = {0.05, 0.1, 0.2, 0.3, 0.5, 1, 3};
    static const size_t cases[] = {1, 5, 10, 19, 40, 200};
    char name[64];

    if (!is_wanted(e, "ratios"))
        return;
    print_head(e,
               "Nights differ by 1 % in each case, launches by so many times that: alarms, "
               "undecided, cases decided; 5 % in one case found",
               "launches / nights, cases", baseline_names, BASELINES);
    for (size_t r = 0; r < sizeof(ratios) / sizeof(*ratios); r++)
        for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
            snprintf(name, sizeof(name), "%g, %zu", ratios[r], cases[c]);
            if (!is_row_wanted(e, name) || (e->said->brief && (r % 4 != 1 || c % 2)))
                continue;
            print_start(e, name);
            for (size_t b = 0; b < BASELINES; b++) {
                struct world w = {.name = name,
                                  .launch = ratios[r] * 0.01,
                                  .night = 0.01,
                                  .cases = cases[c],
                                  .baselines = baselines[b]};

                quiet_cell(e, s, &w, true, 1000 * (r + 1) + 100 * c + 10 * b);
            }
            print_end(e);
        }
}

/* open: with so many baselines more than one suite in a hundred alarms, and nothing is promised. Of one case, or two, that come up on
 * another level now and then a few baselines say the same as of a case that lost. */
static const struct open_world {
    struct world w;
    size_t open[BASELINES];
} worlds[] = {
    {{"nights alike", .launch = .01}, {0}},
    {{"nights alike, 10 cases", .launch = .01, .cases = 10}, {0}},
    {{"common to all by half", .launch = .003, .night = .01, .shared = .5}, {0}},
    {{"common to all", .launch = .003, .night = .01, .shared = 1}, {0}},
    {{"common to five by half", .launch = .003, .night = .01, .shared = .5, .group = 5}, {0}},
    {{"common to five", .launch = .003, .night = .01, .shared = 1, .group = 5}, {0}},
    {{"launches of t3", .launch = .01, .shape = SHAPE_T3}, {0}},
    {{"nights of t3", .launch = .003, .night = .01, .shape = SHAPE_T3}, {5, 10}},
    {{"skewed nights", .launch = .003, .night = .01, .shape = SHAPE_SKEWED}, {2, 5}},
    {{"mixed launches", .launch = .005, .night = .01, .mixed = 7}, {0}},
    {{"mixed launches and nights", .launch = .005, .night = .01, .mixed = 7, .mixed_nights = true},
     {1}},
    {{"mixed, quiet nights", .launch = .005, .night = .002, .mixed = 7}, {0}},
    {{"two levels a launch, 1 case", .launch = .002, .level_cases = 1, .level_launches = true,
      .gap = .04},
     {0}},
    {{"two levels a launch, 10", .launch = .002, .level_cases = 10, .level_launches = true,
      .gap = .04},
     {1}},
    {{"two levels a launch, all", .launch = .002, .level_cases = 40, .level_launches = true,
      .gap = .04},
     {0}},
    {{"two levels a night, 1 case", .launch = .002, .level_cases = 1, .gap = .04}, {1, 2, 5}},
    {{"two levels a night, 2", .launch = .002, .level_cases = 2, .gap = .04}, {1, 2, 5}},
    {{"two levels a night, 10", .launch = .002, .level_cases = 10, .gap = .04}, {1, 2, 5, 10}},
    {{"two levels a night, all", .launch = .002, .level_cases = 40, .gap = .04}, {0}},
    {{"nights like the one before, .5", .launch = .003, .night = .01, .hang = .5}, {0}},
};

static bool is_promised(const struct open_world *o, size_t with)
{
    for (size_t i = 0; i < BASELINES; i++)
        if (o->open[i] == with)
            return false;
    return true;
}

static void print_worlds(struct effort *e, struct stage *s)
{
    if (!is_wanted(e, "worlds"))
        return;
    print_head(e, "Other worlds, of 40 cases where nothing else is said, in the same columns",
               "world", baseline_names, BASELINES);
    for (size_t i = 0; i < sizeof(worlds) / sizeof(*worlds); i++) {
        if (!is_row_wanted(e, worlds[i].w.name))
            continue;
        print_start(e, worlds[i].w.name);
        for (size_t b = 0; b < BASELINES; b++) {
            struct world w = worlds[i].w;

            w.cases = w.cases ? w.cases : 40;
            w.baselines = baselines[b];
            quiet_cell(e, s, &w, is_promised(&worlds[i], baselines[b]), 20000 + 100 * i + 10 * b);
        }
        print_end(e);
    }
}

/* --- table: broad losses --- */

static void print_broad(struct effort *e, struct stage *s)
{
    static const double shares[] = {0.02, 0.05, 0.1, 0.3, 0.5, 1};
    static const double spreads[][2] = {{.01, 0}, {.003, .003}, {.003, .01}};
    char name[96];

    if (!is_wanted(e, "broad"))
        return;
    print_head(e,
               "A share of 40 cases loses 6 %: named (exit 1), told and not proven (3), passed; of "
               "all, kept as a baseline",
               "launches / nights, share", baseline_names, BASELINES);
    for (size_t i = 0; i < sizeof(spreads) / sizeof(*spreads); i++)
        for (size_t k = 0; k < sizeof(shares) / sizeof(*shares); k++) {
            snprintf(name, sizeof(name), "%g %% / %g %%, %g %%", 100 * spreads[i][0],
                     100 * spreads[i][1], 100 * shares[k]);
            if (!is_row_wanted(e, name))
                continue;
            print_start(e, name);
            for (size_t b = 0; b < BASELINES; b++) {
                struct world w = {.name = name,
                                  .launch = spreads[i][0],
                                  .night = spreads[i][1],
                                  .cases = 40,
                                  .baselines = baselines[b]};
                struct nightly n = {
                    .w = w, .truth = {.n_lost = (size_t)ceil(40 * shares[k]), .loss = BROAD_LOSS}};
                bool promised = shares[k] >= 0.5 && i < 2;

                if (e->said->tap && !promised)
                    continue;
                struct tally t = lossy(e, s, &n, 40000 + 1000 * i + 100 * k + 10 * b);

                if (promised)
                    tell(e, name, "a loss of half of the cases is passed, or kept as a baseline",
                         t.kept > t.passed ? t.kept : t.passed, t.suites, PROMISED);
                if (!e->said->tap)
                    printf(e->markdown ? " %.3g, %.3g, %.3g; %.3g |" : " %.0f %.0f %.0f; %-12.0f",
                           percent(t.lost, t.suites), percent(t.undecided, t.suites),
                           percent(t.passed, t.suites), percent(t.kept, t.suites));
            }
            print_end(e);
        }
}

/* --- table: nights one after the other --- */

static const struct season seasons[] = {
    {"quiet launches, nights 1 %", {.launch = .001, .night = .01}, 0, 0, 0, true},
    {"launches 1 %, nights alike", {.launch = .01}, 0, 0, 0, true},
    {"1 case", {.launch = .003, .night = .01, .cases = 1}, 0, 0, 0, true},
    {"common to all", {.launch = .001, .night = .01, .shared = 1}, 0, 0, 0, true},
    {"nights of t3", {.launch = .003, .night = .01, .shape = SHAPE_T3}, 0, 0, 0, false},
    {"skewed nights", {.launch = .003, .night = .01, .shape = SHAPE_SKEWED}, 0, 0, 0, true},
    {"two levels a night, 1 case", {.launch = .002, .level_cases = 1, .gap = .04}, 0, 0, 0, false},
    {"two levels a night, 10", {.launch = .002, .level_cases = 10, .gap = .04}, 0, 0, 0, false},
    {"nights like the one before, .5", {.launch = .003, .night = .01, .hang = .5}, 0, 0, 0, false},
    {"5 % in 1 case from night 20", {.launch = .003, .night = .003}, 20, 1, .05, true},
    {"6 % in half from night 1", {.launch = .003, .night = .003}, 1, 20, .06, true},
    {"6 % in all from night 1", {.launch = .003, .night = .003}, 1, 40, .06, true},
    {"slip .1 % a night, 8 cases", {.launch = .003, .night = .01, .slip = .001}, 0, 8, 0, true},
    {"slip .3 % a night, 8 cases", {.launch = .003, .night = .01, .slip = .003}, 0, 8, 0, true},
    {"slip .3 % a night, all", {.launch = .003, .night = .01, .slip = .003}, 0, 40, 0, true},
    {"slip 1 % a night, 8 cases", {.launch = .003, .night = .01, .slip = .01}, 0, 8, 0, true},
};

static size_t season_run(struct effort *e, struct stage *s, const struct season *season,
                         uint64_t seed, struct seen *seen)
{
    size_t series = 0, until = e->suites        ? FULL_SERIES
                               : e->said->brief ? SHORT_SERIES
                                                : FIRST_SERIES;
    struct dice d;

    dice_seed(&d, seed);
    while (series < until) {
        nights_series(s, season, &d, seen);
        series++;
        if (series == until && !e->said->brief && season->promised && until < FULL_SERIES &&
            !promise_is_clear(seen->alarms, seen->nights, PROMISED))
            until *= 2;
    }
    return series;
}

static void print_seasons(struct effort *e, struct stage *s)
{
    static const char *const columns[] = {"nights that alarm falsely", "losses found",
                                          "after nights, mean", "nights with the loss kept",
                                          "baselines of 64"};
    size_t missed = 0, lost = 0;

    if (!is_wanted(e, "seasons"))
        return;
    print_head(e, "64 nights one after the other, each judged by what those before were taken for",
               "nights", columns, 5);
    for (size_t i = 0; i < sizeof(seasons) / sizeof(*seasons); i++) {
        struct season season = seasons[i];
        struct seen seen = {0};

        if (!is_row_wanted(e, season.name) || (e->said->tap && !season.promised))
            continue;
        season.w.cases = season.w.cases ? season.w.cases : 40;
        print_start(e, season.name);
        size_t series = season_run(e, s, &season, e->seed + 60000 + i, &seen);
        double of = (double)series;

        if (season.promised)
            tell(e, season.name, "nights that alarm falsely", seen.alarms, seen.nights, PROMISED);
        if (season.n_lost) {
            missed += series - seen.found;
            lost += series;
        }
        if (season.n_lost && !e->said->brief)
            tell(e, season.name, "series whose loss is not found", series - seen.found, series,
                 MISSED);
        if (!e->said->tap)
            printf(e->markdown ? " %.2f | %.3g | %.3g | %.3g | %.3g |"
                               : " %-24.2f %-24.0f %-24.1f %-24.1f %-24.1f",
                   percent(seen.alarms, seen.nights),
                   season.n_lost ? percent(seen.found, series) : NAN,
                   seen.found ? seen.when / (double)seen.found : NAN, (double)seen.adopted / of,
                   (double)seen.baselines / of);
        print_end(e);
    }
    if (e->said->brief) /* one series alone breaks nothing */
        tell(e, "all seasons", "series whose loss is not found", missed, lost, MISSED);
}

/* --- table: a slip that nobody looked at --- */

/* Found; behind it false alarms of the same nights without a slip. */
static void print_slips(struct effort *e, struct stage *s)
{
    static const char *const columns[] = {"as check does", "the last ten alone", "--best-of 30"};
    static const size_t nights[] = {20, 40, 60};
    static const double slips[] = {.001, .003, .005};
    char name[64];

    if (!is_wanted(e, "slips"))
        return;
    print_head(e,
               "8 of 40 cases slip, night by night, and all nights are baselines (launches 0.3 %, "
               "nights 1 %): found, false alarms",
               "slip a night, nights", columns, WAYS);
    for (size_t i = 0; i < 9; i++) {
        struct nightly n = {
            .w = {.launch = .003, .night = .01, .cases = 40, .baselines = nights[i % 3]}};

        snprintf(name, sizeof(name), "%g %%, %zu", 100 * slips[i / 3], n.w.baselines);
        if (!is_row_wanted(e, name) || (e->said->tap && i >= (e->said->brief ? 2 : 3)))
            continue; /* without a slip they are alike */
        print_start(e, name);
        for (n.way = 0; n.way < WAYS; n.way++) {
            n.w.slip = 0;
            n.truth.n_lost = 0;
            struct tally none = lossy(e, s, &n, 80000 + 10 * i);

            tell(e, name, "false alarms where nothing slips", none.lost, none.suites, PROMISED);
            n.w.slip = slips[i / 3];
            n.truth.n_lost = 8;
            if (e->said->tap)
                continue;
            struct tally t = lossy(e, s, &n, 80001 + 10 * i);

            printf(e->markdown ? " %.3g, %.3g |" : " %.0f %-22.1f", percent(t.found, t.suites),
                   percent(none.lost, none.suites));
        }
        print_end(e);
    }
}

/* --- table: who goes second --- */

static void print_orders(struct effort *e, struct stage *s)
{
    static const double effects[] = {0, 0.03, 0.06};
    static const size_t cases[] = {8, 40};
    static const char *const columns[] = {"alarms", "5 % found", "order not known: alarms",
                                          "5 % found"};
    size_t suites = e->suites ? e->suites : e->said->brief ? SHORT_SUITES : FULL_SUITES;
    char name[64];

    if (!is_wanted(e, "orders"))
        return;
    print_head(e, "Two targets in turn, of which the second loses by going second (launches 0.5 %)",
               "effect, cases", columns, 4);
    for (size_t i = 0; i < 6; i++) {
        struct world w = {.launch = .005,
                          .cases = cases[i % 2],
                          .baselines = 1,
                          .order = effects[i / 2],
                          .in_turn = true};

        snprintf(name, sizeof(name), "%g %%, %zu", 100 * w.order, w.cases);
        if (!is_row_wanted(e, name))
            continue;
        print_start(e, name);
        for (int known = 1; known >= (e->said->tap ? 1 : 0); known--) {
            size_t alarms = 0, found = 0;

            nights_in_turn(s, &w, suites, e->seed + 70000 + i, known, &alarms, &found);
            if (known)
                tell(e, name, "false verdicts in turn", alarms, suites, PROMISED);
            if (!e->said->tap)
                printf(e->markdown ? " %.3g | %.3g |" : " %-24.1f %-24.1f", percent(alarms, suites),
                       percent(found, suites));
        }
        print_end(e);
    }
}

static int usage(void)
{
    fputs("usage: nights [--short] [--tap] [--markdown] [--suites N] [--seed N] [--only "
          "TABLE[/TEXT]]\n\n"
          "  --short      20 suites a cell and 1 series, and fewer cells, not 250 to 1,000 and 15 "
          "to 60\n"
          "  --tap        promises alone, as tests\n"
          "  --markdown   the tables for docs/deciding.md, of 1,000 suites and 60 series\n"
          "  --only       ratios, worlds, broad, seasons, slips or orders; of these the rows whose "
          "name holds TEXT\n\n"
          "exit: 0 all promises hold, 1 one is broken, 2 wrong usage\n",
          stderr);
    return 2;
}

int main(int argc, char **argv)
{
    struct promises said = {.tests = 0};
    struct effort e = {.said = &said, .seed = 1};
    static struct stage stage;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--short"))
            said.brief = true;
        else if (!strcmp(argv[i], "--tap"))
            said.tap = true;
        else if (!strcmp(argv[i], "--markdown"))
            e.markdown = true;
        else if (!strcmp(argv[i], "--suites") && i + 1 < argc)
            e.suites = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            e.seed = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            e.only = argv[++i];
        else
            return usage();
    }
    if (e.markdown && !e.suites)
        e.suites = FULL_SUITES;
    print_ratios(&e, &stage);
    print_worlds(&e, &stage);
    print_broad(&e, &stage);
    print_seasons(&e, &stage);
    print_slips(&e, &stage);
    print_orders(&e, &stage);
    if (e.of)
        tell(&e, "all cells together", "alarms where nothing changed", e.alarms, e.of, PROMISED);
    return promise_end(&said, "nights");
}
