/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target of a run folder, as a comparison and a report read it. Two runs are sound, but that the input is one
 * file of the second: plan.csv where it starts as one, memory.csv where it starts as one, else run.json, with any
 * types anywhere, missing keys, huge numbers. Beside not crashing: an error has a message, what is said to
 * differ differs, and nothing that run.json says hides the rows.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/row.h"
#include "harness/compare/pairs.h"
#include "harness/report/page.h"
#include "harness/report/scaling.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

#define META "{\"schema\": 3, \"run\": \"a\", \"machine\": {\"cpu\": {\"cores\": 2}}}"

static char root[64], runs[2][80];

static void require(int truth, const char *what)
{
    if (truth)
        return;
    fprintf(stderr, "not so: %s\n", what);
    abort();
}

static FILE *open_file(const char *folder, const char *name)
{
    char path[160];
    FILE *out;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    out = fopen(path, "we");
    require(out != NULL, "a file to write");
    return out;
}

static void write_file(const char *folder, const char *name, const void *data, size_t size)
{
    FILE *out = open_file(folder, name);

    fwrite(data, 1, size, out);
    fclose(out);
}

/* A case on the host, one on a GPU, and one over hosts: whose texts meet most of run.json. */
static void write_rows(const char *folder, FILE *plan, const char *bench, const char *const *names,
                       const char *const *values, size_t n)
{
    char file[32];
    struct row row;

    snprintf(file, sizeof(file), "%s.csv", bench);
    FILE *out = open_file(folder, file);
    row_print_csv_header(out, names, n);
    for (uint64_t repeat = 1; repeat < 3; repeat++) {
        row_init(&row);
        row.param_names = names;
        row.n_params = n;
        for (size_t i = 0; i < n; i++)
            row.params[i] = values[i];
        row.metric = "bandwidth";
        row.unit = strcmp(bench, "net") != 0 ? "GB/s" : "Gb/s";
        row.value = 10 + (double)repeat;
        row.samples = 10;
        row.stop = "converged"; /* no description says that it is judged */
        row.origin = "measured";
        row.status = "ok";
        row.run = "fuzz";
        row.case_id = "1";
        row.repeat = repeat;
        row.host = "host";
        row_print_csv(out, &row);
        fprintf(plan, "done,0001,1,1,%d,%s,,60\n", (int)repeat, bench);
    }
    fclose(out);
}

static void write_run(const char *folder)
{
    static const char *const memory[] = {"device", "op", "size", "level", "address"};
    static const char *const of_memory[] = {"cuda:0", "triad", "65536", "DRAM", "0000:18:00.0"};
    static const char *const net[] = {"transport", "pattern", "direction", "size", "from", "to"};
    static const char *const of_net[] = {"tcp", "bandwidth", "forward", "65536", "n1", "n2"};
    FILE *plan;

    require(!mkdir(folder, 0700), "a folder to write");
    plan = open_file(folder, "plan.csv");
    fputs("state,rows,order,case,repeat,bench,arguments,timeout_s\n", plan);
    write_rows(folder, plan, "memory", memory, of_memory, 5);
    write_rows(folder, plan, "net", net, of_net, 6);
    fclose(plan);
    write_file(folder, "run.json", META, sizeof(META) - 1);
}

static void remove_runs(void)
{
    static const char *const files[] = {"run.json", "plan.csv", "memory.csv", "net.csv"};
    char path[160];

    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < sizeof(files) / sizeof(*files); k++) {
            snprintf(path, sizeof(path), "%s/%s", runs[i], files[k]);
            unlink(path);
        }
        rmdir(runs[i]);
    }
    rmdir(root);
}

