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

#include "tests/selftest/promise.h"
#include "tests/selftest/replay.h"
#include "tests/selftest/trial.h"

/* Suites of each kind of noise: in the short form (half of these with 3 launches, or in turn); in the full form where
 * every promise is clear by then, and at most; in the tables of docs/deciding.md. */
#define SHORT_SUITES 16
#define FIRST_SUITES 250
#define FULL_SUITES  1000

struct settings {
    struct promises *said;
    bool markdown;
    uint64_t seed;
    size_t suites; /* 0: as many as it takes */
    const char *only;
    char *const *folders;
    size_t n_folders;
};

#define PROMISES 8
static const struct promise {
    const char *what;
    double wrong_most; /* the share of suites, or of cases, of which so much may be wrong */
} promises[PROMISES] = {
    {"check raises no alarm", 0.01},
    {"check names no other case", 0.01},
    {"compare names no case", 0.01},
    {"a loss of 5 % is found", 0.05},
    {"equivalence is called", 0.10},
    {"compare calls no loss of 5 % equivalent", 0.05},
    {"check calls no loss of 5 % equivalent", 0.05},
    {"a loss of 30 % is found", 0.05},
};

/* What was counted of a promise; cases of one suite hang together, and count as one suite. */
struct counted {
    double share; /* as the table has it: of what the promise names */
    size_t wrong, of;
    bool made;
};

static void count(const struct trial *t, struct counted c[PROMISES])
{
    const struct noise *n = t->noise;
    bool full = t->launches >= 5, quiet = n->no_alarm;
    const struct tally *check = &t->by[METHOD_CHECK], *compare = &t->by[METHOD_COMPARE];
    const double of = (double)t->suites,
                 counts[PROMISES] = {(double)check->alarms,
                                     (double)check->others,
                                     (double)compare->alarms,
                                     (double)check->found,
                                     (double)compare->equivalent / (double)t->cases,
                                     (double)compare->loss_equivalent,
                                     (double)check->loss_equivalent,
                                     (double)check->big};
    const bool made[PROMISES] = {quiet,
                                 quiet,
                                 quiet && n->compare,
                                 full && n->found,
                                 full && n->found,
                                 quiet && n->compare,
                                 quiet,
                                 full && n->big};

    for (size_t i = 0; i < PROMISES; i++) {
        bool finds = i == 3 || i == 4 || i == 7;

        c[i] = (struct counted){.share = counts[i] / of,
                                .wrong = (size_t)(finds ? of - counts[i] + 1e-9 : counts[i]),
                                .of = t->suites,
                                .made = made[i]};
    }
}

static bool is_clear(const struct trial *t)
{
    struct counted c[PROMISES];
    bool clear = true;

    count(t, c);
    for (size_t i = 0; i < PROMISES; i++)
        clear &= !c[i].made || promise_is_clear(c[i].wrong, c[i].of, promises[i].wrong_most);
    return clear;
}

static void print_heading(const struct settings *s, size_t launches, bool in_turn)
{
    if (s->said->tap)
        return;
    printf("%s%zu launches a %s\n\n", s->markdown ? "### " : "", launches,
           in_turn ? "run, both sides in turn" : "side");
    puts(s->markdown
             ? "| noise | alarm, check | alarm, compare | 5 % found | other named | equivalent | "
               "loss called so, compare | and by check |\n|---|---|---|---|---|---|---|---|"
             : "noise                   alarm   alarm     5 %   other  equi-   loss so\n"
               "                        check compare   found  named  valent  compare check");
}

static void print_line(const struct settings *s, const struct trial *t,
                       const struct counted c[PROMISES])
{
    static const size_t order[] = {0, 2, 3, 1, 4, 5, 6}; /* but 7, which few have */

    printf(s->markdown ? "| %s |" : "%-22s", t->noise->name);
    for (size_t k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
        const struct counted *figure = &c[order[k]];

        if (s->markdown)
            printf(figure->made ? " **%.3g** |" : " %.3g |", 100 * figure->share);
        else
            printf(" %6.1f%s", 100 * figure->share, figure->made ? " " : "*");
    }
    if (t->noise->big)
        printf(s->markdown ? " 30 %% found: %.3g |" : "  30 %%: %.1f", 100 * c[7].share);
    putchar('\n');
    fflush(stdout);
}

