/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences of a comparison: see compare.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/program.h"
#include "core/stats.h"
#include "harness/compare/compare.h"
#include "harness/report/facts.h"
#include "harness/report/show.h"
#include "harness/report/summary.h"
#include "harness/text.h"

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

bool words_has_pipe(const char *pipes, const char *pipe)
{
    size_t len = strlen(pipe);

    while (*pipes) {
        size_t n = strcspn(pipes, ",");

        if (n == len && !memcmp(pipes, pipe, n))
            return true;
        pipes += n;
        pipes += strspn(pipes, ", ");
    }
    return false;
}

/* ---- The two sides ---- */

struct runs {
    size_t first, n;
};

static const json_t *meta_of(const struct view *v, size_t run)
{
    return v->p->report.runs[run].meta;
}

static const char *host_of(const struct view *v, size_t run)
{
    const json_t *machine = json_object_get(meta_of(v, run), "machine");

    return text_at(json_object_get(machine, "host"), "hostname");
}

/* The host of all these runs; "": they are of several, or it is not known. */
static const char *common_host(const struct view *v, struct runs side)
{
    for (size_t i = 1; i < side.n; i++)
        if (strcmp(host_of(v, side.first), host_of(v, side.first + i)) != 0)
            return "";
    return host_of(v, side.first);
}

/* "guest" of "results/guest"; "" of several runs. */
static const char *folder_of(const struct view *v, struct runs side)
{
    const char *path = v->p->report.runs[side.first].path, *slash = strrchr(path, '/');

    return side.n > 1 ? "" : slash ? slash + 1 : path;
}

