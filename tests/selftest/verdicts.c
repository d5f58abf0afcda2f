/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does what is promised of verdicts hold? Made-up worlds (worlds.h) are judged as plumb check and
 * plumb compare judge runs, and what came of it is held against the promises of cells.c.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/decide/decide.h"
#include "tests/selftest/promise.h"
#include "tests/selftest/worlds.h"

#define CHECK_MARGIN   2
#define COMPARE_MARGIN 5
#define WITHIN         5 /* unchanged cases are called equivalent within that */
/* What plumb check takes of a history: the last so many baselines, and the first so many. */
#define LEVEL_RUNS  10
#define ANCHOR_RUNS 10
/* Suites of a cell, and series of nights: in the short form, of every second cell; in the full one
 * where all promises are clear by then, and at most. */
#define SHORT_SUITES 3
#define FIRST_SUITES 60
#define SOME_SUITES  120 /* until other promises than of false alarms are clear */
#define FULL_SUITES  240
#define TABLE_SUITES 1000
#define SHORT_SERIES 1
#define FIRST_SERIES 6
#define FULL_SERIES  12
/* A loss is planted in every so many-th suite, and what needs fewer is asked in so many. */
#define LOSSES 3
#define REST   9
#define SURELY 1e-4 /* a promise is broken, and no more suites are needed to say so */

/* The head of its column; what a promise of it is about; by what it is printed; whether so many at
 * least are promised, or else at most; and whether every cell has suites enough to take the promise
 * at its word. Others are over all cells, and in one where chance does not explain the failures. */
#define FIGURES_OF(X)                                                                              \
    X(WITH, "with", "", 1, false, false)                                                           \
    X(LOSS, "loss", "", 1, false, false)                                                           \
    X(ALARMS, "alarms", "false alarms", 100, false, true)                                          \
    X(INCONCLUSIVE, "inconcl.", "inconclusive where nothing changed", 100, false, true)            \
    X(LIKELY, "likely", "", 100, false, false)                                                     \
    X(EQUIVALENT, "equiv.", "unchanged cases called equivalent", 100, true, true)                  \
    X(FOUND, "found", "losses named", 100, true, true)                                             \
    X(OTHERS, "others", "another case named beside a loss", 100, false, false)                     \
    X(PASSED, "passed", "losses that pass", 100, false, true)                                      \
    X(CALLED, "called", "losses called equivalent", 100, false, false)                             \
    X(SMALLEST, "small", "", 100, false, false)                                                    \
    X(SMALLEST_FOUND, "of it", "losses named that are said to be detectable", 100, true, false)    \
    X(NIGHTS, "nights", "", 1, false, false)                                                       \
    X(KEPT, "kept", "", 100, true, false)
#define FIGURE(name, ...)      name,
#define FIGURE_SAYS(name, ...) [name] = {__VA_ARGS__},
enum figure { FIGURES_OF(FIGURE) FIGURES };
static const struct {
    const char *head, *what;
    double scale;
    bool least, alone;
} figures[FIGURES] = {FIGURES_OF(FIGURE_SAYS)};

struct column {
    struct count {
        double n, of;
    } by[FIGURES];
};

struct effort {
    struct promises said;
    bool markdown;
    size_t suites; /* 0: as many as it takes */
    uint64_t seed;
    const char *only;
    struct column all; /* over the cells that promise it */
    bool disordered;   /* the order of the cases mattered in some suite */
};

/* Room for one suite, some megabytes. */
struct stage {
    struct measured m;
    struct decide_run a[WORLD_CASES][WORLD_RUNS], b[WORLD_CASES][WORLD_RUNS];
    struct decide_case cases[WORLD_CASES], turned[WORLD_CASES];
    bool lost[WORLD_CASES]; /* in truth */
};

struct answer {
    bool named, other, inconclusive,
        likely; /* a case that lost; one that did not; or else the suite is inconclusive */
};

static void add(struct column *t, enum figure f, double n)
{
    t->by[f].n += n;
    t->by[f].of++;
}

static void decide(const struct cell *cell, struct decide_case *cases, size_t n,
                   struct decide_overall *overall)
{
    bool check = cell->compare <= 0;
    struct decide_options options = {.unchanged = check, .b_stays = check};

