/* SPDX-License-Identifier: Apache-2.0 */
/* Reference machines, and how near they are to a run's: see reference.h. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "harness/plan/bench_info.h"
#include "harness/report/facts.h"
#include "harness/report/reference.h"
#include "harness/report/show.h"

/* ---- nearness, by the facts that have a weight */

#define SAME_BYTES 0.1 /* log: a guest sees less memory than it was given */

static const char *fact_text(struct pool *pool, const json_t *run, const struct shown_fact *f)
{
    return shown_text(pool, f, run, NULL, 0);
}

/* Models of one family are like each other, and families of one maker are a little. */
static double model_distance(const json_t *a, const json_t *b)
{
    static const struct {
        const char *key;
        double apart;
    } keys[] = {{"vendor", 1}, {"family", 0.75}, {"model_number", 0.25}};

    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (!json_equal(json_object_get(a, keys[i].key), json_object_get(b, keys[i].key)))
            return keys[i].apart;
    return 0;
}

/* Is it as many devices of the same names? What they are to a guest is another thing. */
static bool are_alike(struct pool *pool, const json_t *a, const json_t *b)
{
    const char **texts[2];
    const json_t *const lists[2] = {a, b};

    for (int i = 0; i < 2; i++) {
        size_t n = json_array_size(lists[i]);

        texts[i] = pool_alloc(pool, n, sizeof(*texts[i]));
        while (n--)
            texts[i][n] = fact_name(json_array_get(lists[i], n), "name");
    }
    return !strcmp(shown_counted(pool, texts[0], json_array_size(a)),
                   shown_counted(pool, texts[1], json_array_size(b)));
}

/* 0: alike; the weight, or what the numbers' ratio makes of it; half of it where one is unknown. */
static double fact_distance(struct pool *pool, const json_t *a, const json_t *b,
                            const struct shown_fact *f)
{
    const char *x = fact_text(pool, a, f), *y = fact_text(pool, b, f);
    const char *path = pool_text(pool, "%.*s", (int)strcspn(f->path, "["), f->path);
    double apart;

    if (!*x || !*y)
        return *x || *y ? f->weight / 2 : 0;
    a = fact_at(a, path);
    b = fact_at(b, path);
    if (json_is_object(a) && json_is_object(b))
        return f->weight * model_distance(a, b);
    if (json_is_array(a) && json_is_array(b))
        return are_alike(pool, a, b) ? 0 : f->weight;
    if (!json_is_number(a) || !json_is_number(b))
        return strcmp(x, y) ? f->weight : 0;
    apart = fabs(log(json_number_value(a)) - log(json_number_value(b)));
    return f->unit && apart <= SAME_BYTES ? 0 : fmin(f->weight, apart / log(2));
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

static int by_distance(const void *x, const void *y)
{
    const struct reference *a = x, *b = y;
    int order = (a->distance > b->distance) - (a->distance < b->distance);

    if (!order) /* ISO 8601: the newer one first */
        order = strcmp(fact_name(b->meta, "started_utc"), fact_name(a->meta, "started_utc"));
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
        for (const struct shown_fact *f = shown_facts; r->run && f->what; f++) {
            double distance = f->weight ? fact_distance(pool, one->meta, r->run, f) : 0;
            const char *a, *b;

            one->distance += distance;
            one->n_alike += f->weight && distance == 0;
            one->n_facts += f->weight > 0;
            if (!(distance > 0))
                continue;
            a = fact_text(pool, one->meta, f);
            b = fact_text(pool, r->run, f);
            one->differs = show_joined(pool, one->differs,
                                       pool_text(pool, "%s %s against %s", f->what,
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

bool reference_is_own(const json_t *run, const json_t *reference)
{
    static const char *const keys[] = {"run", "started_utc"};
    size_t same = 0;

    for (size_t i = 0; i < 2; i++)
        same +=
            run && json_equal(json_object_get(run, keys[i]), json_object_get(reference, keys[i]));
    return same == 2;
}