/* "quick-20261123-203555", as plumb run calls a folder that nobody named: it tells people nothing. */
static bool is_dated(const char *name)
{
    static const char shape[] = "-dddddddd-dddddd";
    size_t n = strlen(name), len = sizeof(shape) - 1;

    if (n < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (shape[i] == '-' ? name[n - len + i] != '-' : !strchr("0123456789", name[n - len + i]))
            return false;
    return true;
}

static bool differ(const char *a, const char *b)
{
    return *a && *b && strcmp(a, b) != 0;
}

/* What people call the sides: by folder, or by host where a folder has no name of its own; else by letter. */
static void name_sides(struct view *v, struct runs a, struct runs b)
{
    const char *host_a = common_host(v, a), *host_b = common_host(v, b);
    const char *folder_a = folder_of(v, a), *folder_b = folder_of(v, b);
    bool nameless = !*folder_a || !*folder_b || is_dated(folder_a) || is_dated(folder_b);
    bool by_host = differ(host_a, host_b) && nameless, by_folder = differ(folder_a, folder_b);

    v->name_a = view_printable(v->pool, by_host ? host_a : by_folder ? folder_a : view_letters[0]);
    v->name_b = view_printable(v->pool, by_host        ? host_b
                                        : by_folder    ? folder_b
                                        : v->p->name_b ? v->p->name_b
                                                       : view_letters[1]);
}

/* "guest on node3"; a run that has another name than its folder is told by both. */
static const char *run_text(struct view *v, size_t run)
{
    const char *text = v->p->report.names[run], *path = v->p->report.runs[run].path;
    const char *folder = folder_of(v, (struct runs){run, 1}), *host = host_of(v, run);

    if (is_dated(text))
        text = folder;
    else if (strcmp(text, folder) != 0)
        text = pool_text(v->pool, "%s ('%s')", text, path);
    if (*host)
        text = pool_text(v->pool, "%s on %s", text, host);
    return text;
}

/* "5 repetitions", "2 to 5 repetitions" */
static const char *repetitions_text(struct view *v, bool of_b)
{
    size_t least = 0, most = 0;

    for (size_t i = 0; i < v->p->n; i++) {
        const struct pair *pair = &v->p->all[i];
        const struct decide_side *side = of_b ? &pair->decide.b : &pair->decide.a;

        for (size_t k = 0; pair->state == PAIR_READY && k < side->n; k++)
            if (side->runs[k].n) {
                least = least && least < side->runs[k].n ? least : side->runs[k].n;
                most = most > side->runs[k].n ? most : side->runs[k].n;
            }
    }
    const char *range = least == most ? "" : pool_text(v->pool, "%zu to ", least);

    return most ? pool_text(v->pool, "%s%s", range, text_count(most, "repetition").text) : "";
}

/* "quiet", "steal up to 9 %, noisy in 5 of 46 cases" */
static const char *noise_text(struct view *v, bool of_b)
{
    struct disturbance most = {.steal_percent = 0, .quota_percent = 0, .gpu_percent = 0};
    size_t noisy = 0, throttled = 0;

    for (size_t i = 0; i < v->p->n; i++) {
        const struct disturbance *d = of_b ? &v->p->all[i].noise_b : &v->p->all[i].noise_a;

        if (v->p->all[i].state != PAIR_READY)
            continue;
        most.steal_percent = fmax(most.steal_percent, d->steal_percent);
        most.quota_percent = fmax(most.quota_percent, d->quota_percent);
        most.gpu_percent = fmax(most.gpu_percent, d->gpu_percent);
        noisy += 2 * d->noisy > d->rows;
        throttled += d->throttled > 0;
    }
    const char *text = disturbance_text(v->pool, &most);

    if (*text)
        text = pool_text(v->pool, "%s at most", text);
    if (throttled)
        text = show_joined(
            v->pool, text,
            pool_text(v->pool, "CPU throttled in %zu of %zu cases", throttled, v->n_ready));
    if (noisy)
        text = show_joined(v->pool, text,
                           pool_text(v->pool, "noisy in %zu of %zu cases", noisy, v->n_ready));
    return *text || !v->n_ready ? text : "quiet";
}

static const char *side_text(struct view *v, struct runs side, bool of_b)
{
    const char **texts = pool_alloc(v->pool, side.n, sizeof(*texts));
    const json_t *meta = meta_of(v, side.first);
    const char *nature = shown_nature(v->pool, json_object_get(meta, "machine"));

    nature = show_joined(v->pool, nature, summary_cpu(&v->p->report, side.first));
    for (size_t i = 0; i < side.n; i++)
        texts[i] = run_text(v, side.first + i);
    const char *text = pool_list(v->pool, texts, side.n, VIEW_NAMES, "; ");

    if (side.n > 1)
        text = pool_text(v->pool, "%zu runs: %s", side.n, text);
    text = pool_join(v->pool, text, ": ", nature);
    text = show_joined(v->pool, text, pool_text(v->pool, "%.10s", text_at(meta, "started_utc")));
    text = show_joined(v->pool, text, repetitions_text(v, of_b));
    return show_joined(v->pool, text, noise_text(v, of_b));
}

/* ---- Who wins where, by how much ---- */

/* The cases of a component that are worse, or better. */
struct moved {
    const struct view_pipe *pipe;
    size_t n;
    double middle, low, high; /* of their ratios; of one case its interval */
};

/* They stand together, worse first and better behind what is inconclusive. */
static struct moved moved_of(const struct view_pipe *pipe, enum decision decision)
{
    struct moved m = {.pipe = pipe, .n = pipe->counts[decision], .middle = NAN};
    size_t first = 0, n = 0;

    while (first < pipe->n && pipe->pairs[first]->decide.decision != decision)
        first++;
    while (n < m.n && !isnan(pipe->pairs[first + n]->decide.ratio))
        n++;
    if (!n)
        return m;
    const struct decide_case *one = &pipe->pairs[first]->decide,
                             *last = &pipe->pairs[first + n - 1]->decide;

    m.middle = sqrt(pipe->pairs[first + (n - 1) / 2]->decide.ratio *
                    pipe->pairs[first + n / 2]->decide.ratio);
    m.low = n > 1 ? one->ratio : one->low;
    m.high = n > 1 ? last->ratio : one->high;
    return m;
}

/* "10 % (9.5 to 10.4)"; from a half or twice on "a factor of 2.1 (1.9 to 2.4)". */
static const char *amount(struct pool *pool, const struct moved *m, bool brief)
{
    double size = fabs(log(m->middle)), a = fabs(log(m->low)), b = fabs(log(m->high));
    bool factor = size >= log(2), down = m->middle < 1;
    double low = fmin(a, b), high = fmax(a, b);

    low = factor ? exp(low) : 100 * fabs(expm1(down ? -low : low));
    high = factor ? exp(high) : 100 * fabs(expm1(down ? -high : high));
    size = factor ? exp(size) : 100 * fabs(expm1(down ? -size : size));
    const char *text = pool_text(pool, factor ? "a factor of %.*f" : "%.*f %%", size < 9.95, size);

    if (brief || !isfinite(low) || !isfinite(high))
        return text;
    return pool_text(pool, "%s (%.1f to %.1f)", text, low, high);
}

/* "Memory by 10 % (9.5 to 10.4) in 3 of 14 cases"; among many "Memory by 10 % (3 of 14)" */
static const char *moved_text(struct view *v, const struct moved *m, bool brief)
{
    const char *text = m->pipe->name;

    if (!isnan(m->middle))
        text = pool_text(v->pool, "%s by %s", text, amount(v->pool, m, brief));
    return m->n == m->pipe->n_cases
               ? text
               : pool_text(v->pool, brief ? "%s (%zu of %zu)" : "%s in %zu of %zu cases", text,
                           m->n, m->pipe->n_cases);
}

static int by_size(const void *x, const void *y)
{
    double a = fabs(log(((const struct moved *)x)->middle));
    double b = fabs(log(((const struct moved *)y)->middle));

    return isnan(a) || isnan(b) ? isnan(a) - isnan(b) : (a < b) - (a > b);
}

#define RANGED_MAX 2 /* components of a sentence that have their ranges, too */

/* The components with such cases, the largest change first; "" of none. *size: of that. */
static const char *list_moved(struct view *v, enum decision decision, double *size)
{
    struct moved *all = pool_alloc(v->pool, v->n_pipes, sizeof(*all));
    const char **texts = pool_alloc(v->pool, v->n_pipes, sizeof(*texts));
    size_t n = 0, n_moved = 0;

    for (size_t i = 0; i < v->n_pipes; i++) {
        const size_t *counts = v->pipes[i].counts;

        n_moved += (counts[DECISION_WORSE] > 0) + (counts[DECISION_BETTER] > 0);
        if (counts[decision])
            all[n++] = moved_of(&v->pipes[i], decision);
    }
    qsort(all, n, sizeof(*all), by_size);
    for (size_t i = 0; i < n; i++)
        texts[i] = moved_text(v, &all[i], n_moved > RANGED_MAX);
    *size = n ? fabs(log(all[0].middle)) : 0;
    return pool_list(v->pool, texts, n, VIEW_NAMES, ", ");
}

/* "36 cases equivalent within 5 %, 9 inconclusive and 20 not compared (8 failed in lost)": all that are
 * neither worse nor better. "": none are. */
static const char *others_text(struct view *v)
{
    const struct decide_overall *o = &v->p->overall;
    const char *margin = view_percent(v->pool, v->margin);
    const char *failed =
        v->n_failed_b ? pool_text(v->pool, " (%zu failed in %s)", v->n_failed_b, v->name_b) : "";
    const struct {
        size_t n;
        const char *what, *more;
    } kinds[] = {{o->n_equivalent, "equivalent within ", *margin ? margin : "their margins"},
                 {o->n_inconclusive, "inconclusive", ""},
                 {v->n_failed_b + v->n_lacking + v->n_extra, "not compared", failed}};
    const char *parts[3];
    size_t n = 0;

    for (size_t i = 0; i < 3; i++)
        if (kinds[i].n) {
            const char *count = n ? pool_text(v->pool, "%zu", kinds[i].n)
                                  : pool_text(v->pool, "%s", text_count(kinds[i].n, "case").text);

            parts[n++] = pool_text(v->pool, "%s %s%s", count, kinds[i].what, kinds[i].more);
        }
    return pool_list(v->pool, parts, n, 3, ", ");
}

#define LOOKS 0.9 /* a ratio below which a case is told that proves nothing */

/* "28 cases look slower, the most net tcp, 1 MiB (0.54); ": of cases that are inconclusive; "" */
static const char *looks_text(struct view *v)
{
    const struct pair *most = NULL;
    size_t n = 0;

    for (size_t i = 0; i < v->n_pipes; i++)
        for (size_t k = 0; k < v->pipes[i].n; k++) {
            const struct pair *pair = v->pipes[i].pairs[k];
            const struct decide_case *c = &pair->decide;

            if (c->decision != DECISION_INCONCLUSIVE || !(c->ratio < LOOKS))
                continue;
            n++;
            most = !most || c->ratio < most->decide.ratio ? pair : most;
        }
    return most ? pool_text(v->pool, "%s look%s slower, the most %s (%.2f); ",
                            text_count(n, "case").text, n == 1 ? "s" : "", most->name,
                            most->decide.ratio)
                : "";
}

static const char *decided_text(struct view *v)
{
    const struct decide_overall *o = &v->p->overall;
    const char *margin = view_percent(v->pool, v->margin), *others = others_text(v);
    double down, up;
    const char *slower = list_moved(v, DECISION_WORSE, &down);
    const char *faster = list_moved(v, DECISION_BETTER, &up);
    bool all_else = *margin && !o->n_inconclusive && !v->n_failed_b && !v->n_lacking && !v->n_extra;
    const char *text =
        pool_text(v->pool, "%s is %s than %s", v->name_b,
                  *slower && (down >= up || !*faster) ? "slower" : "faster", v->name_a);

    if (!v->n_ready && !v->n_taken)
        return pool_text(v->pool, "nothing of %s and %s can be compared%s%s", v->name_a, v->name_b,
                         *others ? ": " : "", others);
    if (!*slower && !*faster)
        return all_else && o->n_equivalent
                   ? pool_text(v->pool, "%s is equivalent to %s within %s in all %s", v->name_b,
                               v->name_a, margin, text_count(o->n_equivalent, "case").text)
                   : pool_text(v->pool, "%s against %s: nothing is proven; %s%s", v->name_b,
                               v->name_a, looks_text(v), others);
    if (*slower && *faster)
        text = pool_text(v->pool, "%s in %s; %s in %s", text, down >= up ? slower : faster,
                         down >= up ? "faster" : "slower", down >= up ? faster : slower);
    else
        text = pool_text(v->pool, "%s: %s", text, *slower ? slower : faster);
    return all_else && o->n_equivalent
               ? pool_text(v->pool, "%s; all else equivalent within %s", text, margin)
               : pool_join(v->pool, text, "; otherwise ", others);
}

/* "; the run 'guest' of B is 'interrupted'" */
static const char *unfinished_text(struct view *v)
{
    size_t n = v->n_unfinished;

    for (size_t run = 0; n == 1 && run < v->p->report.n_runs; run++)
        if (!strcmp(text_at(meta_of(v, run), "state"), v->state))
            return pool_text(v->pool, "; the run '%s' of %c is '%s'", v->p->report.names[run],
                             run < v->p->n_a ? 'A' : 'B', v->state);
    return n ? pool_text(v->pool, "; %zu runs were not measured to their end ('%s')", n, v->state)
             : "";
}

/* ---- What makes cases inconclusive ---- */

/* "3 cases, such as 'triad'" */
static const char *such_as(const struct view *v, size_t n, const struct pair *first)
{
    return pool_text(v->pool, "%s, %s'%s'", text_count(n, "case").text, n > 1 ? "such as " : "",
                     first->name);
}

static void add_obstacle(struct view *v, const char *text)
{
    v->obstacles[v->n_obstacles++] = text;
}

static bool is_explained(const struct pair *pair)
{
    return pair->explained;
}

static void find_obstacles(struct view *v)
{
    const char *const texts[] = {
        [OBSTACLE_NO_VALUE] = "a side has no value",
        [OBSTACLE_BAD_VALUE] = "a value is 0, negative, infinite or no number, of which no ratio "
                               "can be made: look into the rows",
        [OBSTACLE_ONE_LAUNCH] = "one repetition on a side shows no spread: measure again with "
                                "--repeat 5, or import several files",
        [OBSTACLE_FEW] = "so few repetitions cannot tell a change from two modes: 5 a side can",
    };
    const struct pair *first;
    size_t n;

    for (size_t kind = OBSTACLE_NO_VALUE; kind <= OBSTACLE_FEW; kind++) {
        n = 0;
        for (size_t i = 0; i < v->p->n; i++)
            n += v->p->all[i].state == PAIR_READY && v->p->all[i].decide.obstacle == kind;
        if (n)
            add_obstacle(v, pool_text(v->pool, "%s inconclusive: %s", text_count(n, "case").text,
                                      texts[kind]));
    }
    if (v->n_taken)
        add_obstacle(v, pool_text(v->pool,
                                  "%s inconclusive: left out by --steal. Measure again on a quiet "
                                  "machine, or compare without --steal",
                                  text_count(v->n_taken, "case").text));
    if ((n = view_count(v, is_explained, &first)))
        add_obstacle(v,
                     pool_text(v->pool,
                               "%s (%s of A, %s of B), inconclusive: the CPU time that others took "
                               "can explain a difference, or hide one: measure again on a quiet "
                               "machine, or compare with --steal 2%%",
                               such_as(v, n, first),
                               document_percent(v->pool, 100 * first->noise_a.taken),
                               document_percent(v->pool, 100 * first->noise_b.taken)));
}

static int by_count(const void *x, const void *y)
{
    const size_t *a = x, *b = y;

    return (*a > *b) - (*a < *b);
}

/* What to do: more data where that decides; else what differs between the two. */
static const char *next_text(struct view *v)
{
    const struct decide_overall *o = &v->p->overall;
    size_t *needed = pool_alloc(v->pool, v->p->n, sizeof(*needed)), n = 0;
    bool by_runs = false;

    for (size_t i = 0; i < v->p->n; i++) {
        const struct decide_case *c = &v->p->all[i].decide;

        if (v->p->all[i].state != PAIR_READY || c->decision != DECISION_INCONCLUSIVE ||
            !c->more_launches)
            continue;
        needed[n++] = c->more_launches;
        by_runs |= c->by_runs;
    }
    if ((o->n_worse || o->n_better) && v->p->n_a == 1 && v->p->n_b == 1)
        return pool_text(v->pool, "plumb doctor %s %s", v->p->report.runs[0].path,
                         v->p->report.runs[1].path);
    if (!n)
        return "";
    qsort(needed, n, sizeof(*needed), by_count);
    return pool_text(
        v->pool, "%s a side would decide half of %zu of the inconclusive cases, %zu all of them",
        text_count(needed[(n - 1) / 2], by_runs ? "more run" : "more repetition").text, n,
        needed[n - 1]);
}

/* ---- What to know before believing a comparison ---- */

static const char *command_of(const struct view *v, size_t run)
{
    return text_at(json_object_get(meta_of(v, run), "against"), "command");
}

/* What was measured in turn on the side that begins with this run: "what 'ssh guest plumb' starts" */
static const char *target_text(struct view *v, struct runs side)
{
    const char *command = command_of(v, side.first), *more = "";

    for (size_t i = 1; i < side.n; i++)
        if (strcmp(command, command_of(v, side.first + i)) != 0)
            more = " in one run, and another target in others";
    return *command ? pool_text(v->pool, "what '%s' starts%s", command, more)
                    : pool_text(v->pool, "the plumb that led the run%s", more);
}

/* Cases with a ratio: how many rest on the differences of repetitions that stood next to each other, and the
 * first that does not. */
struct turns {
    size_t n_paired, n_alone;
    const struct pair *alone;
};

static struct turns count_turns(const struct view *v)
{
    struct turns t = {0};

    for (size_t i = 0; i < v->p->n; i++) {
        const struct pair *pair = &v->p->all[i];

        if (pair->state != PAIR_READY || !isfinite(pair->decide.ratio))
            continue;
        if (pair->decide.by_pairs)
            t.n_paired++;
        else if (!t.n_alone++)
            t.alone = pair;
    }
    return t;
}

static const char *in_turn_text(struct view *v, const struct turns *t, struct runs a, struct runs b)
{
    const char *alone =
        !t->n_alone ? "" : pool_text(v->pool, ", but not in %s", such_as(v, t->n_alone, t->alone));

    return pool_text(
        v->pool,
        "measured in turn: the 95 %% CIs come from %s next to each other%s; A is %s, B is %s",
        v->p->n_a > 1 ? "pairs of runs" : "repetitions", alone, target_text(v, a),
        target_text(v, b));
}

/* "": none, or nothing was measured in turn. */
static const char *unused_turn_text(struct view *v)
{
    size_t first, n = pairs_without_partner(v->p, &first);

    if (!n)
        return "";
    return pool_text(
        v->pool,
        "runs measured in turn are compared as if they were not: '%s' has no partner on "
        "the other side (%s in all); name that, too, or leave it out",
        v->p->report.runs[first].path, text_count(n, "run").text);
}

/* "8 cases, such as 'allreduce 8 B': its time is the mean over ...": of figures of other programs. */
static const char *means_text(struct view *v)
{
    const struct pair *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < v->p->n; i++)
        if (v->p->all[i].state == PAIR_READY && v->p->all[i].means) {
            first = first ? first : &v->p->all[i];
            n++;
        }
    return n ? pool_text(v->pool, "%s: %s", such_as(v, n, first), first->differs) : "";
}

