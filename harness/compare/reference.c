/* SPDX-License-Identifier: Apache-2.0 */
/* Reference machines, and the one that is nearest to a run's: see compare.h. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "harness/compare/compare.h"
#include "harness/plan/bench_info.h"
#include "harness/report/show.h"

/* ---- the typed facts of a machine by which nearness is told */

enum fact_kind { FACT_TEXT, FACT_MODEL, FACT_COUNT, FACT_BYTES, FACT_GPUS };

static const struct trait {
    const char *what, *path;
    enum fact_kind kind;
    double weight; /* of a text that differs; the most of a number */
} facts[] = {
    {"architecture", "machine.host.architecture", FACT_TEXT, 16},
    {"microarchitecture", "machine.cpu", FACT_MODEL, 8},
    {"CPU model", "machine.cpu.model", FACT_TEXT, 1},
    {"cores", "machine.cpu.cores", FACT_COUNT, 3},
    {"memory", "machine.memory.total_bytes", FACT_BYTES, 2},
    {"virtualisation", "machine.virtualization.hypervisor", FACT_TEXT, 2},
    {"GPUs", "machine.gpus.devices", FACT_GPUS, 8},
};
#define FACTS      (sizeof(facts) / sizeof(*facts))
#define SAME_BYTES 0.1 /* log: a guest sees less memory than it was given */

/* Family and model number of x86; elsewhere, the maker has other numbers. */
const char *differ_processor(struct pool *pool, const json_t *cpu)
{
    const char *vendor = differ_text(pool, json_object_get(cpu, "vendor"));
    const char *family = differ_text(pool, json_object_get(cpu, "family"));
    const char *model = differ_text(pool, json_object_get(cpu, "model_number"));

    if (!*vendor)
        return "";
    return pool_text(pool, "%s%s%s%s%s", vendor, *family ? " family " : "", family,
                     *model ? " model " : "", model);
}

static const char *gpus_text(struct pool *pool, const json_t *list)
{
    size_t n = json_array_size(list);
    const char **names = pool_alloc(pool, n, sizeof(*names));

    if (!json_is_array(list))
        return "";
    for (size_t i = 0; i < n; i++)
        names[i] = differ_text(pool, json_object_get(json_array_get(list, i), "name"));
    return n ? differ_counted(pool, names, n) : "none";
}

static const char *fact_text(struct pool *pool, const json_t *run, const struct trait *f)
{
    const json_t *value = differ_find(run, f->path);

    switch (f->kind) {
    case FACT_MODEL:
        return differ_processor(pool, value);
    case FACT_GPUS:
        return gpus_text(pool, value);
    case FACT_BYTES:
        return json_is_number(value)
                   ? pool_text(pool, "%.3g GiB", json_number_value(value) / (1 << 30))
                   : "";
    default:
        return differ_text(pool, value);
    }
}

static double log_of(const json_t *run, const struct trait *f)
{
    const json_t *value = differ_find(run, f->path);

    return json_is_number(value) && json_number_value(value) > 0 ? log(json_number_value(value))
                                                                 : NAN;
}

static bool is_same(const json_t *a, const json_t *b, const char *key)
{
    return json_equal(json_object_get(a, key), json_object_get(b, key));
}

/* Models of one family are like each other, and families of one maker are a little. */
static double model_distance(const json_t *a, const json_t *b)
{
    if (!is_same(a, b, "vendor"))
        return 1;
    if (!is_same(a, b, "family"))
        return 0.75;
    return is_same(a, b, "model_number") ? 0 : 0.25;
}

/* 0: alike; the weight, or what the numbers' ratio makes of it; half of it where one is unknown. */
static double fact_distance(struct pool *pool, const json_t *a, const json_t *b,
                            const struct trait *f)
{
    const char *x = fact_text(pool, a, f), *y = fact_text(pool, b, f);
    double apart;

    if (!*x || !*y)
        return *x || *y ? f->weight / 2 : 0;
    if (f->kind == FACT_MODEL)
        return f->weight * model_distance(differ_find(a, f->path), differ_find(b, f->path));
    if (f->kind != FACT_COUNT && f->kind != FACT_BYTES)
        return strcmp(x, y) ? f->weight : 0;
    apart = fabs(log_of(a, f) - log_of(b, f));
    if (f->kind == FACT_BYTES && apart <= SAME_BYTES)
        return 0;
    return fmin(f->weight, apart / log(2));
}

