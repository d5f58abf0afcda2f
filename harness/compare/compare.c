/* SPDX-License-Identifier: Apache-2.0 */
/* plumb compare, the command: see compare.h. */
#include "harness/compare/compare.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/option.h"
#include "core/program.h"
#include "core/text.h"
#include "core/units.h"
#include "harness/command.h"
#include "harness/forecast/versus.h"
#include "harness/plan/plan.h"
#include "harness/report/report.h"

/* ---- Which folders are on which side ---- */

/* A folder whose name has a comma in it is one folder. */
static void add_word(struct run_paths *side, const char *word)
{
    size_t len = access(word, F_OK) ? strcspn(word, ",") : strlen(word);

    for (; *word; word += len + (word[len] == ','), len = strcspn(word, ","))
        if (len)
            *ARRAY_ADD(side->all, side->n) = xstrndup(word, len);
}

static bool has_run(const char *pair, const char *side)
{
    char *meta = xasprintf("%s/%s/run.json", pair, side);
    json_t *run = json_load_file(meta, 0, NULL);
    bool has = json_is_object(json_object_get(run, "against"));

    json_decref(run);
    free(meta);
    return has;
}

static int check(size_t before, size_t behind, bool marked, char *error, size_t len)
{
    if (!before && !behind)
        snprintf(error, len,
                 "which runs? Name two, for example: plumb compare results/bare results/guest");
    else if (marked && (!before || !behind))
        snprintf(error, len, "no run is named %s --against: A stands before it, B behind it",
                 before ? "behind" : "before");
    else if (!marked && before == 1)
        snprintf(error, len,
                 "against which run? Name two: the first is what the second is held against");
    else if (!marked && before > 2)
        snprintf(error, len,
                 "%zu folders are named, and not which of them belong together: put --against "
                 "between the two sides",
                 before);
    else
        return 0;
    return -EINVAL;
}

/* From the words that are no options. before NULL: two of them, each a folder or several with
 * commas between, or one: the folder of a plumb run --against, whose a and b are meant; else so
 * so many of them are A's and the others B's. 0, or -EINVAL with error set. */
static int compare_sides(char *const *words, size_t n, const size_t *before,
                         struct run_paths sides[2], char *error, size_t len)
{
    size_t n_a = before ? *before : 1;
    int err;

    if (!before && n == 1 && has_run(words[0], "a") && has_run(words[0], "b")) {
        *ARRAY_ADD(sides[0].all, sides[0].n) = xasprintf("%s/a", words[0]);
        *ARRAY_ADD(sides[1].all, sides[1].n) = xasprintf("%s/b", words[0]);
        return 0;
    }
    err = check(before ? n_a : n, before ? n - n_a : 0, before != NULL, error, len);
    for (size_t i = 0; !err && i < n; i++)
        add_word(&sides[i >= n_a], words[i]);
    if (!err && (!sides[0].n || !sides[1].n)) {
        snprintf(error, len, "the name of a run is empty");
        err = -EINVAL;
    }
    return err;
}

/* ---- Where the outputs of one command go ---- */

int outputs_refuse_mixed(const struct output_asked *all, size_t n, char *error, size_t len)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++) {
            if (!all[i].path || !all[k].path || strcmp(all[i].path, all[k].path) != 0)
                continue;
            if (!strcmp(all[i].path, "-"))
                snprintf(error, len,
                         "%s and %s both go to stdout, where they would mix: give one of them a "
                         "file of its own",
                         all[i].option, all[k].option);
            else
                snprintf(error, len, "%s and %s both write '%.300s': give each a file of its own",
                         all[i].option, all[k].option, all[i].path);
            return -EINVAL;
        }
    return 0;
}

/* ---- plumb compare: the command ---- */

struct options {
    double margin, steal;
    const char *to, *model, *price, *only, *html, *markdown, *csv, *json;
    bool against, all, as_measured, help;
};

#define AT(member) offsetof(struct options, member)

