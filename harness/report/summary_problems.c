/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong, and what looks so: see summary_scene.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/stats.h"
#include "harness/report/cases.h"
#include "harness/report/report.h"
#include "harness/report/show.h"
#include "harness/report/summary_scene.h"

#define NAMED_MAX  3   /* cases in a list */
#define SPLIT      0.9 /* of the faster: a gap between two groups of GPUs that are built alike */
#define REASON_MAX 130 /* bytes of a reason in an answer: the notes have it whole */

const char *scene_name(const struct scene *s, size_t i)
{
    const char *what = scene_line(s, i)->what;

    return pool_text(s->pool, "%s%s%s", s->h->all[i].label, *what ? " " : "", what);
}

const char *scene_shortened(const struct scene *s, const char *text)
{
    size_t n = strlen(text);

    if (n <= REASON_MAX)
        return text;
    for (n = REASON_MAX; n && text[n] != ' '; n--)
        ;
    return pool_text(s->pool, "%.*s ...", (int)(n ? n : REASON_MAX), text);
}

/* "memory (2), copy (1)": cases with wrong data of each benchmark of which no test of the table tells so;
 * "" where there is none. */
static const char *wrong_elsewhere(const struct scene *s)
{
    const char *text = "";

    for (size_t i = 0; i < s->r->n_benches; i++) {
        const struct report_bench *b = &s->r->benches[i];
        size_t n = 0;
        bool told = false;

        for (size_t k = 0; k < s->h->n; k++)
            told = told || (s->h->all[k].bench == b && line_is(scene_line(s, k), VERDICT_WRONG));
        for (size_t k = 0; !told && k < b->n_cases; k++)
            n += b->cases[k].points[s->run].n_rows && point_is_wrong(&b->cases[k].points[s->run]);
        if (n)
            text = show_joined(s->pool, text, pool_text(s->pool, "%s (%zu)", b->name, n));
    }
    return *text ? pool_text(s->pool, "wrong data in cases of %s: see the rows", text) : "";
}

/* Without what only bounds its time: by default it has more. */
static const char *without(const struct scene *s, const char *arguments, const char *option)
{
    const char *at = strstr(arguments, option), *end;

    if (!at || (at != arguments && at[-1] != ' '))
        return arguments;
    end = at + strlen(option);
    end += strspn(end, " ");
    end += strcspn(end, " ");
    end += strspn(end, " ");
    return pool_text(s->pool, "%.*s%s", (int)(at - arguments), arguments, end);
}

/* The case to look closer at: what is slow beside its like, and not the one that is shown. */
static const struct report_case *look_at(const struct headline_run *at)
{
    return at->verdict.look_case ? at->verdict.look_case : at->best;
}

/* The command of the launch; "" where it needs other hosts. */
static const char *command_of(const struct scene *s, const struct report_bench *b,
                              const struct report_case *c)
{
    const struct table *plan = &s->r->runs[s->run].plan;
    const char *id = row_text(&b->rows[s->run], c->points[s->run].rows[0], FIELD_CASE);
    size_t column = table_column(plan, "case"), hosts = table_column(plan, "hosts");
    size_t from = table_column(plan, "from"), i;
    const char *arguments;

    for (i = 0; i < plan->n_rows; i++)
        if (!strcmp(table_cell(plan, i, column), id))
            break;
    if (i == plan->n_rows || *table_cell(plan, i, hosts) || *table_cell(plan, i, from))
        return "";
    arguments = table_cell(plan, i, table_column(plan, "arguments"));
    arguments = without(s, without(s, arguments, "--budget "), "--warmup ");
    return pool_text(s->pool, "plumb %s %s", b->name, arguments);
}

/* What its rows say is amiss, but not how wide their intervals are: that makes nothing low. */
static const char *rows_reason(const struct scene *s, const struct report_bench *b,
                               const struct report_case *c)
{
    const struct report_point *point = &c->points[s->run];
    const char *reason = "";

    for (size_t i = 0; !*reason && i < point->n_rows; i++)
        reason = row_text(&b->rows[s->run], point->rows[i], FIELD_REASON);
    return reason;
}

/* The nearest cause that is known: of the device, of the rows, of the machine; or "". */
static const char *cause_of(const struct scene *s, const struct headline *h)
{
    const struct headline_run *at = &h->runs[s->run];
    const char *why = verdict_device_findings(s->r, s->run, h->bench, look_at(at));

    if (!*why)
        why = rows_reason(s, h->bench, look_at(at));
    return *why ? why : at->verdict.findings;
}