/* ---- where they are */

static bool is_folder(const char *path)
{
    return !access(path, R_OK | X_OK);
}

/* PLUMB_REFERENCES; ./results/reference; beside the program in the tree; installed. "": none. */
static const char *find_folder(struct pool *pool)
{
    static const char *const beside[] = {"/../../results/reference",
                                         "/../share/plumbline/reference", "/../reference"};
    const char *env = getenv("PLUMB_REFERENCES");
    char own[4000] = "";

    if (env && *env)
        return pool_text(pool, "%s", env);
    if (is_folder("results/reference"))
        return "results/reference";
    program_folder(own, sizeof(own));
    for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++) {
        const char *path = pool_text(pool, "%s%s", own, beside[i]);

        if (is_folder(path))
            return path;
    }
    return "";
}

static json_t *load_meta(struct pool *pool, const char *folder)
{
    json_t *meta = json_load_file(pool_text(pool, "%s/run.json", folder), 0, NULL);

    if (json_is_object(meta))
        return meta;
    json_decref(meta);
    return NULL;
}

static const char *start_of(const json_t *meta)
{
    const char *start = json_string_value(json_object_get(meta, "started_utc"));

    return start ? start : "";
}

static int by_distance(const void *x, const void *y)
{
    const struct reference *a = x, *b = y;
    int order = (a->distance > b->distance) - (a->distance < b->distance);

    if (!order) /* ISO 8601: the newer one first */
        order = strcmp(start_of(b->meta), start_of(a->meta));
    return order ? order : strcmp(a->name, b->name);
}

int references_load(struct references *r, const char *run, char *error, size_t len)
{
    DIR *dir;

    *r = (struct references){0};
    r->folder = find_folder(&r->pool);
    r->run_path = run ? pool_text(&r->pool, "%s", run) : NULL;
    r->run = run ? load_meta(&r->pool, run) : NULL;
    dir = *r->folder ? opendir(r->folder) : NULL;
    if (!dir) {
        snprintf(error, len,
                 "no folder of references is there: neither results/reference nor that of an "
                 "installation; PLUMB_REFERENCES names another one");
        return -ENOENT;
    }
    for (const struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        const char *path = pool_text(&r->pool, "%s/%s", r->folder, e->d_name);
        json_t *meta = *e->d_name == '.' ? NULL : load_meta(&r->pool, path);

        if (!meta)
            continue;
        struct reference *one = ARRAY_ADD(r->all, r->n);
        *one = (struct reference){
            .name = pool_text(&r->pool, "%s", e->d_name), .path = path, .meta = meta};
        struct pool *pool = &r->pool;

        one->differs = "";
        for (size_t i = 0; r->run && i < FACTS; i++) {
            double distance = fact_distance(pool, one->meta, r->run, &facts[i]);
            const char *a = fact_text(pool, one->meta, &facts[i]),
                       *b = fact_text(pool, r->run, &facts[i]);

            one->distance += distance;
            one->n_alike += distance == 0;
            one->n_facts++;
            if (distance > 0)
                one->differs = show_joined(pool, one->differs,
                                           pool_text(pool, "%s %s against %s", facts[i].what,
                                                     *a ? a : "not known", *b ? b : "not known"));
        }
    }
    closedir(dir);
    if (!r->n) {
        snprintf(error, len, "'%s' has no reference: no folder in it has a run.json", r->folder);
        return -ENOENT;
    }
    qsort(r->all, r->n, sizeof(*r->all), by_distance);
    return 0;
}

void references_release(struct references *r)
{
    for (size_t i = 0; i < r->n; i++)
        json_decref(r->all[i].meta);
    free(r->all);
    json_decref(r->run);
    pool_release(&r->pool);
}

/* Is it the run itself? */
static bool is_own(const json_t *run, const json_t *reference)
{
    static const char *const keys[] = {"run", "started_utc"};
    size_t same = 0;

    for (size_t i = 0; i < 2; i++)
        same +=
            run && json_equal(json_object_get(run, keys[i]), json_object_get(reference, keys[i]));
    return same == 2;
}

