/* SPDX-License-Identifier: Apache-2.0 */
/* plumb list: benchmarks, backends and suites of this machine, and why one is absent. */
#include "harness/plumb/plumb.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/program.h"
#include "core/text.h"
#include "harness/plan/bench_info.h"
#include "harness/plan/plan.h"
#include "harness/plan/suite.h"

#define GAPS       4  /* blanks before a name and behind it */
#define TEXT_LEAST 32 /* columns beside what stands in front; with less, a text goes below it */

/* What stands in front in `columns` columns, and the text: in lines that fit a terminal, else in
 * one line, which a program can search. */
static void print_entry(const char *front, int columns, const char *text)
{
    size_t width = wrap_width(stdout), indent = (size_t)columns, next, n;

    if (!isatty(STDOUT_FILENO)) {
        printf("%-*s%s\n", columns, front, text);
        return;
    }
    if (indent + TEXT_LEAST > width && indent + wrap_columns(text, strlen(text)) > width) {
        puts(front);
        wrap_print(stdout, text, 6, width);
        return;
    }
    n = wrap_take(text, width - indent, &next);
    printf("%-*s%.*s\n", columns, front, (int)n, text);
    if (text[next])
        wrap_print(stdout, text + next, indent, width);
}

static void widen(int *width, const char *text)
{
    int n = (int)strlen(text);

    *width = n > *width ? n : *width;
}

static void list_benches(const struct bench_list *benches)
{
    int columns = 0;

    puts("benchmarks");
    for (size_t i = 0; i < benches->n; i++)
        widen(&columns, benches->benches[i].name);
    for (size_t i = 0; i < benches->n; i++) {
        const struct bench_info *b = &benches->benches[i];
        char front[128], text[1024];

        snprintf(front, sizeof(front), "  %s", b->name);
        if (bench_needs(b, "peer-if-asked"))
            snprintf(text, sizeof(text), "%s; takes a peer if asked", b->help);
        else
            snprintf(text, sizeof(text), "%s%s%s", b->help, b->needs && *b->needs ? "; needs " : "",
                     b->needs ? b->needs : "");
        print_entry(front, columns + GAPS, text);
    }
    if (!benches->n)
        puts("  none: they are searched for in this program's folder and in PATH, as plumb-NAME");
}

static bool same_backend(const struct bench_backend *x, const struct bench_backend *y)
{
    return !strcmp(x->name, y->name) && x->state == y->state && x->simulated == y->simulated &&
           !strcmp(x->address, y->address) && !strcmp(x->version, y->version) &&
           !strcmp(x->what, y->what) && !strcmp(x->why, y->why);
}

static const struct bench_backend *find_backend(const struct bench_info *b,
                                                const struct bench_backend *wanted)
{
    for (size_t k = 0; k < b->n_backends; k++)
        if (same_backend(&b->backends[k], wanted))
            return &b->backends[k];
    return NULL;
}

/* "copy, gemm, memory": the benchmarks that report the same of a backend. "" where one before
 * benchmark i does: then it is printed there. */
static void who_has(const struct bench_list *benches, size_t i, const struct bench_backend *backend,
                    char *text, size_t len)
{
    size_t at = 0;

    text[0] = 0;
    for (size_t k = 0; k < benches->n && at < len; k++) {
        if (!find_backend(&benches->benches[k], backend))
            continue;
        if (k < i)
            return;
        at +=
            (size_t)snprintf(text + at, len - at, "%s%s", at ? ", " : "", benches->benches[k].name);
    }
}

/* The first backend of the list with the same reason, NULL: there is none, or it is this one. */
static const struct bench_backend *same_reason(const struct bench_list *benches,
                                               const struct bench_backend *backend)
{
    for (size_t i = 0; i < benches->n && *backend->why; i++)
        for (size_t k = 0; k < benches->benches[i].n_backends; k++) {
            const struct bench_backend *b = &benches->benches[i].backends[k];

            if (same_backend(b, backend))
                return NULL;
            if (b->state == backend->state && !strcmp(b->why, backend->why))
                return b;
        }
    return NULL;
}

