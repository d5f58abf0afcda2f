/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does what is promised of verdicts hold? Suites of simulated and of replayed launches, seeded, and
 * how often the method is wrong on them. See docs/deciding.md.
 */
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "tests/selftest/replay.h"
#include "tests/selftest/trial.h"

#define SHORT_SUITES 100
#define FULL_SUITES  1000
/* In the short form promises that hold break by chance once in so many runs of all of them. */
#define CHANCE (1e-4 / 800)

struct settings {
    bool brief, markdown, tap;
    uint64_t seed;
    size_t suites;
    const char *only;
    char *const *folders;
    size_t n_folders;
};

/* What was counted, held against what is promised. */
struct promise {
    const char *what;
    size_t count, of, independent; /* trials in `of` that do not hang together */
    double bound;
    bool at_least, made;
};

/* P(X >= k), X binomial (DLMF 8.17.5) */
static double at_least(size_t k, size_t n, double p)
{
    return k == 0 ? 1 : k > n ? 0 : dist_beta_cdf(p, (double)k, (double)(n - k) + 1);
}

static bool is_broken(const struct promise *p, bool brief)
{
    double share = (double)p->count / (double)p->of;
    double wrong = p->at_least ? 1 - share : share, bound = p->at_least ? 1 - p->bound : p->bound;

    if (!p->made || wrong <= bound + 1e-12)
        return false;
    if (!brief)
        return true;
    return at_least((size_t)floor(wrong * (double)p->independent), p->independent, bound) < CHANCE;
}

#define PROMISES 8
static void promises_of(const struct trial *t, struct promise p[PROMISES])
{
    const struct noise *n = t->noise;
    bool full = t->launches >= 5, quiet = n->no_alarm;
    size_t s = t->suites, all = s * t->cases;
    const struct tally *check = &t->by[METHOD_CHECK], *compare = &t->by[METHOD_COMPARE];

    p[0] = (struct promise){"check raises no alarm", check->alarms, s, s, 0.01, false, quiet};
    p[1] = (struct promise){"check names no other case", check->others, s, s, 0.01, false, quiet};
    p[2] = (struct promise){"compare names no case", compare->alarms, s, s, 0.01, false,
                            quiet && n->compare};
    p[3] = (struct promise){"a loss of 5 % is found", check->found, s, s, 0.95, true,
                            full && n->found};
    p[4] = (struct promise){"equivalence is called", compare->equivalent, all, s, 0.90, true,
                            full && n->found};
    p[7] =
        (struct promise){"a loss of 30 % is found", check->big, s, s, 0.95, true, full && n->big};
    p[6] = (struct promise){
        "check calls no loss of 5 % equivalent", check->loss_equivalent, s, s, 0.05, false, quiet};
    p[5] = (struct promise){"compare calls no loss of 5 % equivalent",
                            compare->loss_equivalent,
                            s,
                            s,
                            0.05,
                            false,
                            n->compare && quiet};
}

static double share(size_t count, size_t of)
{
    return 100 * (double)count / (double)of;
}

static void print_heading(const struct settings *s, size_t launches, bool in_turn)
{
    const char *rivals = in_turn ? "by runs: alarm, found, equivalent |"
                                 : "Welch: alarm, found, equivalent | "
                                   "bootstrap: alarm, found, equivalent |";

    if (s->tap)
        return;
    printf("%s%zu launches a %s\n\n", s->markdown ? "### " : "", launches,
           in_turn ? "run, both sides in turn" : "side");
    if (s->markdown)
        printf("| noise | alarm, check | alarm, compare | 5 %% found | other named | equivalent | "
               "loss called so, compare | and by check | "
               "%s\n|---|---|---|---|---|---|---|---|---|%s\n",
               rivals, in_turn ? "" : "---|");
    else
        printf(
            "noise                   alarm   alarm     5 %%   other  equi-   loss so         %s\n"
            "                        check compare   found  named  valent  compare check %s\n",
            in_turn ? "By runs" : "Welch                bootstrap",
            in_turn ? " alarm  found  equi" : " alarm  found  equi   alarm  found  equi");
}

