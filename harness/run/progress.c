/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line and the estimates of time: see progress.h. */
#include "harness/run/progress.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/units.h"
#include "harness/text.h"

#define BAR 24

static uint64_t log_interval_ns(void)
{
    const char *text = getenv("PLUMB_PROGRESS");
    uint64_t ns;

    return text && !units_parse_duration(text, &ns) ? ns : 60000000000ull;
}

void progress_start(struct progress *p, FILE *out, size_t total, size_t done)
{
    bool terminal = isatty(fileno(out));

    *p = (struct progress){.out = terminal ? out : NULL,
                           .log = terminal ? NULL : out,
                           .every_ns = log_interval_ns(),
                           .total = total,
                           .done = done,
                           .first = done};
    p->begin_ns = clock_now_ns();
    p->next_ns = p->begin_ns + p->every_ns;
}

/* A launch that takes longer than it was expected to takes nothing from those after it. */
static double told_left_ns(const struct progress *p, uint64_t now_ns)
{
    double left_ns = p->left_ns - (double)(now_ns - p->left_at_ns);

    return left_ns > p->rest_ns ? left_ns : p->rest_ns;
}

/* From the launches of this start, which took what they took; false before the first. */
static bool seconds_left(const struct progress *p, uint64_t now_ns, unsigned *s)
{
    size_t ran = p->done - p->first;
    double left_ns;

    if (!ran || p->done >= p->total)
        return false;
    if (p->left_at_ns)
        left_ns = told_left_ns(p, now_ns);
    else
        left_ns = (double)(now_ns - p->begin_ns) / (double)ran * (double)(p->total - p->done);
    *s = (unsigned)(left_ns * 1e-9 + 0.5);
    return true;
}