/* Why the case, or one of those that its line is of, was lost. */
static const char *lost_reason(const struct scene *s, const struct headline_run *at)
{
    bool own = point_is_wrong(at->point) || point_has_failed(at->point) || !at->lost.first;

    return own ? at->point->reason : at->lost.first->points[s->run].reason;
}

/* "triad DRAM: wrong data in 1 of 2 cases: 17 differ"; of several that failed for one reason "tcp 1 MiB;
 * rdma 1 MiB and 2 more: failed: the peer is gone". Marks all that it tells. */
static const char *lost_text(const struct scene *s, size_t first, bool *told)
{
    const struct headline_run *at = scene_line(s, first);
    const char *why = lost_reason(s, at), *what = at->lost.text;
    struct show_list names = {.pool = s->pool, .max = NAMED_MAX, .parts = "; "};

    for (size_t i = first; i < s->h->n; i++) {
        const struct headline_run *other = scene_line(s, i);
        bool same = line_has_failed(other) && *why && other->verdict.kind == at->verdict.kind &&
                    !strcmp(lost_reason(s, other), why);

        if (i != first && (told[i] || !same))
            continue;
        told[i] = true;
        show_list_add(&names, scene_name(s, i));
    }
    return pool_text(s->pool, "%s: %s%s%s", show_list_text(&names),
                     names.n == 1 && *what ? what : at->verdict.word, *why ? ": " : "",
                     scene_shortened(s, why));
}

/* "GEMM bf16 8192: 42 % of its limit" */
static const char *problem_text(const struct scene *s, size_t i)
{
    const struct headline_run *at = scene_line(s, i);
    const char *what =
        line_is(at, VERDICT_SLOW)
            ? scene_shortened(s, at->verdict.look)
            : pool_text(s->pool, "%s of its limit%s", document_percent(s->pool, line_percent(at)),
                        isnan(at->point->low) ? ", in a single repetition" : "");
    const char *why = at->verdict.machine_changed ? at->verdict.machine_changed
                      : line_is(at, VERDICT_ABOVE)
                          ? "it is too low, or the data did not take that path"
                          : cause_of(s, &s->h->all[i]);

    return pool_text(s->pool, "%s: %s%s%s", scene_name(s, i), what, *why ? ": " : "",
                     scene_shortened(s, why));
}

/* What comes first: what is lost, then what lies above its limit, for then the limit or the path is
 * wrong; then what is slow beside its like, then what is lowest. */
static double rank(const struct headline_run *at)
{
    return line_has_failed(at)          ? -4
           : line_is(at, VERDICT_ABOVE) ? -3
           : at->verdict.look           ? -2
           : line_is_judged(at)         ? line_percent(at) / at->verdict.low_below
                                        : 1e9;
}

/* Of these tests the first that is not told yet; n: there is none. */
size_t scene_next(const struct scene *s, bool (*is)(const struct headline_run *), const bool *told)
{
    size_t found = s->h->n;

    for (size_t i = 0; i < s->h->n; i++)
        if (!told[i] && is(scene_line(s, i)) &&
            (found == s->h->n || rank(scene_line(s, i)) < rank(scene_line(s, found))))
            found = i;
    return found;
}

/* Is it slow, or does it only look so, beside the others that do the same? */
static bool is_behind(const struct like *at, bool proven)
{
    return at->on && (proven ? at->on->slow : at->on->looks_slow);
}

/* A slow pair or host is told by its matrix, and a slow GPU with all of its tests. */
static bool is_problem(const struct headline_run *at)
{
    bool told = *at->slow;

    for (size_t i = 0; i < at->n_likes; i++)
        told = told || is_behind(&at->likes[i], true);
    return at->verdict.tone != TONE_NONE && !(told && line_is(at, VERDICT_SLOW));
}

static bool has_outside(const struct headline_run *at)
{
    return *at->outside;
}

static bool is_low_undecided(const struct headline_run *at)
{
    return line_has_value(at) && line_is(at, VERDICT_UNDECIDED) &&
           at->point->percent < at->verdict.low_below;
}

static void add_problem(const struct scene *s, struct problems *p, const char *text)
{
    if (*text)
        *POOL_ADD(s->pool, p->texts, p->n) = text;
}

static void add_test(const struct scene *s, size_t i, const char *text, struct problems *p)
{
    if (!*p->command)
        p->command = command_of(s, s->h->all[i].bench, look_at(scene_line(s, i)));
    add_problem(s, p, text);
}

/* Of the test the place of this name that is behind the others; NULL: it is not. */
static const struct like *place_of(const struct scene *s, size_t i, const char *place, bool proven)
{
    const struct headline_run *at = scene_line(s, i);

    for (size_t k = 0; !at->of_pairs && k < at->n_likes; k++)
        if (is_behind(&at->likes[k], proven) && (!place || !strcmp(at->likes[k].place, place)))
            return &at->likes[k];
    return NULL;
}

