/* SPDX-License-Identifier: Apache-2.0 */
/* The first screen of a run: see summary.h. */
#include "harness/report/summary.h"

#include <math.h>
#include <string.h>

#include "harness/report/facts.h"
#include "harness/report/page.h"
#include "harness/report/report.h"
#include "harness/report/show.h"

#define PROBLEMS_MAX   6 /* that are told; the table has all */
#define NAMED_MAX      3 /* tests in a list */
#define NOT_TESTED_MAX 6
#define REASON_MAX     130 /* bytes of a reason in an answer: the notes have it whole */
#define GIB            (1024.0 * 1024 * 1024)

struct scene {
    struct report *r;
    struct pool *pool;
    const struct headlines *h;
    size_t run;
    bool notes; /* all is told */
    struct document *d;
};

static bool is_kind(const struct headline_run *at, enum verdict_kind kind)
{
    return at->verdict.kind == kind;
}

static bool is_measured_value(const struct headline_run *at)
{
    return at->point && at->point->n_values && point_is_measured(at->point);
}

static bool has_failed(const struct headline_run *at)
{
    return at->verdict.tone == TONE_BAD;
}

static bool is_judged(const struct headline_run *at)
{
    return at->verdict.low_below > 0;
}

static const struct headline_run *line(const struct scene *s, size_t i)
{
    return &s->h->all[i].runs[s->run];
}

static const char *test_name(const struct scene *s, size_t i)
{
    const char *what = line(s, i)->what;

    return pool_text(s->pool, "%s, %s%s%s", s->h->all[i].pipe, s->h->all[i].label, *what ? " " : "",
                     what);
}

/* ---- the machine and the run */

static const char *gpu_names(const struct scene *s, const json_t *machine)
{
    const json_t *devices = fact_at(machine, "gpus.devices"), *first = json_array_get(devices, 0);
    const char *name = fact_name(first, "name"), *others = "";

    FACT_EACH (devices, gpu)
        if (!fact_is(gpu, "name", name))
            others = " and others";
    if (!first)
        return "";
    return pool_text(s->pool, "%zu x %s%s%s", json_array_size(devices),
                     *name ? name : "a GPU without a name", others,
                     fact_is(first, "nature", "simulated") ? " (simulated)" : "");
}

/* "Intel(R) Xeon(R) Processor" without its marks and its last word. */
static const char *without_marks(struct pool *pool, const char *name)
{
    static const char *const marks[] = {"(R)", "(r)", "(TM)", "(tm)"};

    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
        for (const char *at; (at = strstr(name, marks[i])) != NULL;)
            name = pool_text(pool, "%.*s%s", (int)(at - name), name, at + strlen(marks[i]));
    size_t n = strlen(name), word = strlen(" Processor");
    if (n > word && !strcmp(name + n - word, " Processor"))
        name = pool_text(pool, "%.*s", (int)(n - word), name);
    return name;
}

/* "64 CPUs", "2.5 of 64 CPUs" by a quota or a set of CPUs; "" where it is not known. */
static const char *cpu_count(const struct scene *s, const json_t *machine)
{
    double n = fact_number(machine, "cpu.threads", 0);
    double quota = fact_number(machine, "virtualization.limits.cpu_quota", 0);
    double set = fact_cpus(fact_name(machine, "virtualization.limits.allowed_cpus"));

    if (!(n > 0))
        return "";
    if (set > 0 && (!(quota > 0) || set < quota))
        quota = set;
    return pool_text(s->pool, "%s%.0f CPU%s",
                     quota > 0 && quota < n ? pool_text(s->pool, "%.4g of ", quota) : "", n,
                     n == 1 ? "" : "s");
}

static const char *memory_size(const struct scene *s, const json_t *machine)
{
    double all = fact_number(machine, "memory.total_bytes", 0);
    double allowed = fact_number(machine, "virtualization.limits.memory_bytes", 0);

    if (!(all > 0))
        return "";
    return pool_text(s->pool, "%s%.1f GiB",
                     allowed > 0 && allowed < all ? pool_text(s->pool, "%.1f of ", allowed / GIB)
                                                  : "",
                     all / GIB);
}