    if (decide_suite(cases, n, &options, overall))
        abort();
}

static bool is_suspect(const struct decide_case *c)
{
    bool why = c->obstacle == OBSTACLE_SHAPE || c->obstacle == OBSTACLE_TOGETHER ||
               c->obstacle == OBSTACLE_STRANGE;

    return why && c->ratio < 1 - c->margin;
}

static struct answer judge(struct stage *s, const struct cell *cell, double margin)
{
    struct decide_overall overall;
    struct answer answer = {0};

    for (size_t c = 0; c < s->m.cases; c++)
        s->cases[c].margin = margin / 100;
    decide(cell, s->cases, s->m.cases, &overall);
    answer.inconclusive = overall.together || overall.runs_unknown;
    for (size_t c = 0; c < s->m.cases; c++) {
        bool worse = s->cases[c].decision == DECISION_WORSE;

        answer.named |= worse && s->lost[c];
        answer.other |= worse && !s->lost[c];
        answer.inconclusive |= is_suspect(&s->cases[c]);
        answer.likely |= s->cases[c].likely;
    }
    answer.inconclusive &= !answer.named && !answer.other;
    answer.likely &= !answer.named && !answer.other;
    return answer;
}

static struct decide_run run_of(const struct stage *s, size_t c, size_t t)
{
    return (struct decide_run){.values = s->m.values[c][t],
                               .sustained = s->m.w->sustained > 0 ? s->m.all[c][t] : NULL,
                               .n = s->m.reps,
                               .boot = s->m.boot[t],
                               .went_first = s->m.w->in_turn > 0 ? s->m.went_first[c][t] : NULL};
}

/* Case c's run `now`, and those behind it, against so many baselines. */
static void set_case(struct stage *s, size_t c, const size_t *baselines, size_t n, size_t now)
{
    size_t first = n > LEVEL_RUNS ? n - LEVEL_RUNS : 0, n_a = 0, n_b = s->m.n_b;

    for (size_t k = 0; k < n; k++) {
        if (k >= ANCHOR_RUNS && k < first)
            continue;
        s->a[c][n_a] = run_of(s, c, baselines[k]);
        s->a[c][n_a++].role = k < first ? DECIDE_ANCHOR : DECIDE_LEVEL;
    }
    for (size_t k = 0; k < n_b; k++)
        s->b[c][k] = run_of(s, c, now + k);
    s->cases[c] = (struct decide_case){.a = {s->a[c], n_a},
                                       .b = {s->b[c], n_b},
                                       .higher_is_better = world_higher(c),
                                       .paired = s->m.w->in_turn > 0};
}

/* --- suites, each by itself --- */

static double margin_of(const struct cell *cell)
{
    return cell->margin > 0 ? cell->margin : cell->compare > 0 ? COMPARE_MARGIN : CHECK_MARGIN;
}

/* The suite with a loss in n cases. */
static struct answer judge_loss(struct stage *s, const struct cell *cell, double loss,
                                enum planted planted, size_t n)
{
    struct answer answer;

    for (size_t k = 0; k < n; k++) {
        size_t c = (s->m.first + k) % s->m.cases;

        s->lost[c] = true;
        for (size_t t = s->m.n - s->m.n_b; t < s->m.n; t++)
            world_lose(&s->m, c, t, loss, planted);
    }
    answer = judge(s, cell, margin_of(cell));
    for (size_t c = 0; c < s->m.cases; c++)
        for (size_t t = s->m.n - s->m.n_b; s->lost[c] && t < s->m.n; t++)
            world_lose(&s->m, c, t, 0, IN_ALL);
    memset(s->lost, 0, sizeof(s->lost));
    return answer;
}

static bool is_equivalent(const struct stage *s)
{
    return s->cases[s->m.first].decision == DECISION_EQUIVALENT;
}

/* The suite just judged, the other way round. */
static bool is_disordered(struct stage *s, const struct cell *cell)
{
    struct decide_overall overall;
    size_t n = s->m.cases;
    bool differs = false;

    for (size_t c = 0; c < n; c++)
        s->turned[c] = s->cases[n - 1 - c];
    decide(cell, s->turned, n, &overall);
    for (size_t c = 0; c < n; c++)
        differs |= s->turned[n - 1 - c].decision != s->cases[c].decision;
    return differs;
}