/* The tests in which this place is behind the others: it is one problem, and not one of each. "cuda:5 is
 * slower than the others: GPU matrix core, f64 8192 (0.91 of them), f32 8192 (0.91) and 6 more: ..." */
static const char *place_text(const struct scene *s, size_t first, const struct like *at,
                              bool proven)
{
    struct show_list names = {.pool = s->pool, .max = NAMED_MAX};
    const char *of = " of them",
               *why = verdict_device_findings(s->r, s->run, s->h->all[first].bench, at->c);

    for (size_t i = first; i < s->h->n; i++) {
        const struct like *here = place_of(s, i, at->place, proven);

        if (!here)
            continue;
        show_list_add(&names,
                      pool_text(s->pool, "%s (%.2f%s)", scene_name(s, i), here->on->ratio, of));
        of = "";
    }
    if (!*why)
        why = rows_reason(s, s->h->all[first].bench, at->c);
    return pool_text(s->pool, "%s is slower than the others: %s%s%s%s", at->place,
                     show_list_text(&names), show_origin(s->pool, at->c->points[s->run].origin),
                     *why ? ": " : "", scene_shortened(s, why));
}

static bool was_told(const struct scene *s, size_t before, const char *place, bool proven)
{
    for (size_t i = 0; i < before; i++)
        if (place_of(s, i, place, proven))
            return true;
    return false;
}

/* How fast: of times the inverse. */
static double rate_of(const struct scene *s, const struct headline *h, const struct like *one)
{
    double value = one->c->points[s->run].value;

    return described_more_is_better(h->bench, one->c) ? value : 1 / value;
}

/* Of GPUs that fall into two groups none is behind all others: "triad: cuda:4, cuda:5 and 2 more, of 8
 * GPUs, reach 0.67 of the others", which are beyond the widest gap between two of them; "". */
static const char *split_text(const struct scene *s, size_t line)
{
    const struct headline *h = &s->h->all[line];
    const struct headline_run *at = scene_line(s, line);
    struct show_list names = {.pool = s->pool, .max = 2};
    double *rates = pool_alloc(s->pool, at->n_likes + 1, sizeof(*rates)), gap = SPLIT, ratio;
    size_t n = 0, low = 0;

    for (size_t k = 0; !at->of_pairs && k < at->n_likes; k++)
        if (is_behind(&at->likes[k], true))
            return ""; /* it is told */
        else if (case_has_value(at->likes[k].c, s->run))
            rates[n++] = rate_of(s, h, &at->likes[k]);
    qsort(rates, n, sizeof(*rates), stats_ascending);
    for (size_t i = 2; i + 1 < n; i++)
        if (rates[i - 1] < gap * rates[i]) {
            gap = rates[i - 1] / rates[i];
            low = i;
        }
    if (!low)
        return "";
    for (size_t k = 0; k < at->n_likes; k++)
        if (case_has_value(at->likes[k].c, s->run) && rate_of(s, h, &at->likes[k]) < rates[low])
            show_list_add(&names, at->likes[k].place);
    ratio = stats_median(rates, low) / stats_median(rates + low, n - low);
    return pool_text(s->pool, "%s: %s, of %zu GPUs, reach %.2f of the others", scene_name(s, line),
                     show_list_text(&names), n, ratio);
}

static void add_places(const struct scene *s, bool proven, struct problems *p)
{
    for (size_t i = 0; i < s->h->n; i++)
        for (size_t k = 0; !scene_line(s, i)->of_pairs && k < scene_line(s, i)->n_likes; k++) {
            const struct like *at = &scene_line(s, i)->likes[k];

            if (is_behind(at, proven) && !was_told(s, i, at->place, proven) &&
                (proven || !*split_text(s, i)))
                add_test(s, i, place_text(s, i, at, proven), p);
        }
}

static void add_of_matrix(const struct scene *s, const struct matrix *m, const char *text,
                          struct problems *p)
{
    add_problem(s, p,
                pool_text(s->pool, "%s (%s)%s", text, headline_matrix_name(s->pool, s->h, m),
                          matrix_origin(s->r, m)));
}

