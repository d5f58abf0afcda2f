/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning of a run: its plan and its folder, new or found. See run_state.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/clock.h"
#include "core/csv.h"
#include "harness/run/estimate.h"
#include "harness/run/run_meta.h"
#include "harness/run/run_state.h"
#include "harness/text.h"

void run_say_time(const struct run *r)
{
    struct estimate e = estimate_plan(&r->benches, &r->plan);
    char text[256];

    if (e.n)
        fprintf(stderr, "plumb run: %s\n", estimate_text(&e, text, sizeof(text)));
}

static void print_dry_run(const struct run *r)
{
    printf("order,case,repeat,bench,arguments\n");
    for (size_t i = 0; i < r->plan.n; i++) {
        const struct launch *l = &r->plan.launches[i];
        printf("%zu,%u,%u,", i + 1, l->case_number, l->repeat);
        csv_print(stdout, l->bench);
        putchar(',');
        csv_print(stdout, l->arguments);
        putchar('\n');
    }
    fprintf(stderr, "plumb run: %zu %s planned, nothing was run\n", r->plan.n,
            r->plan.n == 1 ? "launch" : "launches");
    run_say_time(r);
}

static void say_pairs(const struct run *r)
{
    if (r->plan.pairs)
        fprintf(stderr, "plumb run: sampled %u of %u pairs of GPUs; another --seed draws others\n",
                r->plan.pairs, r->plan.pairs_of);
}

/* As it was given, without slashes at its end. */
static int set_path(struct run *r, const char *path)
{
    size_t len = strlen(path);

    while (len > 1 && path[len - 1] == '/')
        len--;
    r->path = strndup(path, len);
    return r->path ? 0 : -ENOMEM;
}

static int choose_path(struct run *r)
{
    char path[512], stamp[32];
    time_t now = time(NULL);
    struct tm tm;

    if (r->options.out)
        return set_path(r, r->options.out);
    gmtime_r(&now, &tm);
    strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
    mkdir("results", 0755); /* a failure shows when the run folder itself cannot be made */
    snprintf(path, sizeof(path), "results/%.400s-%s", r->suite.name, stamp);
    return set_path(r, path);
}

static void take_name(struct run *r)
{
    const char *slash = strrchr(r->path, '/');

    r->name = strdup(slash ? slash + 1 : r->path);
}

/* Reads suite and benchmarks, makes the plan. Returns an exit code. */
static int make_plan(struct run *r, const char *suite_name, struct buffer *config)
{
    char *path = suite_find(suite_name, r->error, sizeof(r->error));
    char *configs = suite_configs_folder();
    int err = path ? file_read(path, 1u << 20, config) : -ENOENT;

    if (path && err)
        snprintf(r->error, sizeof(r->error), "cannot read the suite '%s': %s", path,
                 strerror(-err));
    if (!err)
        err = suite_parse(path, config->text, config->size, configs, &r->benches, &r->suite,
                          r->error, sizeof(r->error));
    if (!err) {
        err = plan_make(&r->suite, r->options.seed, r->options.only, &r->plan);
        if (err == -ENOENT)
            snprintf(r->error, sizeof(r->error),
                     "no case of suite '%s' matches --only '%s': see --dry-run", r->suite.name,
                     r->options.only);
        else if (err)
            snprintf(r->error, sizeof(r->error), "cannot plan: %s", strerror(-err));
    }
    free(path);
    free(configs);
    return err ? run_fail(r, EXIT_USAGE) : EXIT_GOOD;
}

int run_start_new(struct run *r, const char *suite_name, int argc, char **argv)
{
    struct buffer config = {0};
    uint64_t begin_ns = clock_now_ns();
    int status = make_plan(r, suite_name, &config);

    r->planned_ns = clock_now_ns() - begin_ns;
    if (status == EXIT_GOOD)
        say_pairs(r);
    if (status == EXIT_GOOD && r->options.dry_run) {
        print_dry_run(r);
    } else if (status == EXIT_GOOD) {
        if (!choose_path(r))
            take_name(r);
        r->meta = !r->name ? NULL
                           : run_meta_make(&(struct run_meta){.name = r->name,
                                                              .suite = r->suite.name,
                                                              .config = config.text,
                                                              .config_size = config.size,
                                                              .seed = r->options.seed,
                                                              .only = r->options.only,
                                                              .pairs = r->plan.pairs,
                                                              .pairs_of = r->plan.pairs_of,
                                                              .argc = argc,
                                                              .argv = argv});
        snprintf(r->error, sizeof(r->error), "out of memory");
        if (!r->meta ||
            store_create(r->path, r->meta, &r->plan, &r->store, r->error, sizeof(r->error)))
            status = run_fail(r, EXIT_INCOMPLETE);
    }
    buffer_release(&config);
    return status;
}

/* What is left is measured as what is there was, or not at all. */
static int check_same(struct run *r)
{
    int err = run_meta_same(r->meta, r->error, sizeof(r->error));

    for (size_t i = 0; !err && i < r->plan.n; i++) {
        const char *bench = r->plan.launches[i].bench;
        if (r->plan.launches[i].state == LAUNCH_TODO && !bench_list_find(&r->benches, bench)) {
            snprintf(r->error, sizeof(r->error),
                     "the plan needs the benchmark '%s', which is not here: see plumb list", bench);
            err = -ENOENT;
        }
    }
    return err;
}

int run_start_again(struct run *r)
{
    int err = set_path(r, r->options.resume);

    if (!err) /* r owns the path, release() frees it */
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
        err = run_meta_load(r->path, &r->meta, r->error, sizeof(r->error));
    if (!err)
        err = store_open(r->path, &r->plan, &r->store, r->error, sizeof(r->error));
    if (!err)
        err = run_has_wrong(r->path, &r->wrong, r->error, sizeof(r->error));
    if (err)
        return run_fail(r, err == -EBADMSG                     ? EXIT_DAMAGED
                           : err == -ENOENT || err == -ENOTDIR ? EXIT_USAGE
                                                               : EXIT_INCOMPLETE);
    r->options.seed = run_meta_seed(r->meta);
    const char *name = json_string_value(json_object_get(r->meta, "run"));
    r->name = strdup(name ? name : ""); /* its own, also where the folder was moved */
    return check_same(r) ? run_fail(r, EXIT_USAGE) : EXIT_GOOD;
}