static void try_loss(struct stage *s, const struct cell *cell, size_t b, struct column *t)
{
    bool in_one = cell->in_one_rep > 0;
    double many = fmax(1, round(cell->share / 100 * (double)s->m.cases));
    struct answer answer = judge_loss(s, cell, cell->loss[b],
                                      in_one                   ? IN_ONE_REP
                                      : cell->in_sustained > 0 ? IN_SUSTAINED
                                                               : IN_ALL,
                                      (size_t)many);

    add(t, FOUND, answer.named);
    add(t, OTHERS, answer.other);
    add(t, PASSED, !answer.named && !answer.inconclusive && !answer.likely);
    if (!in_one)
        judge_loss(s, cell, margin_of(cell), IN_ALL, 1);
    add(t, CALLED, is_equivalent(s));
}

/* What needs fewer suites. smallest: what is said to be detectable in the case that may lose. */
static void try_rest(struct stage *s, const struct cell *cell, double smallest, struct column *t)
{
    size_t equivalent = 0;

    judge(s, cell, WITHIN);
    for (size_t c = 0; c < s->m.cases; c++)
        equivalent += s->cases[c].decision == DECISION_EQUIVALENT;
    add(t, EQUIVALENT, (double)equivalent / (double)s->m.cases);
    if (!(smallest < 0.9))
        return;
    add(t, SMALLEST, smallest);
    add(t, SMALLEST_FOUND, judge_loss(s, cell, 100 * smallest, IN_ALL, 1).named);
}

static void try_suite(struct effort *e, struct stage *s, const struct cell *cell, size_t b,
                      size_t number, struct dice *d, struct column *t)
{
    size_t baselines[WORLD_RUNS], n = (size_t)cell->with[b];

    world_measure(cell, d, n, cell->in_turn > 0 ? n : 1, &s->m);
    for (size_t k = 0; k < n; k++)
        baselines[k] = k;
    for (size_t c = 0; c < s->m.cases; c++)
        set_case(s, c, baselines, n, n);
    struct answer answer = judge(s, cell, margin_of(cell));
    double smallest = s->cases[s->m.first].detectable;

    add(t, ALARMS, answer.other);
    add(t, INCONCLUSIVE, answer.inconclusive);
    add(t, LIKELY, answer.likely);
    e->disordered |= number == 0 && is_disordered(s, cell);
    if (number % LOSSES == 0)
        try_loss(s, cell, b, t);
    if (number % REST == 0)
        try_rest(s, cell, smallest, t);
}

/* --- nights, one after the other --- */

struct history {
    bool kept[WORLD_RUNS];     /* became baselines */
    size_t start[WORLD_CASES]; /* from this night on */
};

static bool is_during(const double *event, size_t t)
{
    return (double)t >= event[0] && (double)t < event[1];
}

/* What the cases that lose have lost by then, in percent. */
static double lost_by(const struct cell *cell, size_t t)
{
    if (is_during(cell->slip, t))
        return 100 - 100 * pow(1 - cell->slip[2] / 100, (double)t - cell->slip[0] + 1);
    return is_during(cell->then, t) ? cell->then[2] : is_during(cell->lose, t) ? cell->lose[2] : 0;
}

static bool is_loser(const struct stage *s, size_t c)
{
    return (c + s->m.cases - s->m.first) % s->m.cases < (size_t)fmax(1, s->m.w->losers);
}

static void set_night(struct stage *s, const struct history *h, size_t now)
{
    size_t baselines[WORLD_RUNS];

    for (size_t c = 0; c < s->m.cases; c++) {
        size_t n = 0;

        for (size_t t = h->start[c]; t < now; t++)
            if (h->kept[t])
                baselines[n++] = t;
        set_case(s, c, baselines, n, now);
        s->lost[c] = is_loser(s, c) && lost_by(s->m.w, now) > 0 && !h->start[c];
    }
}

/* Who reads that cases lost says that they are meant to. */
static bool accept(const struct stage *s, struct history *h, size_t now, struct answer a)
{
    bool accepts = s->m.w->accepted > 0 && a.named && !a.other;

    for (size_t c = 0; accepts && c < s->m.cases; c++)
        if (s->lost[c] && s->cases[c].decision == DECISION_WORSE)
            h->start[c] = now;
    return accepts;
}

