/* SPDX-License-Identifier: Apache-2.0 */
/* The machine and the run, a line each: see summary_scene.h. */
#include <math.h>
#include <string.h>

#include "harness/report/facts.h"
#include "harness/report/page.h"
#include "harness/report/report.h"
#include "harness/report/show.h"
#include "harness/report/summary_scene.h"

#define GIB        (1024.0 * 1024 * 1024)
#define LONGEST_MS 1e12 /* beyond, what the folder says is nonsense */

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

void summary_machine(const struct scene *s)
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

/* "3:12 min of measuring"; "" where it is not known. */
static const char *took(const struct scene *s, const json_t *meta)
{
    double ms = fact_number(meta, "harness_cost.benchmarks_ms", NAN);
    unsigned seconds = ms > 0 && ms < LONGEST_MS ? (unsigned)(ms / 1000 + 0.5) : 0;

    return seconds ? pool_text(s->pool, "%u:%02u min", seconds / 60, seconds % 60) : "";
}

/* "170 of 174 repetitions, 2 failed (1 over the time-out)"; of a run that lacks none "". */
static const char *launches_text(const struct scene *s, const struct launches *n)
{
    size_t done = n->all - n->open - n->failed;
    const char *text = show_count(s->pool, n->all, "repetition");

    if (done == n->all && !s->notes)
        return "";
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

void summary_run(const struct scene *s)
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
    times = show_joined(s->pool, started(s, run->meta), took(s, run->meta));
    times = show_joined(s->pool, times, launches_text(s, &n));
    if (s->notes)
        times = show_joined(s->pool, times, shared_text(s, run));
    document_answer(s->d, "Run", n.open ? "incomplete" : "", n.open ? TONE_LOW : TONE_NONE,
                    show_joined(s->pool, text, times));
    if (n.open)
        document_answer_more(s->d, "to go on",
                             pool_text(s->pool, "plumb run --resume %s", run->path));
}