/* Of a pair that is slow both ways, one problem. */
static void add_matrix(const struct scene *s, const struct matrix *m, struct problems *p)
{
    for (size_t i = 0; i < m->n_slow_hosts; i++)
        add_of_matrix(s, m, matrix_host_text(s->r, m, i), p);
    for (size_t i = 0; i < m->n * m->n; i++) {
        size_t from = i / m->n, to = i % m->n, back = to * m->n + from;
        bool both = matrix_is_listed(m, i) && matrix_is_listed(m, back);

        if (!matrix_is_listed(m, i) || (both && to < from))
            continue;
        if (!*p->command)
            p->command = command_of(s, m->bench, m->cells[i].c);
        add_of_matrix(
            s, m,
            pool_text(s->pool, "%s%s", matrix_slow_text(s->r, m, i),
                      both ? pool_text(s->pool, ", the way back %.2f", m->cells[back].others->ratio)
                           : ""),
            p);
    }
}

/* "rail 3 carries 0.52 of the other rails and 2 more": which are behind, or have no value. */
static const char *siblings_text(const struct scene *s, bool proven, bool absent)
{
    struct show_list names = {.pool = s->pool, .max = NAMED_MAX, .parts = "; "};
    const struct siblings *all = &s->h->siblings;

    for (size_t i = 0; i < all->n; i++)
        if (all->all[i].run == s->run && all->all[i].proven == proven &&
            all->all[i].absent == absent)
            show_list_add(&names, all->all[i].sentence);
    return show_list_text(&names);
}

/* What is behind its like, or only looks so: links, hosts, rails, GPUs. */
static void find_slow(const struct scene *s, bool proven, struct problems *p)
{
    for (size_t i = 0; i < s->h->matrices.n; i++) {
        const struct matrix *m = &s->h->matrices.all[i];

        if (m->run == s->run && proven)
            add_matrix(s, m, p);
        else if (m->run == s->run && m->looks_slow)
            add_of_matrix(s, m, matrix_looks_slow_text(s->r, m), p);
    }
    add_problem(s, p, siblings_text(s, proven, false));
    if (proven)
        add_problem(s, p, siblings_text(s, true, true));
    add_places(s, proven, p);
    for (size_t i = 0; !proven && i < s->h->n; i++)
        add_problem(s, p, split_text(s, i));
}

const char *summary_slow(struct report *r, const struct headlines *h, size_t run)
{
    const struct scene s = {.r = r, .pool = &r->pool, .h = h, .run = run};
    struct problems slow = {.command = ""}, looks = {.command = ""};

    find_slow(&s, true, &slow);
    find_slow(&s, false, &looks);
    if (slow.n)
        return pool_list(s.pool, slow.texts, slow.n, NAMED_MAX, "; ");
    return looks.n ? pool_text(s.pool, "looks slow: %s",
                               pool_list(s.pool, looks.texts, looks.n, NAMED_MAX, "; "))
                   : "";
}

struct problems summary_problems(const struct scene *s)
{
    bool *told = pool_alloc(s->pool, s->h->n + 1, sizeof(*told));
    struct show_list outside = {.pool = s->pool, .max = NAMED_MAX, .parts = "; "};
    struct problems p = {.command = ""};

    add_problem(s, &p, wrong_elsewhere(s));
    for (size_t i; (i = scene_next(s, line_has_failed, told)) < s->h->n;)
        add_test(s, i, lost_text(s, i, told), &p);
    find_slow(s, true, &p);
    for (size_t i; (i = scene_next(s, is_problem, told)) < s->h->n; told[i] = true)
        add_test(s, i, problem_text(s, i), &p);
    for (size_t i = 0; i < s->h->n; i++)
        if (has_outside(scene_line(s, i)))
            show_list_add(&outside, pool_text(s->pool, "%s: %s", scene_name(s, i),
                                              scene_line(s, i)->outside));
    add_problem(s, &p, show_list_text(&outside));
    return p;
}

/* ---- what is not proven */

/* "triad DRAM, 41 % of its limit (31 % to 76 %)" */
static const char *low_text(const struct scene *s, size_t i)
{
    const struct verdict *v = &scene_line(s, i)->verdict;
    const char *why = v->machine_changed ? v->machine_changed : "";
    const char *range = *v->range ? pool_text(s->pool, " (%s)", v->range) : "";

    return pool_text(s->pool, "%s, %s of its limit%s%s%s", scene_name(s, i),
                     document_percent(s->pool, scene_line(s, i)->point->percent), range,
                     *why ? ": " : "", scene_shortened(s, why));
}

/* What looks slow or low: a single repetition, or an interval that is too wide, proves nothing. */
struct problems summary_suspects(const struct scene *s)
{
    bool *told = pool_alloc(s->pool, s->h->n + 1, sizeof(*told));
    struct problems p = {.command = ""};

    find_slow(s, false, &p);
    for (size_t i; (i = scene_next(s, is_low_undecided, told)) < s->h->n; told[i] = true)
        add_problem(s, &p, low_text(s, i));
    return p;
}