static void measure_nights(struct stage *s, const struct cell *cell, struct dice *d)
{
    world_measure(cell, d, (size_t)cell->nights - 1, 1, &s->m);
    for (size_t c = 0; c < s->m.cases; c++)
        for (size_t t = 0; t < s->m.n && is_loser(s, c); t++)
            world_lose(&s->m, c, t, lost_by(cell, t), IN_ALL);
}

static void try_series(struct stage *s, const struct cell *cell, struct dice *d, struct column *t)
{
    struct history h = {.kept = {true}};
    double last = fmax(fmax(cell->lose[0], cell->then[0]), cell->slip[0]), found = 0;

    measure_nights(s, cell, d);
    for (size_t now = 1; now < s->m.n; now++) {
        set_night(s, &h, now);
        struct answer a = judge(s, cell, CHECK_MARGIN);

        h.kept[now] =
            accept(s, &h, now, a) || cell->all_kept > 0 || (!a.named && !a.other && !a.likely);
        add(t, ALARMS, a.other);
        add(t, INCONCLUSIVE, a.inconclusive);
        add(t, LIKELY, a.likely);
        add(t, KEPT, h.kept[now]);
        if (!(found > 0) && a.named && (double)now >= last)
            found = (double)now;
    }
    if (last > 0)
        add(t, FOUND, found > 0);
    if (found > 0)
        add(t, NIGHTS, found - last + 1);
    memset(s->lost, 0, sizeof(s->lost));
}

/* --- what is promised --- */

/* In percent; 0: nothing. */
static double promised(const struct cell *cell, enum figure f, size_t b)
{
    bool excepted = false;

    for (size_t i = 0; i < COLUMNS; i++)
        excepted |= cell->with[b] == cell->except[i];
    switch (f) {
    case ALARMS:
    case OTHERS:
        return excepted ? 0 : 1;
    case SMALLEST_FOUND:
        return excepted ? 0 : 80;
    case CALLED:
        return excepted ? 0 : 5;
    case INCONCLUSIVE:
        return cell->inconclusive[b];
    case EQUIVALENT:
        return cell->equivalent[b];
    case FOUND:
        return cell->found[b];
    case PASSED:
        return cell->passed[b];
    default:
        return 0;
    }
}

/* How many went wrong, and which share may. */
static size_t wrong(const struct count *count, enum figure f)
{
    return (size_t)ceil((figures[f].least ? count->of - count->n : count->n) - 1e-6);
}

static double most(double percent, enum figure f)
{
    return (figures[f].least ? 100 - percent : percent) / 100;
}

static bool is_clear(const struct cell *cell, const struct column *t, size_t b)
{
    for (enum figure f = 0; f < FIGURES; f++) {
        double percent = promised(cell, f, b), share = most(percent, f);
        size_t n = wrong(&t->by[f], f), of = (size_t)t->by[f].of;
        bool asked = f == ALARMS || (figures[f].alone && t->by[ALARMS].of < SOME_SUITES);

        if (asked && percent > 0 && of && !promise_is_clear(n, of, share) &&
            !(promise_chance(n, of, share) < SURELY))
            return false;
    }
    return true;
}

static bool is_broken(const struct effort *e, const struct cell *cell, const struct column *t,
                      enum figure f, size_t b)
{
    double percent = promised(cell, f, b), share = most(percent, f);
    size_t n = wrong(&t->by[f], f), of = (size_t)t->by[f].of;

    if (!(percent > 0) || !of)
        return false;
    return e->said.brief && figures[f].alone
               ? promise_breaks(&e->said, n, of, share)
               : (double)n > share * (double)of && promise_chance(n, of, share) < SURELY;
}

/* What a line promises of one figure, over its columns. */
static void tell_figure(struct effort *e, const char *name, const struct cell *cell,
                        const struct column columns[COLUMNS], enum figure f)
{
    char text[160] = "";
    bool broken = false;

    for (size_t b = 0; b < COLUMNS && cell->with[b] > 0; b++) {
        const struct count *count = &columns[b].by[f];
        size_t length = strlen(text);

        if (!(promised(cell, f, b) > 0) || !(count->of > 0))
            continue;
        broken |= is_broken(e, cell, &columns[b], f, b);
        e->all.by[f].n += count->n;
        e->all.by[f].of += count->of;
        snprintf(text + length, sizeof(text) - length, "%s %.4g of %g with %g", length ? "," : "",
                 count->n, count->of, cell->with[b]);
    }
    if (text[0])
        promise_tell(&e->said, broken, "%s: %s:%s", name, figures[f].what, text);
}