static const char *cpu_name(const struct scene *s, const json_t *machine)
{
    const char *text = without_marks(s->pool, fact_name(machine, "cpu.model"));
    bool is_named = text[strcspn(text, "0123456789")]; /* "EPYC 9575F" needs no more */
    long long family = fact_integer(machine, "cpu.family", -1),
              model = fact_integer(machine, "cpu.model_number", -1);

    if (!*text)
        text = "CPU not known";
    return is_named || family < 0 || model < 0
               ? text
               : pool_text(s->pool, "%s (family %lld, model %lld)", text, family, model);
}

const char *summary_cpu(struct report *r, size_t run)
{
    const struct scene s = {.r = r, .pool = &r->pool, .run = run};
    const json_t *machine = fact_at(r->runs[run].meta, "machine");

    return *fact_name(machine, "cpu.model") ? cpu_name(&s, machine) : "";
}

static void answer_machine(const struct scene *s)
{
    const json_t *machine = fact_at(s->r->runs[s->run].meta, "machine");
    const char *text = cpu_name(s, machine);

    text = show_joined(s->pool, text, cpu_count(s, machine));
    text = show_joined(s->pool, text, memory_size(s, machine));
    text = show_joined(s->pool, text, gpu_names(s, machine));
    document_answer(s->d, "Machine", "", TONE_NONE, text);
}

struct launches {
    size_t all, open, failed, late; /* late: of those that failed, over their time-out */
};

static struct launches count_launches(const struct run_folder *run)
{
    size_t state = table_column(&run->plan, "state");
    struct launches n = {.all = run->plan.n_rows};

    for (size_t i = 0; i < n.all; i++) {
        const char *text = table_cell(&run->plan, i, state);

        n.open += !strcmp(text, "todo");
        n.late += !strcmp(text, "late");
        n.failed += !strcmp(text, "fail") || !strcmp(text, "late");
    }
    return n;
}

/* "2026-11-23T12:02:03Z" without its seconds. */
static const char *started(const struct scene *s, const json_t *meta)
{
    const char *time = fact_name(meta, "started_utc");

    return strlen(time) >= 16 ? pool_text(s->pool, "%.10s %.5s UTC", time, time + 11) : time;
}

/* "174 launches", "170 of 174 launches, 2 failed (1 over the time-out)" */
static const char *launches_text(const struct scene *s, const struct launches *n)
{
    size_t done = n->all - n->open - n->failed;
    const char *text = pool_text(s->pool, "%zu launch%s", n->all, n->all == 1 ? "" : "es");

    if (done < n->all)
        text = pool_text(s->pool, "%zu of %s", done, text);
    if (n->failed)
        text = pool_text(s->pool, "%s, %zu failed", text, n->failed);
    if (n->late)
        text = pool_text(s->pool, "%s (%zu over the time-out)", text, n->late);
    return text;
}

/* "875 shared 14 processes"; "": none shared one. Rows of a launch stand together. */
static const char *shared_text(const struct scene *s, const struct run_folder *run)
{
    size_t launches = 0, processes = 0;

    for (size_t i = 0; i < run->n_benches; i++) {
        const struct table *t = &run->benches[i].rows;
        for (size_t row = 0; row < t->n_rows; row++) {
            double before = table_number(t, row, "process_cases");
            bool same = row &&
                        !strcmp(table_text(t, row, "case"), table_text(t, row - 1, "case")) &&
                        !strcmp(table_text(t, row, "repeat"), table_text(t, row - 1, "repeat"));
            if (isnan(before) || same)
                continue;
            launches++;
            processes += before == 0;
        }
    }
    return launches == processes ? ""
                                 : pool_text(s->pool, "%zu shared %zu process%s", launches,
                                             processes, processes == 1 ? "" : "es");
}