static void print_backend(const struct bench_list *benches, const struct bench_backend *b,
                          int who_width, const char *who, int name_width)
{
    const struct bench_backend *first = same_reason(benches, b);
    const char *const texts[] = {b->version, b->what, first ? "" : b->why};
    const char *between = ": ";
    char front[512], text[2048];
    size_t at = 0;

    snprintf(front, sizeof(front), "  %-*s  %s", who_width, who, b->name);
    at += (size_t)snprintf(text, sizeof(text), "%s", backend_state_name(b->state));
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts) && at < sizeof(text); i++) {
        if (!*texts[i])
            continue;
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s", between, texts[i]);
        between = ", ";
    }
    if (at < sizeof(text))
        snprintf(text + at, sizeof(text) - at, "%s%s%s%s%s",
                 first ? ": for the same reason as " : "", first ? first->name : "",
                 *b->address ? " at " : "", b->address, b->simulated ? " (simulated)" : "");
    print_entry(front, who_width + name_width + 2 + GAPS, text);
}

/* Prints, or where `print` is not set only finds out how wide the columns are. */
static void each_backend(const struct bench_list *benches, bool print, int *who_width,
                         int *name_width)
{
    for (size_t i = 0; i < benches->n; i++)
        for (size_t k = 0; k < benches->benches[i].n_backends; k++) {
            const struct bench_backend *backend = &benches->benches[i].backends[k];
            char who[256];

            who_has(benches, i, backend, who, sizeof(who));
            if (!*who)
                continue;
            widen(who_width, who);
            widen(name_width, backend->name);
            if (print)
                print_backend(benches, backend, *who_width, who, *name_width);
        }
}

static int is_suite(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 5 && entry->d_name[0] != '.' && !strcmp(entry->d_name + len - 5, ".yaml");
}

/* As a run on this machine alone would plan it. */
static void list_suite(const char *path, const char *configs, const struct bench_list *benches,
                       int columns)
{
    struct suite suite;
    struct plan plan;
    char error[512], front[128], text[2048];
    int at;

    if (suite_load(path, configs, benches, &suite, error, sizeof(error))) {
        printf("  %s\n", error);
        return;
    }
    size_t all = suite.n;
    suite_unite_absent(&suite, false);
    plan_make(&suite, 1, NULL, &plan);
    size_t cases = 0;
    for (size_t i = 0; i < plan.n; i++)
        cases += plan.launches[i].repeat == 1;
    snprintf(front, sizeof(front), "  %s", suite.name);
    at = snprintf(text, sizeof(text), "%s (%zu cases, %zu launches", suite.about, cases, plan.n);
    if (all > suite.n && at > 0 && at < (int)sizeof(text))
        at += snprintf(text + at, sizeof(text) - (size_t)at, "; %zu more %s what is absent here",
                       all - suite.n, all - suite.n == 1 ? "case needs" : "cases need");
    if (at > 0 && at < (int)sizeof(text))
        snprintf(text + at, sizeof(text) - (size_t)at, ")");
    print_entry(front, columns, text);
    plan_release(&plan);
    suite_release(&suite);
}

static void list_suites(const struct bench_list *benches)
{
    char *configs = suite_configs_folder();
    struct dirent **entries = NULL;
    int n = configs ? scandir(configs, &entries, is_suite, alphasort) : -1;

    int columns = 0;

    puts("\nsuites");
    if (n <= 0)
        printf("  none in %s\n", configs ? configs : "./configs or beside the program");
    for (int i = 0; i < n; i++)
        widen(&columns, entries[i]->d_name);
    for (int i = 0; i < n; i++) {
        char *path = xasprintf("%s/%s", configs, entries[i]->d_name);
        list_suite(path, configs, benches, columns - (int)strlen(".yaml") + GAPS);
        free(path);
        free(entries[i]);
    }
    free(entries);
    free(configs);
}

int cmd_list(int argc, char **argv)
{
    struct bench_list benches;

    if (argc > 1) {
        bool help = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");

        fputs(help ? "plumb list: the benchmarks, backends and suites of this machine\n"
                     "\n"
                     "usage: plumb list\n"
                     "\n"
                     "Shows whether each backend is present, or why it is absent. A suite's cases "
                     "and launches are\nthose of plumb run SUITE on this machine.\n"
                   : "plumb list: it has no options: plumb list\n",
              help ? stdout : stderr);
        return help ? EXIT_GOOD : EXIT_USAGE;
    }
    bench_list_load(&benches);
    list_benches(&benches);
    int who_width = 9, name_width = 11;

    puts("\nbackends");
    each_backend(&benches, false, &who_width, &name_width);
    each_backend(&benches, true, &who_width, &name_width);
    list_suites(&benches);
    if (benches.problems)
        printf("\nnot used\n%s", benches.problems);
    bench_list_release(&benches);
    return 0;
}