static void print_figure(const struct settings *s, const struct promise *p, size_t width)
{
    const char *mark = is_broken(p, s->brief) ? "!" : p->made || s->markdown ? "" : "*";

    if (s->markdown)
        printf(p->made ? " **%.3g** |" : " %.3g |", share(p->count, p->of));
    else
        printf(" %*.1f%-1s", (int)width - 1, share(p->count, p->of), mark);
}

static void print_rival(const struct settings *s, const struct trial *t, enum method method)
{
    const struct tally *r = &t->by[method];

    printf(s->markdown ? " %.3g, %.3g, %.3g |" : "  %5.1f %6.1f %5.1f",
           share(r->alarms, t->rival_suites), share(r->found, t->rival_suites),
           share(r->equivalent, t->rival_suites * t->cases));
}

static void print_line(const struct settings *s, const struct trial *t,
                       const struct promise p[PROMISES])
{
    static const size_t order[] = {0, 2, 3, 1, 4, 5, 6}; /* but 7, which few have */

    printf(s->markdown ? "| %s |" : "%-22s", t->noise->name);
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
        print_figure(s, &p[order[i]], 7);
    if (t->noise->moments) {
        print_rival(s, t, METHOD_BY_RUNS);
    } else {
        print_rival(s, t, METHOD_WELCH);
        print_rival(s, t, METHOD_BOOTSTRAP);
    }
    if (t->noise->big)
        printf(s->markdown ? " 30 %% found: %.3g |" : "  30 %%: %.1f", share(p[7].count, p[7].of));
    putchar('\n');
    fflush(stdout);
}

/* Returns the number of broken promises; *tests counts them all. */
static size_t judge(const struct settings *s, const struct trial *t, size_t *tests)
{
    struct promise p[PROMISES];
    size_t broken = 0;

    promises_of(t, p);
    if (!s->tap)
        print_line(s, t, p);
    for (size_t i = 0; i < PROMISES; i++) {
        bool bad = is_broken(&p[i], s->brief);

        broken += bad;
        if (s->tap && p[i].made)
            printf("%sok %zu - %s, %zu launches: %s: %zu of %zu\n", bad ? "not " : "", ++*tests,
                   t->noise->name, t->launches, p[i].what, p[i].count, p[i].of);
    }
    return broken;
}

static bool is_wanted(const struct settings *s, const struct noise *noise,
                      const struct replay *replay, bool in_turn)
{
    return (noise->moments != NULL) == in_turn && (!noise->replayed || replay) &&
           (!s->only || strstr(noise->name, s->only));
}

static size_t run_all(const struct settings *s, const struct replay *replay, size_t launches,
                      bool in_turn, size_t *tests)
{
    /* Several runs a side take their time to draw. */
    size_t broken = 0, suites = s->brief && in_turn ? (s->suites + 1) / 2 : s->suites;

    print_heading(s, launches, in_turn);
    for (size_t i = 0; noises[i].name; i++) {
        struct trial t = {.noise = &noises[i],
                          .launches = launches,
                          .suites = suites,
                          .rival_suites = s->tap    ? 0
                                          : in_turn ? suites
                                                    : (suites + 3) / 4};

        if (!is_wanted(s, &noises[i], replay, in_turn))
            continue;
        trial_run(&t, replay, s->seed + 1000 * launches + i);
        broken += judge(s, &t, tests);
    }
    if (!s->tap)
        putchar('\n');
    return broken;
}

