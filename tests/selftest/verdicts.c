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
#include "tests/selftest/cells.h"
#include "tests/selftest/promise.h"

#define CHECK_MARGIN   0.02
#define COMPARE_MARGIN 0.05
#define WITHIN         0.05 /* unchanged cases are called equivalent within that */
/* What plumb check takes of a history: the last so many baselines, and the first so many. */
#define LEVEL_RUNS  10
#define ANCHOR_RUNS 10
/* Suites of a cell, and series of nights: in the short form; in the full one where all promises are
 * clear by then, and at most. The tables of docs/deciding.md have TABLE_SUITES. */
#define SHORT_SUITES 4
#define FIRST_SUITES 250
#define FULL_SUITES  4000
#define TABLE_SUITES 1000
#define SHORT_SERIES 1
#define FIRST_SERIES 12
#define FULL_SERIES  48
#define REST         4    /* what needs fewer suites is asked in every so many-th */
#define SURELY       1e-4 /* broken, and no more suites are needed to say so */

enum figure {
    ALARMS,
    UNDECIDED,
    LIKELY,
    EQUIVALENT,
    FOUND,
    OTHERS,
    PASSED,
    LOSS_CALLED,
    MARGIN_CALLED,
    SMALLEST,
    SMALLEST_FOUND,
    NIGHTS,
    KEPT,
    FIGURES
};

static const struct {
    const char *head, *what;
    bool least; /* a promise is of so many at least; or else at most */
} figures[FIGURES] = {
    [ALARMS] = {"alarms", "false alarms", false},
    [UNDECIDED] = {"undec.", "undecided where nothing changed", false},
    [LIKELY] = {"likely", "a loss is likely where nothing changed", false},
    [EQUIVALENT] = {"equiv.", "unchanged cases are called equivalent", true},
    [FOUND] = {"found", "a loss is named", true},
    [OTHERS] = {"others", "another case is named beside the loss", false},
    [PASSED] = {"passed", "a loss passes", false},
    [LOSS_CALLED] = {"so", "the loss is called equivalent", false},
    [MARGIN_CALLED] = {"margin", "a loss of the margin is called equivalent", false},
    [SMALLEST] = {"small", "the smallest detectable loss", false},
    [SMALLEST_FOUND] = {"of it", "losses of that size are named", true},
    [NIGHTS] = {"nights", "nights until it is named", false},
    [KEPT] = {"kept", "nights that become baselines", true},
};

struct count {
    double n, of;
};

struct column {
    struct count by[FIGURES];
    size_t disordered; /* suites in which the order of the cases matters */
};

struct effort {
    struct promises said;
    bool markdown;
    size_t suites; /* 0: as many as it takes */
    uint64_t seed;
    const char *only;
    struct count all[FIGURES]; /* over the cells that promise it */
    size_t disordered;
};

/* Room for one suite, some megabytes. */
struct stage {
    struct measured m;
    struct decide_run a[WORLD_CASES][WORLD_RUNS], b[WORLD_CASES][WORLD_RUNS];
    struct decide_case cases[WORLD_CASES], turned[WORLD_CASES];
    bool lost[WORLD_CASES]; /* in truth */
};

struct answer {
    bool named, other, undecided, likely; /* a case that lost; one that did not; or else exit 3 */
};

static void add(struct column *t, enum figure f, double n)
{
    t->by[f].n += n;
    t->by[f].of++;
}

static bool is_suspect(const struct decide_case *c)
{
    bool why = c->obstacle == OBSTACLE_SHAPE || c->obstacle == OBSTACLE_TOGETHER ||
               c->obstacle == OBSTACLE_STRANGE;

    return why && c->ratio < 1 - c->margin;
}

static struct answer judge(struct stage *s, const struct cell *cell, double margin)
{
    bool check = cell->compare <= 0;
    struct decide_options options = {.unchanged = check, .b_stays = check};
    struct decide_overall overall;
    struct answer answer = {0};