static void add_remarks(struct view *v, struct runs a, struct runs b)
{
    const struct turns turns = count_turns(v);
    const char *const all[] = {
        v->p->in_turn ? in_turn_text(v, &turns, a, b) : "",
        a.n == 1 && b.n == 1 && (turns.n_alone || !turns.n_paired)
            ? "one run a side does not show how runs vary; several runs, or plumb run --against, do"
            : "",
        unused_turn_text(v), means_text(v),
        v->n_thinned ? pool_text(v->pool, "some repetitions of B failed in %s: %s",
                                 such_as(v, v->n_thinned, v->thinned), v->thinned->reason)
                     : ""};

    v->remarks = pool_alloc(v->pool, sizeof(all) / sizeof(*all), sizeof(*v->remarks));
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (*all[i] && (v->n_ready || i + 1 == sizeof(all) / sizeof(*all)))
            v->remarks[v->n_remarks++] = view_printable(v->pool, all[i]);
}

#define MOST_TOLD 1.25 /* the noisiest case is told from so many times the median on */

/* "a slowdown of 7.6 % in the median case, 94 % in the noisiest"; "": it is not known. */
static const char *detects_text(struct view *v)
{
    double *all = pool_alloc(v->pool, v->p->n, sizeof(*all)), most = 0;
    size_t n = 0;

    for (size_t i = 0; i < v->p->n; i++)
        if (v->p->all[i].state == PAIR_READY && isfinite(v->p->all[i].decide.detectable)) {
            all[n++] = v->p->all[i].decide.detectable;
            most = fmax(most, all[n - 1]);
        }
    if (!n)
        return "";
    double middle = stats_median(all, n);
    const char *noisiest = most > MOST_TOLD * middle
                               ? pool_text(v->pool, ", %.2g %% in the noisiest",
                                           fmin(decide_detectable_percent(most), 99))
                               : "";

    return pool_text(v->pool, "a slowdown of %.2g %% in the median case%s",
                     decide_detectable_percent(middle), noisiest);
}

static const char *basis_text(struct view *v)
{
    const char *margin = view_percent(v->pool, v->margin);

    return pool_text(v->pool, "%s of A, %s of B; margin %s; 95 %% CI",
                     text_count(v->p->n_a, "run").text, text_count(v->p->n_b, "run").text,
                     *margin ? margin : "as the suite says for each case");
}

void words_make(struct view *v)
{
    const struct runs a = {0, v->p->n_a}, b = {v->p->n_a, v->p->n_b};

    name_sides(v, a, b);
    v->a = view_printable(v->pool, side_text(v, a, false));
    v->b = view_printable(v->pool, side_text(v, b, true));
    v->verdict =
        view_printable(v->pool, pool_text(v->pool, "%s%s", decided_text(v), unfinished_text(v)));
    v->basis = basis_text(v);
    v->detects = detects_text(v);
    v->next = view_printable(v->pool, next_text(v));
    find_obstacles(v);
    add_remarks(v, a, b);
}