static const struct opt compare_table[] = {
    {OPTION("against", OPT_FLAG, against, NULL,
            "separates the runs of A from those of B, if a side has several")},
    {OPTION("to", OPT_STRING, to, "NAME",
            "A is the reference machine NAME, or the nearest one (auto); list: shows them")},
    {OPTION("model", OPT_STRING, model, "NAME",
            "one line more: how much faster one node of B trains this model (configs/models/)")},
    {OPTION("price", OPT_STRING, price, "A:B",
            "with --model: what a node of A and of B costs, in any currency: 9000:12500")},
    {OPTION(
         "margin", OPT_FRACTION, margin, "SHARE",
         "largest slowdown or improvement that is equivalent; default: that of the suite, or else"),
     .letter = 'm', .def = "5%"},
    {OPTION("steal", OPT_FRACTION, steal, "SHARE", STEAL_HELP STEAL_NONE), .def = "100%"},
    {OPTION("as-measured", OPT_FLAG, as_measured, NULL,
            "the time that others took of a side's CPU counts as its slowdown")},
    {OPTION("only", OPT_STRING, only, "PATTERN",
            "only cases whose key or label match (* ? [..] as in a shell); may be given again"),
     .flags = OPT_AGAIN},
    {OPTION("all", OPT_FLAG, all, NULL,
            "also the other cases, and all differences of the machines"),
     .letter = 'a'},
    {OPTION("html", OPT_STRING, html, "FILE", "write the same as one page, with all cases")},
    {OPTION("markdown", OPT_STRING, markdown, "FILE",
            "write the same as Markdown, for a comment or a wiki")},
    {OPTION("csv", OPT_STRING, csv, "FILE", "write a line per case with every figure")},
    {OPTION("json", OPT_STRING, json, "FILE", "write everything, for programs")},
    {OPTION("help", OPT_FLAG, help, NULL, "show this text"), .letter = 'h'},
    {.name = NULL},
};

static void print_help(const struct opts *o)
{
    puts(
        "plumb compare: is B equivalent to A, better or worse, and where?\n"
        "\n"
        "usage: plumb compare A B [options]\n"
        "       plumb compare A1 A2 A3 --against B1 B2 B3 [options]\n"
        "       plumb compare A B C [D ...] [options]  (each against A, side by side)\n"
        "       plumb compare RUN --to NAME|auto|list\n"
        "       plumb compare PAIR [options]      (the folder of plumb run --against: PAIR/a and "
        "PAIR/b)\n"
        "\n"
        "A is the reference, and B is judged: for example, bare metal and a guest on it, or "
        "yesterday and\n"
        "today. Each is a run folder, a folder of run folders, or several with commas between "
        "(A1,A2 B1,B2).\n"
        "Only several runs on a side show how runs vary. Three words and more are columns side by "
        "side.\n"
        "\n"
        "Says who is faster where, and by how much; then a table by component, the cases that are "
        "worse or\n"
        "inconclusive with their ratio and its 95 % CI, and what was not compared. One FILE may be "
        "'-', which\n"
        "is stdout instead of this text.\n");
    opts_help(o, stdout);
    puts("\n"
         "exit: 0 equivalent or better, 1 worse, 2 usage or no run found, 3 inconclusive, 4 B "
         "failed or lacks\n"
         "      cases of A, a run is not complete, or a FILE could not be written, 5 a run folder "
         "is damaged;\n"
         "      if several apply, the first of 1, 4, 3\n"
         "docs: compare.md, and deciding.md for the method");
}

struct comparing {
    const struct opts *o;
    int argc;
    char **argv;
    struct options options;
    struct run_paths sides[VIEWS_MAX + 1]; /* A, B and, side by side, others */
    const char *const *only;               /* NULL-ended; NULL: all */
    struct references references;
    const struct reference *reference; /* --to; NULL */
    char error[1024];
};

static int fail(const struct comparing *c, int status)
{
    fprintf(stderr, "plumb compare: %s\n", c->error);
    return status;
}

static int exit_of(int err)
{
    switch (err) {
    case -EBADMSG:
        return EXIT_DAMAGED;
    case -ENOENT:
    case -EPROTO:
    case -EEXIST:
        return EXIT_USAGE;
    case -EINVAL:
        return EXIT_UNDECIDED; /* runs in which nothing was measured */
    default:
        return EXIT_INCOMPLETE;
    }
}

static int write_outputs(struct comparing *c, struct view *views, size_t n)
{
    const struct options *o = &c->options;
    const struct {
        const char *path;
        int (*write)(FILE *out, struct view *views, size_t n);
    } files[] = {{o->html, view_print_html},
                 {o->markdown, view_print_markdown},
                 {o->csv, view_print_csv},
                 {o->json, view_print_json}};
    bool table = true;
    int err = 0;

    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
        table = table && !(files[i].path && !strcmp(files[i].path, "-"));
    if (table)
        err = view_print_text(stdout, views, n, o->all);
    for (size_t i = 0; !err && i < sizeof(files) / sizeof(*files); i++)
        if (files[i].path) {
            FILE *out = strcmp(files[i].path, "-") ? fopen(files[i].path, "we") : stdout;

            err = out ? files[i].write(out, views, n) : -errno;
            int lost = out ? stream_finish(out) : 0;

            err = lost ? lost : err;
            if (err)
                snprintf(c->error, sizeof(c->error), "cannot write '%.400s': %s", files[i].path,
                         strerror(-err));
        }
    return err;
}