    for (size_t c = 0; c < s->m.cases; c++)
        s->cases[c].margin = margin;
    if (decide_suite(s->cases, s->m.cases, &options, &overall))
        abort();
    answer.undecided = overall.together || overall.runs_unknown;
    for (size_t c = 0; c < s->m.cases; c++) {
        bool worse = s->cases[c].decision == DECISION_WORSE;

        answer.named |= worse && s->lost[c];
        answer.other |= worse && !s->lost[c];
        answer.undecided |= is_suspect(&s->cases[c]);
        answer.likely |= s->cases[c].likely;
    }
    answer.undecided &= !answer.named && !answer.other;
    answer.likely &= !answer.named && !answer.other;
    return answer;
}

static struct decide_run run_of(const struct stage *s, size_t c, size_t t)
{
    const struct world *w = s->m.w;

    return (struct decide_run){.values = s->m.values[c][t],
                               .sustained = w->sustained > 0 ? s->m.all[c][t] : NULL,
                               .n = s->m.reps,
                               .boot = s->m.boot[t],
                               .went_first = w->in_turn > 0 ? s->m.went_first[c][t] : NULL};
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
    return cell->margin > 0    ? cell->margin / 100
           : cell->compare > 0 ? COMPARE_MARGIN
                               : CHECK_MARGIN;
}

/* The suite with so large a loss, in percent, in so many cases. */
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

/* Whether the order of the cases matters. */
static bool is_disordered(struct stage *s, const struct cell *cell)
{
    struct decide_options options = {.unchanged = cell->compare <= 0,
                                     .b_stays = cell->compare <= 0};
    struct decide_overall overall;
    bool differs = false;
    size_t n = s->m.cases;

    for (size_t c = 0; c < n; c++)
        s->turned[c] = s->cases[n - 1 - c];
    if (decide_suite(s->turned, n, &options, &overall))
        abort();
    for (size_t c = 0; c < n; c++)
        differs |= s->turned[n - 1 - c].decision != s->cases[c].decision;
    return differs;
}

/* What needs fewer suites. `smallest`: what the judge says is detectable in the case that may lose. */
static void try_rest(struct stage *s, const struct cell *cell, double smallest, struct column *t)
{
    size_t equivalent = 0;

    judge(s, cell, WITHIN);
    for (size_t c = 0; c < s->m.cases; c++)
        equivalent += s->cases[c].decision == DECISION_EQUIVALENT;
    add(t, EQUIVALENT, (double)equivalent / (double)s->m.cases);
    judge_loss(s, cell, 100 * margin_of(cell), IN_ALL, 1);
    add(t, MARGIN_CALLED, is_equivalent(s));
    if (!(smallest < 0.9))
        return;
    add(t, SMALLEST, smallest);
    add(t, SMALLEST_FOUND, judge_loss(s, cell, 100 * smallest, IN_ALL, 1).named);
}

static void try_suite(struct stage *s, const struct cell *cell, size_t b, struct dice *d, bool rest,
                      struct column *t)
{
    size_t baselines[WORLD_RUNS], n = (size_t)cell->with[b];
    double loss = cell->loss[b], margin = margin_of(cell);
    enum planted planted = (enum planted)cell->planted;

    world_measure(&cell->w, d, n, cell->w.in_turn > 0 ? n : 1, &s->m);
    for (size_t k = 0; k < n; k++)
        baselines[k] = k;
    for (size_t c = 0; c < s->m.cases; c++)
        set_case(s, c, baselines, n, n);
    struct answer quiet = judge(s, cell, margin);
    double smallest = s->cases[s->m.first].detectable;

    add(t, ALARMS, quiet.other);
    add(t, UNDECIDED, quiet.undecided);
    add(t, LIKELY, quiet.likely);
    if (t->by[ALARMS].of < 2)
        t->disordered += is_disordered(s, cell);
    struct answer lost = judge_loss(s, cell, loss, planted,
                                    (size_t)fmax(1, round(cell->share / 100 * (double)s->m.cases)));