/* What cannot be loaded has no comparable case; naming it says why. */
static void count_cases(const struct references *r, struct reference *one)
{
    const struct pairs_options options = {.margin = 0.05};
    const char *a = one->path, *b = r->run_path;
    struct pairs p;
    char error[512];

    if (b && !pairs_load(&p, &a, 1, &b, 1, &options, error, sizeof(error)))
        for (size_t i = 0; i < p.n; i++) {
            const struct pair *pair = &p.all[i];

            one->n_comparable += pair->state == PAIR_READY;
            one->n_cases += pair->c->points[p.n_a].n_values > 0;
        }
    if (b)
        pairs_release(&p);
}

#define NEARLY 0.9 /* of the cases that can be compared with the reference that has most of them */

static const struct reference *nearest(struct references *r)
{
    size_t most = 0;

    for (size_t i = 0; i < r->n; i++) {
        if (r->n > 1 && is_own(r->run, r->all[i].meta))
            continue;
        count_cases(r, &r->all[i]);
        most = r->all[i].n_comparable > most ? r->all[i].n_comparable : most;
    }
    for (size_t i = 0; i < r->n; i++)
        if ((r->n == 1 || !is_own(r->run, r->all[i].meta)) &&
            (double)r->all[i].n_comparable >= NEARLY * (double)most)
            return &r->all[i];
    return NULL;
}

const struct reference *references_find(struct references *r, const char *name, char *error,
                                        size_t len)
{
    const char *names = "";

    const struct reference *one = strcmp(name, "auto") ? NULL : nearest(r);

    if (one)
        return one;
    for (size_t i = 0; i < r->n; i++) {
        if (!strcmp(r->all[i].name, name)) {
            count_cases(r, &r->all[i]);
            return &r->all[i];
        }
        names = show_joined(&r->pool, names, r->all[i].name);
    }
    snprintf(error, len, "there is no reference '%.200s' in '%.400s', but %.400s, and auto", name,
             r->folder, names);
    return NULL;
}

static const char *text_of(struct pool *pool, const json_t *meta, const char *key, size_t most)
{
    return pool_text(pool, "%.*s", (int)most, differ_text(pool, json_object_get(meta, key)));
}

const char *reference_text(struct pool *pool, const struct reference *one)
{
    const char *commit = text_of(pool, one->meta, "commit", 40);

    const char *cases = one->n_cases ? pool_text(pool, "%zu of %zu cases can be compared, ",
                                                 one->n_comparable, one->n_cases)
                                     : "";

    return pool_text(pool, "%s of %s%s%s: %s%zu of %zu facts of the machine agree%s%s", one->name,
                     text_of(pool, one->meta, "started_utc", strlen("2026-01-02")),
                     *commit ? ", commit " : "", commit, cases, one->n_alike, one->n_facts,
                     *one->differs ? "; differs: " : "", one->differs);
}

int references_print(struct references *r, FILE *out)
{
    const struct document_terminal terminal = document_terminal_of(out);
    struct pool *pool = &r->pool;
    struct document *d = document_new(pool);

    for (size_t i = 0; i < r->n; i++) {
        const struct reference *one = &r->all[i];

        document_answer(
            d, one->name,
            r->run ? pool_text(pool, "%zu of %zu facts agree", one->n_alike, one->n_facts) : "",
            TONE_NONE,
            pool_text(pool, "%s, commit %s, suite %s",
                      text_of(pool, one->meta, "started_utc", strlen("2026-01-02")),
                      text_of(pool, one->meta, "commit", 40),
                      text_of(pool, one->meta, "suite", 40)));
        /* "AuthenticAMD family 26 model 2, cores 2, memory 23.5 GiB, ..." */
        const char *machine = "";

        for (size_t k = 1; k < FACTS; k++) {
            const char *fact = fact_text(pool, one->meta, &facts[k]);

            if (*fact)
                machine = show_joined(pool, machine, pool_text(pool, "%s %s", facts[k].what, fact));
        }
        document_answer_more(d, machine, "");
    }
    return document_write_terminal(d, &terminal, out);
}