static void answer_run(const struct scene *s)
{
    const struct run_folder *run = &s->r->runs[s->run];
    const char *suite = fact_name(run->meta, "suite"),
               *name = fact_name(run->meta, "machine.host.hostname");
    const char *kind = shown_nature(s->pool, fact_at(run->meta, "machine")),
               *text = *suite ? suite : "suite not named", *times;
    size_t hosts = json_array_size(fact_at(run->meta, "hosts.list"));
    struct launches n = count_launches(run);

    if (hosts)
        text = pool_text(s->pool, "%s over %s, started", text, show_count(s->pool, hosts, "host"));
    text = pool_text(s->pool, "%s on %s", text, *name ? name : "an unnamed host");
    if (*kind)
        text = pool_text(s->pool, "%s (%s)", text, kind);
    times = show_joined(s->pool, started(s, run->meta), launches_text(s, &n));
    times = show_joined(s->pool, times, shared_text(s, run));
    document_answer(s->d, "Run", n.open ? "incomplete" : "", n.open ? TONE_LOW : TONE_NONE,
                    show_joined(s->pool, text, times));
    if (n.open)
        document_answer_more(s->d, "to go on",
                             pool_text(s->pool, "plumb run --resume %s", run->path));
}

/* ---- what is wrong */

static const char *shortened(const struct scene *s, const char *text)
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
            told = told || (s->h->all[k].bench == b && is_kind(line(s, k), VERDICT_WRONG));
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
static const char *command_of(const struct scene *s, const struct headline *h)
{
    const struct table *plan = &s->r->runs[s->run].plan;
    const struct report_rows *rows = &h->bench->rows[s->run];
    const struct report_point *point = &look_at(&h->runs[s->run])->points[s->run];
    const char *id = row_text(rows, point->rows[0], FIELD_CASE);
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
    return pool_text(s->pool, "plumb %s %s", h->bench->name, arguments);
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

/* "GEMM, bf16 8192: 42 % of its limit", "Memory, triad: wrong data in 1 of 2 cases: 17 differ" */
static const char *problem_text(const struct scene *s, size_t i)
{
    const struct headline_run *at = line(s, i);
    const struct headline_lost *lost = &at->lost;
    const char *what, *why = "";

    if (has_failed(at)) {
        bool own = point_is_wrong(at->point) || point_has_failed(at->point) || !lost->first;

        what = *lost->text ? lost->text : at->verdict.word;
        why = own ? at->point->reason : lost->first->points[s->run].reason;
    } else {
        what = is_kind(at, VERDICT_SLOW)
                   ? shortened(s, at->verdict.look)
                   : pool_text(s->pool, "%s of its limit%s",
                               document_percent(s->pool, at->point->percent),
                               isnan(at->point->low) ? ", in a single repetition" : "");
        why = at->verdict.machine_changed  ? at->verdict.machine_changed
              : is_kind(at, VERDICT_ABOVE) ? "it is too low, or the data did not take that path"
                                           : cause_of(s, &s->h->all[i]);
    }
    return pool_text(s->pool, "%s: %s%s%s", test_name(s, i), what, *why ? ": " : "",
                     shortened(s, why));
}

/* What comes first: what is lost, then what lies above its limit, for then the limit or the path is
 * wrong; then what is slow beside its like, then what is lowest. */
static double rank(const struct headline_run *at)
{
    return has_failed(at)               ? -4
           : is_kind(at, VERDICT_ABOVE) ? -3
           : at->verdict.look           ? -2
           : is_judged(at)              ? at->point->percent / at->verdict.low_below
                                        : 1e9;
}

/* Of these tests the first that is not told yet; n: there is none. */
static size_t next_of(const struct scene *s, bool (*is)(const struct headline_run *),
                      const bool *told)
{
    size_t found = s->h->n;

    for (size_t i = 0; i < s->h->n; i++)
        if (!told[i] && is(line(s, i)) &&
            (found == s->h->n || rank(line(s, i)) < rank(line(s, found))))
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
    return at->verdict.tone != TONE_NONE && !(told && is_kind(at, VERDICT_SLOW));
}

static bool has_outside(const struct headline_run *at)
{
    return *at->outside;
}

static bool is_low_undecided(const struct headline_run *at)
{
    return is_measured_value(at) && is_kind(at, VERDICT_UNDECIDED) &&
           at->point->percent < at->verdict.low_below;
}

struct problems {
    const char **texts;
    size_t n;
    const char *command; /* to look closer at the first test among them; "" */
};

static void add_problem(const struct scene *s, struct problems *p, const char *text)
{
    if (*text)
        *POOL_ADD(s->pool, p->texts, p->n) = text;
}

static void add_test(const struct scene *s, size_t i, const char *text, struct problems *p)
{
    if (!*p->command)
        p->command = command_of(s, &s->h->all[i]);
    add_problem(s, p, text);
}

/* Of the test the place of this name that is behind the others; NULL: it is not. */
static const struct like *place_of(const struct scene *s, size_t i, const char *place, bool proven)
{
    const struct headline_run *at = line(s, i);

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
    const char *pipe = "",
               *why = verdict_device_findings(s->r, s->run, s->h->all[first].bench, at->c);

    for (size_t i = first; i < s->h->n; i++) {
        const struct headline *h = &s->h->all[i];
        const struct like *here = place_of(s, i, at->place, proven);
        bool same = !strcmp(pipe, h->pipe);

        if (!here)
            continue;
        show_list_add(&names,
                      pool_text(s->pool, "%s%s%s%s%s (%.2f%s)", same ? "" : h->pipe,
                                same ? "" : ", ", h->label, *line(s, i)->what ? " " : "",
                                line(s, i)->what, here->on->ratio, *pipe ? "" : " of them"));
        pipe = h->pipe;
    }
    if (!*why)
        why = rows_reason(s, s->h->all[first].bench, at->c);
    return pool_text(s->pool, "%s is slower than the others: %s%s%s%s", at->place,
                     show_list_text(&names), show_origin(s->pool, at->c->points[s->run].origin),
                     *why ? ": " : "", shortened(s, why));
}

static bool was_told(const struct scene *s, size_t before, const char *place, bool proven)
{
    for (size_t i = 0; i < before; i++)
        if (place_of(s, i, place, proven))
            return true;
    return false;
}

static void add_places(const struct scene *s, bool proven, struct problems *p)
{
    for (size_t i = 0; i < s->h->n; i++)
        for (size_t k = 0; !line(s, i)->of_pairs && k < line(s, i)->n_likes; k++) {
            const struct like *at = &line(s, i)->likes[k];

            if (is_behind(at, proven) && !was_told(s, i, at->place, proven))
                add_test(s, i, place_text(s, i, at, proven), p);
        }
}

static const char *title_of(const struct scene *s, const struct matrix *m)
{
    return pool_text(s->pool, "%s, %s", m->metric, m->title);
}

static const char *origin_of(const struct scene *s, const struct matrix *m)
{
    for (size_t i = 0; i < m->n * m->n; i++)
        if (matrix_has_value(&m->cells[i]))
            return show_origin(s->pool, m->cells[i].point->origin);
    return "";
}

static void add_matrix(const struct scene *s, const struct matrix *m, struct problems *p)
{
    for (size_t i = 0; i < m->n_slow_hosts; i++)
        add_problem(s, p,
                    pool_text(s->pool, "%s (%s)%s", matrix_host_text(s->r, m, i), title_of(s, m),
                              origin_of(s, m)));
    for (size_t i = 0; i < m->n * m->n; i++)
        if (matrix_is_listed(m, i))
            add_problem(s, p,
                        pool_text(s->pool, "%s (%s)%s", matrix_slow_text(s->r, m, i),
                                  title_of(s, m), origin_of(s, m)));
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
            add_problem(s, p,
                        pool_text(s->pool, "%s (%s)%s", matrix_looks_slow_text(s->r, m),
                                  title_of(s, m), origin_of(s, m)));
    }
    add_problem(s, p, siblings_text(s, proven, false));
    if (proven)
        add_problem(s, p, siblings_text(s, true, true));
    add_places(s, proven, p);
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

static struct problems find_problems(const struct scene *s)
{
    bool *told = pool_alloc(s->pool, s->h->n + 1, sizeof(*told));
    struct show_list outside = {.pool = s->pool, .max = NAMED_MAX, .parts = "; "};
    struct problems p = {.command = ""};

    add_problem(s, &p, wrong_elsewhere(s));
    for (size_t i; (i = next_of(s, has_failed, told)) < s->h->n; told[i] = true)
        add_test(s, i, problem_text(s, i), &p);
    find_slow(s, true, &p);
    for (size_t i; (i = next_of(s, is_problem, told)) < s->h->n; told[i] = true)
        add_test(s, i, problem_text(s, i), &p);
    for (size_t i = 0; i < s->h->n; i++)
        if (has_outside(line(s, i)))
            show_list_add(&outside,
                          pool_text(s->pool, "%s: %s", test_name(s, i), line(s, i)->outside));
    add_problem(s, &p, show_list_text(&outside));
    return p;
}

/* ---- what is not proven, and what is not known */

/* "Memory, triad, 41 % of its limit" */
static const char *low_text(const struct scene *s, const struct headline_run *at, const char *name)
{
    const char *why = at->verdict.machine_changed;

    return pool_text(s->pool, "%s, %s of its limit%s%s", name,
                     document_percent(s->pool, at->point->percent), why ? ": " : "",
                     why ? shortened(s, why) : "");
}

/* What looks slow or low: a single repetition, or an interval that is too wide, proves nothing. */
static struct problems find_suspects(const struct scene *s)
{
    bool *told = pool_alloc(s->pool, s->h->n + 1, sizeof(*told));
    struct problems p = {.command = ""};

    find_slow(s, false, &p);
    for (size_t i; (i = next_of(s, is_low_undecided, told)) < s->h->n; told[i] = true)
        add_problem(s, &p, low_text(s, line(s, i), test_name(s, i)));
    return p;
}

static void answer_suspects(const struct scene *s)
{
    struct problems p = find_suspects(s);

    for (size_t i = 0; i < p.n && (s->notes || i < NAMED_MAX); i++)
        if (i)
            document_answer_more(s->d, p.texts[i], "");
        else
            document_answer(s->d, "Not proven", "looks slow", TONE_LOW, p.texts[i]);
    if (p.n)
        document_answer_more(s->d,
                             p.n > NAMED_MAX
                                 ? pool_text(s->pool, "and %zu more; to confirm", p.n - NAMED_MAX)
                                 : "to confirm",
                             trust_command(s->r, s->run));
}

static bool is_normal(const struct headline_run *at)
{
    return is_measured_value(at) && is_kind(at, VERDICT_NORMAL);
}

static bool is_unmeasured(const struct headline_run *at)
{
    return is_kind(at, VERDICT_NOT_MEASURED);
}

static size_t count_where(const struct scene *s, bool (*is)(const struct headline_run *))
{
    size_t n = 0;

    for (size_t i = 0; i < s->h->n; i++)
        n += is(line(s, i));
    return n;
}

static bool is_all_skipped(const struct scene *s)
{
    const struct table *plan = &s->r->runs[s->run].plan;
    size_t state = table_column(plan, "state"), n = 0;

    for (size_t i = 0; i < plan->n_rows; i++)
        n += !strcmp(table_cell(plan, i, state), "skip");
    return n && n == plan->n_rows;
}

/* "all 28 launches were skipped: no driver"; the notes have a reason of GPUs. */
static const char *skipped_text(const struct scene *s)
{
    size_t n = s->r->runs[s->run].plan.n_rows;
    const char *why = *s->h->no_gpu ? "no GPU" : "";

    for (size_t b = 0; !*why && b < s->r->n_benches; b++)
        for (size_t i = 0; !*why && i < s->r->benches[b].n_cases; i++)
            why = shortened(s, s->r->benches[b].cases[i].points[s->run].reason);
    return pool_text(s->pool, "measured nothing: %s skipped%s%s",
                     n == 1 ? "its launch was" : pool_text(s->pool, "all %zu launches were", n),
                     *why ? ": " : "", why);
}

/* None is bad, and no test is judged, or the suite begins with a job: what is asked of this run is how
 * fast its jobs are. */
static bool is_of_jobs(const struct scene *s, const struct problems *p)
{
    return !p->n && (!count_where(s, is_judged) || jobs_lead(s->r, s->run)) &&
           *jobs_answer_text(s->r, &s->h->jobs, s->run);
}

/* "no problem in 22 tests: 12 are normal by their limit"; of what was not measured here nothing is known. */
static const char *health_text(const struct scene *s, const struct problems *p)
{
    size_t judged = count_where(s, is_judged), measured = count_where(s, is_measured_value);
    const char *tests = show_count(s->pool, measured, "test");
    double least = INFINITY, most = 0;

    if (is_all_skipped(s))
        return skipped_text(s);
    if (is_of_jobs(s, p))
        return jobs_answer_text(s->r, &s->h->jobs, s->run);
    if (p->n)
        return pool_text(s->pool, "%s in %s", show_count(s->pool, p->n, "problem"),
                         measured ? tests : show_count(s->pool, s->h->n, "test"));
    if (!measured)
        return s->h->n ? "nothing was measured on this machine"
                       : "no test is among these rows: the report lists them";
    if (!judged)
        return pool_text(s->pool,
                         "no problem seen in %s, none of which has a limit to be judged by", tests);
    for (size_t i = 0; i < s->h->n; i++)
        if (is_judged(line(s, i))) {
            least = fmin(least, line(s, i)->point->percent);
            most = fmax(most, line(s, i)->point->percent);
        }
    return pool_text(s->pool, "no problem in %s; %zu with a limit reach%s %s%.0f %% of it", tests,
                     judged, judged == 1 ? "es" : "",
                     judged == 1 ? "" : pool_text(s->pool, "%.0f to ", least), most);
}

static void answer_health(const struct scene *s, const struct problems *p)
{
    document_answer(s->d, "Answer", "", p->n ? TONE_BAD : TONE_NONE, health_text(s, p));
    for (size_t i = 0; i < p->n && (s->notes || i < PROBLEMS_MAX); i++)
        document_answer_more(s->d, p->texts[i], "");
    if (p->n > PROBLEMS_MAX && !s->notes)
        document_answer_more(
            s->d, pool_text(s->pool, "and %zu more: plumb report --notes", p->n - PROBLEMS_MAX),
            "");
    if (*p->command)
        document_answer_more(s->d, "to look closer", p->command);
}

/* Where nothing is wrong: what is nearest to it. */
static void answer_lowest(const struct scene *s)
{
    bool *told = pool_alloc(s->pool, s->h->n + 1, sizeof(*told));
    size_t i = next_of(s, is_normal, told);

    if (i < s->h->n)
        document_answer(s->d, "Lowest", "", TONE_NONE,
                        pool_text(s->pool, "%s, %s of its limit, which is normal", test_name(s, i),
                                  document_percent(s->pool, line(s, i)->point->percent)));
}

/* "Matrix core: 4 skipped (no such device here)": the tests of a pipe that have no value. */
static const char *skipped_of(const struct scene *s, size_t first)
{
    const char *pipe = s->h->all[first].pipe, *why = "";
    size_t n = 0;

    for (size_t i = 0; i < s->h->n; i++)
        if (!strcmp(s->h->all[i].pipe, pipe) && is_unmeasured(line(s, i))) {
            if (i < first)
                return "";
            why = *why || !line(s, i)->point ? why : line(s, i)->point->reason;
            n++;
        }
    return pool_text(s->pool, "%s: %zu skipped%s%s%s", pipe, n, *why ? " (" : "", shortened(s, why),
                     *why ? ")" : "");
}

static void answer_unknown(const struct scene *s)
{
    struct show_list list = {
        .pool = s->pool, .max = s->notes ? 2 * s->h->n + 2 : NOT_TESTED_MAX, .parts = "; "};
    const char *missing = show_joined(s->pool, s->h->missing, s->h->unheaded);

    for (size_t i = 0; i < s->h->n; i++)
        if (is_unmeasured(line(s, i)) && *skipped_of(s, i))
            show_list_add(&list, skipped_of(s, i));
    for (size_t i = 0; i < s->h->n; i++) {
        const struct headline_run *at = line(s, i);

        if (at->alike && at->alike < at->n_likes && !has_failed(at))
            show_list_add(&list,
                          pool_text(s->pool, "%s: %zu of %zu %s", test_name(s, i),
                                    at->n_likes - at->alike, at->n_likes, headline_places(at)));
    }
    if (*missing)
        show_list_add(&list, missing);
    if (*s->h->no_gpu) {
        const char *remedy = s->notes ? NULL : strstr(s->h->no_gpu, ": where there is one");
        int n = remedy ? (int)(remedy - s->h->no_gpu) : (int)strlen(s->h->no_gpu);

        show_list_add(&list, pool_text(s->pool, "GPUs: %.*s", n, s->h->no_gpu));
    }
    if (list.n)
        document_answer(s->d, "Not tested", "", TONE_NONE, show_list_text(&list));
}

void summary_answers(struct report *r, const struct headlines *h, size_t run, bool notes,
                     struct document *d)
{
    const struct scene s = {r, &r->pool, h, run, notes, d};
    const struct problems p = find_problems(&s);

    answer_health(&s, &p);
    answer_suspects(&s);
    jobs_answer(r, &h->jobs, run, is_of_jobs(&s, &p), d);
    answer_machine(&s);
    answer_run(&s);
    trust_answer(r, &h->comparisons, run, d);
    if (!p.n && !is_of_jobs(&s, &p))
        answer_lowest(&s);
    answer_unknown(&s);
}

/* ---- all of it */

void summary_all(struct report *r, const struct headlines *h, bool notes, struct document *d)
{
    for (size_t run = 0; run < r->n_runs; run++) {
        if (r->n_runs > 1)
            document_heading(d, 3, r->names[run], "");
        summary_answers(r, h, run, notes, d);
    }
    summary_table(r, h, notes, d);
}

static int write_summary(FILE *out, struct report *r, const struct headlines *h, bool notes)
{
    struct document *d = document_new(&r->pool);
    struct document_terminal terminal = document_terminal_of(out);

    summary_all(r, h, notes, d);
    summary_places(r, h, d);
    fputc('\n', out);
    return document_write_terminal(d, &terminal, out);
}

int report_markdown(FILE *out, const char *const *runs, size_t n, char *error, size_t len)
{
    struct headlines headlines;
    struct report r;
    int err = report_load(&r, runs, n, error, len);

    if (err)
        return err;
    struct document *d = document_new(&r.pool);
    headlines_make(&r, &headlines);
    summary_all(&r, &headlines, false, d);
    summary_places(&r, &headlines, d);
    err = document_write_markdown(d, out);
    if (err)
        snprintf(error, len, "the Markdown could not be written: %s", strerror(-err));
    report_release(&r);
    return err;
}

int report_summary(FILE *out, const struct run_folder *run, bool notes)
{
    struct headlines headlines;
    struct report r;
    int err = report_take(&r, run);

    if (!err) {
        headlines_make(&r, &headlines);
        err = write_summary(out, &r, &headlines, notes);
    }
    report_release(&r);
    return err;
}