/* Of no case: did --only leave none? Then with error set. */
static bool refuse_only(struct comparing *c)
{
    if (!c->only || !*c->only)
        return false;
    snprintf(c->error, sizeof(c->error),
             "no case matches --only '%.200s': --csv - without it lists all keys and labels",
             *c->only);
    return true;
}

/* "9000:12500". */
static int read_price(const char *text, double *a, double *b)
{
    char first[32];
    size_t n = strcspn(text, ":");

    snprintf(first, sizeof(first), "%.*s", (int)n, text);
    return n < sizeof(first) && text[n] && !units_parse_double(first, a) &&
                   !units_parse_double(text + n + 1, b) && *a > 0 && *b > 0
               ? 0
               : -EINVAL;
}

/* What training of a model makes of the two sides, where it is asked for. */
static int add_training(struct comparing *c, struct view *v, struct versus *versus)
{
    const struct report *r = &v->p->report;
    const char **paths = pool_alloc(v->pool, r->n_runs, sizeof(*paths));

    if (!c->options.model)
        return 0;
    for (size_t i = 0; i < r->n_runs; i++)
        paths[i] = r->runs[i].path;
    if (c->options.price)
        read_price(c->options.price, &v->price_a, &v->price_b);
    v->versus = versus;
    return versus_make(c->options.model, (struct side_runs){paths, v->p->n_a},
                       (struct side_runs){paths + v->p->n_a, v->p->n_b}, v->pool, versus, c->error,
                       sizeof(c->error));
}

/* As of two runs (decide.h), shared among all comparisons (Bonferroni). */
#define ALARM_LEVEL 0.005
#define CONFIDENCE  0.95

/* The same run in two columns. */
static int refuse_same(const struct pairs *x, const struct pairs *y, char *error, size_t len)
{
    for (size_t i = x->n_a; i < x->report.n_runs; i++)
        for (size_t k = y->n_a; k < y->report.n_runs; k++)
            if (pairs_same_run(&x->report.runs[i], &y->report.runs[k])) {
                snprintf(error, len, "'%.300s' and '%.300s' are the same run: leave one out",
                         x->report.runs[i].path, y->report.runs[k].path);
                return -EEXIST;
            }
    return 0;
}

/* Each side but the first against the first: n comparisons. */
static int load(struct comparing *c, struct pairs *pairs, struct view *views, size_t n)
{
    const struct opt_values *margin = opts_values(c->o, "margin");
    struct pairs_options options = {.margin = c->options.margin,
                                    .forced = margin && margin->given,
                                    .steal_limit = steal_limit(c->options.steal),
                                    .as_measured = c->options.as_measured,
                                    .only = c->only && *c->only ? c->only : NULL,
                                    .decide = {.alarm_level = ALARM_LEVEL / (double)n,
                                               .confidence = 1 - (1 - CONFIDENCE) / (double)n},
                                    .name_a = view_letters[0]};
    int err = 0;

    for (size_t i = 0; !err && i < n; i++) {
        const struct run_paths *a = &c->sides[0], *b = &c->sides[i + 1];

        options.name_b = view_letters[i + 1];
        err = pairs_load(&pairs[i], (const char *const *)a->all, a->n, (const char *const *)b->all,
                         b->n, &options, c->error, sizeof(c->error));
        if (!err)
            err = pairs_refuse_same(&pairs[i], c->error, sizeof(c->error));
        for (size_t k = 0; !err && k < i; k++)
            err = refuse_same(&pairs[k], &pairs[i], c->error, sizeof(c->error));
        if (!err)
            view_make(&pairs[i], c->reference, &views[i]);
    }
    return err;
}

/* Of the sides that were named, n comparisons. */
static int compare(struct comparing *c, size_t n)
{
    struct pairs pairs[VIEWS_MAX] = {{.n = 0}};
    struct view views[VIEWS_MAX];
    struct versus versus;
    int status, err = load(c, pairs, views, n);

    if (err)
        status = fail(c, exit_of(err));
    else if ((!pairs[0].n && refuse_only(c)) || add_training(c, &views[0], &versus))
        status = fail(c, EXIT_USAGE);
    else
        status = write_outputs(c, views, n) ? fail(c, EXIT_INCOMPLETE) : view_exit(views, n);
    for (size_t i = 0; i < n; i++)
        pairs_release(&pairs[i]);
    return status;
}