    add(t, FOUND, lost.named);
    add(t, OTHERS, lost.other);
    add(t, PASSED, !lost.named && !lost.undecided && !lost.likely);
    if (planted == IN_ONE_REPETITION || loss >= 100 * margin)
        add(t, LOSS_CALLED, is_equivalent(s));
    if (rest)
        try_rest(s, cell, smallest, t);
}

/* --- nights, one after the other --- */

struct history {
    bool kept[WORLD_RUNS];     /* became baselines */
    size_t start[WORLD_CASES]; /* from this night on */
};

static bool is_during(const double event[3], size_t t)
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

static bool is_loser(const struct stage *s, const struct cell *cell, size_t c)
{
    return (c + s->m.cases - s->m.first) % s->m.cases < (size_t)fmax(1, cell->losers);
}

static void set_night(struct stage *s, const struct cell *cell, const struct history *h, size_t now)
{
    size_t baselines[WORLD_RUNS];

    for (size_t c = 0; c < s->m.cases; c++) {
        size_t n = 0;

        for (size_t t = h->start[c]; t < now; t++)
            if (h->kept[t])
                baselines[n++] = t;
        set_case(s, c, baselines, n, now);
        s->lost[c] = is_loser(s, cell, c) && lost_by(cell, now) > 0 && !h->start[c];
    }
}

/* Who reads that the cases lost says that they are meant to. */
static void accept(const struct stage *s, struct history *h, size_t now)
{
    for (size_t c = 0; c < s->m.cases; c++)
        if (s->lost[c] && s->cases[c].decision == DECISION_WORSE)
            h->start[c] = now;
}

static void try_series(struct stage *s, const struct cell *cell, struct dice *d, struct column *t)
{
    struct history h = {.kept = {true}};
    double last = cell->then[0] > 0   ? cell->then[0]
                  : cell->lose[0] > 0 ? cell->lose[0]
                                      : cell->slip[0];
    size_t nights = (size_t)cell->nights, found = 0;

    world_measure(&cell->w, d, nights - 1, 1, &s->m);
    for (size_t c = 0; c < s->m.cases; c++)
        for (size_t n = 0; n < nights && is_loser(s, cell, c); n++)
            world_lose(&s->m, c, n, lost_by(cell, n), IN_ALL);
    for (size_t now = 1; now < nights; now++) {
        set_night(s, cell, &h, now);
        struct answer a = judge(s, cell, CHECK_MARGIN);
        bool taken = cell->accepted > 0 && a.named && !a.other;

        if (taken)
            accept(s, &h, now);
        h.kept[now] = cell->all_kept > 0 || taken || (!a.named && !a.other && !a.likely);
        add(t, ALARMS, a.other);
        add(t, UNDECIDED, a.undecided);
        add(t, LIKELY, a.likely);
        add(t, KEPT, h.kept[now]);
        if (!found && a.named && (double)now >= last)
            found = now;
    }
    if (last > 0)
        add(t, FOUND, found > 0);
    if (found)
        add(t, NIGHTS, (double)found - last + 1);
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
    case LOSS_CALLED:
    case MARGIN_CALLED:
        return excepted ? 0 : 5;
    case UNDECIDED:
        return cell->undecided[b];
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

/* How many went wrong, which at most the share of all may. */
static size_t wrong(const struct count *count, enum figure f)
{
    return (size_t)ceil((figures[f].least ? count->of - count->n : count->n) - 1e-6);
}

static double share(double percent, enum figure f)
{
    return (figures[f].least ? 100 - percent : percent) / 100;
}

static bool is_clear(const struct cell *cell, const struct column *t, size_t b)
{
    for (enum figure f = 0; f < FIGURES; f++) {
        double percent = promised(cell, f, b), most = share(percent, f);
        size_t n = wrong(&t->by[f], f), of = (size_t)t->by[f].of;

        if (percent > 0 && of && !promise_is_clear(n, of, most) &&
            !(promise_chance(n, of, most) < SURELY))
            return false;
    }
    return true;
}

static void tell_figure(struct effort *e, const char *name, const struct cell *cell,
                        const struct column columns[COLUMNS], enum figure f)
{
    char text[128] = "";
    bool broken = false, made = false;

    for (size_t b = 0; b < COLUMNS && cell->with[b] > 0; b++) {
        double percent = promised(cell, f, b);
        const struct count *count = &columns[b].by[f];
        size_t of = (size_t)count->of, length = strlen(text);

        if (!(percent > 0) || !of)
            continue;
        made = true;
        broken |= promise_breaks(&e->said, wrong(count, f), of, share(percent, f));
        e->all[f].n += count->n;
        e->all[f].of += count->of;
        snprintf(text + length, sizeof(text) - length, " %.4g/%zu with %g,", count->n, of,
                 cell->with[b]);
    }
    if (made)
        promise_tell(&e->said, broken, "%s: %s:%.*s", name, figures[f].what, (int)strlen(text) - 1,
                     text);
}

/* Of two columns the one with more baselines finds less, beyond chance. */
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
    for (size_t b = 0; b < COLUMNS && cell->with[b] > 0; b++) {
        e->disordered += columns[b].disordered;
        less |= b > 0 &&
                finds_less(&columns[b - 1].by[FOUND], &columns[b].by[FOUND], e->said.brief ? 5 : 3);
    }
    if (cell->no_less > 0)
        promise_tell(&e->said, less, "%s: more baselines find no less", name);
    if (cell->within > 0 && !e->said.brief)
        promise_tell(&e->said, !(nights->n <= cell->within * nights->of),
                     "%s: named after %.1f nights of %g", name, nights->n / nights->of,
                     cell->within);
}

