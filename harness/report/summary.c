/* SPDX-License-Identifier: Apache-2.0 */
/* The first screen of a run: see summary.h. */
#include "harness/report/summary.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "harness/report/facts.h"
#include "harness/report/page.h"
#include "harness/report/report.h"
#include "harness/report/show.h"

#define FAILED_MAX 2   /* tests that failed and are named; the table has all */
#define REASON_MAX 130 /* bytes of a reason in an answer: the table has it whole */
#define GIB        (1024.0 * 1024 * 1024)

struct scene {
    struct report *r;
    struct pool *pool;
    const struct headlines *h;
    size_t run;
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
    return pool_text(s->pool, "%s, %s", s->h->all[i].pipe, s->h->all[i].label);
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

/* ---- what failed, what is weakest */

static bool is_weak(const struct headline_run *at)
{
    return at->verdict.tone != TONE_NONE || is_kind(at, VERDICT_UNDECIDED);
}

static bool any_failed(const struct scene *s)
{
    for (size_t i = 0; i < s->h->n; i++)
        if (has_failed(line(s, i)))
            return true;
    return false;
}

static const char *shortened(const struct scene *s, const char *text)
{
    size_t n = strlen(text);

    if (n <= REASON_MAX)
        return text;
    for (n = REASON_MAX; n && text[n] != ' '; n--)
        ;
    return pool_text(s->pool, "%.*s ...", (int)(n ? n : REASON_MAX), text);
}

/* "memory (2), copy (1)": cases with wrong data of each benchmark; "" where there is none, or where
 * a test of the table tells of wrong data already. */
static const char *wrong_elsewhere(const struct scene *s)
{
    const char *text = "";

    for (size_t i = 0; i < s->h->n; i++)
        if (is_kind(line(s, i), VERDICT_WRONG))
            return "";
    for (size_t i = 0; i < s->r->n_benches; i++) {
        const struct report_bench *b = &s->r->benches[i];
        size_t n = 0;

        for (size_t k = 0; k < b->n_cases; k++)
            n += b->cases[k].points[s->run].n_rows && point_is_wrong(&b->cases[k].points[s->run]);
        if (n)
            text = show_joined(s->pool, text, pool_text(s->pool, "%s (%zu)", b->name, n));
    }
    return *text ? pool_text(s->pool, "wrong data in cases of %s: see the rows", text) : "";
}

static void answer_failed(const struct scene *s)
{
    struct show_list names = {.pool = s->pool, .max = FAILED_MAX, .parts = "; "};
    const char *reason = "", *elsewhere = wrong_elsewhere(s);

    for (size_t i = 0; i < s->h->n; i++) {
        const struct headline_run *at = line(s, i);

        if (!has_failed(at))
            continue;
        show_list_add(&names, *at->lost.text
                                  ? pool_text(s->pool, "%s (%s)", test_name(s, i), at->lost.text)
                                  : test_name(s, i));
        bool own = point_is_wrong(at->point) || point_has_failed(at->point) || !at->lost.first;
        if (!*reason)
            reason = own ? at->point->reason : at->lost.first->points[s->run].reason;
    }
    if (!names.n && *elsewhere)
        document_answer(s->d, "Failed", "beside the table", TONE_BAD, elsewhere);
    if (!names.n)
        return;
    document_answer(s->d, "Failed", pool_text(s->pool, "%zu of %zu tests", names.n, s->h->n),
                    TONE_BAD, show_list_text(&names));
    if (*reason)
        document_answer_more(s->d, shortened(s, reason), "");
    if (*elsewhere)
        document_answer_more(s->d, elsewhere, "");
}

/* How near it is to what is called low: above the limit comes before all, for then the limit or the
 * path is wrong; then what is slow beside its like, whatever its limit. */
static double rank(const struct headline_run *at)
{
    double share = at->point->percent / at->verdict.low_below;

    return is_kind(at, VERDICT_ABOVE) ? -3
           : at->verdict.look         ? -2
           : is_kind(at, VERDICT_LOW) ? share - 1
                                      : share;
}

static size_t weakest(const struct scene *s)
{
    size_t found = s->h->n;

    for (size_t i = 0; i < s->h->n; i++) {
        const struct headline_run *at = line(s, i);

        if ((is_judged(at) || at->verdict.look) &&
            (found == s->h->n || rank(at) < rank(line(s, found))))
            found = i;
    }
    return found;
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

/* The case to look closer at: what is slow beside its like, and not the best of them. */
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

static const char *weakness(const struct scene *s, size_t i)
{
    const struct headline_run *at = line(s, i);
    const char *text = pool_text(s->pool, "%s, is at %s of its limit", test_name(s, i),
                                 document_percent(s->pool, at->point->percent));

    if (at->verdict.machine_changed)
        return pool_text(s->pool, "%s; the machine itself changed between launches (note %zu)",
                         text, document_note(s->d, at->verdict.machine_changed));
    if (*at->verdict.range)
        return pool_text(s->pool, "%s (%s)", text, at->verdict.range);
    return isnan(at->point->low) ? pool_text(s->pool, "%s in a single launch", text) : text;
}

/* What its rows say is amiss, but not how wide their intervals are: that makes nothing low. */
static const char *rows_reason(const struct scene *s, const struct headline *h)
{
    const struct report_point *point = &look_at(&h->runs[s->run])->points[s->run];
    const char *reason = "";

    for (size_t i = 0; !*reason && i < point->n_rows; i++)
        reason = row_text(&h->bench->rows[s->run], point->rows[i], FIELD_REASON);
    return reason;
}

/* The nearest cause that is known: of the device, of the rows, of the machine; or "". */
static const char *weak_why(const struct scene *s, const struct headline *h)
{
    const struct headline_run *at = &h->runs[s->run];
    const char *why = verdict_device_findings(s->r, s->run, h->bench, look_at(at));

    if (!*why && is_weak(at) && !is_kind(at, VERDICT_UNDECIDED))
        why = rows_reason(s, h);
    return *why ? why : at->verdict.findings;
}

static void answer_weakest(const struct scene *s)
{
    size_t i = weakest(s);
    const struct headline_run *at;
    const char *why, *command;

    if (i == s->h->n) {
        document_answer(s->d, "Weakest", "not known", TONE_NONE,
                        "no test has a limit of this machine");
        return;
    }
    at = line(s, i);
    if (at->verdict.look && !is_kind(at, VERDICT_ABOVE))
        document_answer(
            s->d, "Weakest", "slow", TONE_LOW,
            pool_text(s->pool, "%s: %s", test_name(s, i), shortened(s, at->verdict.look)));
    else
        document_answer(s->d, "Weakest", at->verdict.word, at->verdict.tone, weakness(s, i));
    if (any_failed(s)) /* that comes first */
        return;
    why = weak_why(s, &s->h->all[i]);
    if (*why)
        document_answer_more(s->d, shortened(s, why), "");
    command = command_of(s, &s->h->all[i]);
    if (*command)
        document_answer_more(s->d, "to look closer", command);
}

/* ---- what is healthy, what is not known */

/* "Network latency", of a list that has "Network". */
static bool is_kind_of(const char *list, const char *pipe)
{
    size_t n = strcspn(pipe, " ");

    for (; pipe[n] && *list; list += strcspn(list, ","), list += strspn(list, ", "))
        if (strcspn(list, ",") == n && !memcmp(list, pipe, n))
            return true;
    return false;
}

/* Pipes of the tests for which `is` holds, each once, but for those of tests for which `not`
 * does. */
static const char *pipes_where(const struct scene *s, bool (*is)(const struct headline_run *),
                               bool (*never)(const struct headline_run *))
{
    const char *list = "", *last = "";

    for (size_t i = 0; i < s->h->n; i++) {
        const char *pipe = s->h->all[i].pipe;
        bool any = false, shut = false;

        if (!strcmp(pipe, last))
            continue;
        last = pipe;
        for (size_t k = i; k < s->h->n && !strcmp(s->h->all[k].pipe, pipe); k++) {
            any = any || is(line(s, k));
            shut = shut || (never && never(line(s, k)));
        }
        if (any && !shut && !is_kind_of(list, pipe))
            list = show_joined(s->pool, list, pipe);
    }
    return list;
}

static bool is_normal(const struct headline_run *at)
{
    return is_measured_value(at) && is_kind(at, VERDICT_NORMAL);
}

static bool is_undecided(const struct headline_run *at)
{
    return is_measured_value(at) && is_kind(at, VERDICT_UNDECIDED);
}

static bool is_without_limit(const struct headline_run *at)
{
    return is_measured_value(at) && !(at->verdict.low_below > 0) && !has_failed(at);
}

static bool is_unmeasured(const struct headline_run *at)
{
    return is_kind(at, VERDICT_NOT_MEASURED);
}

static bool is_not_of_here(const struct headline_run *at)
{
    return at->point && at->point->n_values && !point_is_measured(at->point);
}

/* ---- is it healthy? */

static size_t count_where(const struct scene *s, bool (*is)(const struct headline_run *))
{
    size_t n = 0;

    for (size_t i = 0; i < s->h->n; i++)
        n += is(line(s, i));
    return n;
}

static bool is_slow(const struct headline_run *at)
{
    return is_measured_value(at) && at->verdict.tone == TONE_LOW && !is_undecided(at);
}

static bool any_slow_link(const struct scene *s)
{
    for (size_t i = 0; i < s->h->matrices.n; i++)
        for (size_t k = 0; k < s->h->matrices.all[i].n * s->h->matrices.all[i].n; k++)
            if (s->h->matrices.all[i].run == s->run && matrix_is_listed(&s->h->matrices.all[i], k))
                return true;
    return false;
}

static bool is_all_skipped(const struct scene *s)
{
    const struct table *plan = &s->r->runs[s->run].plan;
    size_t state = table_column(plan, "state"), n = 0;

    for (size_t i = 0; i < plan->n_rows; i++)
        n += !strcmp(table_cell(plan, i, state), "skip");
    return n && n == plan->n_rows;
}

/* "measured nothing", "not healthy, tests failed", "nothing is proven slow" */
static const char *health(const struct scene *s)
{
    size_t slow = count_where(s, is_slow);

    if (is_all_skipped(s))
        return "measured nothing";
    if (any_failed(s))
        return "not healthy, tests failed";
    if (*wrong_elsewhere(s))
        return "not healthy, wrong data";
    if (slow)
        return pool_text(s->pool, "%s %s to be looked into", show_count(s->pool, slow, "test"),
                         slow == 1 ? "is" : "are");
    if (*siblings_health(s->r, &s->h->siblings, s->run))
        return siblings_health(s->r, &s->h->siblings, s->run);
    if (any_slow_link(s))
        return "links are slow";
    return count_where(s, is_normal) ? "nothing is proven slow" : "not known";
}

/* "all 28 launches were skipped: no driver"; the notes have a reason of GPUs. */
static const char *skipped_text(const struct scene *s)
{
    size_t n = s->r->runs[s->run].plan.n_rows;
    const char *why = *s->h->no_gpu ? "no GPU" : "";

    for (size_t b = 0; !*why && b < s->r->n_benches; b++)
        for (size_t i = 0; !*why && i < s->r->benches[b].n_cases; i++)
            why = shortened(s, s->r->benches[b].cases[i].points[s->run].reason);
    return pool_text(s->pool, "%s skipped%s%s",
                     n == 1 ? "its launch was" : pool_text(s->pool, "all %zu launches were", n),
                     *why ? ": " : "", why);
}

/* None is bad, and no test is judged, or the suite begins with a job: what is asked of this run is how
 * fast its jobs are. */
static bool is_of_jobs(const struct scene *s)
{
    bool asked = !count_where(s, is_judged) ||
                 (jobs_lead(s->r, s->run) && !count_where(s, is_slow) && !any_slow_link(s) &&
                  !*siblings_health(s->r, &s->h->siblings, s->run));

    return asked && !any_failed(s) && !*wrong_elsewhere(s) &&
           *jobs_answer_text(s->r, &s->h->jobs, s->run);
}

static const char *answer_text(const struct scene *s)
{
    size_t judged = count_where(s, is_judged), undecided = count_where(s, is_undecided);
    const char *text = health(s);

    if (is_all_skipped(s))
        return pool_text(s->pool, "%s: %s", text, skipped_text(s));
    if (is_of_jobs(s))
        return jobs_answer_text(s->r, &s->h->jobs, s->run);
    if (judged)
        text = pool_text(s->pool, "%s: %zu of %zu judged test%s normal", text,
                         count_where(s, is_normal), judged, judged == 1 ? " is" : "s are");
    else
        text = pool_text(s->pool, "%s: no test was judged", text);
    return undecided ? pool_text(s->pool, "%s, %zu undecided", text, undecided) : text;
}

static void answer_health(const struct scene *s)
{
    size_t others = count_where(s, is_without_limit);
    const char *text = answer_text(s);

    if (others && count_where(s, is_judged) && !is_of_jobs(s))
        text = pool_text(s->pool, "%s, %zu not judged", text, others);
    document_answer(s->d, "Answer", "", TONE_NONE, text);
}

static const char *more(const struct scene *s, const char *text, const char *what, const char *list)
{
    if (!*list)
        return text;
    return pool_text(s->pool, "%s%s%s: %s", text, *text ? "; " : "", what, list);
}

static void answer_unknown(const struct scene *s)
{
    const char *text = "";

    text = more(s, text, "undecided", pipes_where(s, is_undecided, NULL));
    if (!is_of_jobs(s)) { /* their lines say it */
        text = more(s, text, "not judged", pipes_where(s, is_without_limit, is_judged));
        text =
            more(s, text, "simulated, modelled or imported", pipes_where(s, is_not_of_here, NULL));
    }
    text = more(s, text, "not measured", pipes_where(s, is_unmeasured, NULL));
    text = more(s, text, "not in this run", s->h->missing);
    if (*s->h->no_gpu)
        text = pool_text(s->pool, "%s%sno GPU", text, *text ? "; " : "");
    if (*text)
        document_answer(s->d, "Unknown", "", TONE_NONE, text);
}

void summary_answers(struct report *r, const struct headlines *h, size_t run, struct document *d)
{
    const struct scene s = {r, &r->pool, h, run, d};
    const char *healthy = pipes_where(&s, is_normal, is_weak);

    answer_health(&s);
    jobs_answer(r, &h->jobs, run, is_of_jobs(&s), d);
    answer_machine(&s);
    answer_run(&s);
    trust_answer(r, &h->comparisons, run, d);
    answer_failed(&s);
    if (!is_of_jobs(&s))
        answer_weakest(&s);
    siblings_answer(r, &h->siblings, run, d);
    if (!is_of_jobs(&s) || count_where(&s, is_judged))
        document_answer(d, "Healthy", "", TONE_NONE,
                        *healthy ? healthy : "no component is proven to be");
    answer_unknown(&s);
}

/* ---- all of it */

void summary_all(struct report *r, const struct headlines *h, struct document *d)
{
    for (size_t run = 0; run < r->n_runs; run++) {
        if (r->n_runs > 1)
            document_heading(d, 3, r->names[run], "");
        summary_answers(r, h, run, d);
    }
    summary_table(r, h, d);
}

static int write_summary(FILE *out, struct report *r, const struct headlines *h)
{
    struct document *d = document_new(&r->pool);
    struct document_terminal terminal = document_terminal_of(out);

    summary_all(r, h, d);
    fputc('\n', out);
    int err = document_write_terminal(d, &terminal, out);
    if (err || !isatty(fileno(out)))
        return err;
    /* the notes have scrolled the first lines away */
    const struct scene s = {r, &r->pool, h, 0, document_new(&r->pool)};
    answer_health(&s);
    fputc('\n', out);
    return document_write_terminal(s.d, &terminal, out);
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
    summary_all(&r, &headlines, d);
    err = document_write_markdown(d, out);
    if (err)
        snprintf(error, len, "the Markdown could not be written: %s", strerror(-err));
    report_release(&r);
    return err;
}

int report_summary(FILE *out, const struct run_folder *run)
{
    struct headlines headlines;
    struct report r;
    int err = report_take(&r, run);

    if (!err) {
        headlines_make(&r, &headlines);
        err = write_summary(out, &r, &headlines);
    }
    report_release(&r);
    return err;
}