static void judge(const struct settings *s, const struct trial *t, struct counted all[PROMISES])
{
    struct counted c[PROMISES];

    count(t, c);
    if (!s->said->tap)
        print_line(s, t, c);
    for (size_t i = 0; i < PROMISES; i++) {
        if (!c[i].made)
            continue;
        all[i].wrong += c[i].wrong;
        all[i].of += c[i].of;
        promise_tell(s->said, promise_breaks(s->said, c[i].wrong, c[i].of, promises[i].wrong_most),
                     "%s, %zu launches: %s: not in %zu of %zu", t->noise->name, t->launches,
                     promises[i].what, c[i].wrong, c[i].of);
    }
}

static void judge_together(const struct settings *s, const struct counted all[PROMISES])
{
    for (size_t i = 0; i < PROMISES; i++)
        if (all[i].of)
            promise_tell(s->said,
                         promise_breaks(s->said, all[i].wrong, all[i].of, promises[i].wrong_most),
                         "all kinds together: %s: not in %zu of %zu", promises[i].what,
                         all[i].wrong, all[i].of);
}

static void try_kind(const struct settings *s, struct trial *t)
{
    size_t little = t->launches < 5 || t->noise->moments;

    if (s->suites)
        trial_run(t, s->suites);
    else if (s->said->brief)
        trial_run(t, SHORT_SUITES >> little);
    else
        for (trial_run(t, FIRST_SUITES); t->suites < FULL_SUITES && !is_clear(t);)
            trial_run(t, t->suites);
}

static void try_all(const struct settings *s, const struct replay *replay, size_t launches,
                    bool in_turn, struct counted all[PROMISES])
{
    print_heading(s, launches, in_turn);
    for (size_t i = 0; noises[i].name; i++) {
        const struct noise *noise = &noises[i];
        struct trial t;

        if ((noise->moments != NULL) != in_turn || (noise->replayed && !replay) ||
            (s->only && !strstr(noise->name, s->only)))
            continue;
        trial_begin(&t, noise, replay, launches, s->seed + 1000 * launches + i);
        try_kind(s, &t);
        judge(s, &t, all);
    }
    if (!s->said->tap)
        putchar('\n');
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
                   100 * trial_smallest(spreads[i], launches[k], FULL_SUITES / 2, s->seed, &found));
            worst = fmin(worst, found);
            best = fmax(best, found);
        }
        putchar('\n');
    }
    printf("\nLosses of that size are then found in %.0f to %.0f %%.\n", 100 * worst, 100 * best);
}

static int usage(FILE *to)
{
    fputs(
        "usage: verdicts [--short] [--tap] [--markdown] [--seed N] [--suites N] [--only KIND] "
        "[RUN...]\n\n"
        "  --short      16 suites a kind of noise and fewer, not 250 to 1,000; a promise is broken "
        "where chance does not explain it\n"
        "  --tap        promises alone, as tests\n"
        "  --markdown   the tables for docs/deciding.md, of 1,000 suites\n"
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
            s->said->brief = true;
        else if (!strcmp(argv[i], "--tap"))
            s->said->tap = true;
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
    if (s->markdown && !s->suites)
        s->suites = FULL_SUITES;
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
        printf("%sno run folder to replay samples from\n", s->said->tap ? "# " : "");
    else
        printf("%sreplayed: %zu cases, spread between launches %.2g %% (median)\n%s",
               s->said->tap ? "# " : "", replay_cases(replay), 100 * replay_spread(replay),
               s->said->tap ? "" : "\n");
}

int main(int argc, char **argv)
{
    struct promises said = {.tests = 0};
    struct settings s = {.said = &said, .seed = 1};
    struct counted all[PROMISES] = {{.of = 0}};
    struct replay *replay = NULL;

    if (!read_settings(argc, argv, &s))
        return usage(stderr);
    if (!load(&s, &replay))
        return 2;
    print_replayed(&s, replay);
    for (int in_turn = 0; in_turn < 2; in_turn++)
        for (size_t launches = 5; launches >= 3; launches -= 2)
            try_all(&s, replay, launches, in_turn, all);
    judge_together(&s, all);
    if (s.markdown)
        print_smallest(&s);
    replay_release(replay);
    return promise_end(&said, "verdicts");
}