static void tell_all(struct effort *e)
{
    static const enum figure over[] = {ALARMS, OTHERS, LOSS_CALLED, MARGIN_CALLED};

    for (size_t i = 0; i < sizeof(over) / sizeof(*over); i++) {
        const struct count *all = &e->all[over[i]];
        double most = over[i] == ALARMS || over[i] == OTHERS ? 0.01 : 0.05;

        if (all->of > 0)
            promise_tell(&e->said, promise_breaks(&e->said, (size_t)all->n, (size_t)all->of, most),
                         "all cells together: %s: %g of %g", figures[over[i]].what, all->n,
                         all->of);
    }
    promise_tell(&e->said, e->disordered > 0, "the order of cases does not matter");
}

/* --- what is printed --- */

static void print_heading(const struct effort *e, const char *heading)
{
    if (e->said.tap)
        return;
    printf(e->markdown ? "\n%s\n\n| world | baselines | loss |" : "\n%s\n%-52s with loss", heading,
           "");
    for (enum figure f = 0; f < FIGURES; f++)
        printf(e->markdown ? " %s |" : "%7s ", figures[f].head);
    printf(e->markdown ? "\n|---|---|---|" : "\n");
    for (enum figure f = 0; e->markdown && f < FIGURES; f++)
        fputs(f + 1 < FIGURES ? "---|" : "---|\n", stdout);
}

static double percent_of(const struct count *count, enum figure f)
{
    return (f == NIGHTS ? 1 : 100) * count->n / count->of;
}

/* A line for every column. */
static void print_plain(const char *name, const struct cell *cell,
                        const struct column columns[COLUMNS])
{
    for (size_t b = 0; b < COLUMNS && cell->with[b] > 0; b++) {
        printf("%-52s %4g %4g", b ? "" : name, cell->with[b], cell->loss[b]);
        for (enum figure f = 0; f < FIGURES; f++) {
            const struct count *count = &columns[b].by[f];
            double percent = promised(cell, f, b);
            bool broken = percent > 0 && count->of > 0 &&
                          (double)wrong(count, f) > share(percent, f) * count->of + 1e-9;

            if (count->of > 0)
                printf("%7.*f%c", f == ALARMS || f == OTHERS ? 2 : 1, percent_of(count, f),
                       broken ? '!' : ' ');
            else
                printf("%7s ", "-");
        }
        putchar('\n');
    }
}