static void print_smallest(const struct settings *s)
{
    static const double spreads[] = {0.002, 0.005, 0.01, 0.02, 0.05};
    static const size_t launches[] = {3, 5, 7, 10, 20, 40};
    double worst = 1, best = 0;

    puts(s->markdown ? "| spread between launches | 3 launches | 5 | 7 | 10 | 20 | 40 |\n"
                       "|---|---|---|---|---|---|---|"
                     : "smallest loss shown, in %\nspread  3      5      7      10     20     40");
    for (size_t i = 0; i < sizeof(spreads) / sizeof(spreads[0]); i++) {
        printf(s->markdown ? "| %.1f %% |" : "%-6.1f", 100 * spreads[i]);
        for (size_t k = 0; k < sizeof(launches) / sizeof(launches[0]); k++) {
            double found;

            printf(s->markdown ? " %.2g %% |" : " %6.2f",
                   100 * trial_smallest(spreads[i], launches[k], s->suites / 2, s->seed, &found));
            worst = fmin(worst, found);
            best = fmax(best, found);
        }
        putchar('\n');
    }
    printf("\nLosses of that size are then found in %.0f to %.0f %%.\n", 100 * worst, 100 * best);
}

static int usage(FILE *to)
{
    fputs("usage: selftest [--short] [--tap] [--markdown] [--seed N] [--suites N] [--only KIND] "
          "[RUN...]\n\n"
          "  --short      100 suites a kind of noise (50 of those in turn), not 1,000; a promise "
          "is broken where chance "
          "does not explain it\n"
          "  --tap        promises alone, as tests\n"
          "  --markdown   the table for docs/deciding.md\n"
          "  RUN          folders whose samples are replayed (results/reference/*)\n\n"
          "exit: 0 all promises hold, 1 one is broken, 2 wrong usage, or a run folder that cannot "
          "be read\n",
          to);
    return 2;
}

static bool read_settings(int argc, char **argv, struct settings *s)
{
    int i;

    for (i = 1; i < argc && !strncmp(argv[i], "--", 2); i++) {
        if (!strcmp(argv[i], "--short"))
            s->brief = true;
        else if (!strcmp(argv[i], "--tap"))
            s->tap = true;
        else if (!strcmp(argv[i], "--markdown"))
            s->markdown = true;
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            s->seed = strtoull(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--suites") && i + 1 < argc)
            s->suites = strtoull(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            s->only = argv[++i];
        else
            return false;
    }
    s->folders = argv + i;
    s->n_folders = (size_t)(argc - i);
    s->suites = s->suites ? s->suites : s->brief ? SHORT_SUITES : FULL_SUITES;
    return true;
}

/* false: there are folders, and they cannot be replayed. */
static bool load(const struct settings *s, struct replay **replay)
{
    glob_t found = {0};
    bool read = true;

    if (s->n_folders) {
        *replay = replay_load(s->folders, s->n_folders);
        read = *replay;
    } else if (!glob("results/reference/*", 0, NULL, &found)) {
        *replay = replay_load(found.gl_pathv, found.gl_pathc);
        read = *replay;
    }
    globfree(&found);
    return read;
}

static void print_replayed(const struct settings *s, const struct replay *replay)
{
    if (!replay)
        printf("%sno run folder to replay samples from\n", s->tap ? "# " : "");
    else
        printf("%sreplayed: %zu cases, spread between launches %.2g %% (median)\n%s",
               s->tap ? "# " : "", replay_cases(replay), 100 * replay_spread(replay),
               s->tap ? "" : "\n");
}

int main(int argc, char **argv)
{
    struct settings s = {.seed = 1};
    struct replay *replay = NULL;
    size_t broken = 0, tests = 0;

    if (!read_settings(argc, argv, &s))
        return usage(stderr);
    if (!load(&s, &replay))
        return 2;
    print_replayed(&s, replay);
    for (int in_turn = 0; in_turn < 2; in_turn++)
        for (size_t launches = 5; launches >= 3; launches -= 2)
            broken += run_all(&s, replay, launches, in_turn, &tests);
    if (s.tap && !replay)
        printf("ok %zu - replayed # skip no run folder in results/reference\n", ++tests);
    if (s.tap)
        printf("1..%zu\n", tests);
    else
        print_smallest(&s);
    replay_release(replay);
    if (broken)
        fprintf(stderr, "selftest: %zu promises are broken\n", broken);
    return broken ? 1 : 0;
}