/* The words are B, and A is a reference. */
static int compare_to(struct comparing *c)
{
    bool list = !strcmp(c->options.to, "list");

    if (c->options.against || (!list && !c->o->n_args)) {
        snprintf(c->error, sizeof(c->error),
                 "--to names A: name the runs of B alone, for example: plumb compare results/mine "
                 "--to auto");
        return fail(c, EXIT_USAGE);
    }
    for (size_t i = 0; i < c->o->n_args; i++)
        add_word(&c->sides[1], c->o->args[i]);
    /* The run folder whose machine is asked about: the newest of what was named. */
    struct run_paths runs = {0};
    int err = 0;

    for (size_t i = 0; !err && i < c->sides[1].n; i++)
        err = run_paths_add(&runs, c->sides[1].all[i], c->error, sizeof(c->error));
    if (!err)
        err = references_load(&c->references, runs.n ? runs.all[runs.n - 1] : NULL, c->error,
                              sizeof(c->error));
    run_paths_release(&runs);
    if (err)
        return fail(c, exit_of(err));
    if (list)
        return references_print(&c->references, stdout) ? EXIT_INCOMPLETE : EXIT_GOOD;
    c->reference = references_find(&c->references, c->options.to, c->error, sizeof(c->error));
    if (!c->reference)
        return fail(c, EXIT_USAGE);
    *ARRAY_ADD(c->sides[0].all, c->sides[0].n) = xstrdup(c->reference->path);
    return compare(c, 1);
}

static int check_and_compare(struct comparing *c, size_t before)
{
    const struct options *o = &c->options;
    const struct output_asked outputs[] = {
        {"--html", o->html}, {"--markdown", o->markdown}, {"--csv", o->csv}, {"--json", o->json}};

    if (outputs_refuse_mixed(outputs, sizeof(outputs) / sizeof(*outputs), c->error,
                             sizeof(c->error)))
        return fail(c, EXIT_USAGE);
    if (!(c->options.margin > 0 && c->options.margin < 1)) {
        snprintf(c->error, sizeof(c->error),
                 "a margin of %g %% leaves nothing to decide: ask for more than 0 and less than "
                 "100, such as --margin 5%%",
                 100 * c->options.margin);
        return fail(c, EXIT_USAGE);
    }
    if (!steal_is_share(c->options.steal)) {
        snprintf(c->error, sizeof(c->error), "%s", STEAL_REFUSED);
        return fail(c, EXIT_USAGE);
    }
    double a, b;
    if (c->options.price && (!c->options.model || read_price(c->options.price, &a, &b))) {
        snprintf(c->error, sizeof(c->error),
                 "--price is what a node of A and of B costs, for --model: --model gpt2-xl "
                 "--price 9000:12500");
        return fail(c, EXIT_USAGE);
    }
    if (c->options.to)
        return compare_to(c);
    if (c->options.model && !c->options.against && c->o->n_args > 2) {
        snprintf(c->error, sizeof(c->error), "--model compares two sides: name A and B");
        return fail(c, EXIT_USAGE);
    }
    /* Each word is a column: a run, a folder of runs, or several with commas between. */
    if (!c->options.against && c->o->n_args > 2) {
        if (c->o->n_args > VIEWS_MAX + 1) {
            snprintf(c->error, sizeof(c->error),
                     "%zu runs are named, and %d fit side by side: put --against between the two "
                     "sides, or name fewer",
                     c->o->n_args, VIEWS_MAX + 1);
            return fail(c, EXIT_USAGE);
        }
        for (size_t i = 0; i < c->o->n_args; i++)
            add_word(&c->sides[i], c->o->args[i]);
        return compare(c, c->o->n_args - 1);
    }
    if (compare_sides(c->o->args, c->o->n_args, c->options.against ? &before : NULL, c->sides,
                      c->error, sizeof(c->error)))
        return fail(c, EXIT_USAGE);
    return compare(c, 1);
}

static int run(const struct opts *o, void *context)
{
    struct comparing *c = context;
    size_t before = 0; /* words that stand before --against; all, where there is none */

    c->o = o;
    c->only = (const char *const *)opts_values(o, "only")->texts;
    for (int i = 1; i < c->argc && before < o->n_args; i++) {
        if (c->options.against && !strcmp(c->argv[i], "--against"))
            break;
        before += c->argv[i] == o->args[before];
    }
    int status = check_and_compare(c, before);
    for (size_t i = 0; i <= VIEWS_MAX; i++)
        run_paths_release(&c->sides[i]);
    references_release(&c->references);
    return status;
}

int cmd_compare(int argc, char **argv)
{
    struct comparing c = {.argc = argc, .argv = argv};
    const struct command command = {.name = "compare",
                                    .table = compare_table,
                                    .options = &c.options,
                                    .help = &c.options.help,
                                    .print_help = print_help,
                                    .run = run,
                                    .context = &c};

    return command_run(&command, argc, argv);
}