static void time_left(const struct progress *p, uint64_t now_ns, char *text, size_t len)
{
    unsigned s;

    text[0] = 0;
    if (!seconds_left(p, now_ns, &s))
        return;
    if (s >= 3600)
        snprintf(text, len, ", %u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, len, ", %u:%02u left", s / 60, s % 60);
}

const char *progress_log_line(const struct progress *p, uint64_t now_ns, char *text, size_t len)
{
    char left[40] = "";
    unsigned s;

    if (seconds_left(p, now_ns, &s) && s < 90)
        snprintf(left, sizeof(left), ", about %u s left", s);
    else if (seconds_left(p, now_ns, &s))
        snprintf(left, sizeof(left), ", about %u minutes left", (s + 30) / 60);
    snprintf(text, len, "%zu of %zu launches done%s; now %s", p->done, p->total, left, p->now);
    return text;
}

const char *progress_line(const struct progress *p, uint64_t now_ns, int width, char *text,
                          size_t len)
{
    char bar[BAR + 1], left[32];
    size_t full = p->total ? p->done * BAR / p->total : BAR;

    memset(bar, '.', BAR);
    memset(bar, '#', full);
    bar[BAR] = 0;
    time_left(p, now_ns, left, sizeof(left));
    snprintf(text, len, "[%s] %zu of %zu%s  %s", bar, p->done, p->total, left, p->now);
    if (width > 0 && (size_t)width < strlen(text) && (size_t)width < len)
        text[width] = 0;
    return text;
}

static void show_in_log(struct progress *p)
{
    uint64_t now_ns = clock_now_ns();
    char text[320];

    if (now_ns < p->next_ns)
        return;
    p->next_ns = now_ns + p->every_ns;
    fprintf(p->log, "plumb %s: %s\n", p->command ? p->command : "run",
            progress_log_line(p, now_ns, text, sizeof(text)));
    fflush(p->log);
}

void progress_show(struct progress *p)
{
    struct winsize size = {0};
    char text[320];

    if (p->log)
        show_in_log(p);
    if (!p->out)
        return;
    int width = ioctl(fileno(p->out), TIOCGWINSZ, &size) || size.ws_col < 20 ? 79 : size.ws_col - 1;
    fprintf(p->out, "\r%s\033[K", progress_line(p, clock_now_ns(), width, text, sizeof(text)));
    fflush(p->out);
}

void progress_clear(struct progress *p)
{
    if (p->out) {
        fputs("\r\033[K", p->out);
        fflush(p->out);
    }
}

/* ---- How long a plan measures ---- */

/* A plan.csv may hold any number: cases beyond this one have no pace of their own. */
#define CASES_MAX (1u << 20)

/* The value of an option in a text of its own; false where it is not there. */
static bool argument_of(const char *arguments, const char *name, char *value, size_t len)
{
    size_t size;
    const char *at = argument_value(arguments, name, &size);

    if (at)
        snprintf(value, len, "%.*s", (int)size, at);
    return at != NULL;
}

/* The times that all benchmarks share hold by default, too; one of a benchmark's own is spent where
 * it is asked for. */
static uint64_t launch_ns(const struct bench_info *b, const char *arguments)
{
    uint64_t sum_ns = 0, ns;
    char value[64];

    for (size_t i = 0; b->options[i].name; i++) {
        if (b->options[i].type != OPT_DURATION)
            continue;
        if (!argument_of(arguments, b->options[i].name, value, sizeof(value)))
            snprintf(value, sizeof(value), "%s", i < b->n_own ? "" : b->defaults[i]);
        if (*value && !units_parse_duration(value, &ns))
            sum_ns += ns;
    }
    return sum_ns;
}

/* The --np of a launch: given, or the benchmark's default. */
static uint64_t own_ranks(const struct bench_info *b, const char *arguments)
{
    uint64_t ranks = 1;
    char value[64] = "";

    for (size_t i = 0; i < b->n_own && b->options[i].name; i++)
        if (!strcmp(b->options[i].name, "np") &&
            !argument_of(arguments, "np", value, sizeof(value)))
            snprintf(value, sizeof(value), "%s", b->defaults[i]);
    return units_parse_u64(value, &ranks) ? 1 : ranks;
}

/* A benchmark that needs a group measures communicators of 1, 2, 4 .. N ranks in one launch, unless
 * --ranks selects them. */
static unsigned points_of(const struct bench_info *b, const struct launch *l, unsigned group_ranks)
{
    uint64_t ranks = launch_has_group(l) ? group_ranks : own_ranks(b, l->arguments);
    unsigned points = 1;
    char value[64];

    if (!bench_needs(b, "group"))
        return 1;
    if (argument_of(l->arguments, "ranks", value, sizeof(value)) && strcmp(value, "0") != 0) {
        for (const char *at = value; (at = strchr(at, ',')) != NULL; at++)
            points++;
        return points;
    }
    for (uint64_t n = 1; n < ranks; n *= 2)
        points++;
    return points;
}

static uint64_t asked_ns(const struct bench_info *b, const struct launch *l, unsigned group_ranks)
{
    return b ? launch_ns(b, l->arguments) * points_of(b, l, group_ranks) : 0;
}

#define SHARED_TOLD_NS 60000000000ull /* less than this is not worth a word */
#define PROCESS_NS     50000000ull /* of a benchmark, from its start to its end, with nothing to do */

/* What was paid already: entry number `start` of a benchmark, by the process of a round, or by the
 * first launch of a case. */
struct paid {
    struct {
        const struct bench_info *bench;
        size_t start;
        unsigned round, case_number; /* 0: of any */
    } * all;
    size_t n;
};

/* Is it paid by an earlier launch? If not, this one pays it. Without memory it is paid again. */
static bool is_paid(struct paid *p, const struct bench_info *b, size_t start, unsigned round,
                    unsigned case_number)
{
    for (size_t i = p->n; i-- > 0;)
        if (p->all[i].bench == b && p->all[i].start == start && p->all[i].round == round &&
            p->all[i].case_number == case_number)
            return true;
    void *grown = realloc(p->all, (p->n + 1) * sizeof(*p->all));
    if (!grown)
        return false;
    p->all = grown;
    p->all[p->n].bench = b;
    p->all[p->n].start = start;
    p->all[p->n].round = round;
    p->all[p->n++].case_number = case_number;
    return false;
}

/* Beside what it is asked for. */
static uint64_t start_ns(const struct bench_info *b, const struct launch *l, enum process_rule rule,
                         struct paid *paid)
{
    const struct bench_start *starts = b->rows.starts;
    bool shares = launch_shares(rule, b, l), keeps = !launch_has_hosts(l);
    uint64_t ns = shares && is_paid(paid, b, SIZE_MAX, l->repeat, 0) ? 0 : PROCESS_NS;

    for (size_t i = 0; starts && starts[i].what; i++) {
        unsigned flags = starts[i].flags;
        if (start_fits(b, &starts[i], l->arguments) &&
            !(shares && flags & START_ONCE && is_paid(paid, b, i, l->repeat, 0)) &&
            !(keeps && flags & START_KEPT && is_paid(paid, b, i, 0, l->case_number)))
            ns += (uint64_t)(starts[i].seconds * 1e9);
    }
    return ns;
}

/* Launches that are done have paid for what their cases keep. */
static void pay_kept(const struct bench_list *benches, const struct plan *plan, struct paid *paid)
{
    for (size_t k = 0; k < plan->n; k++) {
        const struct launch *l = &plan->launches[k];
        const struct bench_info *b = bench_list_find(benches, l->bench);
        const struct bench_start *starts = b && l->state == LAUNCH_DONE ? b->rows.starts : NULL;
        for (size_t i = 0; starts && starts[i].what; i++)
            if (starts[i].flags & START_KEPT)
                is_paid(paid, b, i, 0, l->case_number);
    }
}

struct estimate estimate_plan(const struct bench_list *benches, const struct plan *plan,
                              unsigned group_ranks, enum process_rule rule,
                              const struct earlier *earlier)
{
    struct estimate e = {0};
    struct paid paid = {0}, paid_alone = {0};

    pay_kept(benches, plan, &paid);
    pay_kept(benches, plan, &paid_alone);
    for (size_t i = 0; i < plan->n; i++) {
        const struct launch *l = &plan->launches[i];
        const struct bench_info *b = bench_list_find(benches, l->bench);

        if (!b || l->state != LAUNCH_TODO)
            continue;
        uint64_t ns = asked_ns(b, l, group_ranks), start = start_ns(b, l, rule, &paid);
        double then_s = earlier ? earlier_seconds(earlier, l) : NAN;
        e.least_ns = !e.n || ns < e.least_ns ? ns : e.least_ns;
        e.most_ns = ns > e.most_ns ? ns : e.most_ns;
        e.all_ns += ns;
        e.start_ns += start;
        e.alone_ns += start_ns(b, l, PROCESS_CASE, &paid_alone);
        e.n++;
        if (isnan(then_s))
            continue;
        e.n_known++;
        e.known_ns += (uint64_t)(then_s * 1e9);
        e.known_asked_ns += ns;
        e.known_start_ns += start;
    }
    free(paid.all);
    free(paid_alone.all);
    return e;
}

/* Rounded up. */
static void long_time(uint64_t ns, char *text, size_t len)
{
    uint64_t s = (ns + 999999999) / 1000000000;

    if (s < 90)
        snprintf(text, len, "%llu s", (unsigned long long)s);
    else if (s < 90 * 60)
        snprintf(text, len, "%llu min", (unsigned long long)(s + 59) / 60);
    else
        snprintf(text, len, "%llu.%llu h", (unsigned long long)(s + 359) / 3600,
                 (unsigned long long)(s + 359) / 360 % 10);
}

/* What launches of a machine that nobody measured take. */
static void print_usual(const struct estimate *e, FILE *out)
{
    char all[32], asked[32], start[32], least[32], most[32], alone[32];
    bool same = e->least_ns == e->most_ns;
    uint64_t shared_ns = e->alone_ns > e->start_ns ? e->alone_ns - e->start_ns : 0;

    long_time(e->all_ns + e->start_ns, all, sizeof(all));
    long_time(e->all_ns, asked, sizeof(asked));
    long_time(e->start_ns, start, sizeof(start));
    long_time(shared_ns, alone, sizeof(alone));
    units_format_duration(e->least_ns, least, sizeof(least));
    units_format_duration(e->most_ns, most, sizeof(most));
    fprintf(out,
            "expected time: about %s, or half to twice that: %s of warm-up and sampling "
            "(%zu %s x %s%s%s), %s of start, set-up and checks",
            all, asked, e->n, e->n == 1 ? "launch" : "launches", same ? "" : least,
            same ? "" : " to ", most, start);
    if (shared_ns > SHARED_TOLD_NS)
        fprintf(out, "; shared processes save %s", alone);
}

/* What kept runs of this machine know. */
static void print_known(const struct estimate *e, const struct earlier *earlier, FILE *out)
{
    uint64_t usual_ns = e->known_asked_ns + e->known_start_ns;
    uint64_t rest_ns = e->all_ns + e->start_ns - usual_ns;
    char all[32], known[32], rest[32], usual[32];

    long_time(e->known_ns + rest_ns, all, sizeof(all));
    long_time(e->known_ns, known, sizeof(known));
    long_time(rest_ns, rest, sizeof(rest));
    long_time(usual_ns, usual, sizeof(usual));
    fprintf(out, "expected time: about %s: ", all);
    if (e->n_known < e->n)
        fprintf(out, "%zu of %zu launches took %s", e->n_known, e->n, known);
    else
        fprintf(out, "so long they took");
    fprintf(out, " in %zu kept run%s of this machine (%s%s)", earlier->n_runs,
            earlier->n_runs == 1 ? "" : "s",
            earlier->n_runs == 1 ? "" : "the newest: ", earlier->newest);
    if (e->n_known < e->n)
        fprintf(out, ", the others may take %s, or half to twice that", rest);
    if (e->known_ns > 2 * usual_ns || usual_ns > 2 * e->known_ns)
        fprintf(out, "; by the benchmarks' own figures these would take %s", usual);
}

const char *estimate_text(const struct estimate *e, const struct earlier *earlier,
                          char text[ESTIMATE_BYTES])
{
    FILE *out = fmemopen(text, ESTIMATE_BYTES, "w");

    text[0] = 0;
    if (!out)
        return text;
    if (e->n_known)
        print_known(e, earlier, out);
    else
        print_usual(e, out);
    fclose(out);
    text[ESTIMATE_BYTES - 1] = 0;
    return text;
}

int pace_make(struct pace *p, const struct bench_list *benches, const struct plan *plan,
              unsigned group_ranks)
{
    *p = (struct pace){.n = plan->n, .n_benches = benches->n + 1};
    for (size_t i = 0; i < plan->n; i++)
        if (plan->launches[i].case_number >= p->n_cases &&
            plan->launches[i].case_number < CASES_MAX)
            p->n_cases = plan->launches[i].case_number + 1;
    p->asked_ns = calloc(p->n + 1, sizeof(*p->asked_ns));
    p->bench = calloc(p->n + 1, sizeof(*p->bench));
    p->case_ns = calloc(p->n_cases + 1, sizeof(*p->case_ns));
    p->of_case = calloc(p->n_cases + 1, sizeof(*p->of_case));
    p->bench_ns = calloc(p->n_benches, sizeof(*p->bench_ns));
    p->of_bench = calloc(p->n_benches, sizeof(*p->of_bench));
    if (!p->asked_ns || !p->bench || !p->case_ns || !p->of_case || !p->bench_ns || !p->of_bench)
        return -ENOMEM;
    for (size_t i = 0; i < plan->n; i++) {
        const struct bench_info *b = bench_list_find(benches, plan->launches[i].bench);

        p->asked_ns[i] = asked_ns(b, &plan->launches[i], group_ranks);
        p->bench[i] = b ? (size_t)(b - benches->benches) : benches->n;
    }
    return 0;
}

void pace_release(struct pace *p)
{
    free(p->of_bench);
    free(p->bench_ns);
    free(p->of_case);
    free(p->case_ns);
    free(p->bench);
    free(p->asked_ns);
    *p = (struct pace){0};
}

void pace_ended(struct pace *p, const struct plan *plan, size_t i, uint64_t ns)
{
    double beyond_ns = (double)ns - (double)p->asked_ns[i];
    size_t number = plan->launches[i].case_number;

    if (number < p->n_cases) {
        p->case_ns[number] += (double)ns;
        p->of_case[number]++;
    }
    if (plan->launches[i].state == LAUNCH_LATE) /* its time-out is nobody else's time */
        return;
    p->bench_ns[p->bench[i]] += beyond_ns;
    p->of_bench[p->bench[i]]++;
    p->beyond_ns += beyond_ns;
    p->ended++;
}

double pace_expects_ns(const struct pace *p, const struct plan *plan, size_t i)
{
    size_t number = plan->launches[i].case_number, bench = p->bench[i];

    if (!p->ended)
        return 0;
    if (number < p->n_cases && p->of_case[number])
        return p->case_ns[number] / (double)p->of_case[number];
    double beyond_ns = p->of_bench[bench] ? p->bench_ns[bench] / (double)p->of_bench[bench]
                                          : p->beyond_ns / (double)p->ended;
    return fmax(0, (double)p->asked_ns[i] + beyond_ns);
}

double pace_left_ns(const struct pace *p, const struct plan *plan)
{
    double sum_ns = 0;

    for (size_t i = 0; i < plan->n; i++)
        if (plan->launches[i].state == LAUNCH_TODO)
            sum_ns += pace_expects_ns(p, plan, i);
    return sum_ns;
}