/* One line, in which a figure has its columns; what is promised is bold. */
static void print_markdown(const char *name, const struct cell *cell,
                           const struct column columns[COLUMNS])
{
    printf("| %s |", name);
    for (int k = 0; k < 2; k++, fputs(" |", stdout))
        for (size_t b = 0; b < COLUMNS && cell->with[b] > 0; b++)
            printf("%s%g", b ? ", " : " ", k ? cell->loss[b] : cell->with[b]);
    for (enum figure f = 0; f < FIGURES; f++, fputs(" |", stdout))
        for (size_t b = 0; b < COLUMNS && cell->with[b] > 0; b++) {
            const struct count *count = &columns[b].by[f];
            const char *bold = promised(cell, f, b) > 0 && count->of > 0 ? "**" : "";

            fputs(b ? ", " : " ", stdout);
            if (count->of > 0)
                printf("%s%.3g%s", bold, percent_of(count, f), bold);
            else
                putchar('-');
        }
    putchar('\n');
}

/* --- the whole of it --- */

static void try_column(const struct effort *e, struct stage *s, const struct cell *cell, size_t b,
                       uint64_t seed, struct column *t)
{
    bool nightly = cell->nights > 0;
    size_t most = nightly ? FULL_SERIES : FULL_SUITES, tried = 0,
           until = nightly ? FIRST_SERIES : FIRST_SUITES;
    struct dice d;

    if (e->said.brief)
        most = until = nightly ? SHORT_SERIES : SHORT_SUITES;
    if (e->suites)
        most = until = nightly ? (e->suites + 41) / 42 : e->suites;
    dice_seed(&d, seed);
    for (; tried < until; tried++) {
        if (nightly)
            try_series(s, cell, &d, t);
        else
            try_suite(s, cell, b, &d, tried % REST == 0, t);
        if (tried + 1 == until && until < most && !is_clear(cell, t, b))
            until = 2 * until < most ? 2 * until : most;
    }
}

static void try_line(struct effort *e, struct stage *s, const char *line)
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
        try_column(e, s, &cell, b, seed + b, &columns[b]);
    if (e->markdown)
        print_markdown(name, &cell, columns);
    else if (!e->said.tap)
        print_plain(name, &cell, columns);
    tell(e, name, &cell, columns);
    fflush(stdout);
}

static int usage(void)
{
    fputs("usage: verdicts [--short] [--tap] [--markdown] [--seed N] [--suites N] [--only TEXT]\n\n"
          "  --short      4 suites a cell and 1 series of nights, not 250 to 4,000 and 12 to 48; a "
          "promise is broken\n"
          "               where chance does not explain it\n"
          "  --tap        promises alone, as tests\n"
          "  --markdown   the tables for docs/deciding.md, of 1,000 suites\n"
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
    struct stage *s = calloc(1, sizeof(*s));
    struct effort e = {.seed = 1};
    const char *heading = "";
    bool all = false, headed = false;

    if (!s || !read_settings(argc, argv, &e))
        return usage();
    for (size_t i = 0; lines[i]; i++) {
        if (lines[i][0] == '=') {
            heading = lines[i] + 2;
            all = !e.only || strstr(heading, e.only);
            headed = false;
        } else if (all || strstr(lines[i], e.only)) {
            if (!headed)
                print_heading(&e, heading);
            headed = true;
            try_line(&e, s, lines[i]);
        }
    }
    tell_all(&e);
    free(s);
    return promise_end(&e.said, "verdicts");
}