/* By so many deviations. In the short form one of both is empty: then it does not. */
static bool finds_less(const struct count *fewer, const struct count *more, double deviations)
{
    double p = (fewer->n + more->n + 1) / (fewer->of + more->of + 2),
           error = sqrt(p * (1 - p) * (1 / fewer->of + 1 / more->of));

    return fewer->n / fewer->of - more->n / more->of > deviations * error;
}

static void tell(struct effort *e, const char *name, const struct cell *cell,
                 const struct column columns[COLUMNS])
{
    const struct count *nights = &columns[0].by[NIGHTS];
    bool less = false;

    for (enum figure f = 0; f < FIGURES; f++)
        tell_figure(e, name, cell, columns, f);
    for (size_t b = 1; b < COLUMNS && cell->with[b] > 0; b++)
        less |= finds_less(&columns[b - 1].by[FOUND], &columns[b].by[FOUND], e->said.brief ? 5 : 3);
    if (cell->no_less > 0)
        promise_tell(&e->said, less, "%s: more baselines find no less", name);
    if (cell->within > 0 && !e->said.brief) /* one series says little */
        promise_tell(&e->said, !(nights->n <= cell->within * nights->of),
                     "%s: named after %.1f nights of %g", name, nights->n / nights->of,
                     cell->within);
}

static void tell_all(struct effort *e)
{
    static const enum figure over[] = {ALARMS, OTHERS, CALLED, SMALLEST_FOUND};

    for (size_t i = 0; i < sizeof(over) / sizeof(*over); i++) {
        const struct count *all = &e->all.by[over[i]];
        double share = most(promised(&(struct cell){.with = {1}}, over[i], 0), over[i]);
        size_t n = wrong(all, over[i]);
        bool broken =
            (double)n > share * all->of && promise_chance(n, (size_t)all->of, share) < SURELY;

        promise_tell(&e->said, broken, "all cells together: %s: %g of %g", figures[over[i]].what,
                     all->n, all->of);
    }
    promise_tell(&e->said, e->disordered, "the order of cases does not matter");
}

/* --- what is printed --- */

static void print_heading(const struct effort *e, const char *heading)
{
    if (e->said.tap)
        return;
    printf(e->markdown ? "\n%s\n\n| world |" : "\n%s\n%-52s", heading, "");
    for (enum figure f = 0; f < FIGURES; f++)
        printf(e->markdown ? " %s |" : "%8s", figures[f].head);
    printf(e->markdown ? "\n|---|" : "\n");
    for (enum figure f = 0; e->markdown && f < FIGURES; f++)
        fputs(f + 1 < FIGURES ? "---|" : "---|\n", stdout);
}

/* As markdown what is promised is bold, or else what is broken has a mark. */
static const char *figure_text(const struct effort *e, const struct cell *cell,
                               const struct column *t, enum figure f, size_t b, char text[32])
{
    const struct count *count = &t->by[f];
    const char *bold = e->markdown && promised(cell, f, b) > 0 ? "**" : "",
               *mark = !e->markdown && is_broken(e, cell, t, f, b) ? "!" : "";

    snprintf(text, 32, "-");
    if (count->of > 0)
        snprintf(text, 32, "%s%.3g%s%s", bold, figures[f].scale * count->n / count->of, bold, mark);
    return text;
}

/* A line for each column; as markdown one line, in which a figure has its columns. */
static void print_line(const struct effort *e, const char *name, const struct cell *cell,
                       const struct column columns[COLUMNS])
{
    size_t n = 0;
    char text[32];

    while (n < COLUMNS && cell->with[n] > 0)
        n++;
    for (size_t b = 0; !e->markdown && b < n; b++) {
        printf("%-52s", b ? "" : name);
        for (enum figure f = 0; f < FIGURES; f++)
            printf("%8s", figure_text(e, cell, &columns[b], f, b, text));
        putchar('\n');
    }
    if (!e->markdown)
        return;
    printf("| %s |", name);
    for (enum figure f = 0; f < FIGURES; f++)
        for (size_t b = 0; b < n; b++)
            printf(" %s%s", figure_text(e, cell, &columns[b], f, b, text), b + 1 < n ? "," : " |");
    putchar('\n');
}