static void make_runs(void)
{
    snprintf(root, sizeof(root), "%s/plumb-fuzz-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    require(mkdtemp(root) != NULL, "a folder");
    atexit(remove_runs);
    for (int i = 0; i < 2; i++) {
        snprintf(runs[i], sizeof(runs[i]), "%s/%c", root, 'a' + i);
        write_run(runs[i]);
    }
}

/* Changed bytes seldom are JSON: most inputs are made by changing one value of the tree. */
static const char *const odd[] = {"null",
                                  "true",
                                  "false",
                                  "0",
                                  "-1",
                                  "1e308",
                                  "9223372036854775807",
                                  "\"\"",
                                  "\"NaN\"",
                                  "\"%s%n\"",
                                  "\"<b>&\"",
                                  "[]",
                                  "{}",
                                  "[1, [], {}, null]",
                                  "{\"name\": 1, \"devices\": []}"};
#define ODD (sizeof(odd) / sizeof(*odd))

static json_t *odd_value(unsigned which)
{
    return json_loads(odd[which % ODD], JSON_DECODE_ANY, NULL);
}

/* The which-th value of the tree, counted down, becomes another one or goes. */
static int change(json_t *node, unsigned *which, unsigned how)
{
    json_t *value;
    const char *key;
    size_t i;

    json_object_foreach (node, key, value) {
        if (!(*which)--)
            return how % (ODD + 1) == ODD ? json_object_del(node, key)
                                          : json_object_set_new(node, key, odd_value(how));
        if (!change(value, which, how))
            return 0;
    }
    json_array_foreach (node, i, value) {
        if (!(*which)--)
            return how % (ODD + 1) == ODD ? json_array_remove(node, i)
                                          : json_array_set_new(node, i, odd_value(how));
        if (!change(value, which, how))
            return 0;
    }
    return -1;
}

static unsigned count(json_t *node)
{
    json_t *value;
    const char *key;
    unsigned n = 0;
    size_t i;

    json_object_foreach (node, key, value)
        n += 1 + count(value);
    json_array_foreach (node, i, value)
        n += 1 + count(value);
    return n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    json_t *tree = seed % 8 ? json_loadb((char *)data, size, 0, NULL) : NULL;
    unsigned n = count(tree), which = n ? seed / 8 % n : 0;

    if (!n) {
        json_decref(tree);
        return LLVMFuzzerMutate(data, size, max);
    }
    change(tree, &which, seed / 8 / n);
    size_t written = json_dumpb(tree, (char *)data, max, JSON_COMPACT);
    json_decref(tree);
    return written && written <= max ? written : LLVMFuzzerMutate(data, size, max);
}

static void check_differences(struct pairs *p)
{
    struct machine_difference *all;
    size_t n = pairs_machine_differences(p, &all);

    for (size_t i = 0; i < n; i++) {
        require(*all[i].what && all[i].pipes, "it says what differs");
        require(strcmp(all[i].a, all[i].b) != 0, "it differs");
    }
}

static void check_page(struct report *r)
{
    struct headlines headlines;
    struct figures *figures = pool_alloc(&r->pool, 1, sizeof(*figures));
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    require(out != NULL, "memory");
    headlines_make(r, &headlines);
    figures_make(r, figures);
    scaling_figures(r, &headlines, figures);
    page_write(&(struct page){.out = out, .r = r, .headlines = &headlines, .figures = figures});
    fclose(out);
    require(size > 0, "a page");
    free(text);
}

static const char *file_of(const uint8_t *data, size_t size)
{
    static const char plan[] = "state,", rows[] = "device,";

    if (size >= sizeof(plan) - 1 && !memcmp(data, plan, sizeof(plan) - 1))
        return "plan.csv";
    if (size >= sizeof(rows) - 1 && !memcmp(data, rows, sizeof(rows) - 1))
        return "memory.csv";
    return "run.json";
}

/* The sound file goes aside, and comes back afterwards. */
static void move(const char *name, bool back)
{
    char path[160], aside[160];

    snprintf(path, sizeof(path), "%s/%s", runs[1], name);
    snprintf(aside, sizeof(aside), "%s/aside", root);
    require(!rename(back ? aside : path, back ? path : aside), "a file to move");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct pairs_options options = {.margin = 0.05};
    const char *name = file_of(data, size);
    char error[512] = "";
    struct pairs p;

    if (!*root)
        make_runs();
    const char *a[] = {runs[0]}, *b[] = {runs[1]};
    move(name, false);
    write_file(runs[1], name, data, size);
    if (pairs_load(&p, a, 1, b, 1, &options, error, sizeof(error))) {
        require(*error != 0, "an error has a message");
    } else {
        require(strcmp(name, "run.json") != 0 || (p.n == 2 && p.all[0].state == PAIR_READY),
                "the rows are paired whatever run.json says");
        check_differences(&p);
        check_page(&p.report);
    }
    pairs_release(&p);
    move(name, true);
    return 0;
}