/* --- the whole of it --- */

static void try_column(struct effort *e, struct stage *s, const struct cell *cell, size_t b,
                       uint64_t seed, struct column *t)
{
    bool nightly = cell->nights > 0;
    size_t full = nightly ? FULL_SERIES : FULL_SUITES,
           until = nightly ? FIRST_SERIES : FIRST_SUITES;
    struct dice d;

    if (e->said.brief)
        full = until = nightly ? SHORT_SERIES : SHORT_SUITES;
    if (e->suites)
        full = until = nightly ? e->suites / 40 + 1 : e->suites;
    dice_seed(&d, seed);
    for (size_t tried = 0; tried < until; tried++) {
        if (nightly)
            try_series(s, cell, &d, t);
        else
            try_suite(e, s, cell, b, tried, &d, t);
        if (tried + 1 == until && until < full && !is_clear(cell, t, b))
            until = 2 * until < full ? 2 * until : full;
    }
    add(t, WITH, cell->with[b]);
    add(t, LOSS, nightly ? fmax(cell->lose[2], cell->then[2]) : cell->loss[b]);
}

static void try_line(struct effort *e, struct stage *s, const char *line, size_t number)
{
    struct column columns[COLUMNS] = {0};
    uint64_t seed = e->seed;
    struct cell cell;
    char name[96];

    cell_read(line, &cell);
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(line, ":"), line);
    for (const char *c = name; *c; c++) /* a cell's suites do not change with the others */
        seed = (seed ^ (unsigned char)*c) * 0x100000001b3;
    for (size_t b = 0; b < COLUMNS && cell.with[b] > 0; b++)
        if (!e->said.brief || (number + b) % (cell.nights > 0 ? 4 : 2) == 0)
            try_column(e, s, &cell, b, seed + b, &columns[b]);
    if (!e->said.tap)
        print_line(e, name, &cell, columns);
    tell(e, name, &cell, columns);
    fflush(stdout);
}

static int usage(void)
{
    fputs("usage: verdicts [--short] [--tap] [--markdown] [--seed N] [--suites N] [--only TEXT]\n\n"
          "  --short      3 suites of every second cell and 1 series of nights, not 230 to 1,840 "
          "and\n"
          "               12 to 48; a promise is broken where chance does not explain it\n"
          "  --tap        promises alone, as tests\n"
          "  --markdown   the tables for docs/deciding.md, of 1,000 suites and 26 series\n"
          "  --only TEXT  cells whose line, or whose heading, has it\n\n"
          "exit: 0 all promises hold, 1 one is broken, 2 wrong usage\n",
          stderr);
    return 2;
}

static bool read_settings(int argc, char **argv, struct effort *e)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--short"))
            e->said.brief = true;
        else if (!strcmp(argv[i], "--tap"))
            e->said.tap = true;
        else if (!strcmp(argv[i], "--markdown"))
            e->markdown = true;
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            e->seed = strtoull(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--suites") && i + 1 < argc)
            e->suites = strtoull(argv[++i], NULL, 0);
        else if (!strcmp(argv[i], "--only") && i + 1 < argc)
            e->only = argv[++i];
        else
            return false;
    }
    if (e->markdown && !e->suites)
        e->suites = TABLE_SUITES;
    return true;
}

int main(int argc, char **argv)
{
    static struct stage stage;
    struct effort e = {.seed = 1};
    const char *heading = "", *headed = NULL;

    if (!read_settings(argc, argv, &e))
        return usage();
    for (size_t i = 0; lines[i]; i++) {
        if (lines[i][0] == '=')
            heading = lines[i] + 2;
        else if (!e.only || strstr(heading, e.only) || strstr(lines[i], e.only)) {
            if (heading != headed)
                print_heading(&e, heading);
            headed = heading;
            try_line(&e, &stage, lines[i], i);
        }
    }
    tell_all(&e);
    return promise_end(&e.said, "verdicts");
}
